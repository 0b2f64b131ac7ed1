"""Photo app: the spider for single posts. A post is read from one page; for a video, other pages may add missing
fields.

If the platform demands a login for the post's page, or the page has null instead of the post, the post is read from its
embed page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import structlog
from scrapy import Request

from crawler.errors import BlockedByPolicy, ScrapeError, TargetNotFound, UpstreamError, UpstreamRateLimited
from crawler.items import PhotoappPostV4Item
from crawler.platforms.model import max_details
from crawler.platforms.page import PlatformPage, missing_error
from crawler.platforms.photoapp.pages import EmbedPage, PostPage, ReelsPage, SharePage
from crawler.platforms.photoapp.schema import PostData, PostParams
from crawler.platforms.photoapp.urls import embed_request, link_of_url, post_request, reels_request, share_request
from crawler.spiders.base import Data, First, PlatformSpider
from crawler.targets.target import Scraper, Target

logger = structlog.get_logger(__name__)

EMBED_AFTER = {"login_wall": (), "circuit_open": (UpstreamError,), "null_post": (TargetNotFound,)}
"""Reasons of errors of the post's page after which the embed page is tried, with the errors of the embed page that are
then the outcome: the platform demands a login, the circuit breaker of the post's page is open after earlier blocks, or
the page has null instead of the post."""
DURATION_PATH = "data.xdt_shortcode_media.video_duration"
"""The path in the record of the only detail that needs a request of its own."""
FORMS = (PostPage, EmbedPage)
"""The classes of page objects that read a post, the class that reads the most fields first."""


class PhotoappSpider(PlatformSpider):
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
            item=PhotoappPostV4Item,
            example={"url": "https://www.instagram.com/p/DaSandbox01/"},
            pages=(ReelsPage, EmbedPage, PostPage),
            requests=4,  # including the request for a share link
        ),
    )

    def request(self, target: Target) -> Request:
        link = cast("PostParams", target.params).link
        if link.shortcode is None:
            return self.for_page(SharePage, share_request(link.share or ""))
        return self._post_request(link.shortcode)

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
            raise missing_error("None of the files contains a post.", ["xdt_shortcode_media"], reason="no_post")
        post, page = await posts[0].to_item(), posts[0]
        if not page.has_time:
            raise missing_error("The post has no time.", ["taken_at_timestamp"], reason="missing_field")
        embed = by_class.get(EmbedPage)
        if embed is not None and embed is not page and not page.has_exact_duration:
            post = _with_duration(post, await embed.to_item())
        if ReelsPage in by_class:
            post = _with_plays(post, await by_class[ReelsPage].to_item())
        return _shell(post)

    async def scrape(self, target: Target, first: First) -> Data:
        """Scrape a post. For a video, request a duration and a play count that the post's page lacks from other pages.

        These are the embed page, by the param ``details``, and the page with the owner's reels. If one of them fails or
        is left out, its field stays null, and the outcome has a warning.
        """
        page = await self._post_page(target, first)
        post = await page.to_item()
        if post["is_video"] and post["video_duration"] is None and not isinstance(page, EmbedPage):
            post = await self._with_details(target, post)
        if post["is_video"] and post["video_play_count"] is None and self._wants_plays(target):
            request = reels_request(post["owner"]["username"])
            reels = await self.get_optional(ReelsPage, request, target)
            post = _with_plays(post, await reels.to_item() if reels else {})
        return _shell(post)

    async def _with_details(self, target: Target, post: dict[str, Any]) -> dict[str, Any]:
        """Add the duration of a video from its embed page, if the param ``details`` permits this request."""
        details = cast("PostParams", target.params).details
        if self.starts_within(target, EmbedPage.source, details) < 1:
            if max_details(details):
                self.left_out(target, EmbedPage.source, DURATION_PATH, (1, 1), BlockedByPolicy)
            return post
        embed = await self.get_optional(EmbedPage, embed_request(post["shortcode"]), target)
        return _with_duration(post, await embed.to_item() if embed else {})

    def _wants_plays(self, target: Target) -> bool:
        wanted = cast("PostParams", target.params).include_play_counts
        return self.settings.getbool("PHOTOAPP_PLAY_COUNTS") if wanted is None else wanted

    async def _post_page(self, target: Target, first: First) -> PostPage:
        """Return the post's page, or its embed page after an error with one of ``EMBED_AFTER``.

        For a share link, request the shortcode of its post first.

        Raises:
            ScrapeError: the error of the share link or of the post's page; for the embed page, see ``_embed_page``.
        """
        shortcode = cast("PostParams", target.params).link.shortcode
        if shortcode is None:
            shortcode = (await (await first.page(SharePage)).to_item())["shortcode"]
            reading = self.get(PostPage, self._post_request(shortcode), target)
        else:
            reading = first.page(PostPage)
        try:
            return await reading
        except UpstreamRateLimited as error:
            # The rate limit applies to the visitor, hence to the embed page, too. It is counted for both pages, so that
            # the embed page does not replace the post's page while the circuit breaker of the latter is open.
            await self.lanes.count(target, EmbedPage.source, error)
            raise
        except ScrapeError as error:
            if error.reason not in EMBED_AFTER:
                raise
            return await self._embed_page(target, shortcode, error)

    def _post_request(self, shortcode: str) -> Request:
        """Return the request for a post's page. The embed page replaces it while the page's circuit breaker is open."""
        return self.for_page(PostPage, post_request(shortcode), fallbacks=((EmbedPage.source,),))

    async def _embed_page(self, target: Target, shortcode: str, first: ScrapeError) -> EmbedPage:
        """Return a post's embed page, because the post's page failed with ``first``, and add a warning to the outcome.

        Raises:
            TargetNotFound: the post's page has null instead of the post, and the embed page states that it is broken.
            ScrapeError: the embed page failed, or lacks the post's time. The error is ``first``, because an embed page
                that the owner has disabled looks like that of a missing post. But if ``first`` is only an open circuit
                breaker, and the embed page failed with an ``UpstreamError``, this error is raised.
        """
        try:
            page = await self.get(EmbedPage, embed_request(shortcode), target, retry=False)
        except ScrapeError as error:
            logger.info("fallback_failed", source=EmbedPage.source, reason=error.reason, first=first.reason)
            if isinstance(error, EMBED_AFTER[first.reason]):
                raise
            raise first from error
        if not page.has_time:
            logger.info("fallback_failed", source=EmbedPage.source, reason="no_time", first=first.reason)
            raise first
        logger.info("source_fallback", source=EmbedPage.source, reason=first.reason)
        self.warn(target, PostPage.source, first)
        return page


def _with_duration(post: dict[str, Any], embed: dict[str, Any]) -> dict[str, Any]:
    seconds = embed.get("video_duration")
    if not post["is_video"] or seconds is None or embed["shortcode"] != post["shortcode"]:
        return post
    return {**post, "video_duration": seconds}


def _with_plays(post: dict[str, Any], reels: dict[str, Any]) -> dict[str, Any]:
    """Return a post with the play count of the reels page, if the post states none. That page lists no hidden counts.

    >>> _with_plays({"id": "1", "video_play_count": 7}, {"plays": {"1": 9}})["video_play_count"]
    7
    """
    return {**post, "video_play_count": post["video_play_count"] or reels.get("plays", {}).get(post["id"])}


def _shell(post: dict[str, Any]) -> dict[str, Any]:
    return {"data": {"xdt_shortcode_media": post}, "success": True}
