"""States of an endpoint and of requests to it, with the code and the time to wait that each causes on which routes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from unittest import mock

from crawler.errors import ScrapeError, StoreUnavailable, documented
from crawler.service import openapi
from crawler.service.jobs.client_jobs import MAX_ARRIVING, MAX_ARRIVING_OF_CLIENT
from crawler.service.jobs.routes import PATH as JOBS
from crawler.service.route import Route
from tests.jobs.workers import new_job
from tests.service.client import Reply
from tests.service.in_process import ACME, InProcess

ORDER = ("GET", "POST", "DELETE")
ROUTES = sorted((each for each in openapi.ROUTES if each.operation), key=lambda each: ORDER.index(each.method))
"""The routes of the OpenAPI document. Those that change a job are last."""
TARGETS = b'[{"scraper": "retail-search-v4", "query": "tea"}]'
USUAL_BODIES = {"create-job": TARGETS}
NO_JOB = "987654"
NOW = datetime(2026, 11, 30, 23, 59, 50, tzinfo=UTC).timestamp()
"""The time at which the clocks of the limits and of the quotas stand still, in Unix seconds."""
UNTIL_DECEMBER = 10


def calls(route: type[Route]) -> bool:
    return bool(route.calls)


def has_key(route: type[Route]) -> bool:
    return not route.is_public


def has_body(route: type[Route]) -> bool:
    return bool(route.takes)


def of_job(route: type[Route]) -> bool:
    return "{job_id}" in route.path


def named(*operations: str) -> Callable[[type[Route]], bool]:
    return lambda route: route.operation in operations


def scrapes_or(*operations: str) -> Callable[[type[Route]], bool]:
    return lambda route: calls(route) or route.operation in operations


BEGINS_JOB = named("create-job", "repeat-job")
BEGINS = scrapes_or("create-job", "repeat-job")
COSTS = scrapes_or("create-job", "repeat-job", "retry-job")
WRITES = named("create-job", "repeat-job", "retry-job", "delete-job")


Given = Callable[[InProcess], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def usual(_: InProcess) -> AsyncIterator[None]:
    yield


@dataclass(frozen=True)
class State:
    """What is unusual: in the endpoint, or in the requests of the routes ``on``. These get the error ``code``."""

    name: str
    code: str
    on: Callable[[type[Route]], bool]
    retry_after: int | None = None
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    job: str = "done"
    """The job of the requests: ``done``, ``open``, ``cancelled``, ``another client's``, or an id."""
    settings: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    """The limits of the key."""
    given: Given = usual
    error: ScrapeError | None = None
    """The error with which targets end."""
    readiness: str = "ready"

    def routes(self) -> Iterator[type[Route]]:
        """Yield the routes to try. Those that end a job are last."""
        is_request = self.given is usual and not (self.settings or self.limits or self.error)
        only = self.code != "OK" and is_request
        yield from (each for each in ROUTES if self.on(each) or not only)

    async def send(self, at: InProcess, route: type[Route], job_id: str) -> Reply:
        """Send a request of a route."""
        body = json.dumps(route.example).encode() if route.calls else USUAL_BODIES.get(route.operation, b"")
        headers, query = (self.headers, self.query) if self.on(route) else ({}, "")
        if self.on(route) and self.body is not None:
            body = self.body
        if query.partition("=")[0] not in {"", "colour", *route.inputs["query"]}:
            query = ""
        path = route.path.replace("{job_id}", job_id) + (f"?{query}" if query else "")
        return await at.send(route.method, path, body, headers)

    async def job_id(self, at: InProcess) -> str:
        """Make the job of the requests. Return its id."""
        jobs = at.endpoint.parts.jobs.jobs
        if self.job == "another client's":
            return str((await new_job(jobs, 1, "prices", "other")).id)
        if self.job in {"open", "cancelled"}:
            job_id = await at.open_job("&name=prices")
            if self.job == "cancelled":
                await at.send("DELETE", f"{JOBS}/{job_id}")
            return job_id
        return await at.finished_job("&name=prices") if self.job == "done" else self.job

    def expected(self, route: type[Route]) -> tuple[int, str]:
        """Return the status and the code of the response to a request of a route."""
        if self.on(route):
            return next((each.http_status, each.code) for each in documented() if each.code == self.code)
        if route.operation == "readyz" and self.readiness != "ready":
            return 503, "OK"
        return max(status for status in route.replies if status < 300), "OK"


@asynccontextmanager
async def one_call_in_flight(at: InProcess) -> AsyncIterator[None]:
    async with at.endpoint.parts.limits.in_flight(replace(ACME, concurrency=1)):
        yield


@asynccontextmanager
async def one_record_used(at: InProcess) -> AsyncIterator[None]:
    at.endpoint.parts.usage.count(ACME.client, "a", "OK", billable=True)
    await at.endpoint.parts.usage.flush()
    yield


@asynccontextmanager
async def full_of_uploads(at: InProcess) -> AsyncIterator[None]:
    for number in range(MAX_ARRIVING):
        at.endpoint.parts.jobs.arrive(f"client {number}")
    yield


@asynccontextmanager
async def uploads_arrive(at: InProcess) -> AsyncIterator[None]:
    for _ in range(MAX_ARRIVING_OF_CLIENT):
        at.endpoint.parts.jobs.arrive(ACME.client)
    yield


@asynccontextmanager
async def draining(at: InProcess) -> AsyncIterator[None]:
    at.endpoint.parts.crawlers.draining = True
    yield


@asynccontextmanager
async def broken(at: InProcess) -> AsyncIterator[None]:
    """The crawlers of all platforms crash when they start."""
    for crawler in at.endpoint.parts.crawlers.of.values():
        crawler._crashes = 2
    yield


@asynccontextmanager
async def locked(at: InProcess) -> AsyncIterator[None]:
    """Another program has locked the store for writing."""
    with closing(sqlite3.connect(at.endpoint.parts.store.location, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


def keys_raise(error: Exception) -> Given:
    @asynccontextmanager
    async def given(at: InProcess) -> AsyncIterator[None]:
        with mock.patch.object(at.endpoint.parts.keys, "holder", side_effect=error):
            yield

    return given


@asynccontextmanager
async def key_used(at: InProcess) -> AsyncIterator[None]:
    """Another upload has used the Idempotency-Key."""
    assert (await at.send("POST", JOBS, TARGETS.replace(b"tea", b"oil"), KEY_SENT)).status == 202
    yield


@asynccontextmanager
async def ends_meanwhile(at: InProcess) -> AsyncIterator[None]:
    """Before the lines of an upload are stored, another upload with the same Idempotency-Key fails."""
    uploads = at.endpoint.parts.jobs.uploads
    push = type(uploads)._push

    async def late(self: Any, job: Any, *rest: Any) -> None:
        await self._abandon(job)
        await push(self, job, *rest)

    with mock.patch.object(type(uploads), "_push", late):
        yield


@asynccontextmanager
async def another_job_open(at: InProcess) -> AsyncIterator[None]:
    await at.open_job()
    yield


@asynccontextmanager
async def calls_made(at: InProcess) -> AsyncIterator[None]:
    """All calls of the period were made."""
    for _ in range(2):
        await at.endpoint.parts.limits.count(replace(ACME, rate="2/hour"))
    yield


FROM_TARGETS = [
    *(error for error in documented() if error.type in {"target", "upstream"}),
    *(error for error in documented() if error.code in {"BLOCKED_BY_POLICY", "ITEM_DROPPED", "INTERNAL_ERROR"}),
]
CREATES, REPEATS, KEY_SENT = named("create-job"), named("repeat-job"), {"Idempotency-Key": "nightly"}
STATES = [
    State("usual", "OK", lambda _: False),
    State("an unknown parameter", "INVALID_REQUEST", lambda _: True, query="colour=red"),
    State("no key", "MISSING_API_KEY", has_key, headers={"X-API-Key": ""}),
    State("a wrong key", "INVALID_API_KEY", has_key, headers={"X-API-Key": "wrong"}),
    State("an unknown job", "JOB_NOT_FOUND", of_job, job=NO_JOB),
    State("a job of another client", "JOB_NOT_FOUND", of_job, job="another client's"),
    State("a malformed id", "JOB_NOT_FOUND", of_job, job="1.0"),
    State("no media type", "UNSUPPORTED_MEDIA_TYPE", has_body, headers={"Content-Type": ""}),
    State("a form", "UNSUPPORTED_MEDIA_TYPE", has_body, headers={"Content-Type": "multipart/form-data"}),
    State("a compressed body", "UNSUPPORTED_MEDIA_TYPE", has_body, headers={"Content-Encoding": "br"}),
    State("half a body", "INVALID_JSON", has_body, body=b"{"),
    State("a byte order mark", "INVALID_JSON", has_body, body=b'\xef\xbb\xbf{"max_pages": 2}'),
    State("no params", "INVALID_REQUEST", has_body, body=b"{}"),
    State("no targets", "INVALID_REQUEST", CREATES, headers={"Content-Type": "text/csv"}, body=b"url\n"),
    State("a large body", "PAYLOAD_TOO_LARGE", has_body, body=b" " * 100_001),
    State("another expectation", "EXPECTATION_FAILED", has_body, headers={"Expect": "200-ok"}),
    State("a key of bytes", "INVALID_REQUEST", BEGINS, headers={"Idempotency-Key": "\xe9"}),
    State("another upload with the key", "IDEMPOTENCY_MISMATCH", BEGINS_JOB, headers=KEY_SENT, given=key_used),
    State("a failed upload with the key", "IDEMPOTENCY_IN_PROGRESS", CREATES, headers=KEY_SENT, given=ends_meanwhile),
    State("all calls made", "RATE_LIMITED", COSTS, 1_800, limits={"rate": "2/hour"}, given=calls_made),
    State("all records used", "QUOTA_EXCEEDED", COSTS, UNTIL_DECEMBER, limits={"quota": 1}, given=one_record_used),
    State("a call in flight", "CONCURRENCY_LIMITED", calls, 1, limits={"concurrency": 1}, given=one_call_in_flight),
    State("all jobs open", "CONCURRENCY_LIMITED", BEGINS_JOB, 60, settings={"JOBS_MAX": 1}, given=another_job_open),
    State("an open run", "JOB_NOT_DONE", BEGINS_JOB, 60, query="name=prices", job="open"),
    State("changes of an open run", "INVALID_REQUEST", named("job-changes"), job="open"),
    State("a cancelled run", "INVALID_REQUEST", named("retry-job", "job-changes"), job="cancelled"),
    State("full of calls", "OVERLOADED", calls, 5, settings={"SERVICE_MAX_CALLS": 0}),
    State("its uploads arrive", "CONCURRENCY_LIMITED", CREATES, 5, given=uploads_arrive),
    State("full of uploads", "OVERLOADED", CREATES, 5, given=full_of_uploads),
    State("draining", "SHUTTING_DOWN", BEGINS, 5, given=draining, readiness="draining"),
    State("a bug", "INTERNAL_ERROR", has_key, given=keys_raise(ZeroDivisionError("a detail"))),
    State("no crawler starts", "INTERNAL_ERROR", calls, given=broken, readiness="broken"),
    State("a locked store", "STORE_UNAVAILABLE", WRITES, 5, given=locked),
    State("no keys", "STORE_UNAVAILABLE", has_key, 5, given=keys_raise(StoreUnavailable("No disk.", retry_after=5))),
    *(State(each.code, each.code, calls, 7, error=each("The reason.", retry_after=7)) for each in FROM_TARGETS),
]
