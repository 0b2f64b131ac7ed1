"""Downloader middlewares that every platform uses and that know none: turns, retries, allowed origins."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.exceptions import DownloadTimeoutError
from scrapy.utils.misc import load_object
from scrapy.utils.response import response_status_message

from crawler.errors import UpstreamBlocked, UpstreamTimeout
from crawler.normalise import retry_after_seconds
from crawler.politeness import platform_state

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = structlog.get_logger(__name__)


def time_left(request: Request) -> float | None:
    """Seconds until the request's target is given up, None where nobody waits."""
    target = request.meta.get("target")
    if target is None or target.deadline is None:
        return None
    return float(target.deadline - asyncio.get_running_loop().time())


class AllowedOrigins:
    """Refuses every download that does not go to one of the platform's own origins, after every redirect too."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> AllowedOrigins:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Raises ``UpstreamBlocked``: only the platform can have sent us elsewhere."""
        url = urlsplit(request.url)
        if f"{url.scheme}://{url.netloc}" not in self.crawler.spider.allowed_origins:  # type: ignore[union-attr]
            raise UpstreamBlocked("The platform redirected to another host.", reason="foreign_redirect")


class Redirect(RedirectMiddleware):
    """Scrapy's, without the part that speaks of the page that led to another one: nothing here sends a ``Referer``."""

    def handle_referer(self, request: Request, response: Response) -> None:
        request.headers.pop("Referer", None)

    def _engine_started(self) -> None:
        """Looks for no middleware that sets it, and does not complain that there is none."""


class Turns:
    """Waits for the platform's budget before each download; the last middleware before the network.

    The download may then take what is left of its target's time.
    """

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.spider is not None
        self.budget = platform_state(crawler.spider.name, crawler.settings).budget

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Turns:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        target = request.meta.get("target")
        request.meta["end_turn"] = await self.budget.acquire(target.deadline if target else None)
        left = time_left(request)
        if left is not None:
            longest = request.meta.get("download_timeout", left)
            request.meta["download_timeout"] = max(min(longest, left), 0.001)

    def process_response(self, request: Request, response: Response) -> Response:
        self._end(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._end(request)

    @staticmethod
    def _end(request: Request) -> None:
        end_turn = request.meta.pop("end_turn", None)
        if end_turn:
            end_turn()


class Retry:
    """Repeats what a moment later may work: ``RETRY_HTTP_CODES`` and failed connections, ``RETRY_TIMES`` times.

    Waits with full jitter (a random time up to a limit that doubles), or as long as ``Retry-After`` says, and never
    past the target's deadline. A wall is not retried: it would only be a second one.
    """

    def __init__(self, crawler: Crawler) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self.times = settings.getint("RETRY_TIMES")
        self.codes = {int(code) for code in settings.getlist("RETRY_HTTP_CODES")}
        self.exceptions = tuple(load_object(e) for e in settings.getlist("RETRY_EXCEPTIONS"))
        self.base = settings.getfloat("RETRY_BACKOFF_BASE")
        self.longest = settings.getfloat("RETRY_BACKOFF_MAX")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Retry:
        return cls(crawler)

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        if response.status not in self.codes:
            return response
        header = response.headers.get("Retry-After")
        wait = retry_after_seconds(header.decode("latin-1") if header else None)
        again = await self._again(request, response_status_message(response.status), wait)
        return again or response

    async def process_exception(self, request: Request, exception: Exception) -> Request | None:
        if not isinstance(exception, self.exceptions):
            return None
        again = await self._again(request, type(exception).__name__, None)
        left = time_left(request)
        if again is None and isinstance(exception, DownloadTimeoutError) and left is not None and left <= 0:
            raise UpstreamTimeout("The platform did not answer before the deadline.", reason="timeout") from exception
        return again

    async def _again(self, request: Request, reason: str, retry_after: float | None) -> Request | None:
        tries = request.meta.get("retry_times", 0)
        if tries >= self.times:
            return None
        wait = random.uniform(0, min(self.base * 2**tries, self.longest))  # noqa: S311  # spreads load, no secret
        if retry_after is not None:
            wait = max(wait, retry_after)
        left = time_left(request)
        if wait > self.longest or (left is not None and wait >= left):
            return None
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value("retry/count")
        logger.info("retry", url=request.url, reason=reason, wait_seconds=round(wait, 2), attempt=tries + 1)
        await asyncio.sleep(wait)
        again = request.replace(dont_filter=True)
        again.meta["retry_times"] = tries + 1
        return again
