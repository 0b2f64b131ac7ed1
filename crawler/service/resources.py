"""The routes: from an HTTP request to an answer, with the one broad except of the project at its edge."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import structlog
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from crawler.errors import MethodNotAllowed, ScrapeError, ScraperNotFound, ServiceError
from crawler.registry import scrapers
from crawler.service.body import CappedRequest, read_object
from crawler.service.envelope import Answer, Call, failure, plain, success
from crawler.targets import Scraper, Target, check_params

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from crawler.service.keys import Keys
    from crawler.service.limits import KeyLimits
    from crawler.service.open_crawlers import OpenCrawlers

logger = structlog.get_logger(__name__)

DEFAULT_WAIT, LONGEST_WAIT = 60, 120
"""Seconds that a call may take: by default, and at most."""

CLIENT_GONE = 499
"""What a log says of a call whose client did not wait for the answer."""


class Api(Resource):
    """All routes. Every answer is JSON, and every failure the envelope."""

    isLeaf = True

    def __init__(self, crawlers: OpenCrawlers, keys: Keys, limits: KeyLimits) -> None:
        super().__init__()
        self.crawlers = crawlers
        self.keys = keys
        self.limits = limits
        self._tasks: set[asyncio.Task[None]] = set()

    def render(self, request: Request) -> int:
        """Twisted's entry: serves the request in a task, which a client that goes away cancels."""
        task = asyncio.ensure_future(self._serve(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def gone(_: Failure) -> None:
            task.cancel()

        request.notifyFinish().addErrback(gone)
        return NOT_DONE_YET

    async def _serve(self, request: Request) -> None:
        call = Call()
        with structlog.contextvars.bound_contextvars(request_id=call.request_id):
            try:
                answer = await self._answer(request, call)
            except asyncio.CancelledError:
                self._log(call, CLIENT_GONE, "CLIENT_GONE")
                return
            _send(request, answer)
            self._log(call, answer.status, answer.code)

    async def _answer(self, request: Request, call: Call) -> Answer:
        try:
            return await self._route(request, call)
        except ScrapeError as error:
            return failure(call, error)
        except Exception:
            # The service's edge: a bug of ours is logged with its traceback, and never shown to a caller.
            logger.exception("call_broke")
            return failure(call, ServiceError("Something broke on our side; the log has it under this request's id."))

    def _log(self, call: Call, status: int, code: str) -> None:
        logger.info(
            "call", client=call.client_id, scraper=call.scraper, code=code, status=status, duration_ms=call.duration_ms
        )

    async def _route(self, request: Request, call: Call) -> Answer:
        path = request.path.decode("latin-1")
        match path:
            case "/v1/scrapers":
                _only(request, "GET")
                return plain(200, {"scrapers": catalogue()}, call)
            case "/healthz":
                _only(request, "GET")
                return plain(200, {"status": "ok"}, call)
            case "/readyz":
                _only(request, "GET")
                state = self.crawlers.state
                return plain(200 if state["status"] == "ready" else 503, state, call)
        prefix, _, name = path.rpartition("/")
        scraper = scrapers().get(name) if prefix == "/v1/scrapers" else None
        if scraper is None:
            raise ScraperNotFound("There is no such endpoint. GET /v1/scrapers lists those that there are.")
        call.scraper = scraper.name
        _only(request, "POST")
        return await self._scrape(request, call, scraper)

    async def _scrape(self, request: Request, call: Call, scraper: Scraper) -> Answer:
        holder = self.keys.holder(request.getHeader("x-api-key"))
        call.client_id = holder.client
        standing = await self.limits.count(holder)
        if standing:
            call.headers.update(standing.headers)
            standing.check()
        params = check_params(scraper, read_object(request))
        wait = self._wait(request, call)
        deadline = asyncio.get_running_loop().time() + wait
        target = Target(call.request_id, scraper, params, deadline=deadline)
        leave = await self.limits.enter(holder)
        try:
            return success(call, await self.crawlers.call(target))
        finally:
            leave()

    @staticmethod
    def _wait(request: Request, call: Call) -> int:
        """Seconds to wait: ``Prefer: wait=N`` (RFC 7240), clamped."""
        asked = re.search(r"(?:^|[,;\s])wait\s*=\s*\"?([0-9]{1,9})", request.getHeader("prefer") or "")
        if asked is None:
            return DEFAULT_WAIT
        call.wait = min(max(int(asked.group(1)), 1), LONGEST_WAIT)
        return call.wait


def catalogue() -> list[dict[str, Any]]:
    """Every scraper once: what it is called, what it takes, and an example that the sandbox answers."""
    distinct = {scraper.name: scraper for scraper in scrapers().values()}
    return [
        {
            "name": scraper.name,
            "aliases": list(scraper.aliases),
            "platform": scraper.platform,
            "summary": scraper.summary,
            "params_schema": scraper.params.model_json_schema(),
            "example": scraper.example,
        }
        for scraper in distinct.values()
    ]


def make_site(crawlers: OpenCrawlers, keys: Keys, limits: KeyLimits) -> Site:
    """The endpoint as a Twisted site."""
    site = Site(Api(crawlers, keys, limits), requestFactory=CappedRequest)
    site.noisy = False
    return site


def _only(request: Request, method: str) -> None:
    if request.method.decode("latin-1") != method:
        raise MethodNotAllowed(f"This endpoint takes {method} only.", allowed=method)


def _send(request: Request, answer: Answer) -> None:
    if request.finished or request._disconnected:  # noqa: SLF001  # Twisted has no other way to ask
        return
    request.setResponseCode(answer.status)
    for name, value in answer.headers.items():
        request.setHeader(name, value)
    request.setHeader("Content-Length", str(len(answer.body)))
    request.write(answer.body)
    request.finish()
