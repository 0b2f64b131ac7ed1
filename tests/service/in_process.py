"""An endpoint in the test's process, with a simulated clock of connections, and crawlers that return given outcomes.

Requests and responses are bytes, as on a connection. The store is a file, and its jobs run only in ``finished_job()``.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, cast

from scrapy.utils.project import get_project_settings
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from crawler.errors import ScrapeError, TargetNotFound
from crawler.jobs.job import Claim, Finished
from crawler.service.endpoint import Endpoint
from crawler.service.keys import Holder, Keys, hash_of
from crawler.service.open_crawlers import OpenCrawler
from crawler.targets.target import Outcome, Target
from tests.jobs.workers import Process
from tests.service.client import Reply, reply_of
from tests.service.conftest import ROOT

RECORDED = json.loads((ROOT / "crawler/service/examples.json").read_text())
"""The examples of the OpenAPI document."""
KEY = "sk_acme"
ACME = Holder("acme", "k1")


class Transport(StringTransport):
    """A connection that records what is sent, with the methods of a TCP connection that Twisted's own fake lacks."""

    def unregisterProducer(self) -> None:  # noqa: N802  # Twisted's
        self.producer = None

    def loseWriteConnection(self) -> None:  # noqa: N802  # Twisted's
        """Nothing more is sent."""

    @property
    def has_ended(self) -> bool:
        """Whether the endpoint has closed the connection."""
        return self.disconnecting or self.disconnected


class _Socket:
    """What ``HTTPResponse`` needs of a socket."""

    def __init__(self, received: bytes) -> None:
        self._received = received

    def makefile(self, _: str) -> io.BytesIO:
        return io.BytesIO(self._received)


def parsed(received: bytes, method: str) -> Reply:
    """Return the response in the bytes of a connection."""
    response = HTTPResponse(
        cast("Any", _Socket(received.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n"))), method=method
    )
    response.begin()
    return reply_of(response, response.read())


@dataclass
class InProcess:
    """A running endpoint. Its crawlers return the example of a scraper, or ``error``, if there is one."""

    endpoint: Endpoint
    error: ScrapeError | None = None
    held: list[Callable[[], None]] | None = None
    """If it is a list: the functions that complete the targets of the calls that wait."""
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        for crawler in self.endpoint.parts.crawlers.of.values():
            crawler.source.put = partial(self._complete, crawler)  # type: ignore[method-assign]  # the platforms

    def _complete(self, crawler: OpenCrawler, target: Target) -> None:
        data = RECORDED["successes"][target.scraper.name]["data"]
        outcome = Outcome(target, cast("Any", None if self.error else data), self.error, 0)
        complete = partial(crawler.source.on_outcome, outcome)
        if self.held is None:
            complete()
        else:
            self.held.append(complete)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110  # the store works in a thread
            await asyncio.sleep(0.001)

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        at_once: bool = False,
    ) -> Reply:
        """Send a request with a key over a connection of its own, with JSON if it has a body and no other media type.

        A header with the value "" is left out.

        ``at_once``: the body arrives with the head, so that the head of an upload is not checked before.
        """
        own = {"Host": "x", "X-API-Key": KEY, "Connection": "close"}
        if body:
            own |= {"Content-Length": str(len(body)), "Content-Type": "application/json"}
        lines = [f"{name}: {value}" for name, value in {**own, **(headers or {})}.items() if value]
        channel = self.endpoint.site.buildProtocol(None)
        channel.callLater = self.clock.callLater
        transport = Transport()
        channel.makeConnection(transport)
        channel.dataReceived("\r\n".join([f"{method} {path} HTTP/1.1", *lines, "\r\n"]).encode("latin-1"))
        if not at_once:
            await self.until(lambda: transport.producerState != "paused" or channel.is_refused)
        channel.dataReceived(body)
        await self.until(lambda: transport.has_ended or channel.is_refused)
        channel.connectionLost()
        return parsed(transport.value(), method)

    async def open_job(self, query: str = "") -> str:
        """Make a job of two targets. Return its id."""
        path = f"/v1/jobs?scraper=retail-search-v4{query}"
        reply = await self.send("POST", path, b"query\nmustard\ngone\n", {"Content-Type": "text/csv"})
        return str(reply.body["job"]["job_id"])

    async def finished_job(self, query: str = "") -> str:
        """Make a job that is done, with a record and a failure. Return its id."""
        jobs, job_id = self.endpoint.parts.jobs.jobs, await self.open_job(query)
        job = await jobs.get(int(job_id))
        assert job is not None

        def answer(claim: Claim) -> Finished:
            stored: dict[str, Any] = {"warnings": [], "contract": "1", "fetched_at": "2026-11-26T00:00:00+00:00"}
            if claim.work["params"]["query"] == "gone":
                error = TargetNotFound("There is no such page.")
                return Finished(claim, "failed", error.code, stored | {"error": error.as_dict() | {"retryable": False}})
            return Finished(claim, "done", "OK", stored, RECORDED["successes"]["retail-search-v4"]["data"])

        await Process(jobs, answer).run(job)
        return job_id


@asynccontextmanager
async def endpoint(folder: Path, holder: Holder = ACME, **settings: Any) -> AsyncIterator[InProcess]:
    """Run an endpoint whose only key is ``KEY``."""
    own = get_project_settings()
    own.setdict(
        {"STORE": str(folder / "store.sqlite3"), "SERVICE_MAX_JOB_BYTES": 100_000} | settings, priority="cmdline"
    )
    made = Endpoint(own, Keys({hash_of(KEY): holder}))
    try:
        yield InProcess(made)
    finally:
        await made.drain(lambda: asyncio.sleep(0))
