"""Downloader middlewares of all platforms: throttling, retries, redirects and allowed origins."""

from __future__ import annotations

import asyncio
import math
import random
import weakref
from contextlib import ExitStack
from operator import itemgetter
from typing import TYPE_CHECKING, Self, cast
from urllib.parse import urlsplit

import structlog
from scrapy import Request, signals
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.exceptions import DownloadTimeoutError, IgnoreRequest
from scrapy.utils.response import response_status_message

from crawler.downloads.egress import DIRECT
from crawler.downloads.routes import egress_failed
from crawler.downloads.shared import platform_routes
from crawler.errors import CircuitOpen, Overloaded, UpstreamBlocked, UpstreamError, UpstreamTimeout
from crawler.reading.values import retry_after_seconds
from crawler.targets.closing import Closing
from crawler.targets.exceptions import StartAnew

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from crawler.downloads.routes import Route
    from crawler.downloads.throttle import ReleaseSlot
    from crawler.spiders.base import PlatformSpider

logger = structlog.get_logger(__name__)


def time_left(request: Request) -> float | None:
    """Return the seconds until the deadline of the request's target, or None if it has no deadline."""
    target = request.meta.get("target")
    if target is None or target.deadline is None:
        return None
    return float(target.deadline - asyncio.get_running_loop().time())


class AllowedOrigins:
    """Refuses requests to hosts that do not belong to the platform, including requests after a redirect."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> AllowedOrigins:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Check the origin of a request.

        Raises:
            UpstreamBlocked: the URL is outside the platform's origins. Only a redirect by the platform can lead there.
        """
        url = urlsplit(request.url)
        if f"{url.scheme}://{url.netloc}" not in self.crawler.spider.allowed_origins:  # type: ignore[union-attr]
            raise UpstreamBlocked("The platform redirected to another host.", reason="foreign_redirect")


class Decompression(HttpCompressionMiddleware):
    """Scrapy's middleware that decompresses bodies, with a typed error for a damaged body."""

    def process_response(  # type: ignore[override]  # Scrapy passes no spider
        self, request: Request, response: Response
    ) -> Request | Response:
        """Decompress the body of a response.

        Raises:
            UpstreamError: the body is incomplete or damaged.
        """
        try:
            return super().process_response(request, response)
        except IgnoreRequest:  # the decompressed body is too large
            raise
        except Exception as error:  # each codec has exceptions of its own, and only the body causes them
            raise UpstreamError(f"The body of the response is damaged: {error}.", reason="damaged_body") from error


class Redirect(RedirectMiddleware):
    """Scrapy's redirect middleware, without the ``Referer`` header, and with a typed error for an invalid location."""

    def process_response(  # type: ignore[override]  # as above
        self, request: Request, response: Response
    ) -> Request | Response:
        """Return the request to the location of a redirect.

        Raises:
            UpstreamError: the location is not a URL.
        """
        try:
            return super().process_response(request, response)
        except ValueError as error:  # raised by urllib, such as for "//[::1"
            raise UpstreamError(
                f"The platform redirected to an invalid URL: {error}.",
                upstream_status=response.status,
                reason="invalid_redirect",
            ) from error

    def handle_referer(self, request: Request, response: Response) -> None:
        request.headers.pop("Referer", None)

    def _engine_started(self) -> None:
        """Do nothing. Scrapy's method would warn that ``RefererMiddleware`` is disabled, which is intended."""


class ThrottleMiddleware:
    """Chooses the egress of targets. Makes requests wait for their source's circuit breaker, then for download slots.

    This is the last middleware before the network. ``meta["source"]`` names the source of a request. While the circuit
    breaker of the source is open, a request of a crawl waits. Other requests fail with ``CircuitOpen`` at once: those
    of targets with a deadline (such as calls), for an ``optional`` source, or with ``fallbacks`` that can be used. A
    request that has passed the breaker is not checked again when it is retried or redirected.

    A target that has sent no request gets the egress whose next slot comes first among those that do not rest. All of
    its later requests use the same egress, which ``meta["egress"]`` names.

    The download's timeout is limited to the time that its target has left. The slots are released when the transfer has
    ended, even if its target no longer waits for it.
    """

    def __init__(self, crawler: Crawler) -> None:
        spider = cast("PlatformSpider", crawler.spider)
        self.crawler = crawler
        self.routes = platform_routes(spider.shared, spider.platform, crawler.settings)
        self.give_up_after = crawler.settings.getfloat("BREAKER_GIVE_UP") or math.inf
        self.closing = Closing(crawler)
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ThrottleMiddleware:
        middleware = cls(crawler)
        crawler.signals.connect(middleware.release, signals.request_left_downloader)
        return middleware

    async def process_request(self, request: Request) -> None:
        """Choose the egress, pass the circuit breaker, and take the slots.

        Raises:
            ShuttingDown: the crawler is closing.
            EgressFailed: the target's egress has failed since the target's last request.
            StartAnew: since the request was made, the target has started anew or was completed.
            ScrapeError: the breaker is open, or no slot is free before the target's deadline.
        """
        self.release(request)  # slots of an earlier request, which another middleware has replaced by this one
        async with self.closing.limit():
            release = await self._admit(request)
        # ``release`` is called at most once: by the garbage collector if the request is discarded before its download.
        release_slot = weakref.finalize(request, release)
        release_slot.atexit = False
        request.meta["release_slot"] = release_slot
        left = time_left(request)
        if left is not None:
            timeout = request.meta.get("download_timeout", left)
            request.meta["download_timeout"] = max(min(timeout, left), 0.001)

    async def _admit(self, request: Request) -> ReleaseSlot:
        source, target = request.meta.get("source"), request.meta.get("target")
        full: dict[Route, Overloaded] = {}
        while not self.routes.is_outdated(request.meta):
            if source is None or "admitted" in request.meta:
                route = self.routes.of(target)
                self._use(request, route)
                return await self._take_slots(request, route)
            route = await self._route(request, source, full)
            try:
                release = await self._take_slots(request, route)
            except Overloaded as error:  # other processes have taken the slots that this process expected to be free
                if route in full or self.routes.is_fixed(target):
                    raise
                full[route] = error
                continue
            if not route.rest(source) and not self.routes.is_outdated(request.meta):
                request.meta["admitted"] = True
                self._use(request, route)
                return release
            release()  # the breaker has opened in the meantime, or the request is outdated
        raise StartAnew

    def _use(self, request: Request, route: Route) -> None:
        """Mark the request for the route's egress, and bind its target to the route for all later requests."""
        if route.egress is not DIRECT:
            request.meta["egress"] = route.egress.name
            self.routes.use(request.meta.get("target"), route)

    async def _route(self, request: Request, source: str, full: Mapping[Route, Overloaded]) -> Route:
        """Return the route through which the request may be sent. If all routes rest, wait for the first one.

        ``full``: route that has no slot before the target's deadline -> its error.

        Raises:
            Overloaded: all other routes rest.
        """
        target = request.meta.get("target")
        if (refused := await self.routes.refused_by(target)) is not None:
            return await self._route_of_refused(request, refused)
        while True:
            waits: list[tuple[float, Route]] = []
            for route in self.routes.candidates(target):
                if route in full:
                    continue
                wait = await route.enter(source)
                if not wait:
                    self.routes.bind(target, route)
                    return route
                waits.append((wait, route))
            if full:
                raise next(iter(full.values()))
            await self._wait(request, waits)

    async def _route_of_refused(self, request: Request, route: Route) -> Route:
        """Return the route through which the platform has refused the request's target: it gets no other one.

        Raises:
            CircuitOpen: this route rests, or its egress has just failed.
        """
        target = request.meta["target"]
        wait = await route.enter(request.meta["source"])
        if wait or route not in self.routes.candidates(target):
            raise CircuitOpen(
                f"The platform has refused this target through the egress {route.egress.name}, which cannot be used "
                "now. The target is not sent through another egress.",
                retry_after=math.ceil(wait) or None,
                reason="refused_before",
            )
        self.routes.bind(target, route)
        return route

    async def _wait(self, request: Request, waits: list[tuple[float, Route]]) -> None:
        """Wait until a breaker may let the request through. If all breakers are open for too long, end the crawl.

        ``waits``: the seconds to wait for each route that the request may use.

        Raises:
            CircuitOpen: the request must not wait.
            EgressFailed: the egress rests, and the target cannot use another one any more.
        """
        source = request.meta["source"]
        seconds, route = min(waits, key=itemgetter(0))
        if route.connection.cooldown_left and self.routes.is_fixed(request.meta.get("target")):
            raise egress_failed(route.egress.name, "it rests after failures")
        fallbacks = () if route.route_rest else request.meta.get("fallbacks", ())
        replaced = any(route.breakers.closed(names) for names in fallbacks)
        if time_left(request) is not None or replaced or "optional" in request.meta:
            raise CircuitOpen(
                f"{_cause(route, source)}: the circuit breaker is open.",
                retry_after=math.ceil(seconds),
                reason="circuit_open",
            )
        open_seconds = min(route.open_seconds(source) for _, route in waits)
        left = self.give_up_after - open_seconds
        if left > 0:
            await asyncio.sleep(min(seconds, left))
            return
        if self._ending is None:
            logger.error("platform_shut", source=source, seconds=round(open_seconds), setting="BREAKER_GIVE_UP")
            assert self.crawler.engine is not None
            end = self.crawler.engine.close_spider_async(
                reason=f"{source} of {self.crawler.spidercls.name} stayed shut"
            )
            self._ending = asyncio.create_task(end)
        await asyncio.sleep(seconds)

    async def _take_slots(self, request: Request, route: Route) -> ReleaseSlot:
        """Take the slots of the source and of the platform.

        A request to an optional source waits for at most half of the target's remaining time. If it gets no slots, the
        target still has time to complete without this source.
        """
        deadline = None
        target = request.meta.get("target")
        background = target is not None and target.background
        if (left := time_left(request)) is not None:
            spare = left / 2 if "optional" in request.meta else left
            deadline = asyncio.get_running_loop().time() + spare
        with ExitStack() as slots:
            for throttle in route.throttles(request.meta.get("source")):
                slots.callback(await throttle.acquire(deadline, background=background))
            return slots.pop_all().close

    def process_response(self, request: Request, response: Response) -> Response:
        """Release the slots of a request that was not downloaded because a middleware returned its response."""
        self.release(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Release the slots of a request that was not downloaded because a middleware raised an exception."""
        self.release(request)

    @staticmethod
    def release(request: Request) -> None:
        """Release a request's slots, if it has some."""
        release_slot = request.meta.pop("release_slot", None)
        if release_slot:
            release_slot()


def _cause(route: Route, source: str) -> str:
    """Describe why a request to a source must not be sent through a route."""
    if route.connection.cooldown_left:
        return f"The egress {route.egress.name} has failed"
    if route.platform is not None and route.platform.cooldown_left:
        return "The platform has blocked or limited the last requests through most egresses"
    return f"The platform has blocked or limited the last requests to its source {source!r}"


class Retry(RetryMiddleware):
    """Scrapy's retry middleware, extended with a random wait before each retry.

    The maximum of the wait doubles with each retry. A ``Retry-After`` header sets the minimum of the wait. A request is
    not retried if the wait would be longer than ``RETRY_BACKOFF_MAX`` or than the time until its target's deadline.
    """

    closing: Closing

    def __init__(self, settings: BaseSettings) -> None:
        super().__init__(settings)
        self.backoff_base = settings.getfloat("RETRY_BACKOFF_BASE")
        self.backoff_max = settings.getfloat("RETRY_BACKOFF_MAX")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        middleware = super().from_crawler(crawler)
        middleware.closing = Closing(crawler)
        return middleware

    # Scrapy awaits the results of these two methods, although its own methods are not coroutines.
    async def process_response(self, request: Request, response: Response) -> Request | Response:  # type: ignore[override]
        if response.status not in self.retry_http_codes:
            return response
        header = response.headers.get("Retry-After")
        wait = self._wait(request, retry_after_seconds(header.decode("latin-1") if header else None))
        result = super().process_response(request, response) if wait is not None else response
        if wait is not None and isinstance(result, Request):
            await self._sleep(result, response_status_message(response.status), wait)
        return result

    async def process_exception(  # type: ignore[override]
        self, request: Request, exception: Exception
    ) -> Request | Response | None:
        """Retry a request whose download has failed.

        Raises:
            UpstreamTimeout: the download has timed out at its target's deadline.
        """
        left = time_left(request)
        if isinstance(exception, DownloadTimeoutError) and left is not None and left <= 0:
            raise UpstreamTimeout("The platform did not respond before the deadline.", reason="timeout") from exception
        wait = self._wait(request)
        result = super().process_exception(request, exception) if wait is not None else None
        if wait is not None and isinstance(result, Request):
            await self._sleep(result, type(exception).__name__, wait)
        return result

    def _wait(self, request: Request, retry_after: float | None = None) -> float | None:
        """Return the seconds to wait before a retry, or None if the wait would be too long."""
        limit = min(self.backoff_base * 2 ** request.meta.get("retry_times", 0), self.backoff_max)
        wait = max(random.uniform(0, limit), retry_after or 0)  # noqa: S311  # spreads load, no secret
        left = time_left(request)
        return None if wait > self.backoff_max or (left is not None and wait >= left) else wait

    async def _sleep(self, retry: Request, reason: str, seconds: float) -> None:
        attempt = retry.meta["retry_times"]
        logger.info("retried", url=retry.url, reason=reason, wait_seconds=round(seconds, 2), attempt=attempt)
        async with self.closing.limit():
            await asyncio.sleep(seconds)
