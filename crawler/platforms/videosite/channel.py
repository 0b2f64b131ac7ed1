"""Video site: one target's way through the platform's answers, in order, with what replaces each that is not given."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import structlog
from scrapy import Request

from crawler.errors import (
    CircuitOpen,
    ExtractionFailed,
    ScrapeError,
    TargetNotFound,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from crawler.platforms.videosite import requests as upstream
from crawler.platforms.videosite.base import VideositePage
from crawler.platforms.videosite.details import AboutPage, FeedPage, ResolvePage, VideoPage
from crawler.platforms.videosite.lists import ContinuationPage, PlaylistPage
from crawler.platforms.videosite.pages import ChannelPage
from crawler.platforms.videosite.record import cursor_after, record, unknown, with_about
from crawler.platforms.videosite.schema import TABS, ProfileParams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawler.spiders.base import First, PlatformSpider
    from crawler.targets.target import Target

logger = structlog.get_logger(__name__)

Item = dict[str, Any]

MOST_MOVES = 3
"""How often an address may lead to another one."""
AT_ONCE = 2
"""Enrichment requests of one target at the same time."""


class ChannelReader:
    """One target's requests. ``version`` is the web client's, as the channel's page tells it."""

    def __init__(self, spider: PlatformSpider, target: Target) -> None:
        self.spider = spider
        self.target = target
        self.params: ProfileParams = target.params  # type: ignore[assignment]  # the only scraper's
        self.origin = spider.origin()
        self.version = ""
        self.going_on = going_on = self.params.continuation
        self.address = f"channel/{going_on.channel}" if going_on else upstream.addresses(self.params.username)[0]
        self.tab = going_on.tabs[0] if going_on else TABS.get(self.params.type, TABS["video"])

    @property
    def request(self) -> Request:
        """The first request: a tab of the channel's page."""
        return upstream.channel_request(self.origin, self.address, self.tab)

    async def record(self, first: First) -> Item:
        """The record that begins with the channel's page.

        Raises:
            ScrapeError: what the page said, where nothing else says more.
        """
        return await self._record(await self._channel(first))

    # The channel

    async def _channel(self, first: First) -> Item:
        """The channel's page: under another address of the same name, or by the page's own calls where it must be."""
        try:
            return await self._moved(dict(await (await first.page(ChannelPage)).to_item()))
        except (CircuitOpen, UpstreamRateLimited, UpstreamTimeout):
            raise
        except TargetNotFound as error:
            return await self._under_other_names(error)
        except UpstreamError as error:
            return await self._by_calls(error)

    async def _under_other_names(self, refused: TargetNotFound) -> Item:
        """The channel under the next address of the same name.

        Raises:
            ScrapeError: ``refused``, where there is none.
        """
        addresses = [] if self.going_on else upstream.addresses(self.params.username)[1:]
        if refused.reason != "not_found":
            addresses = []  # it is known, and it is gone
        for address in addresses:
            try:
                page = await self._item(ChannelPage, upstream.channel_request(self.origin, address, self.tab))
            except TargetNotFound as error:
                if error.reason != "not_found":
                    raise
            else:
                return await self._moved(page)
        raise refused

    async def _moved(self, page: Item) -> Item:
        """The channel to which a page leads: in some regions a channel has another id."""
        for _ in range(MOST_MOVES):
            if not page["moved_to"]:
                return page
            address = f"channel/{page['moved_to']}"
            page = await self._item(ChannelPage, upstream.channel_request(self.origin, address, self.tab))
        raise ExtractionFailed("The platform leads from one channel to the next.", reason="moved_in_circles")

    async def _by_calls(self, failed: ScrapeError) -> Item:
        """The channel by the calls that its page makes itself.

        Raises:
            ScrapeError: ``failed``, where these say no more; what they say of the channel otherwise.
        """
        try:
            channel, asked = await self._resolved()
            request = upstream.browse_request(self.origin, channel, self.tab, asked=asked)
            page = await self._moved(await self._item(ChannelPage, request, retry=False))
        except TargetNotFound:
            raise
        except ScrapeError as error:
            logger.info("fallback_failed", source="browse", reason=error.reason, first=failed.reason)
            raise failed from error
        logger.info("source_fallback", source="browse", reason=failed.reason)
        return page

    async def _resolved(self) -> tuple[str, str]:
        """The channel's id, and the address under which it was found."""
        if self.going_on:
            return self.going_on.channel, ""
        addresses = upstream.addresses(self.params.username)
        if addresses[0].startswith("channel/"):
            return addresses[0].removeprefix("channel/"), addresses[0]
        for address in addresses:
            request = upstream.resolve_request(self.origin, address)
            try:
                for _ in range(MOST_MOVES):
                    found = await self._item(ResolvePage, request, retry=False)
                    if found["channel"]:
                        return found["channel"], address
                    request = upstream.resolve_url_request(self.origin, found["url"])
            except TargetNotFound:
                if address == addresses[-1]:
                    raise
        raise TargetNotFound("The address leads to no channel.", reason="wrong_page_kind")

    # The record

    async def _record(self, page: Item) -> Item:
        """The channel's record: a page of its items, completed by the smaller answers."""
        self.version = page["client_version"]
        channel = page["profile"]["profile_id"]
        tabs = self._tabs(page)
        posts, token = await self._listed(page, channel, tabs[0])
        profile = page["profile"]
        following = cursor_after(
            profile,
            asked=self.params.name,
            kind=self.params.type,
            tabs=tabs,
            token=token,
            seen=self.going_on.seen if self.going_on else [],
        )
        if self.params.include_about:
            profile = await self._with_about(page)
        exact = await self._exact(channel, tabs[0], posts)
        return record(profile, posts, exact, cursor=following)

    def _tabs(self, page: Item) -> list[str]:
        """The tabs to go through, the present one first."""
        if self.going_on:
            return list(self.going_on.tabs)
        if self.params.type != "all":
            return [self.tab]
        return [tab for tab in TABS.values() if tab in page["tabs"]] or list(TABS.values())

    async def _listed(self, page: Item, channel: str, tab: str) -> tuple[list[Item], str]:
        """The items of this page, and the token of the next one."""
        if self.going_on and self.going_on.token:
            token = self.going_on.token
            request = upstream.continuation_request(self.origin, token, channel=channel, tab=tab, version=self.version)
            listing = await self._item(ContinuationPage, request)
        elif page["age_gated"] or not page["tabs"]:
            return await self._gated(channel, tab)
        elif page["tab"] != tab and tab in page["tabs"]:
            request = upstream.channel_request(self.origin, f"channel/{channel}", tab)
            listing = await self._item(ChannelPage, request)
        else:
            listing = page
        return listing["posts"], listing["continuation"]

    async def _gated(self, channel: str, tab: str) -> tuple[list[Item], str]:
        """The items of a channel that shows no tab: its playlist of them, else the newest of that in its feed.

        Raises:
            ScrapeError: the playlist's, where neither is given.
        """
        request = upstream.playlist_request(self.origin, channel, tab, version=self.version)
        try:
            listing = await self._item(PlaylistPage, request, retry=False)
        except TargetNotFound:
            return [], ""
        except ScrapeError as error:
            feed = await self._optional(FeedPage, upstream.feed_request(self.origin, channel, tab))
            if feed is None:
                raise
            logger.info("source_fallback", source="feed", reason=error.reason)
            return feed["posts"], ""
        return listing["posts"], listing["continuation"]

    async def _with_about(self, page: Item) -> Item:
        """The channel with its about panel: the page's own, by its call, by its own page; else the feed's beginning,
        and the links that the page tells search engines.
        """
        profile, token = page["profile"], page["about_token"]
        channel = profile["profile_id"]
        if page["has_about"]:
            return dict(profile)
        about: Item = {"external_links": page["links"]}
        requests = [upstream.about_page_request(self.origin, channel)]
        if token:
            requests.insert(0, upstream.about_request(self.origin, token, channel=channel, version=self.version))
        for request in requests:
            found = await self._optional(AboutPage, request)
            if found is not None:
                about |= found["about"]
                break
        if "account_creation_date" not in about:
            feed = await self._optional(FeedPage, upstream.feed_request(self.origin, channel))
            return with_about(profile, about, feed["created"] if feed else {})
        return with_about(profile, about, {})

    # What lists do not tell

    async def _exact(self, channel: str, tab: str, posts: list[Item]) -> list[Item]:
        """What the feed and single videos tell of the items, in at most so many requests and half of the time left."""
        most = self.spider.settings.getint("VIDEOSITE_ENRICH_MAX")
        loop = asyncio.get_running_loop()
        deadline = self.target.deadline
        end = None if deadline is None else (loop.time() + deadline) / 2
        found: list[Item] = []
        if most < 1 or not posts:
            return found
        work = asyncio.ensure_future(self._enrich(channel, tab, posts, most=most, end=end, found=found))
        done, _ = await asyncio.wait([work], timeout=None if end is None else end - loop.time())
        for finished in done:
            finished.result()
        return list(found)  # a copy: what comes later is too late

    async def _enrich(  # noqa: PLR0913  # one walk's whole state
        self, channel: str, tab: str, posts: list[Item], *, most: int, end: float | None, found: list[Item]
    ) -> None:
        if not (self.going_on and self.going_on.token):  # the feed has the newest ones
            most -= 1
            feed = await self._optional(FeedPage, upstream.feed_request(self.origin, channel, tab))
            found += feed["posts"] if feed else []
        waiting = iter(unknown(posts, found)[:most])
        loop = asyncio.get_running_loop()

        async def work(waiting: Iterator[str]) -> None:
            for video in waiting:
                if end is not None and loop.time() >= end:
                    return
                try:
                    request = upstream.video_request(self.origin, video, version=self.version)
                    told = await self._item(VideoPage, request, retry=False)
                except (UpstreamBlocked, UpstreamRateLimited) as error:
                    self.spider.warn(self.target, VideoPage.source, error)
                    return  # a wall: the next one would only be another
                except ScrapeError as error:
                    logger.info("enrichment_failed", video=video, reason=error.reason)
                else:
                    found.extend(told["posts"])

        await asyncio.gather(*(work(waiting) for _ in range(AT_ONCE)))

    async def _item(self, kind: type[VideositePage], request: Request, *, retry: bool = True) -> Item:
        """The item of a further page.

        Raises:
            ScrapeError: as the page object does; also where there is no answer.
        """
        page = await self.spider.get(kind, request, self.target, retry=retry)
        return dict(await page.to_item())

    async def _optional(self, kind: type[VideositePage], request: Request) -> Item | None:
        """The same for a page that the record can do without: None, and a warning of the outcome."""
        page = await self.spider.get_optional(kind, request, self.target)
        return dict(await page.to_item()) if page else None
