"""Video site: requests the fields of items that lists lack, such as exact dates and likes."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from crawler.errors import (
    BlockedByPolicy,
    CircuitOpen,
    Overloaded,
    ScrapeError,
    TargetError,
    UpstreamBlocked,
    UpstreamRateLimited,
    UpstreamTimeout,
)
from crawler.platforms import budget
from crawler.platforms.model import AUTO_SECONDS, max_details
from crawler.platforms.videosite import requests as upstream
from crawler.platforms.videosite.details import FeedPage, VideoPage
from crawler.platforms.videosite.record import unenriched
from crawler.reading.contract import OFTEN_ROWS, Unread

if TYPE_CHECKING:
    from scrapy import Request

    from crawler.platforms.model import Details
    from crawler.platforms.videosite.base import VideositePage
    from crawler.platforms.videosite.requests import Ids
    from crawler.platforms.videosite.schema import Continuation
    from crawler.spiders.base import PlatformSpider
    from crawler.targets.target import Target

logger = structlog.get_logger(__name__)

Item = dict[str, Any]

SECONDS_FOR_RECORD = 2.0
"""Number of seconds before a target's deadline in which no request is started. In this time, the record is built from
the details found so far."""

LIKES_PATH = "microformat.playerMicroformatRenderer.likeCount"


class Reader(Protocol):
    """The part of ``ChannelReader`` in ``spiders/videosite.py`` that ``Enrichment`` uses."""

    spider: PlatformSpider
    target: Target
    ids: Ids
    continuation: Continuation | None

    async def item(
        self, kind: type[VideositePage], request: Request, *, retry: bool = True, optional: bool = False
    ) -> Item:
        """Fetch a page and return its item."""

    async def optional(self, kind: type[VideositePage], request: Request) -> Item | None:
        """Fetch an optional page and return its item, or None if it fails."""


class Enrichment:
    """Requests the Atom feed of a tab, and the metadata of the items that are not in the feed."""

    def __init__(self, reader: Reader, channel: str, tab: str, details: Details) -> None:
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
