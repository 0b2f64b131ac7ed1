"""Photo app: single posts. One page for each; a second one only for what it does not tell."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import structlog
from scrapy import Request
from scrapy.http import Response
from scrapy_spider_metadata import Args  # type: ignore[attr-defined]  # it has no __all__

from crawler.errors import ExtractionFailed, ScrapeError
from crawler.pages.base import PlatformPage
from crawler.pages.photoapp import EmbedPage, GraphPage, PostPage, ReelsPage, SharePage, WebInfoPage
from crawler.schemas.photoapp import PostData, PostParams
from crawler.schemas.photoapp_link import link_of_url
from crawler.spiders.base import CrawlArguments, PlatformSpider
from crawler.targets import Record, Scraper, Target
from crawler.upstream.photoapp import embed_request, post_request, reels_request, share_request

logger = structlog.get_logger(__name__)

FORMS = (PostPage, WebInfoPage, GraphPage, EmbedPage)
"""The pages that hold a post, those that tell most of it first."""


class PhotoappArguments(CrawlArguments):
    """The scraper's params."""

    url: str | None = None
    """URL of a post or reel, or a share link."""


class PhotoappSpider(Args[PhotoappArguments], PlatformSpider):
    """Posts and reels of the photo app."""

    name = "photoapp"
    metadata = {"title": "Photo app", "description": "Posts and reels with owner, counts and media."}  # noqa: RUF012
    scrapers = (
        Scraper(
            name="photoapp-post-v4",
            platform="photoapp",
            summary="A post or reel: owner with the newest posts, caption, counts, tags, media.",
            params=PostParams,
            data=PostData,
            example={"url": "https://www.instagram.com/p/DaSandbox01/"},
            pages=(ReelsPage, EmbedPage, GraphPage, WebInfoPage, PostPage),
        ),
    )
    args: PhotoappArguments

    def request(self, target: Target) -> Request:
        link = cast("PostParams", target.params).link
        if link.shortcode is None:
            return share_request(self.origin(), link.share or "").replace(callback=self.parse_share)
        return post_request(self.origin(), link.shortcode).replace(callback=self.parse_post)

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        asked = super().page_params(scraper, arguments)
        link = link_of_url(asked["url"]) if "url" in asked else None
        return {"shortcode": link.shortcode} if link and link.shortcode else {}

    @classmethod
    async def join(cls, pages: Sequence[PlatformPage]) -> dict[str, Any]:
        held = {type(page): page for page in pages}
        posts = [cast("PostPage", held[form]) for form in FORMS if form in held]
        if not posts:
            raise ExtractionFailed("None of the files is a post.", reason="no_post")
        post, page = await posts[0].to_item(), posts[0]
        embed = held.get(EmbedPage)
        if embed is not None and embed is not page and not page.has_exact_duration:
            post = _with_duration(post, await embed.to_item())
        if ReelsPage in held:
            post = _with_plays(post, await held[ReelsPage].to_item())
        return _shell(post)

    async def parse_share(self, response: Response, page: SharePage) -> AsyncIterator[Record]:
        """Follows a share link's one redirect, to the post's page."""
        target = _target_of(response)
        found, _ = await self.read(page, response)
        asked = post_request(self.origin(), found["shortcode"]).replace(callback=self.parse_post)
        answer = await self.fetch(asked, target)
        async for record in self.parse_post(answer, cast("Request", answer.request).cb_kwargs["page"]):
            yield record

    async def parse_post(self, response: Response, page: PostPage) -> AsyncIterator[Record]:
        """The post's record; what its page does not tell is asked for, and stays null where the answer is no."""
        target = _target_of(response)
        post, _ = await self.read(page, response)
        if post["is_video"] and post["video_duration"] is None:
            asked = embed_request(self.origin(), post["shortcode"]).replace(callback=self.parse_embed)
            post = _with_duration(post, await self._further(asked, target))
        if post["is_video"] and post["video_play_count"] is None and self.settings.getbool("PHOTOAPP_PLAY_COUNTS"):
            asked = reels_request(self.origin(), post["owner"]["username"]).replace(callback=self.parse_reels)
            post = _with_plays(post, await self._further(asked, target))
        yield self.record(target, _shell(post))

    async def parse_embed(self, response: Response, page: EmbedPage) -> None:
        """Names the page object of an awaited follow-up; never called."""

    async def parse_reels(self, response: Response, page: ReelsPage) -> None:
        """Names the page object of an awaited follow-up; never called."""

    async def _further(self, request: Request, target: Target) -> dict[str, Any]:
        """The item of a further page, {} where there is none: the post is good without it."""
        try:
            answer = await self.fetch(request, target)
            item: dict[str, Any] = await cast("Request", answer.request).cb_kwargs["page"].to_item()
        except ScrapeError as error:
            logger.info("done_without", url=request.url, code=error.code, reason=error.reason)
            return {}
        return item


def _target_of(response: Response) -> Target:
    return cast("Target", cast("Request", response.request).meta["target"])


def _with_duration(post: dict[str, Any], embed: dict[str, Any]) -> dict[str, Any]:
    seconds = embed.get("video_duration")
    if not post["is_video"] or seconds is None or embed["shortcode"] != post["shortcode"]:
        return post
    return {**post, "video_duration": seconds}


def _with_plays(post: dict[str, Any], reels: dict[str, Any]) -> dict[str, Any]:
    plays = reels.get("plays", {}).get(post["id"])
    if plays is None or not post["is_video"] or post["video_play_count"] or post["like_and_view_counts_disabled"]:
        return post
    return {**post, "video_play_count": plays}


def _shell(post: dict[str, Any]) -> dict[str, Any]:
    return {"data": {"xdt_shortcode_media": post}, "success": True}
