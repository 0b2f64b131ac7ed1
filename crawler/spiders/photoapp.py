"""Photo app: the spider for single posts. A post needs one page; a video may need others for missing fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from scrapy import Request
from scrapy_spider_metadata import Args  # type: ignore[attr-defined]  # it has no __all__

from crawler.errors import ExtractionFailed
from crawler.platforms.page import PlatformPage
from crawler.platforms.photoapp.link import link_of_url
from crawler.platforms.photoapp.pages import EmbedPage, GraphPage, PostPage, ReelsPage, SharePage, WebInfoPage
from crawler.platforms.photoapp.requests import embed_request, post_request, reels_request, share_request
from crawler.platforms.photoapp.schema import PostData, PostParams
from crawler.spiders.base import CrawlArguments, Data, First, PlatformSpider
from crawler.targets.target import Scraper, Target

FORMS = (PostPage, WebInfoPage, GraphPage, EmbedPage)
"""The page objects that read a post, the most complete form first."""


class PhotoappArguments(CrawlArguments):
    """The spider arguments: the scraper's params, and the arguments of every crawl."""

    url: str | None = None
    """URL of a post or reel, or a share link."""


class PhotoappSpider(Args[PhotoappArguments], PlatformSpider):
    """Scrapes posts and reels of the photo app."""

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
            return self.for_page(SharePage, share_request(self.origin(), link.share or ""))
        return self.for_page(PostPage, post_request(self.origin(), link.shortcode))

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        params = super().page_params(scraper, arguments)
        link = link_of_url(params["url"]) if "url" in params else None
        return {"shortcode": link.shortcode} if link and link.shortcode else {}

    @classmethod
    async def join(cls, pages: Sequence[PlatformPage]) -> dict[str, Any]:
        by_class = {type(page): page for page in pages}
        posts = [cast("PostPage", by_class[form]) for form in FORMS if form in by_class]
        if not posts:
            raise ExtractionFailed("None of the files contains a post.", reason="no_post")
        post, page = await posts[0].to_item(), posts[0]
        embed = by_class.get(EmbedPage)
        if embed is not None and embed is not page and not page.has_exact_duration:
            post = _with_duration(post, await embed.to_item())
        if ReelsPage in by_class:
            post = _with_plays(post, await by_class[ReelsPage].to_item())
        return _shell(post)

    async def scrape(self, target: Target, first: First) -> Data:
        """Scrape a post. A video's duration and plays may come from other pages; if these fail, both are null."""
        page = await self._post_page(target, first)
        post = await page.to_item()
        if post["is_video"] and post["video_duration"] is None:
            embed = await self.get_optional(EmbedPage, embed_request(self.origin(), post["shortcode"]), target)
            post = _with_duration(post, await embed.to_item() if embed else {})
        if post["is_video"] and post["video_play_count"] is None and self.settings.getbool("PHOTOAPP_PLAY_COUNTS"):
            request = reels_request(self.origin(), post["owner"]["username"])
            reels = await self.get_optional(ReelsPage, request, target)
            post = _with_plays(post, await reels.to_item() if reels else {})
        return _shell(post)

    async def _post_page(self, target: Target, first: First) -> PostPage:
        """Return the post's page. For a share link, it is the page of the post that the link redirects to."""
        if cast("PostParams", target.params).link.shortcode is not None:
            return await first.page(PostPage)
        share = await (await first.page(SharePage)).to_item()
        return await self.get(PostPage, post_request(self.origin(), share["shortcode"]), target)


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
