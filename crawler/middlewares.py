"""Downloader middlewares of all platforms: log context, origins, decompression, redirects, throttling, retries, and the
injection of page objects.
"""

from __future__ import annotations

import asyncio
import math
import random
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, cast

import andi
import structlog
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.exceptions import DownloadTimeoutError, IgnoreRequest
from scrapy.http import Response
from scrapy.utils.response import response_status_message
from scrapy_poet.downloadermiddlewares import DEFAULT_PROVIDERS, InjectionMiddleware
from scrapy_poet.injection import Injector, get_callback
from structlog.contextvars import bind_contextvars
from web_poet import HttpResponse, HttpResponseHeaders, PageParams

from crawler.downloads.admission import Admission, time_left
from crawler.downloads.handlers import origin_of
from crawler.downloads.shared_state import platform_lanes
from crawler.errors import BlockedByPolicy, UpstreamBlocked, UpstreamError, UpstreamTimeout
from crawler.reading.values import retry_after_seconds
from crawler.targets.shutdown import Closing

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from crawler.spiders.base import PlatformSpider
    from crawler.targets.target import Target


logger = structlog.get_logger(__name__)

RATE_LIMITED = 429


class BindTarget:
    """Adds the id of a target to all log lines of its downloads, as ``request_id``. This is the first middleware.

    Scrapy runs each download and each callback in its own task, and tasks do not inherit the context of the HTTP call.
    A context variable that is set at the start of a task has this value for everything that runs in the task, but not
    for other targets. ``TargetTracker.enter`` sets the id in the task of a callback, which runs page objects and
    pipelines.
    """

    def process_request(self, request: Request) -> None:
        """Set the target's id in the task of a download."""
        if target := request.meta.get("target"):
            bind_contextvars(request_id=target.id)


class AllowedOrigins:
    """Refuses requests to origins (scheme, host and port) that are not the platform's, also after a redirect."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> AllowedOrigins:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        """Check the origin of a request.

        Raises:
            UpstreamBlocked: the platform redirected to another origin.
            BlockedByPolicy: the URL of a request that no redirect led to has another origin.
        """
        if origin_of(request.url) in self.crawler.spider.allowed_origins:  # type: ignore[union-attr]
            return
        if "redirect_urls" in request.meta:
            raise UpstreamBlocked("The platform redirected to another host.", reason="foreign_redirect")
        raise BlockedByPolicy(f"{origin_of(request.url)} is not an origin of {self.crawler.spider.platform}.")  # type: ignore[union-attr]


class Decompression(HttpCompressionMiddleware):
    """Scrapy's middleware that decompresses bodies, with a typed error for a damaged body."""

    def process_response(  # type: ignore[override]  # Scrapy calls it without a spider
        self, request: Request, response: Response
    ) -> Request | Response:
        """Decompress the body of a response.

        Raises:
            UpstreamError: the body is incomplete or damaged.
            IgnoreRequest: the decompressed body is larger than ``DOWNLOAD_MAXSIZE``.
        """
        try:
            return super().process_response(request, response)
        except IgnoreRequest as error:  # the decompressed body is too large
            failure: Exception = IgnoreRequest(str(error))
        except Exception as error:  # noqa: BLE001  # each codec has its own, and only the body can cause them
            failure = UpstreamError(f"The body of the response is damaged: {error}.", reason="damaged_body")
        try:
            raise failure  # not within the handlers: the first error would keep what is decompressed in memory
        finally:
            del failure


class Redirect(RedirectMiddleware):
    """Scrapy's redirect middleware, without the ``Referer`` header, and with a typed error for an invalid location.

    After ``REDIRECT_MAX_TIMES`` redirects, the response is not followed but returned, so that the page object sees
    where they lead: platforms redirect blocked visitors in circles, too, to the login page without end.
    """

    def process_response(  # type: ignore[override]  # Scrapy calls it without a spider
        self, request: Request, response: Response
    ) -> Request | Response:
        """Return the request to the location of a redirect. Other responses are returned unchanged.

        Raises:
            UpstreamError: the location is not a valid URL.
        """
        try:
            return super().process_response(request, response)
        except IgnoreRequest:  # there were too many redirects
            return response
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
    """Delays requests until ``Admission`` admits them. This is the last middleware before the network.

    ``meta["source"]`` names the source of a request. While the circuit breaker of the source is open on all lanes that
    the request may use, the request waits. Instead of waiting, it fails with ``CircuitOpen`` if its target has a
    deadline (as calls have), if its ``meta`` has the key ``optional``, or if all breakers of a group of sources in
    ``meta["fallbacks"]`` are closed.

    The timeout of a download is at most the time until its target's deadline. The slots of a download are released when
    the transfer has ended, even if its target no longer waits for the response.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.spider = cast("PlatformSpider", crawler.spider)
        lanes = platform_lanes(self.spider.shared, self.spider.platform, crawler.settings)
        self.admission = Admission(lanes, self._patience)
        self.give_up_after = crawler.settings.getfloat("BREAKER_GIVE_UP") or math.inf
        self.closing = Closing(crawler)
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ThrottleMiddleware:
        middleware = cls(crawler)
        crawler.signals.connect(middleware.release, signals.request_left_downloader)
        return middleware

    async def process_request(self, request: Request) -> None:
        """Wait until a request may be sent, and take its slots.

        Raises:
            ShuttingDown: the crawler is closing.
            ReleaseEnded, ScrapeError: as for ``Admission.admit``.
        """
        if "release_slot" in request.meta:  # copied from a request that a middleware has replaced by this one
            self.release(request)
        async with self.closing.limit():
            release = await self.admission.admit(request)
        # The finalizer calls ``release`` at most once. It also does so if the request is discarded before its download.
        release_slot = weakref.finalize(request, release)
        release_slot.atexit = False
        request.meta["release_slot"] = release_slot
        self.spider.on_lane(request)
        target: Target | None = request.meta.get("target")
        if target is None:
            return
        target.release.is_sent = True
        if (left := target.seconds_left) is not None:
            timeout = request.meta.get("download_timeout", left)
            request.meta["download_timeout"] = max(min(timeout, left), 0.001)

    def _patience(self, source: str, seconds: float, open_seconds: float) -> float:
        """Return the seconds after which a request whose lanes are all suspended is tried again (see ``Patience``).

        If the lanes have been suspended for ``BREAKER_GIVE_UP`` seconds, end the crawl.
        """
        left = self.give_up_after - open_seconds
        if left > 0:
            return min(seconds, left)
        if self._ending is None:
            logger.error("platform_shut", source=source, seconds=round(open_seconds), setting="BREAKER_GIVE_UP")
            assert self.crawler.engine is not None
            end = self.crawler.engine.close_spider_async(
                reason=f"{source} of {self.crawler.spidercls.name} stayed shut"
            )
            self._ending = asyncio.create_task(end)
        return seconds

    def process_response(self, request: Request, response: Response) -> Response:
        """Note a rate limit. Release the slots if a middleware returned the response instead of a download."""
        target: Target | None = request.meta.get("target")
        if response.status == RATE_LIMITED and target is not None and target.release.lane is not None:
            target.release.lane.breakers[request.meta["source"]].limited()
        if "release_slot" in request.meta:
            self.release(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Release the slots of a request that was not downloaded because a middleware raised an exception."""
        self.release(request)

    @staticmethod
    def release(request: Request) -> None:
        """Release the slots of a request, if it has any."""
        release_slot = request.meta.pop("release_slot", None)
        if release_slot:
            release_slot()


class Retry(RetryMiddleware):
    """Scrapy's retry middleware, extended with a random wait before each retry.

    The maximum of the wait doubles with each retry, up to ``RETRY_BACKOFF_MAX``. The ``Retry-After`` header
    of a response sets the minimum of the wait. A request is not retried if the wait would be longer than
    ``RETRY_BACKOFF_MAX``, or would not end before its target's deadline.
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

    # Scrapy awaits process_response() and process_exception(), although its own middlewares have no coroutines.
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
            UpstreamTimeout: the download has timed out, and its target's deadline has passed.
            ShuttingDown: the crawler closes during the wait.
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
        wait = max(random.uniform(0, limit), retry_after or 0)  # noqa: S311  # spreads the load; not a secret
        left = time_left(request)
        return None if wait > self.backoff_max or (left is not None and wait >= left) else wait

    async def _sleep(self, retry: Request, reason: str, seconds: float) -> None:
        attempt = retry.meta["retry_times"]
        logger.info("retried", url=retry.url, reason=reason, wait_seconds=round(seconds, 2), attempt=attempt)
        async with self.closing.limit():
            await asyncio.sleep(seconds)


def _response(_request: Request, response: Response) -> HttpResponse:
    # Latin-1 decodes all bytes, as HTTP requires. UTF-8, web-poet's default, fails for some values.
    headers = HttpResponseHeaders.from_bytes_dict(response.headers, encoding="latin-1")
    return HttpResponse(response.url, response.body, status=response.status, headers=headers)


def _params(request: Request, _response: Response) -> PageParams[str, Any]:
    return PageParams(request.meta.get("page_params", {}))


INPUTS: dict[Any, Callable[[Request, Response], Any]] = {HttpResponse: _response, PageParams: _params}
"""Class of a page object's input -> the function that makes an instance equal to that of scrapy-poet's provider."""


class _Plan(andi.Plan):
    """The plan of a callback, with values that the injector derives from the plan once.

    A plan lists the dependencies that scrapy-poet must build for a callback. It depends only on the callback's
    annotations, unless a rule overrides page objects by URL or the request has ``meta["inject"]``. So one plan is made
    for each callback. scrapy-poet makes two plans for each request, and one for each provider of the page object's
    inputs. With scrapy-poet 0.27 this takes 0.56 ms of CPU time per request; with one plan it takes 0.05 ms. A call of
    the endpoint with a light page takes 5 ms in total. The main branch of scrapy-poet caches plans: remove these
    classes when that is released.
    """

    inputs: tuple[Any, ...] | None = None
    """The classes of the inputs, if ``INPUTS`` builds all of them. None: scrapy-poet's providers build all."""
    needs_response: bool
    """Whether the callback or its inputs need a response, so that its requests must be downloaded."""


class PlannedInjector(Injector):
    """scrapy-poet's injector, except that it makes only one plan for each callback."""

    def __init__(self, crawler: Crawler, **kwargs: Any) -> None:
        super().__init__(crawler, **kwargs)
        self._plans: dict[Callable[..., Any], _Plan] = {}
        self._own_providers = bool(crawler.settings.getdict("SCRAPY_POET_PROVIDERS"))

    def build_plan(self, request: Request) -> andi.Plan:
        """Return the plan for building the arguments of the request's callback."""
        if "inject" in request.meta or self.registry.get_rules():  # the plan depends on the request, too
            return super().build_plan(request)
        callback: Callable[..., Any] = get_callback(request, self.spider)
        return self._plans.get(callback) or self._plan(request, callback)

    def _plan(self, request: Request, callback: Callable[..., Any]) -> _Plan:
        plan = self._plans[callback] = _Plan(super().build_plan(request))
        kinds: list[Any] = [kind for kind, _ in plan.dependencies]
        kinds = [kind for kind in kinds if self.is_class_provided_by_any_provider(kind)]
        if not self.cache and not self._own_providers and INPUTS.keys() >= set(kinds):
            plan.inputs = tuple(kinds)
        plan.needs_response = bool(super().is_scrapy_response_required(request))  # calls build_plan()
        return plan

    def is_scrapy_response_required(self, request: Request) -> bool:
        """Whether the callback or its inputs need a response, so that the request must be downloaded."""
        plan = self.build_plan(request)
        return plan.needs_response if isinstance(plan, _Plan) else bool(super().is_scrapy_response_required(request))

    async def build_instances_from_providers(
        self, request: Request, response: Response, plan: andi.Plan
    ) -> dict[Any, Any]:
        """Build the inputs that a plan requires.

        If ``INPUTS`` has a function for each of the inputs, they are built without scrapy-poet's providers. Otherwise
        the providers build all inputs. They also do so if the plan depends on the request, and if the settings
        configure additional providers or the cache.
        """
        instances: dict[Any, Any] = {}
        if isinstance(plan, _Plan) and plan.inputs is not None:
            for kind in plan.inputs:
                instances[kind] = INPUTS[kind](request, response)
        else:
            instances = await super().build_instances_from_providers(request, response, plan)
        return instances


class PlannedInjection(InjectionMiddleware):
    """scrapy-poet's downloader middleware, with ``PlannedInjector`` as its injector."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.injector = PlannedInjector(crawler, default_providers=DEFAULT_PROVIDERS, registry=self.registry)
