"""Compares what the clients of the standing attack have sent and received with what the product has stored."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from typing import Any, TypeVar

from crawler.downloads.breaker import TRIAL_SECONDS
from crawler.errors import StoreUnavailable
from crawler.jobs.job import Job
from crawler.jobs.lifecycle import Jobs
from tests.service.metrics_of import becomes, samples
from tests.soak.clients import Clients
from tests.soak.product import Product
from tests.soak.targets import Lines

T = TypeVar("T")
IDLE_SECONDS = 60.0 + 2 * TRIAL_SECONDS
"""Seconds without an outcome after which jobs count as hanging: more than the lease and the timeout of a target, and
than two trials of a circuit breaker, whose results are lost with their process or in an outage of the store."""
USAGE = "/v1/usage?from=2000-01-01&to=2100-01-01"
"""All days: the clock may have jumped."""


def patiently(read: Callable[[], T]) -> T:
    """Repeat a request while the endpoint still recovers from the last fault."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return read()
        except (OSError, HTTPException):
            if time.monotonic() > deadline:
                raise
        time.sleep(0.5)


class Books:
    """The books of one run. Differences are added to the ledger of the clients."""

    def __init__(self, clients: Clients, location: str) -> None:
        self.clients = clients
        self.ledger = clients.ledger
        self.location = location

    def settle(self) -> None:
        """Wait until all jobs have ended, as long as their targets get outcomes."""
        ended, since = -1, time.monotonic()
        while True:
            jobs = [each for name in ("jobs", "hostile") for each in self.listed(name)]
            number = sum(each["targets"]["done"] + each["targets"]["failed"] for each in jobs)
            if number != ended:
                ended, since = number, time.monotonic()
            waiting = [each for each in jobs if each["state"] == "open" or each["targets"]["running"]]
            if not waiting:
                return
            if time.monotonic() - since > IDLE_SECONDS:
                self.ledger.differs(f"jobs without an outcome for {IDLE_SECONDS:g} s: {waiting[:3]}")
                return
            time.sleep(1)

    def listed(self, name: str) -> list[dict[str, Any]]:
        return patiently(lambda: self.clients.listed(name))

    def check(self, *, exact: bool) -> None:
        """Compare everything. ``exact``: no process of the endpoint was killed, so its counters are complete."""
        jobs = self.listed("jobs")
        self._check_jobs(jobs)
        self._check_bills(jobs)
        self._check_calls(exact=exact)
        asyncio.run(self._check_store())
        if not becomes(self.clients.product.url, 0, "crawler_connections"):
            self.ledger.differs("connections of clients are left")

    # Jobs

    def _check_jobs(self, jobs: list[dict[str, Any]]) -> None:
        """Each upload has made one job, and each of its lines has one outcome."""
        by_key: dict[str, list[str]] = {}
        for job in jobs:
            by_key.setdefault(job["idempotency_key"], []).append(job["job_id"])
        for key, job_id in self.ledger.jobs.items():
            if by_key.get(key) != [job_id]:
                self.ledger.differs(f"{key} has made the jobs {by_key.get(key)}, and the client received {job_id}")
        for key, job_ids in by_key.items():
            path = f"/v1/jobs/{job_ids[0]}"
            records, failures = (self._lines(f"{path}/{kind}") for kind in ("records", "failures"))
            self.check_outcomes(key, self.ledger.uploads[key], records, failures)
            self.ledger.figures["targets"] += len(records) + len(failures)

    def _lines(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self._read(path) or b"").split(b"\n") if line]

    def _read(self, path: str) -> Any:
        def read() -> Any:
            reply = self.clients.send("jobs", "GET", path)
            if reply.status != 200:
                raise ConnectionError(reply.code)
            return reply.body

        return patiently(read)

    def check_outcomes(
        self, name: str, lines: Lines, records: list[dict[str, Any]], failures: list[dict[str, Any]]
    ) -> None:
        """Check that each line has a record or a failure, once, that fits its target."""
        found = Counter(each["id"] for each in (*records, *failures))
        if found != Counter(lines.keys()):
            lost, extra = sorted(lines.keys() - found.keys()), sorted((found - Counter(lines.keys())).elements())
            self.ledger.differs(f"{name}: of {len(lines)} lines, no outcome {lost}, too many {extra}")
        for each in (*records, *failures):
            wanted, code = lines.get(each["id"]), each.get("code", "OK")
            if wanted is None:
                problem = None if code == "SCRAPER_NOT_FOUND" else f"{code} for a line that is no target"
            else:
                params = each["params"] if isinstance(each["params"], dict) else None
                problem = wanted.contradiction(code, params, each.get("data"))
            if problem:
                message = each.get("message", "")
                self.ledger.differs(f"{name}, {each['id']}: {problem} {message}".rstrip())

    # Counts

    def usage(self, name: str) -> dict[str, Any]:
        """Return the usage of a client, after all of it was stored."""

        def read() -> dict[str, Any]:
            found: dict[str, Any] = self.clients.send(name, "GET", USAGE).body
            if found.get("pending", 1):
                raise ConnectionError("counts are pending")
            return found

        return patiently(read)

    def _check_bills(self, jobs: list[dict[str, Any]]) -> None:
        """The usage of a client that only makes jobs is exactly the outcomes of its targets."""
        details = [self._read(f"/v1/jobs/{each['job_id']}") for each in jobs]
        codes: Counter[str] = Counter()
        for each in details:
            codes.update(each["codes"])
        del codes["SCRAPER_NOT_FOUND"]  # lines that are no targets
        usage = self.usage("jobs")
        billed: Counter[str] = Counter()
        for row in usage["usage"]:
            billed.update(row["outcomes"])
        if billed != codes:
            self.ledger.differs(f"jobs: bills {billed - codes} too many, {codes - billed} too few")
        if usage["billable"] != codes["OK"]:
            self.ledger.differs(f"jobs: {usage['billable']} billable records instead of {codes['OK']}")

    def _check_calls(self, *, exact: bool) -> None:
        """Compare the calls of the client that waits with its usage, and all calls with the metrics.

        A call without a response may be counted. If a process of the endpoint was killed, its last counts are lost.
        """
        answered, unanswered = self.ledger.answered["caller"], self.ledger.unanswered
        usage = self.usage("caller")
        counted: Counter[str] = Counter()
        for row in usage["usage"]:
            counted.update(row["outcomes"])
        billable = self.ledger.billable["caller"]
        if exact and unanswered["caller"]:
            self.ledger.differs(f"{unanswered['caller']} calls have no response")
        if (counted - answered).total() > unanswered["caller"] or (exact and answered - counted):
            self.ledger.differs(f"calls {answered}, usage {counted}, without response {unanswered['caller']}")
        if not 0 <= usage["billable"] - billable <= unanswered["caller"] and (exact or usage["billable"] > billable):
            self.ledger.differs(f"calls: {usage['billable']} are billed, {billable} were stated as billable")
        if not exact:
            return
        shown: Counter[str] = Counter()
        for (name, labels), number in samples(self.clients.product.url).items():
            if name == "crawler_calls_total":
                shown[dict(labels)["code"]] += int(number)
        for code, number in sum(self.ledger.answered.values(), Counter()).items():
            if not number <= shown[code] <= number + unanswered.total():
                self.ledger.differs(f"{number} calls with {code}, {shown[code]} in the metrics")

    # The store

    async def _check_store(self) -> None:
        """Compare the counters of all jobs with the stored targets, as ``scrapy jobs check`` does."""
        jobs = Jobs(self.location)

        async def every() -> list[Job]:
            return [job async for job in jobs.every()]

        for job in await _patiently(every):
            for problem in await _patiently(partial(jobs.check, job)):
                self.ledger.differs(f"jobs check {job.name}: {problem}")
            self.ledger.figures["jobs"] += 1
        await jobs.close()


async def _patiently(read: Callable[[], Awaitable[T]]) -> T:
    for _ in range(100):
        with suppress(StoreUnavailable):
            return await read()
        await asyncio.sleep(0.2)
    return await read()


def collected(product: Product, file: str) -> list[dict[str, Any]]:
    """Return the objects in an output of ``scrapy collect``; none if there is no such file."""
    path = product.folder / file
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line] if path.exists() else []
