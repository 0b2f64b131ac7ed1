"""A platform that limits its rate: each target is collected, and a listing is read to its end."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crawls import lines
from tests.shop import Shop, open_shop

ALLOWED = 6
TARGETS, PAGES = 14, 11
SILENCE, COOLDOWN = 0.5, 1.0
"""Seconds that at least pass before a refused request is repeated, and the crawl's cooldown."""
QUERIES = [f"mustard {number}" for number in range(TARGETS)]
FREE = {"retail": {"concurrency": 2, "delay": 0, "burst": 1}}


class Limit:
    """Answers ``ALLOWED`` requests. Further ones get status 429, until a refused one is repeated.

    So the number of refused requests does not depend on the speed of the machine.
    """

    def __init__(self, shop: Shop, retry_after: int | None = None) -> None:
        self._answer: Callable[[str], tuple[int, dict[str, str], bytes]] = shop.answer
        self._headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self._lock = threading.Lock()
        self._times: deque[float] = deque()
        self._refusals: dict[str, float] = {}
        self.served: list[str] = []
        self.refused: list[str] = []
        self.waits: list[float] = []

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        with self._lock:
            now = time.monotonic()
            self._forget(path, now)
            self._times.append(now)
            if len(self._times) > ALLOWED:
                self._refusals[path] = now
                self.refused.append(path)
                return 429, self._headers, b"Too many requests"
            self.served.append(path)
        return self._answer(path)

    def was_waited_for(self) -> bool:
        """Returns whether a limit was met, and each refused request was repeated only after a silence."""
        return bool(self.waits) and min(self.waits) > SILENCE

    def _forget(self, path: str, now: float) -> None:
        if (refused := self._refusals.pop(path, None)) is not None:
            self.waits.append(now - refused)
            if len(self._times) > ALLOWED:
                self._times.clear()


@pytest.fixture
def shop() -> Iterator[Shop]:
    with open_shop() as opened:
        yield opened


def limited(shop: Shop, retry_after: int | None = None) -> Limit:
    limit = Limit(shop, retry_after)
    shop.answer = limit.answer  # type: ignore[method-assign]  # the server looks it up for each request
    return limit


def check_collected(limit: Limit, run: subprocess.CompletedProcess[str], out: Path) -> None:
    """Check that a command has the records of all targets in spite of the limit, and stopped for it."""
    assert run.returncode == 0, run.stderr[-3_000:]
    assert sorted(line["params"]["query"] for line in lines(out)) == sorted(QUERIES)
    assert limit.was_waited_for()


@pytest.fixture
def targets(tmp_path: Path) -> Path:
    """A file of targets."""
    file = tmp_path / "targets.csv"
    file.write_text("\n".join(["query", *QUERIES]))
    return file


@pytest.mark.parametrize("retry_after", [None, 1])
def test_each_target_is_collected_and_those_that_met_the_limit_come_first(
    tmp_path: Path, shop: Shop, targets: Path, retry_after: int | None
) -> None:
    window, out = limited(shop, retry_after), tmp_path / "out.jsonl"
    run = shop.crawl(
        *("-a", f"targets={targets}", "-O", str(out)),
        PLATFORM_BUDGETS=json.dumps(FREE),
        BREAKER_COOLDOWN=COOLDOWN,
    )
    check_collected(window, run, out)
    assert max(window.refused.count(path) for path in window.refused) == 1
    if retry_after is None:
        first = window.refused[:5]
        assert set(window.served[ALLOWED : ALLOWED + len(first)]) == set(first)


@pytest.mark.parametrize(
    ("retry_after", "cooldown"),
    [(None, COOLDOWN), pytest.param(1, 600, id="Retry-After before the cooldown")],
)
def test_a_listing_goes_on_at_its_page(tmp_path: Path, shop: Shop, retry_after: int | None, cooldown: float) -> None:
    window = limited(shop, retry_after)
    run = shop.crawl(
        *("-a", "query=mustard", "-a", f"max_pages={PAGES}", "-O", f"{tmp_path}/out.jsonl"),
        PLATFORM_BUDGETS=json.dumps(FREE),
        BREAKER_COOLDOWN=cooldown,
        TARGET_TIMEOUT=300,  # a target that would wait for longer is not repeated
    )
    assert run.returncode == 0, run.stderr[-3_000:]
    assert [line["page"] for line in lines(tmp_path / "out.jsonl")] == list(range(1, PAGES + 1))
    assert window.was_waited_for()


def test_a_second_rate_limit_is_the_outcome(tmp_path: Path, shop: Shop) -> None:
    refused: list[str] = []

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        refused.append(path)
        return 429, {}, b"Too many requests"

    shop.answer = answer  # type: ignore[method-assign]  # the server looks it up for each request
    failures = tmp_path / "failures.jsonl"
    run = shop.crawl(
        *("-a", "query=mustard"), BREAKER_COOLDOWN=0.2, BREAKER_THRESHOLD=1_000, FAILURES_FEED=str(failures)
    )
    assert run.returncode == 4
    assert len(refused) == 2
    assert [line["code"] for line in lines(failures)] == ["UPSTREAM_RATE_LIMITED"]


def test_a_job_collects_each_target(tmp_path: Path, shop: Shop, targets: Path) -> None:
    window, out = limited(shop), tmp_path / "out.jsonl"
    run = shop.scrapy(
        *("collect", str(targets), "--job", "limited", "-O", str(out)),
        STORE=tmp_path / "jobs.sqlite3",
        PLATFORM_BUDGETS=json.dumps(FREE),
        BREAKER_COOLDOWN=COOLDOWN,
    )
    check_collected(window, run, out)
