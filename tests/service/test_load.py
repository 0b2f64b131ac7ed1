"""Overload, platforms that block, crashing crawlers: every call quickly gets a response."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from crawler.registry import scrapers
from tests.service.client import CATEGORY, SEARCH, Reply, call, many
from tests.service.clients import serving
from tests.service.conftest import VERY_SLOW, Service, running
from tests.service.metrics_of import becomes

DEFAULT_TIMEOUT_SECONDS = 60  # of a call; a quick response takes much less


def budget(concurrency: int, delay: float = 0) -> str:
    return f"PLATFORM_BUDGETS={json.dumps({'retail': {'concurrency': concurrency, 'delay': delay}})}"


def pipeline(name: str) -> str:
    return f"ITEM_PIPELINES={json.dumps({f'broken_pipelines.{name}': 400})}"


def search(service: Service, query: str = "mustard") -> Reply:
    return call(service.url, SEARCH, {"query": query})


def codes(service: Service, calls: list[tuple[str, dict[str, Any]]]) -> Counter[str]:
    return Counter(reply.code for reply in asyncio.run(many(service.url, calls)))


@pytest.mark.parametrize(
    ("setting", "accepted"),
    [
        pytest.param("SERVICE_MAX_WAITING=3", 7, id="four in progress and three in the queue of a platform"),
        pytest.param("SERVICE_MAX_CALLS=4", 4, id="all platforms"),
    ],
)
def test_calls_beyond_a_limit_are_refused_at_once(tmp_path: Path, setting: str, accepted: int) -> None:
    with serving(tmp_path, setting) as clients, ThreadPoolExecutor(10) as pool:
        calls = [pool.submit(clients.send, "POST", SEARCH, {"query": "hang"}) for _ in range(10)]
        refused = [each.result() for each in islice(as_completed(calls), 10 - accepted)]
        clients.platform.release.set()
        assert Counter(each.result().code for each in calls) == {"OK": accepted, "OVERLOADED": 10 - accepted}
    for reply in refused:
        assert (reply.code, reply.status) == ("OVERLOADED", 503)
        assert int(reply.headers["retry-after"]) == reply.body["error"]["retry_after"] > 0


def test_a_call_that_cannot_start_before_its_deadline_is_refused_at_once(tmp_path: Path) -> None:
    with running(tmp_path / "log", budget(1, delay=1_000)) as service:
        assert search(service).code == "OK"
        refused = search(service)
        assert refused.code == "OVERLOADED"
        assert refused.body["error"]["retry_after"] > 300


def test_consecutive_blocks_open_the_circuit_breaker(tmp_path: Path) -> None:
    with running(tmp_path / "log", "BREAKER_THRESHOLD=2") as service:
        assert [search(service, "challenge").code for _ in range(3)] == ["UPSTREAM_BLOCKED"] * 2 + ["CIRCUIT_OPEN"]
        refused = search(service)
        assert refused.status == 503
        assert 0 < int(refused.headers["retry-after"]) <= 60


def test_ph_2_workers_share_circuit_breakers(tmp_path: Path) -> None:
    with running(tmp_path / "log", "BREAKER_THRESHOLD=4", workers=2) as service:
        found = Counter(search(service, "challenge").code for _ in range(20))
    assert found == {"UPSTREAM_BLOCKED": 4, "CIRCUIT_OPEN": 16}


def test_a_download_against_the_operators_policy_is_refused(tmp_path: Path) -> None:
    with running(tmp_path / "log", "ROBOTSTXT_OBEY=1") as service:
        refused = search(service)
    assert refused.code == "BLOCKED_BY_POLICY"
    assert refused.status == 422


def test_a_bug_is_an_internal_error_without_a_traceback(tmp_path: Path) -> None:
    with running(tmp_path / "log", pipeline("Raises")) as service:
        broken = search(service)
        assert broken.status == 500
        assert broken.code == "INTERNAL_ERROR"
        assert "internal detail" not in json.dumps(broken.body)
        assert "ZeroDivisionError: an internal detail" in service.logged()
        assert broken.body["request_id"] in service.logged()


def test_calls_in_flight_of_a_crashed_crawler_get_an_outcome(tmp_path: Path) -> None:
    with running(tmp_path / "log", pipeline("Stops"), budget(1)) as service:
        found = codes(service, [(SEARCH, {"query": "slow"})] * 5)
        assert set(found) <= {"SHUTTING_DOWN", "OK"}
        assert found.total() == 5
        assert "event=crawler_crashed" in service.logged()
        assert search(service).code == "OK", "the crawler is restarted"


def test_calls_of_a_crawler_that_cannot_start_fail_at_once(tmp_path: Path) -> None:
    with running(tmp_path / "log", pipeline("CannotOpen")) as service:
        found = codes(service, [(CATEGORY, {"cat_id": "976759"})] * 3)
        assert found == {"INTERNAL_ERROR": 3}
        while (ready := call(service.url, "/readyz", method="GET")).status == 200:
            time.sleep(0.1)  # the crawlers of other platforms may fail a little later
        assert "retail" in ready.body["broken"]


@pytest.mark.parametrize("setting", ["PLATFORM_BUDGETS={}", 'PLATFORM_BUDGETS={"photoapp": {"delay": 5}}'])
def test_budgets_of_other_platforms_do_not_apply(tmp_path: Path, setting: str) -> None:
    with running(tmp_path / "log", setting) as service:
        assert search(service).code == "OK"


def test_a_slow_platform_does_not_delay_others(tmp_path: Path) -> None:
    async def scenario(url: str) -> tuple[str, int]:
        slow = [asyncio.ensure_future(many(url, [(SEARCH, {"query": "slow"})])) for _ in range(12)]
        assert await asyncio.to_thread(becomes, url, 12, "crawler_calls_in_flight", platform="retail")
        other = await many(url, [("/v1/scrapers/professional-profile", scrapers()["professional-profile"].example)])
        unanswered = sum(not each.done() for each in slow)
        for each in slow:
            each.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        return other[0].code, unanswered

    with running(tmp_path / "log", budget(1), before=VERY_SLOW) as service:
        code, unanswered = asyncio.run(scenario(service.url))
    assert code == "OK"
    assert unanswered >= 6, "most of the slow calls were sent earlier and are still in the queue"
