"""More calls than can be served, platforms that turn us away, crawlers that break: each call is answered, and soon."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crawler.registry import scrapers
from tests.service.client import CATEGORY, SEARCH, Reply, call, many
from tests.service.conftest import Service, running

WAITING = 60  # seconds that a call may take by default: an answer that comes "at once" comes long before


def budget(concurrency: int, delay: float = 0) -> str:
    return f"PLATFORM_BUDGETS={json.dumps({'retail': {'concurrency': concurrency, 'delay': delay}})}"


def pipeline(name: str) -> str:
    pipelines = {"crawler.pipelines.ValidationPipeline": 300, f"broken_pipelines.{name}": 400}
    return f"ITEM_PIPELINES={json.dumps(pipelines)}"


def search(service: Service, query: str = "mustard") -> Reply:
    return call(service.url, SEARCH, {"query": query})


def codes(service: Service, calls: list[tuple[str, dict[str, Any]]]) -> Counter[str]:
    return Counter(reply.code for reply in asyncio.run(many(service.url, calls)))


def test_the_waiting_line_is_bounded(tmp_path: Path) -> None:
    with running(tmp_path / "log", budget(1), "SERVICE_MAX_WAITING=3") as service:
        replies = asyncio.run(many(service.url, [(SEARCH, {"query": "slow"})] * 10))
        found = Counter(reply.code for reply in replies)
        assert found == {"OK": 7, "OVERLOADED": 3}, "four are worked on and three wait"
        refused = next(reply for reply in replies if reply.code == "OVERLOADED")
        assert refused.status == 503
        assert int(refused.headers["Retry-After"]) == refused.body["error"]["retry_after"] > 0


def test_all_platforms_together_are_bounded(tmp_path: Path) -> None:
    with running(tmp_path / "log", "SERVICE_MAX_CALLS=4") as service:
        assert codes(service, [(SEARCH, {"query": "slow"})] * 6) == {"OK": 4, "OVERLOADED": 2}


def test_a_call_whose_turn_cannot_come_in_time_is_told_at_once(tmp_path: Path) -> None:
    with running(tmp_path / "log", budget(1, delay=1_000)) as service:
        assert search(service).code == "OK"
        started = time.monotonic()
        refused = search(service)
        assert refused.code == "OVERLOADED"
        assert refused.body["error"]["retry_after"] > 300
        assert time.monotonic() - started < WAITING


def test_a_platform_that_turns_us_away_is_left_alone(tmp_path: Path) -> None:
    with running(tmp_path / "log", "BREAKER_THRESHOLD=2") as service:
        assert [search(service, "challenge").code for _ in range(3)] == ["UPSTREAM_BLOCKED"] * 2 + ["CIRCUIT_OPEN"]
        refused = search(service)
        assert refused.status == 503
        assert 0 < int(refused.headers["retry-after"]) <= 60


def test_the_operators_policy(tmp_path: Path) -> None:
    with running(tmp_path / "log", "ROBOTSTXT_OBEY=1") as service:
        refused = search(service)
    assert refused.code == "BLOCKED_BY_POLICY"
    assert refused.status == 422


def test_a_bug_is_an_error_without_its_traceback(tmp_path: Path) -> None:
    with running(tmp_path / "log", pipeline("Raises")) as service:
        broken = search(service)
        assert broken.status == 500
        assert broken.code == "INTERNAL_ERROR"
        assert "secret" not in json.dumps(broken.body)
        assert "ZeroDivisionError: a secret of ours" in service.logged()
        assert broken.body["request_id"] in service.logged()


def test_calls_in_flight_when_a_crawler_dies(tmp_path: Path) -> None:
    with running(tmp_path / "log", pipeline("Stops"), budget(1)) as service:
        found = codes(service, [(SEARCH, {"query": "slow"})] * 5)
        assert set(found) <= {"SHUTTING_DOWN", "OK"}
        assert found.total() == 5
        assert "event=crawler_died" in service.logged()
        assert search(service).code == "OK", "it is opened anew"


def test_a_crawler_that_cannot_open_keeps_nobody_waiting(tmp_path: Path) -> None:
    with running(tmp_path / "log", pipeline("CannotOpen")) as service:
        started = time.monotonic()
        found = codes(service, [(CATEGORY, {"cat_id": "976759"})] * 3)
        assert found == {"INTERNAL_ERROR": 3}
        assert time.monotonic() - started < WAITING
        ready = call(service.url, "/readyz", method="GET")
        assert ready.status == 503
        assert "retail" in ready.body["broken"]


@pytest.mark.parametrize("setting", ["PLATFORM_BUDGETS={}", 'PLATFORM_BUDGETS={"photoapp": {"delay": 5}}'])
def test_budgets_of_other_platforms_say_nothing_of_this_one(tmp_path: Path, setting: str) -> None:
    with running(tmp_path / "log", setting) as service:
        assert search(service).code == "OK"


def test_a_slow_platform_keeps_no_other_waiting(tmp_path: Path) -> None:
    async def scenario(url: str) -> tuple[str, int]:
        slow = [asyncio.ensure_future(many(url, [(SEARCH, {"query": "slow"})])) for _ in range(12)]
        await asyncio.sleep(0.2)
        other = await many(url, [("/v1/scrapers/professional-profile", scrapers()["professional-profile"].example)])
        unanswered = sum(not each.done() for each in slow)
        await asyncio.gather(*slow)
        return other[0].code, unanswered

    with running(tmp_path / "log", budget(1)) as service:
        code, unanswered = asyncio.run(scenario(service.url))
    assert code == "OK"
    assert unanswered >= 6, "most of the slow ones came before it and are still in line"
