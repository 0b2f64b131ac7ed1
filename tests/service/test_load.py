"""Overload, platforms that block, crashing crawlers: every call quickly gets a response."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from crawler.registry import scrapers
from tests.downloads.processes import PATIENT
from tests.service.client import CATEGORY, SEARCH, Reply, call, many
from tests.service.conftest import HELD, Service, running
from tests.service.metrics_of import becomes


def budget(concurrency: int, delay: float = 0) -> str:
    return f"PLATFORM_BUDGETS={json.dumps({'retail': {'concurrency': concurrency, 'delay': delay}})}"


def pipeline(name: str) -> str:
    return f"ITEM_PIPELINES={json.dumps({f'broken_pipelines.{name}': 400})}"


def search(service: Service, query: str = "mustard") -> Reply:
    return call(service.url, SEARCH, {"query": query})


def codes(service: Service, calls: list[tuple[str, dict[str, Any]]]) -> Counter[str]:
    return Counter(reply.code for reply in asyncio.run(many(service.url, calls)))


def test_workers_share_circuit_breakers(tmp_path: Path) -> None:
    with running(tmp_path / "log", "BREAKER_THRESHOLD=4", workers=2, before=PATIENT) as service:
        found = Counter(search(service, "challenge").code for _ in range(20))
    assert found == {"UPSTREAM_BLOCKED": 4, "CIRCUIT_OPEN": 16}


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

    with running(tmp_path / "log", budget(1), before=HELD.format(released=tmp_path / "never")) as service:
        code, unanswered = asyncio.run(scenario(service.url))
    assert code == "OK"
    assert unanswered >= 6, "most of the slow calls were sent earlier and are still in the queue"


MEMBER = "/v1/scrapers/professional-profile"


def test_one_999_opens_the_circuit_breaker_for_an_hour(tmp_path: Path) -> None:
    with running(tmp_path / "log", "BREAKER_THRESHOLD=5") as service:
        refused = call(service.url, MEMBER, {"url": "https://www.linkedin.com/in/status-999"})
        assert (refused.status, refused.code) == (502, "UPSTREAM_BLOCKED")
        assert refused.body["error"]["upstream"] == {"status": 999, "reason": "status_999"}
        assert refused.body["error"]["retry_after"] == 3_600
        closed = call(service.url, MEMBER, {"url": "https://www.linkedin.com/in/mara-lindqvist"})
        assert (closed.status, closed.code) == (503, "CIRCUIT_OPEN")
        assert closed.body["error"]["retry_after"] > 3_500
        other = call(service.url, "/v1/scrapers/retail-category-v4", {"cat_id": "976759"})
        assert other.status == 200, "other platforms are not affected"
