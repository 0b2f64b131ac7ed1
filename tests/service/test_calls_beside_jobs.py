"""Synchronous calls while jobs run: at most one target of a job starts on the lane while a call waits."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from crawler.downloads.throttle import Starts
from crawler.jobs.job import InputLine
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.options import JobOptions
from crawler.service.keys import KeyStore
from crawler.service.usage import FLUSH_SECONDS
from crawler.targets.target import target_key
from tests import forks
from tests.downloads.processes import PATIENT
from tests.hanging_platform import HangingPlatform, hanging_platform
from tests.service.client import HEADERS, SEARCH, Reply, call
from tests.service.conftest import ROOT, running
from tests.service.metrics_of import value
from tests.stored_facts import stored_facts

TARGETS = 60
SCRAPER = "retail-search-v4"


def queries(platform: HangingPlatform) -> list[str]:
    """Return the queries that the platform has received, in their order."""
    return [parse_qs(urlsplit(path).query)["q"][0] for path in platform.requested_paths if "q=" in path]


async def make_jobs(store: str, owners: tuple[str, ...]) -> None:
    """Create a job for each client."""
    jobs = Jobs(store)
    for owner in owners:
        job = await jobs.begin("job", owner, options=JobOptions(sandbox=False))
        lines = []
        for row in range(TARGETS):
            params = {"query": f"hang {owner} {row}"}
            work = {"id": str(row), "scraper": SCRAPER, "params": params}
            lines.append(InputLine(row, str(row), target_key(SCRAPER, params), "retail", work))
        await jobs.push(job, lines)
        await jobs.describe(job, [SCRAPER], ())
        await jobs.open(job)
    await jobs.close()


@contextmanager
def working(settings: list[str], log: Path) -> Iterator[None]:
    """Run ``scrapy work``."""
    options = [part for setting in settings for part in ("-s", setting)]
    with log.open("w") as output:
        process = forks.Popen(
            [sys.executable, "-m", "scrapy", "work", *options],
            stdout=subprocess.DEVNULL,
            stderr=output,
            text=True,
            cwd=ROOT,
            before=PATIENT,
        )
        try:
            yield
        finally:
            process.kill()
            process.communicate()


def is_waiting(store: str) -> bool:
    """Whether a process without a slot waits for one: the endpoint, for its call. The worker has all slots."""
    facts, _ = stored_facts(store, Starts, ["retail"])
    return any(
        not any(token.startswith(owner) for token in fact.slots) for fact in facts.values() for owner in fact.waiting
    )


@pytest.mark.parametrize(
    ("slots", "work"),
    [
        pytest.param(1, False, id="the only slot is taken"),
        pytest.param(2, False, id="targets of two clients have taken all slots", marks=pytest.mark.soak),
        pytest.param(1, True, id="another process has taken the only slot", marks=pytest.mark.soak),
        pytest.param(3, True, id="another process has taken all slots"),
    ],
)
def test_a_synchronous_call_waits_for_at_most_one_target_of_a_job(tmp_path: Path, slots: int, *, work: bool) -> None:
    """The test counts the targets of jobs that start after the call has arrived and before the call starts.

    Before the limit existed, all targets of the jobs of ``scrapy work`` started first. The platform sends one response,
    so that one slot becomes free, and the others only after the next request.
    """
    keys = KeyStore(tmp_path / "keys.sqlite")
    headers = {**HEADERS, "X-API-Key": keys.create("caller")}
    store = str(tmp_path / "store.sqlite3")
    with hanging_platform() as platform, ExitStack() as stack:
        settings = [
            f"STORE={store}",
            f"PLATFORM_ORIGINS={json.dumps({'retail': platform.origin})}",
            f"PLATFORM_BUDGETS={json.dumps({'retail': {'concurrency': slots, 'delay': 0, 'sources': {}}})}",
            f"KEYS_FILE={keys.path}",
            "SHARED_LIMITS=True",
            "DOWNLOAD_TIMEOUT=600",
        ]
        asyncio.run(make_jobs(store, ("first", "second")))
        platform.permits = 0
        if work:
            stack.enter_context(working(settings, tmp_path / "work"))
            platform.wait_until(lambda platform: platform.unanswered == slots)
        service = stack.enter_context(running(tmp_path / "log", *settings, sandbox=False, before=PATIENT))
        platform.wait_until(lambda platform: platform.unanswered == slots)

        def send(path: str, body: object = None, method: str = "POST") -> Reply:
            return call(service.url, path, body, method=method, headers=headers)

        def in_flight() -> int:
            return int(value(service.url, "crawler_calls_in_flight", platform="retail"))

        before = -1
        while before != (before := in_flight()):
            time.sleep(2 * FLUSH_SECONDS)  # the gauge is set at this interval
        reply = stack.enter_context(ThreadPoolExecutor(1)).submit(send, SEARCH, {"query": "caller"})
        while in_flight() <= before or (work and not is_waiting(store)):
            pass
        started = len(queries(platform))
        platform.permits = 1
        platform.wait_until(lambda platform: len(queries(platform)) > started)
        platform.release.set()
        assert reply.result().status == 200
        ahead = queries(platform)[started:].index("caller")
        print(f"{slots} slots: {ahead} targets before the call")  # noqa: T201  # a measured figure
    assert ahead <= 1
