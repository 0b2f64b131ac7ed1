"""Processes that share a platform's budget through a store never exceed it together."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from crawler.service.keys import KeyStore
from tests import forks
from tests.crawls import ROOT, command, lines
from tests.service.client import SEARCH, many
from tests.service.conftest import running
from tests.shop import Shop, open_shop
from tests.tiers import FAST_ON_SQLITE


@dataclass
class Visits:
    """Records the start of each request to a shop, and the highest number of concurrent requests."""

    shop: Shop
    seconds: float = 0.05
    """Seconds that the shop takes to serve a page."""
    starts: list[float] = field(default_factory=list)
    most: int = 0
    _open: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def alter(self, body: bytes) -> bytes:
        with self._lock:
            self.starts.append(time.monotonic())
            self._open += 1
            self.most = max(self.most, self._open)
        time.sleep(self.seconds)
        with self._lock:
            self._open -= 1
        return body

    def check_delay(self, delay: float) -> None:
        """Check that all requests together took about as long as the delay requires. Single requests can be late."""
        shortest = (len(self.starts) - 1) * delay / 2  # the delay varies by up to half
        assert max(self.starts) - min(self.starts) >= 0.8 * shortest


@pytest.fixture
def visits() -> Iterator[Visits]:
    with open_shop() as shop:
        found = Visits(shop)
        shop.alter = found.alter
        yield found


def crawls(visits: Visits, folder: Path, number: int, targets: int, **settings: object) -> None:
    """Run several crawls at the same time, without a job, and check that each crawl has a record of each target."""
    file = folder / "targets.jsonl"
    file.write_text("".join(json.dumps({"query": "mustard", "min_price": each}) + "\n" for each in range(targets)))
    given = visits.shop.settings() | {"SHARED_LIMITS": 1, "FAILURES_FEED": ""} | settings
    running = [
        forks.Popen(command("retail", {"targets": file}, given, "-O", str(folder / f"{each}.jsonl")), cwd=ROOT)
        for each in range(number)
    ]
    assert [each.wait(300) for each in running] == [0] * number
    assert [len(lines(folder / f"{each}.jsonl")) for each in range(number)] == [targets] * number


@FAST_ON_SQLITE
def test_three_crawls_have_at_most_two_requests_at_once(visits: Visits, tmp_path: Path, location: str) -> None:
    budget = {"concurrency": 2, "delay": 0}
    crawls(visits, tmp_path, 3, 12, STORE=location, PLATFORM_BUDGETS=json.dumps({"retail": budget}))
    assert visits.most == 2
    assert len(visits.starts) == 36


@pytest.mark.soak
@pytest.mark.parametrize(("targets", "budget"), [(20, {"concurrency": 2, "delay": 0}), (3, {"delay": 1.5})])
def test_ten_crawls_share_a_budget(
    visits: Visits, tmp_path: Path, location: str, targets: int, budget: dict[str, float]
) -> None:
    budgets = json.dumps({"retail": {"concurrency": 2, **budget}})
    crawls(visits, tmp_path, 10, targets, STORE=location, PLATFORM_BUDGETS=budgets)
    assert visits.most <= 2
    visits.check_delay(budget["delay"])


@pytest.mark.parametrize(
    ("calls", "budget"), [(30, {"concurrency": 2, "delay": 0}), (9, {"concurrency": 2, "delay": 0.6})]
)
def test_workers_of_the_endpoint_share_a_budget(
    visits: Visits, tmp_path: Path, calls: int, budget: dict[str, float]
) -> None:
    keys = tmp_path / "keys.sqlite"
    headers = {"X-API-Key": KeyStore(keys).create("tests"), "Content-Type": "application/json"}
    settings = visits.shop.settings() | {
        "PLATFORM_BUDGETS": json.dumps({"retail": budget}),
        "KEYS_FILE": str(keys),
        "BREAKER_THRESHOLD": 5,
    }
    given = [f"{name}={value}" for name, value in settings.items()]
    with running(tmp_path / "log", *given, sandbox=False, workers=3) as service:
        replies = asyncio.run(
            many(service.url, [(SEARCH, {"query": "mustard", "min_price": n}) for n in range(calls)], headers=headers)
        )
    assert {reply.code for reply in replies} == {"OK"}
    assert visits.most <= 2
    visits.check_delay(budget["delay"])
