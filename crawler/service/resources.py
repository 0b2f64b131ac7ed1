"""The HTTP routes of the service. An unexpected exception becomes ``INTERNAL_ERROR``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import date
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import structlog
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from crawler.errors import Detail, InvalidRequest, MethodNotAllowed, ScrapeError, ScraperNotFound, ServiceError
from crawler.registry import scrapers
from crawler.service import metrics, openapi, viewer
from crawler.service.body import header, read_object
from crawler.service.envelope import Answer, Call, failure, json_response, raw_response, success
from crawler.targets.target import Scraper, Target, check_params

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from crawler.service.cache import Cache
    from crawler.service.idempotency import Idempotency
    from crawler.service.keys import Keys
    from crawler.service.limits import KeyLimits
    from crawler.service.open_crawlers import OpenCrawlers
    from crawler.service.usage import Usage

logger = structlog.get_logger(__name__)

DEFAULT_WAIT_SECONDS, MAX_WAIT_SECONDS = 60, 120
"""The default and the maximum timeout of a call."""

DAY = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}")

CLIENT_GONE = 499
"""The logged status of a call whose client disconnected before the response."""


class Api(Resource):
    """Handles the requests of all routes. All errors have an envelope."""

    isLeaf = True

    def __init__(  # noqa: PLR0913, PLR0917  # the parts of the service
        self,
        crawlers: OpenCrawlers,
        keys: Keys,
        limits: KeyLimits,
        cache: Cache,
        idempotency: Idempotency,
        usage: Usage,
    ) -> None:
        super().__init__()
        self.crawlers = crawlers
        self.keys = keys
        self.limits = limits
        self.cache = cache
        self.idempotency = idempotency
        self.usage = usage
        self._tasks: set[asyncio.Task[None]] = set()
        self._public_routes: dict[str, Callable[[Call], Answer]] = {
            "/v1/scrapers": lambda call: json_response(200, {"scrapers": catalogue()}, call),
            "/openapi.json": lambda call: json_response(200, openapi.as_json(), call),
            "/docs": lambda call: raw_response(call, "text/html; charset=utf-8", viewer.page(), viewer.HEADERS),
            "/metrics": lambda call: raw_response(call, metrics.CONTENT_TYPE, metrics.expose()),
            "/healthz": lambda call: json_response(200, {"status": "ok"}, call),
            "/readyz": self._ready,
        }
        """Routes that need no API key, by path."""

    def render(self, request: Request) -> int:
        """Serve the request in a task, which is cancelled when the client disconnects."""
        task = asyncio.ensure_future(self._serve(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def cancel(_: Failure) -> None:
            task.cancel()

        request.notifyFinish().addErrback(cancel)
        return NOT_DONE_YET

    async def finish(self) -> None:
        """Wait until all calls in progress are completed and counted."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _serve(self, request: Request) -> None:
        call = Call()
        with structlog.contextvars.bound_contextvars(request_id=call.request_id):
            try:
                answer = await self._answer(request, call)
            except asyncio.CancelledError:
                self._done(call, Answer(CLIENT_GONE, {}, b"", "CLIENT_GONE"))
                return
            _send(request, answer)
            self._done(call, answer)

    async def _answer(self, request: Request, call: Call) -> Answer:
        try:
            return await self._route(request, call)
        except ScrapeError as error:
            return failure(call, error)
        except Exception:
            # The traceback is logged. Callers do not get it.
            logger.exception("request_failed")
            return failure(
                call, ServiceError("Internal error; the log of the service has the details under this request's id.")
            )

    def _done(self, call: Call, answer: Answer) -> None:
        metrics.count_call(call, answer)
        if call.client_id and call.scraper:
            self.usage.count(
                call.client_id, call.scraper, answer.code, billable=answer.billable, partial=answer.partial
            )
        logger.info(
            "call",
            client=call.client_id,
            scraper=call.scraper,
            code=answer.code,
            status=answer.status,
            duration_ms=call.duration_ms,
        )

    async def _route(self, request: Request, call: Call) -> Answer:
        path = request.path.decode("latin-1")
        prefix, _, name = path.rpartition("/")
        public_route = self._public_routes.get(path)
        if public_route is not None:
            _require_method(request, "GET")
            return public_route(call)
        if path == "/v1/usage":
            _require_method(request, "GET")
            return await self._usage(request, call)
        if prefix == "/docs":
            _require_method(request, "GET")
            return raw_response(call, *viewer.bundled_file(name))
        scraper = scrapers().get(name) if prefix == "/v1/scrapers" else None
        if scraper is None:
            raise ScraperNotFound("Unknown route or scraper. GET /v1/scrapers lists all scrapers.")
        call.scraper = scraper.name
        _require_method(request, "POST")
        return await self._scrape(request, call, scraper)

    async def _scrape(self, request: Request, call: Call, scraper: Scraper) -> Answer:
        holder = self.keys.holder(header(request, "X-API-Key"))
        call.client_id = holder.client
        rate_limit = await self.limits.count(holder)
        if rate_limit:
            call.headers.update(rate_limit.headers)
            rate_limit.check()
        params = check_params(scraper, read_object(request))
        wait = self._wait(request, call)
        deadline = asyncio.get_running_loop().time() + wait
        target = Target(call.request_id, scraper, params, deadline=deadline)
        release = await self.limits.acquire(holder)
        try:
            served = await self.idempotency.once(
                header(request, "Idempotency-Key"),
                holder.client,
                target,
                lambda: self.cache.served(target, header(request, "Cache-Control")),
            )
            return success(call, served)
        finally:
            release()

    def _ready(self, call: Call) -> Answer:
        state = self.crawlers.state
        return json_response(200 if state["status"] == "ready" else 503, state, call)

    async def _usage(self, request: Request, call: Call) -> Answer:
        call.client_id = self.keys.holder(header(request, "X-API-Key")).client
        since, until = _days(request)
        return json_response(200, await self.usage.report(call.client_id, since, until), call)

    @staticmethod
    def _wait(request: Request, call: Call) -> int:
        """Return the call's timeout in seconds: N of ``Prefer: wait=N`` (RFC 7240), limited to the valid range."""
        preference = re.search(r"(?:^|[,;\s])wait\s*=\s*\"?([0-9]{1,9})", header(request, "Prefer") or "")
        if preference is None:
            return DEFAULT_WAIT_SECONDS
        call.wait = min(max(int(preference.group(1)), 1), MAX_WAIT_SECONDS)
        return call.wait


def catalogue() -> list[dict[str, Any]]:
    """Return the catalogue: one entry for each scraper, with its names, params and an example."""
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


def _require_method(request: Request, method: str) -> None:
    allowed = (method, "HEAD") if method == "GET" else (method,)  # Twisted omits the body of a response to HEAD
    if request.method.decode("latin-1") not in allowed:
        raise MethodNotAllowed(
            f"Method not allowed: this route accepts {', '.join(allowed)}.", allowed=", ".join(allowed)
        )


def _days(request: Request) -> tuple[date | None, date | None]:
    """Parse the query parameters ``from`` and ``to``. A missing parameter is None.

    Raises:
        InvalidRequest: a value is not a day, a parameter is repeated or unknown, or ``to`` is before ``from``.
    """
    days: dict[str, date | None] = {"from": None, "to": None}
    for raw, values in (request.args or {}).items():
        name = raw.decode("latin-1")
        day = _parse_day(values[0]) if len(values) == 1 and name in days else None
        if day is None:
            raise _invalid(name, "expected from and to as YYYY-MM-DD, each at most once")
        days[name] = day
    since, until = days["from"], days["to"]
    if since and until and since > until:
        raise _invalid("from", "must not be after to")
    return since, until


def _parse_day(text: bytes) -> date | None:
    try:
        return date.fromisoformat(text.decode()) if DAY.fullmatch(text) else None
    except ValueError:
        return None


def _invalid(name: str, message: str) -> InvalidRequest:
    detail: Detail = {"loc": [name], "msg": message, "type": "value_error"}
    return InvalidRequest(f"{name}: {message}", details=[detail])


def _send(request: Request, answer: Answer) -> None:
    if request.finished or request._disconnected:  # noqa: SLF001  # Twisted has no public attribute
        return
    request.setResponseCode(answer.status, HTTPStatus(answer.status).phrase.encode())
    request.responseHeaders.removeHeader(b"Server")  # no Server header: the server's version would help only attackers
    for name, value in answer.headers.items():
        request.setHeader(name, value)
    request.setHeader("Content-Length", str(len(answer.body)))
    request.write(answer.body)
    request.finish()
