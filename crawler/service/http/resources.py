"""The HTTP routes of the service. An unexpected exception becomes ``INTERNAL_ERROR``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

import structlog
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from crawler.errors import AuthError, InvalidRequest, RateLimited, ScrapeError, ScraperNotFound
from crawler.logs import one_line
from crawler.registry import scrapers
from crawler.service import metrics
from crawler.service.calls.envelope import (
    Answer,
    Call,
    failure,
    json_response,
    raw_response,
    success,
    unexpected,
)
from crawler.service.clients import quotas
from crawler.service.description import catalogue, llms, openapi, viewer
from crawler.service.http import job_routes
from crawler.service.http.body import SCRAPERS, days, fields_of, headers_of, read_object, require_method, wait_of
from crawler.service.http.cors import Cors
from crawler.service.http.response_writer import ResponseWriter, compressed
from crawler.targets.parser import check_params, note_of
from crawler.targets.target import Scraper, Target

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from crawler.service.clients.keys import Holder
    from crawler.service.http.edge import CappedRequest
    from crawler.service.parts import Parts

logger = structlog.get_logger(__name__)

KeyedRoute = Callable[[Request, Call, "Holder", str], Awaitable[Answer]]
"""Responds to a request of an authenticated client. The text is the request's path."""

DEFAULT_WAIT_SECONDS = 60
"""The default timeout of a call."""
SLOT_SECONDS = 15
"""A call without ``Prefer: wait=N`` waits at most this many seconds for its first download slot: a client that is told
at once when to retry is served better than one that waits, and may give up."""

UNKNOWN_ROUTE = "Unknown route or scraper. GET /v1/scrapers lists all scrapers."

POLL_SECONDS = 0.1
"""Interval in seconds at which the service checks, when it shuts down, whether calls are completed."""

CLIENT_GONE = 499
"""The logged status of a call whose client disconnected before the response."""


class Api(Resource):
    """Handles the requests of all routes. All errors have an envelope."""

    isLeaf = True

    def __init__(self, parts: Parts, hidden: Collection[str] = (), cors_origins: Collection[str] = ()) -> None:
        """``hidden``: the setting ``SERVICE_HIDDEN_ROUTES``. ``cors_origins``: the setting ``SERVICE_CORS_ORIGINS``."""
        super().__init__()
        self.parts = parts
        self.cors = Cors(cors_origins)
        self._writer = ResponseWriter(self.cors)
        self._tasks: set[asyncio.Task[None]] = set()
        routes: dict[str, Callable[[Call], Answer]] = {
            "/": self._root,
            SCRAPERS: lambda call: json_response(200, catalogue.as_json(), call),
            "/openapi.json": lambda call: openapi.as_json(parts.service_url).answer(call),
            "/llms.txt": lambda call: llms.as_text(parts.service_url).answer(call),
            "/docs": lambda call: viewer.page().answer(call),
            "/metrics": lambda call: raw_response(call, metrics.CONTENT_TYPE, metrics.expose()),
            "/healthz": lambda call: json_response(200, {"status": "ok"}, call),
            "/readyz": self._ready,
            **{path: content.answer for path, content in parts.pages.items()},
        }
        self._public_routes = {path: route for path, route in routes.items() if path not in hidden}
        """Routes that need no API key, by path."""
        self._keyed_routes: dict[str, KeyedRoute] = {"/v1/usage": self._usage}
        """Routes that need an API key and have no routes below their path, by path."""
        self._keyed_folders: dict[str, KeyedRoute] = {
            job_routes.PATH: parts.job_routes.answer,
        }
        """Routes that need an API key and have further routes below their path, by path."""

    def render(self, request: Request) -> int:
        """Serve the request in a task, which is cancelled when the client disconnects."""
        task = asyncio.ensure_future(self._serve(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def cancel(_: Failure) -> None:
            task.cancel()

        request.notifyFinish().addErrback(cancel)
        return NOT_DONE_YET

    async def admit(self, request: Request, uri: bytes) -> Answer | Callable[[], None]:
        """Check an upload before its body is read.

        Return the response that refuses it, or a function to be called when the body has arrived.
        """
        call = Call(
            method="POST",
            path=job_routes.PATH,
            request_headers=headers_of(request),
            service_url=self.parts.service_url,
        )
        with structlog.contextvars.bound_contextvars(request_id=call.request_id):
            try:
                holder = await self._holder(request, call)
                free_place = await self.parts.job_routes.admit(call, holder, uri)
            except ScrapeError as error:
                answer = failure(call, error)
            except Exception:
                logger.exception("request_failed")
                answer = failure(call, unexpected())
            else:
                cast("CappedRequest", request).counted = call.headers
                return free_place
            self._done(call, answer)
            return answer

    async def finish(self) -> None:
        """Wait until all calls in progress are completed and counted, and briefly until their responses are sent."""
        while calls := self._tasks - self._writer.streams:
            await asyncio.wait(calls, timeout=POLL_SECONDS)  # calls may become streams meanwhile
        await self._writer.finish()

    async def _serve(self, request: Request) -> None:
        method, path = one_line(request.method.decode("latin-1")), one_line(request.path.decode("latin-1"))
        call = Call(method=method, path=path, request_headers=headers_of(request), service_url=self.parts.service_url)
        with structlog.contextvars.bound_contextvars(request_id=call.request_id):
            try:
                answer = await self._route(request, call)
            except asyncio.CancelledError:
                self._done(call, Answer(CLIENT_GONE, {}, b"", "CLIENT_GONE"))
                return
            except ScrapeError as error:
                answer = failure(call, error)
            except Exception:
                logger.exception("request_failed")  # the response does not contain the traceback
                answer = failure(call, unexpected())
            try:
                packed = await compressed(answer, call)
                pieces = self._writer.send(request, call, packed)
            finally:
                self._done(call, answer)
            if pieces is not None:
                await self._writer.stream(request, pieces)

    def _done(self, call: Call, answer: Answer) -> None:
        duration = call.duration_ms
        metrics.count_call(call, answer, duration)
        if call.client_id and call.scraper and call.is_counted:
            self.parts.usage.count(
                call.client_id,
                call.scraper,
                answer.code,
                billable=answer.billable,
                partial=answer.partial,
            )
        if not call.is_logged:
            return
        logger.info(
            "call",
            method=call.method,
            path=call.path,
            client=call.client_id,
            scraper=call.scraper,
            target=call.target,
            code=answer.code,
            status=answer.status,
            duration_ms=duration,
        )

    async def _route(self, request: Request, call: Call) -> Answer:
        path = request.path.decode("latin-1")
        prefix, _, name = path.rpartition("/")
        if request.method == b"OPTIONS" and (preflight := self.cors.preflight(call)):
            return preflight
        public_route = self._public_routes.get(path)
        if public_route is not None:
            require_method(request, "GET")
            return public_route(call)
        keyed_route = self._keyed_routes.get(path) or self._keyed_folders.get("/".join(path.split("/")[:3]))
        if keyed_route is not None:
            return await keyed_route(request, call, await self._holder(request, call), path)
        if prefix == "/docs" and prefix in self._public_routes:
            require_method(request, "GET")
            return viewer.bundled_file(name).answer(call)
        scraper = scrapers().get(name) if prefix == SCRAPERS else None
        if scraper is None:
            raise ScraperNotFound(UNKNOWN_ROUTE)
        call.scraper = scraper.name
        if request.method != b"POST" and call.request_headers.get("x-api-key"):
            with suppress(AuthError):  # the client is named in the response if its key is valid
                await self._holder(request, call)
        require_method(request, "POST")
        if request.args:
            call.fields = fields_of(request, scraper.name)
        return await self._scrape(request, call, scraper)

    async def _scrape(self, request: Request, call: Call, scraper: Scraper) -> Answer:
        holder = await self._holder(request, call)
        given = read_object(request, call)
        params = check_params(scraper, given)
        call.note = note_of(params)
        if "idempotency-key" in call.request_headers:
            raise InvalidRequest.of("Idempotency-Key", "a call has none; send the target as a job (POST /v1/jobs)")
        call.wait = wait_of(call.request_headers.get("prefer", ""))
        seconds = (call.wait or DEFAULT_WAIT_SECONDS) - call.duration_ms / 1000
        deadline = asyncio.get_running_loop().time() + seconds  # its clock need not be time.monotonic()
        target = Target(call.request_id, scraper, params, deadline=deadline)
        call.target = target.label
        async with self.parts.limits.in_flight(holder):
            await quotas.check(self.parts.store, holder)
            outcome = await self.parts.crawlers.call(target, seconds if call.wait else SLOT_SECONDS)
        assert outcome.data is not None
        return success(call, outcome.data, outcome.warnings)

    async def _holder(self, request: Request, call: Call) -> Holder:
        """Return the client that owns the call's API key. A POST counts as one call of the key's rate.

        Raises:
            AuthError: the key is missing, unknown or revoked.
            RateLimited: the key has made all calls of its period; or the key is not valid, and the caller's address has
                sent too many calls without a valid key.
            StoreUnavailable: the keys could not be read yet.
        """
        parts = self.parts
        peer = getattr(request.getClientAddress(), "host", None)
        sent = call.request_headers
        client = None if peer is None else parts.addresses.find_client(peer, sent.get("x-forwarded-for"))
        try:
            holder = await parts.keys.holder(sent.get("x-api-key"))
        except AuthError:
            try:
                parts.addresses.count_failed_key(client)
            except RateLimited:
                call.is_logged = False  # a warning with the address is logged instead, from time to time
                raise
            raise
        call.client_id = holder.client
        counted = cast("CappedRequest", request).counted
        if counted is not None:
            call.headers.update(counted)
        elif call.method == "POST" and (rate_limit := await parts.limits.count(holder)):
            call.headers.update(rate_limit.headers)
            rate_limit.check()
        return holder

    def _root(self, call: Call) -> Answer:
        """Redirect to the documentation, for people who open the service's address in a browser."""
        if "/docs" not in self._public_routes:
            raise ScraperNotFound(UNKNOWN_ROUTE)
        return raw_response(call, "text/plain; charset=utf-8", b"", {"Location": "docs"}, status=HTTPStatus.FOUND)

    def _ready(self, call: Call) -> Answer:
        state = self.parts.crawlers.state
        return json_response(200 if state["status"] == "ready" else 503, state, call)

    async def _usage(self, request: Request, call: Call, holder: Holder, _: str) -> Answer:
        require_method(request, "GET")
        since, until = days(request)
        return json_response(200, await self.parts.usage.report(holder, since, until), call)
