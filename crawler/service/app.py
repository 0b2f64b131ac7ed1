"""The endpoint's dispatcher: finds the route of a request and the client of its API key, and sends the answer.

An unexpected exception becomes ``INTERNAL_ERROR``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar, cast

import structlog
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from crawler.configuration.names import nearest
from crawler.errors import (
    AuthError,
    JobNotFound,
    MethodNotAllowed,
    ScrapeError,
    ScraperNotFound,
)
from crawler.logs import one_line
from crawler.service import documents, metrics, openapi
from crawler.service.edge import UPLOAD_SECONDS, BodyLimits
from crawler.service.envelope import Answer, Call, failure, raw_response, unexpected
from crawler.service.jobs.routes import PATH as JOBS
from crawler.service.jobs.routes import CreateJob
from crawler.service.keys import key_in
from crawler.service.responses import ResponseWriter
from crawler.service.route import headers_of

if TYPE_CHECKING:
    from twisted.python.failure import Failure

    from crawler.service.edge import CappedRequest
    from crawler.service.keys import Holder
    from crawler.service.parts import Parts
    from crawler.service.route import Route

logger = structlog.get_logger(__name__)
T = TypeVar("T")

MAX_COMPARED = 200
"""Longer paths are not compared with the known ones."""

POLL_SECONDS = 0.1
"""Interval in seconds at which the service checks, when it shuts down, whether calls are completed."""

CLIENT_GONE = 499
"""The logged status of a call whose client disconnected before the response."""


class Api(Resource):
    """Handles the requests of all routes. All errors have an envelope."""

    isLeaf = True

    def __init__(self, parts: Parts, hidden: Collection[str] = ()) -> None:
        """``hidden``: the setting ``SERVICE_HIDDEN_ROUTES``."""
        super().__init__()
        self.parts = parts
        self._writer = ResponseWriter()
        self._tasks: set[asyncio.Task[None]] = set()
        pages = {
            "/openapi.json": openapi.as_json(parts.service_url),
            "/llms.txt": documents.llms(parts.service_url),
            "/docs": documents.docs(),
            **{f"/docs/{name}": content for name, content in documents.bundled_files().items()},
            **parts.pages,
        }
        self._pages = {path: content for path, content in pages.items() if not _is_hidden(path, hidden)}
        self._routes, self._templates = table(each for each in openapi.ROUTES if not _is_hidden(each.path, hidden))

    def render(self, request: Request) -> int:
        """Serve the request in a task, which is cancelled when the client disconnects."""
        task = asyncio.ensure_future(self._serve(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

        def cancel(_: Failure) -> None:
            task.cancel()

        request.notifyFinish().addErrback(cancel)
        return NOT_DONE_YET

    @property
    def limits(self) -> dict[tuple[bytes, bytes], BodyLimits]:
        """The limits of the bodies of uploads, by method and path."""
        upload = BodyLimits(self.parts.settings.getint("SERVICE_MAX_JOB_BYTES"), UPLOAD_SECONDS, self.admit)
        return {(CreateJob.method.encode(), CreateJob.path.encode()): upload}

    async def admit(self, request: Request, query: bytes) -> Answer | Callable[[], None]:
        """Check an upload before its body is read.

        Return the response that refuses it, or a function to be called when the body has arrived.
        """
        call = Call(method="POST", path=JOBS, request_headers=headers_of(request), service_url=self.parts.service_url)

        async def check() -> Callable[[], None]:
            call.holder = await self._holder(request, call)
            return await CreateJob.read(call, query.decode("latin-1"), {}).admit(call, self.parts)

        with structlog.contextvars.bound_contextvars(request_id=call.request_id):
            admitted = await _answered(call, check())
            if isinstance(admitted, Answer):
                self._done(call, admitted)
            else:
                cast("CappedRequest", request).counted = call.headers
            return admitted

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
                answer = await _answered(call, self._route(request, call))
            except asyncio.CancelledError:
                self._done(call, Answer(CLIENT_GONE, {}, b"", "CLIENT_GONE"))
                return
            try:
                pieces = self._writer.send(request, answer)
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
        if (page := self._pages.get(path)) is not None:
            _check_method(call, ("GET",))
            return page.answer(call)
        if path == "/" and "/docs" in self._pages:  # for people who open the service's address in a browser
            _check_method(call, ("GET",))
            return raw_response(call, "text/plain; charset=utf-8", b"", {"Location": "docs"}, status=HTTPStatus.FOUND)
        try:
            methods, in_path = self._find(path)
        except ScrapeError:
            await self._name_client(request, call)
            raise
        route = methods.get("GET" if call.method == "HEAD" else call.method)
        any_route = route or next(iter(methods.values()))
        call.scraper, call.is_counted = any_route.calls, any_route.is_counted
        if route is None:
            await self._name_client(request, call)
            _check_method(call, methods)
        assert route is not None
        if not route.is_public:
            call.holder = await self._holder(request, call)
        given = route.read(call, request.uri.decode("latin-1").partition("?")[2], in_path)
        assert request.content is not None
        call.content = request.content
        return await given.answer(call, self.parts)

    async def _name_client(self, request: Request, call: Call) -> None:
        """Name the client of a valid API key in the response to a request that is refused for another reason."""
        if {"x-api-key", "authorization"} & call.request_headers.keys():
            with suppress(AuthError):
                await self._holder(request, call)

    def _find(self, path: str) -> tuple[Mapping[str, type[Route]], Mapping[str, str]]:
        """Return the routes of a path by their methods, and the path parameters.

        Raises:
            ScraperNotFound, JobNotFound: the path has no routes.
        """
        if found := self._routes.get(path):
            return found, {}
        for template, methods in self._templates.items():
            if matched := template.fullmatch(path):
                return methods, matched.groupdict()
        if path.startswith(f"{JOBS}/"):
            raise JobNotFound("A job has no such route. GET /openapi.json describes all routes.")
        near = nearest(path, [*self._routes, *self._pages]) if len(path) < MAX_COMPARED else None
        suggested = f"Did you mean {near}? " if near else ""
        raise ScraperNotFound(f"Unknown route or scraper. {suggested}GET /v1/scrapers lists all scrapers.")

    async def _holder(self, request: Request, call: Call) -> Holder:
        """Return the client that owns the call's API key. A POST counts as one call of the key's rate.

        Raises:
            AuthError: the key is missing, unknown or revoked.
            RateLimited: the key has made all calls of its period.
            StoreUnavailable: the keys could not be read yet.
        """
        parts = self.parts
        holder = await parts.keys.holder(key_in(call.request_headers))
        call.client_id = holder.client
        counted = cast("CappedRequest", request).counted
        if counted is not None:
            call.headers.update(counted)
        elif call.method == "POST" and (rate_limit := await parts.limits.count(holder)):
            call.headers.update(rate_limit.headers)
            rate_limit.check()
        return holder


async def _answered(call: Call, work: Awaitable[T]) -> T | Answer:
    """Return the result of some work on a call, or the response with its error."""
    try:
        return await work
    except ScrapeError as error:
        return failure(call, error)
    except Exception:
        logger.exception("request_failed")  # the response does not contain the traceback
        return failure(call, unexpected())


def table(
    routes: Iterable[type[Route]],
) -> tuple[dict[str, dict[str, type[Route]]], dict[re.Pattern[str], dict[str, type[Route]]]]:
    """Return the routes without path parameters by path and method, and the others by the pattern of their path."""
    fixed: dict[str, dict[str, type[Route]]] = {}
    for each in routes:
        fixed.setdefault(each.path, {})[each.method] = each
    templates = {
        re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path)): fixed.pop(path) for path in [*fixed] if "{" in path
    }
    return fixed, templates


def _is_hidden(path: str, hidden: Collection[str]) -> bool:
    return path in hidden or (path.startswith("/docs/") and "/docs" in hidden)


def _check_method(call: Call, methods: Collection[str]) -> None:
    """Check the method of a request.

    Raises:
        MethodNotAllowed: the method is not one of ``methods``. If ``GET`` is one of them, ``HEAD`` is allowed, too.
    """
    allowed = [*methods, "HEAD"] if "GET" in methods else [*methods]  # Twisted sends no body after HEAD
    if call.method not in allowed:
        named = ", ".join(sorted(allowed))
        raise MethodNotAllowed(f"Method not allowed: this route accepts {named}.", allowed=named)
