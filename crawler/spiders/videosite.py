"""Video site: the spider for channels. A record contains a channel and one page of its items.

Fields of items that lists lack, such as exact dates and likes, are requested from feeds and from pages of videos.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import structlog
from scrapy import Request

from crawler.errors import (
    OTHER_FORM_REASONS,
    BlockedByPolicy,
    CircuitOpen,
    ExtractionFailed,
    Overloaded,
    ScrapeError,
    TargetError,
    TargetNotFound,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from crawler.items import VideositeProfileItem, VideositeProfileV3Item
from crawler.platforms import budget
from crawler.platforms.model import AUTO_SECONDS, max_details
from crawler.platforms.page import PlatformPage, mismatch_error
from crawler.platforms.requests import is_repeated, is_used, page_mark, platform_ids, with_used
from crawler.platforms.videosite import urls as upstream
from crawler.platforms.videosite.base import VideositePage
from crawler.platforms.videosite.details import AboutPage, FeedPage, ResolvePage, VideoPage
from crawler.platforms.videosite.pages import ChannelPage, ContinuationPage, PlaylistPage
from crawler.platforms.videosite.record import cursor_after, joined_record, record, unenriched, without_about
from crawler.platforms.videosite.schema import TABS, ChannelParams, ChannelRecord, ProfileParams, switch
from crawler.platforms.videosite.urls import Ids
from crawler.reading.contract import OFTEN_ROWS, Unread
from crawler.spiders.base import Data, First, PlatformSpider
from crawler.targets.target import Entries, Scraper, Target

if TYPE_CHECKING:
    from crawler.platforms.model import Details

logger = structlog.get_logger(__name__)

Item = dict[str, Any]

EMPTY_LIST: Item = {"posts": [], "continuation": "", "more": False}
FEED_ITEMS = 15
"""Maximum number of items in an Atom feed (capture 13d8fa7ccbfc): a full feed is not the end of a tab."""
TOPIC_SUFFIX = " - Topic"
"""The end of the names of music channels that the platform generates."""
MAX_REDIRECTS = 3
"""Maximum number of redirects that are followed in a row, of a channel's page or of an address."""

LIFETIME_SECONDS = 900.0
"""Seconds for which the data of a channel's page is reused for further pages of its lists. Callers usually page through
a list within minutes."""
MAX_CHANNELS = 1_000
SECONDS_FOR_RECORD = 2.0
"""Number of seconds before a target's deadline in which no request is started. In this time, the record is built from
the details found so far."""
LIKES_PATH = "microformat.playerMicroformatRenderer.likeCount"
PAGES = (AboutPage, FeedPage, VideoPage, ResolvePage, PlaylistPage, ChannelPage, ContinuationPage)


class VideositeSpider(PlatformSpider):
    """Scrapes the video site's channels, with their videos, shorts and live streams."""

    name = "videosite"
    metadata = {"title": "Video site", "description": "Channel profiles with their items."}  # noqa: RUF012
    scrapers = (
        Scraper(
            name="videosite-profile-v3",
            platform="videosite",
            summary="A channel with one page of its videos, shorts or live streams.",
            params=ProfileParams,
            data=ChannelRecord,
            item=VideositeProfileV3Item,
            example={"username": "@harborlights"},
            pages=PAGES,
            entries=Entries("posts", "content_id", "published_date", "pagination.has_more", in_order=True),
        ),
        Scraper(
            name="videosite-profile",
            platform="videosite",
            summary="A channel with one page of its items, from the channel's page alone.",
            params=ChannelParams,
            data=ChannelRecord,
            item=VideositeProfileItem,
            example={"username": "@harborlights"},
            pages=PAGES,
            entries=Entries("posts", "content_id", "published_date", "pagination.has_more", in_order=True),
        ),
    )

    def request(self, target: Target) -> Request:
        return ChannelReader(self, target, self.recent).request

    @cached_property
    def recent(self) -> RecentChannels:
        """The channels that were read last, for targets with a cursor: they need not request the channel's page."""
        return RecentChannels()

    @classmethod
    def page_params(cls, scraper: Scraper, arguments: dict[str, str]) -> dict[str, Any]:
        params = super().page_params(scraper, arguments)
        expected = upstream.expected_echo(upstream.addresses(params["username"])[0]) if "username" in params else {}
        tab = {"tab": TABS[params["type"]]} if params.get("type") in TABS else {}
        about = {"include_about": switch(params["include_about"])} if "include_about" in params else {}
        without = {} if "include_about" in scraper.params.model_fields else {"without_about": True}
        return params | expected | tab | about | without

    @classmethod
    async def join(cls, pages: Sequence[PlatformPage]) -> dict[str, Any]:
        return joined_record({page.source: await page.to_item() for page in pages}, pages[0].page_params)

    async def scrape(self, target: Target, first: First) -> Data:
        """Scrape a channel and one page of its items. The next page of items becomes a follow-up (see ``follow``)."""
        reader = ChannelReader(self, target, self.recent)
        data = await reader.record(first)
        cursor, has_more = data["pagination"]["cursor"], data["pagination"]["has_more"]
        ids = [each["content_id"] for each in data["posts"]]
        # A list without a proven end is reported even if the crawl begins with this page or continues with another tab.
        self.count_rows(target, ids, None, is_first=reader.continuation is None or not reader.has_end)
        if not (cursor and reader.has_end):
            self.close_listing(target, ContinuationPage.source, ended=not has_more and reader.has_end)
        if cursor and not self.follow(target, data, cursor=cursor):
            self.close_listing(target, ContinuationPage.source, ended=None)
        return data


class ChannelReader:
    """Reads a channel: sends the requests for one target, and builds its record.

    The attribute ``ids`` has the values in API requests that the platform changes from time to time. The client version
    in the channel's page replaces the version in ``ids``. ``recent``: the channels that other targets have read.
    """

    def __init__(self, spider: PlatformSpider, target: Target, recent: RecentChannels) -> None:
        self.spider = spider
        self.target = target
        self.recent = recent
        assert isinstance(target.params, ChannelParams)
        self.params = target.params
        self.ids = platform_ids(Ids, spider.platform, spider.settings)
        self.continuation = continuation = self.params.continuation
        self.address = f"channel/{continuation.channel}" if continuation else upstream.addresses(self.params.channel)[0]
        self.tab = continuation.tabs[0] if continuation else TABS.get(self.params.type, TABS["video"])
        self.has_end = True
        """Whether the list's last page may be its end. If not, its token leads to a page that was read before, or the
        page has no items, although the page before it has a token for it."""
        self.include_about = isinstance(self.params, ProfileParams) and self.params.include_about

    @property
    def request(self) -> Request:
        """The request that the spider schedules for the target: for the channel's page with the requested tab.

        If the target's cursor continues a list, and another target has read the channel recently, the request is for
        the next page of this list instead.
        """
        continuation = self.continuation
        known = self.recent.get(continuation.channel, about=self.include_about) if continuation else None
        if known and continuation and continuation.token:
            self.ids = self.ids.with_version(known["client_version"])
            request = self._continuation_request(continuation.channel, self.tab, continuation.token)
            return self.spider.for_page(ContinuationPage, request.replace(meta={**request.meta, "channel": known}))
        request = upstream.channel_request(self.address, self.tab)
        return self.spider.for_page(ChannelPage, request, fallbacks=((ResolvePage.source, upstream.BROWSE),))

    async def record(self, first: First) -> Item:
        """Build the record from the channel's page and from the responses that complete it.

        Raises:
            ScrapeError: the channel's page and its fallbacks failed, or the page of the list failed.
        """
        if known := first.request.meta.get("channel"):
            return await self._record(known, dict(await (await first.page(ContinuationPage)).to_item()))
        return await self._record(await self._channel(first))

    # The channel

    async def _channel(self, first: First) -> Item:
        """Return the channel's page. If it is not found, try other URL paths; after most other errors, API calls."""
        try:
            return await self._redirected(dict(await (await first.page(ChannelPage)).to_item()))
        except TargetNotFound as error:
            return await self._by_other_addresses(error)
        except UpstreamError as error:
            if isinstance(error, UpstreamRateLimited | UpstreamTimeout) or error.reason in OTHER_FORM_REASONS:
                raise
            return await self._by_api_calls(error)

    async def _by_other_addresses(self, not_found: TargetNotFound) -> Item:
        """Return the channel's page from one of the other URL paths that a channel with this name may have.

        Raises:
            ScrapeError: no path leads to a channel. The error is ``not_found`` or a more precise error.
        """
        if self.continuation or not_found.reason != "not_found":  # a removed channel has no other addresses
            raise not_found
        for address in upstream.addresses(self.params.channel)[1:]:
            try:
                page = await self.item(ChannelPage, upstream.channel_request(address, self.tab))
            except TargetNotFound as error:
                if error.reason != "not_found":
                    raise
            else:
                return await self._redirected(page)
        raise not_found

    async def _redirected(self, page: Item) -> Item:
        """Follow the redirects in the data of a channel's page. In some regions, a channel has another id."""
        for _ in range(MAX_REDIRECTS):
            if page["moved_to"]:
                address = f"channel/{page['moved_to']}"
                page = await self.item(ChannelPage, upstream.channel_request(address, self.tab))
        if not page["moved_to"]:
            return page
        raise self._moved_in_circles("onResponseReceivedActions")

    def _moved_in_circles(self, part: str) -> ScrapeError:
        message = f"The channel redirected {MAX_REDIRECTS} times."
        return mismatch_error(message, [part], "a channel that does not redirect", reason="moved_in_circles")

    async def _by_api_calls(self, failed: ScrapeError) -> Item:
        """Return the channel's page from the API calls that the page makes, because the page has ``failed``.

        Raises:
            ScrapeError: a call failed. The error is the call's if this is a ``TargetNotFound`` or if ``failed`` is a
                ``CircuitOpen``, else ``failed``.
        """
        try:
            page = await self._redirected(await self._browsed(await self._resolved()))
        except TargetNotFound:
            raise
        except ScrapeError as error:
            logger.info("fallback_failed", source="browse", reason=error.reason, first=failed.reason)
            raise error if isinstance(failed, CircuitOpen) else failed from error
        logger.info("source_fallback", source="browse", reason=failed.reason)
        return page

    async def _browsed(self, channel: str) -> Item:
        """Return a tab of a channel, from the API call for this tab.

        If the tab's params in ``ids`` are out of date, send the call again with the params in the channel's page.

        Raises:
            ScrapeError: a call failed.
        """
        browse = partial(upstream.browse_request, channel, ids=self.ids)
        try:
            return await self.item(ChannelPage, browse(self.tab), retry=False)
        except ExtractionFailed as error:
            if error.reason != "wrong_tab":
                raise
            home = await self.item(ChannelPage, browse(), retry=False)
            if not (params := home["tab_params"].get(self.tab)):
                raise
        return await self.item(ChannelPage, browse(self.tab, params=params), retry=False)

    async def _resolved(self) -> str:
        """Return the channel's id: from the target's params, or from an API call for each possible address."""
        if self.continuation:
            return self.continuation.channel
        addresses = upstream.addresses(self.params.channel)
        if addresses[0].startswith("channel/"):
            return addresses[0].removeprefix("channel/")
        for address in addresses:
            request = upstream.resolve_request(upstream.public_url(address), ids=self.ids)
            try:
                for _ in range(MAX_REDIRECTS):
                    found = await self.item(ResolvePage, request, retry=False)
                    if found["channel"]:
                        return str(found["channel"])
                    request = upstream.resolve_request(found["url"], ids=self.ids)
            except TargetNotFound:
                if address == addresses[-1]:
                    raise
        raise self._moved_in_circles("endpoint")

    # The record

    async def _record(self, page: Item, listing: Item | None = None) -> Item:
        """Build the record of the channel and one page of its items. ``listing``: this page of items, if it was read
        already.

        For ``videosite-profile-v3``, add the about panel and the enrichment.
        """
        version = page["client_version"]
        if version and version != self.ids.client_version:
            self.spider.report_stale_id(f"client_version {self.ids.client_version}", f"the page has {version}")
        self.ids = self.ids.with_version(version)
        tabs, profile, channel = self._tabs(page), page["profile"], page["profile"]["profile_id"]
        listing = listing or await self._list_page(page, channel, tabs[0])
        has_token = self.continuation is not None and bool(self.continuation.token)
        if has_token and not (listing["posts"] or listing["continuation"] or listing["more"]):
            listing = await self._list_page(page, channel, tabs[0])  # an empty page is requested once more
            self.has_end = bool(listing["posts"])
        posts, token = listing["posts"], listing["continuation"]
        more = listing["more"] and not token
        seen = self.continuation.seen if self.continuation else []
        mark = page_mark(each["content_id"] for each in posts)
        leads_back = is_used(token, seen) or (bool(token) and is_repeated(mark, seen))
        self.has_end = self.has_end and not leads_back
        following = cursor_after(
            profile,
            username=self.params.name,
            kind=self.params.type,
            tabs=tabs,
            token="" if leads_back else token,
            seen=with_used(seen, mark),
        )
        if not isinstance(self.params, ProfileParams):
            self.recent.add(channel, page, about=False)
            return record(without_about(profile), posts, [], cursor=following, more=more)
        enrichment = Enrichment(self, channel, tabs[0], self.params.details)
        page, enrichments = await asyncio.gather(self._with_about(page), enrichment.items(posts))
        self.recent.add(channel, page, about=self.include_about)
        return record(page["profile"], posts, enrichments, cursor=following, more=more)

    def _tabs(self, page: Item) -> list[str]:
        """Return the tabs that are not read to their end yet. This target reads a page of the first of these tabs."""
        if self.continuation:
            return list(self.continuation.tabs)
        if self.params.type != "all":
            return [self.tab]
        return [tab for tab in TABS.values() if tab in page["tabs"]] or list(TABS.values())

    async def _list_page(self, page: Item, channel: str, tab: str) -> Item:
        """Return this target's page of the list, as a dict with ``posts``, ``continuation`` and ``more``."""
        if self.continuation and self.continuation.token:
            return await self.item(ContinuationPage, self._continuation_request(channel, tab, self.continuation.token))
        if page["age_gated"] or not page["tabs"]:
            return await self._without_tabs(page["profile"], tab)
        if page["tab"] != tab and tab in page["tabs"]:
            return await self.item(ChannelPage, upstream.channel_request(f"channel/{channel}", tab))
        return page

    def _continuation_request(self, channel: str, tab: str, token: str) -> Request:
        return upstream.continuation_request(token, channel=channel, tab=tab, ids=self.ids)

    async def _without_tabs(self, profile: Item, tab: str) -> Item:
        """Return the items of a channel without tabs (or with an age limit), from the playlist for the requested tab.

        Topic channels (music channels that the platform generates) may have only the playlist of all uploads.

        Raises:
            ScrapeError: both the playlist and its Atom feed failed. The error is the playlist's.
        """
        channel = profile["profile_id"]
        listing = await self._playlist(channel, tab)
        if not listing["posts"] and tab == TABS["video"] and profile["display_name"].endswith(TOPIC_SUFFIX):
            return await self._playlist(channel, tab, kind="uploads")
        return listing

    async def _playlist(self, channel: str, tab: str, *, kind: str = "") -> Item:
        """Return the items in a channel's playlist, none if it does not exist; if it fails, those in the Atom feed."""
        request = upstream.playlist_request(channel, tab, kind=kind, ids=self.ids)
        request = self.spider.for_page(PlaylistPage, request, fallbacks=((FeedPage.source,),))
        try:
            return await self.item(PlaylistPage, request, retry=False)
        except TargetNotFound:
            return EMPTY_LIST
        except ScrapeError as error:
            feed = await self.optional(FeedPage, upstream.feed_request(channel, tab))
            if feed is None:
                raise
            self.spider.warn(self.target, PlaylistPage.source, error)  # the feed has the newest items only
            logger.info("source_fallback", source="feed", reason=error.reason)
            return {**EMPTY_LIST, "posts": feed["posts"], "more": len(feed["posts"]) >= FEED_ITEMS}

    async def _with_about(self, page: Item) -> Item:
        """Return the page with the about panel, from the panel's API call or the page ``/about`` if the page lacks it.

        If the panel has no joining date, the Atom feed is read for it. Without a panel, the page's own links are used.
        Without the param ``include_about``, nothing is requested.
        """
        profile, token = page["profile"], page["about_token"]
        channel = profile["profile_id"]
        if page["has_about"] or not self.include_about:
            return page
        requests = [upstream.about_page_request(channel)]
        if token:
            requests.insert(0, upstream.about_request(token, channel=channel, ids=self.ids))
        found = await self._first_about(requests)
        feed = None
        if "account_creation_date" not in found:
            feed = await self.optional(FeedPage, upstream.feed_request(channel))
        about = {"external_links": page["links"], **found}
        profile = {**profile, **about, **(feed["created"] if feed else {})}
        return {**page, "profile": profile, "has_about": bool(found)}

    async def _first_about(self, requests: list[Request]) -> Item:
        """Return the about panel from the first request that succeeds. If all fail, return {} and add a warning."""
        failed: ScrapeError | None = None
        for request in requests:
            try:
                found = await self.item(AboutPage, request, retry=False, optional=True)
            except ScrapeError as error:
                failed = failed or error
            else:
                if failed:
                    logger.info("source_fallback", source="about page", reason=failed.reason)
                return dict(found["about"])
        assert failed is not None
        self.spider.warn(self.target, AboutPage.source, failed)
        return {}

    async def item(
        self, kind: type[VideositePage], request: Request, *, retry: bool = True, optional: bool = False
    ) -> Item:
        """Fetch another page and return its item. ``retry``, ``optional``: see ``PlatformSpider.get``.

        Raises:
            ScrapeError: the download failed, or the page object raised an error.
        """
        page = await self.spider.get(kind, request, self.target, retry=retry, optional=optional)
        return dict(await page.to_item())

    async def optional(self, kind: type[VideositePage], request: Request) -> Item | None:
        """Return the item of an optional page. If the page fails, return None and add a warning to the outcome."""
        page = await self.spider.get_optional(kind, request, self.target)
        return dict(await page.to_item()) if page else None


class RecentChannels:
    """Caches the data of channels, without their lists of videos, by channel id and by whether the data includes the
    about panel.

    If there are more than ``MAX_CHANNELS`` entries, the oldest is removed.
    """

    def __init__(self) -> None:
        self._pages: OrderedDict[tuple[str, bool], tuple[float, dict[str, Any]]] = OrderedDict()

    def get(self, channel: str, *, about: bool) -> dict[str, Any] | None:
        """Return the data of a channel that was read less than ``LIFETIME_SECONDS`` ago, or None."""
        read_at, page = self._pages.get((channel, about), (0.0, None))
        return page if page is not None and time.monotonic() - read_at < LIFETIME_SECONDS else None

    def add(self, channel: str, page: dict[str, Any], *, about: bool) -> None:
        """Store the data of a channel that was just read."""
        self._pages[channel, about] = (time.monotonic(), {**page, "posts": [], "continuation": "", "more": False})
        self._pages.move_to_end((channel, about))
        if len(self._pages) > MAX_CHANNELS:
            self._pages.popitem(last=False)


class Enrichment:
    """Requests the Atom feed of a tab, and the metadata of the items that are not in the feed."""

    def __init__(self, reader: ChannelReader, channel: str, tab: str, details: Details) -> None:
        self._details = details
        self._starts_until = math.inf
        """When the last request may start, on the event loop's clock."""
        self._is_over_budget = False
        """Whether details were left out because they could not start within ``AUTO_SECONDS``."""
        self._reader = reader
        self._channel = channel
        self._tab = tab
        deadline = reader.target.deadline
        self._end = None if deadline is None else deadline - SECONDS_FOR_RECORD
        self._found: list[Item] = []
        self._metadata: list[Item] = []
        """The items of ``_found`` whose source is the video's metadata."""
        self._has_no_slot = False
        """Whether no download slot becomes free before the deadline."""
        self._failed: set[str] = set()
        """Ids of the items whose metadata could not be read. Such items do not count as left out, because they were
        requested."""

    async def items(self, posts: list[Item]) -> list[Item]:
        """Return items with the fields that lists lack: first the feed's items, then those from the videos' metadata.

        The param ``details`` and the setting ``VIDEOSITE_ENRICH_MAX`` limit the number of posts, from the top, for
        which these fields are requested. If posts are left out because of a limit or the deadline, the outcome has a
        warning with their number.
        """
        most = max_details(self._details)
        bound = self._reader.spider.settings.getint("VIDEOSITE_ENRICH_MAX")
        wanted = posts[: int(min(most, bound, len(posts)))]
        if wanted:
            if self._details == "auto":
                self._starts_until = asyncio.get_running_loop().time() + AUTO_SECONDS
            work = asyncio.ensure_future(self._request(wanted))
            work.add_done_callback(_ignore_error)  # nothing awaits work that is still running at the end
            loop = asyncio.get_running_loop()
            seconds = None if self._end is None else max(0.0, self._end - loop.time())
            done, _ = await asyncio.wait([work], timeout=seconds)
            for finished in done:
                finished.result()
        self._report_missing_likes()
        found = list(self._found)  # a copy: requests that are still in flight keep adding to the original
        if most:  # if no details were requested, none are missing
            self._warn(posts, posts[len(wanted) :], found, BlockedByPolicy)
        if self._is_over_budget:
            self._warn(posts, wanted, found, BlockedByPolicy)
        elif self._is_late or self._has_no_slot:
            self._warn(posts, wanted, found, UpstreamTimeout)
        return found

    @property
    def _is_late(self) -> bool:
        return self._end is not None and asyncio.get_running_loop().time() >= self._end

    def _warn(self, posts: list[Item], wanted: list[Item], found: list[Item], error: type[ScrapeError]) -> None:
        """Add a warning if the details of wanted posts were not requested. ``error``: the class for the reason."""
        missing = set(unenriched(wanted, found)) - self._failed
        if missing:
            reader = self._reader
            reader.spider.left_out(reader.target, VideoPage.source, "posts[]", (len(missing), len(posts)), error)

    def _report_missing_likes(self) -> None:
        """Report the number of likes as unread if the feed contains it, but the metadata of ten or more items does not.

        The metadata of a single item lacks the number if the channel hides the likes. The feed states 0 for such items.
        """
        count = len(self._metadata)
        if count < OFTEN_ROWS or any(each["like_count"] is not None for each in self._metadata):
            return
        if any(each["like_count"] for each in self._found):
            reader = self._reader
            reader.spider.warn_unread(
                reader.target, VideoPage.source, [Unread(LIKES_PATH, "contradiction", count, count)]
            )

    async def _request(self, posts: list[Item]) -> None:
        reader = self._reader
        if self._left() < 1:
            self._is_over_budget = True
            return
        if not (reader.continuation and reader.continuation.token):  # the feed contains only the newest items
            feed = await reader.optional(FeedPage, upstream.feed_request(self._channel, self._tab))
            self._found += feed["posts"] if feed else []
        missing = unenriched(posts, self._found)
        waiting = iter(missing[: int(min(self._left(), len(missing)))])
        self._is_over_budget = self._left() < len(missing)
        workers = budget(reader.spider.platform, reader.spider.settings)["concurrency"]
        try:
            await asyncio.gather(*(self._work(waiting) for _ in range(workers)))
        finally:
            deque(waiting, maxlen=0)  # after a failure, start no further work

    def _left(self) -> float:
        """Return the number of requests that may still start."""
        reader, seconds = self._reader, self._starts_until - asyncio.get_running_loop().time()
        return reader.spider.starts_within(reader.target, VideoPage.source, self._details, seconds)

    async def _work(self, waiting: Iterator[str]) -> None:
        reader = self._reader
        for video in waiting:
            if self._is_late or self._has_no_slot:
                return
            if asyncio.get_running_loop().time() >= self._starts_until:
                self._is_over_budget = True
                return
            try:
                request = upstream.video_request(video, ids=reader.ids)
                metadata = await reader.item(VideoPage, request, retry=False, optional=True)
            except Overloaded:
                self._has_no_slot = True
            except ScrapeError as error:
                self._failed.add(video)
                logger.info("enrichment_failed", video=video, reason=error.reason)
                if not isinstance(error, TargetError):  # a TargetError only means that visitors cannot see the video
                    reader.spider.warn(reader.target, VideoPage.source, error)
                if isinstance(error, CircuitOpen | UpstreamBlocked | UpstreamRateLimited):
                    return  # further requests would be blocked, too
            else:
                self._found.extend(metadata["posts"])
                self._metadata.extend(metadata["posts"])


def _ignore_error(work: asyncio.Future[None]) -> None:
    """Retrieve the error of a task, so that asyncio does not log it as never retrieved."""
    if not work.cancelled():
        work.exception()
