"""Proxies that hang, send endless headers, send garbage or fail during a crawl, next to working ones."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

from crawler.service.keys import KeyStore
from tests.egresses import Stage, at, shared_stage
from tests.proxies import Fault
from tests.service.client import SEARCH, call, many
from tests.service.conftest import running
from tests.service.metrics_of import value

__all__ = ["at", "shared_stage"]


CALLS, AT_ONCE = 200, 8


def test_hostile_proxies_cost_a_few_calls_and_never_suspend_the_good_one(at: Stage, tmp_path: Path) -> None:
    """Each bad egress gets at most two requests, its budget. The good egress serves the other calls in time."""
    faults: dict[str, Fault] = {"egress-1": "hang", "egress-2": "endless"}
    for name, fault in faults.items():
        at.proxies.relays[name].set(fault)
    settings = at.settings | {
        "PLATFORM_BUDGETS": json.dumps({"retail": {"concurrency": 2, "delay": 0}}),
        "BREAKER_COOLDOWN": 600,
        "KEYS_FILE": str(tmp_path / "keys.sqlite"),
    }
    headers = {
        "X-API-Key": KeyStore(tmp_path / "keys.sqlite").create("tests"),
        "Content-Type": "application/json",
        "Prefer": "wait=30",
    }
    given = [f"{name}={each}" for name, each in settings.items()]
    with running(tmp_path / "log", *given, sandbox=False) as service:
        codes: Counter[str] = Counter()
        for batch in range(0, CALLS, AT_ONCE):
            calls = [(SEARCH, {"query": f"tea {number}"}) for number in range(batch, batch + AT_ONCE)]
            codes.update(reply.code for reply in asyncio.run(many(service.url, calls, headers=headers)))
        after = call(service.url, SEARCH, {"query": "coffee"}, headers=headers)
        resting = {
            name: value(service.url, "crawler_egress_resting", platform="retail", egress=name)
            for name in at.proxies.relays
        }
        log = service.logged()
    entered = {name: at.proxies.relays[name].accepted for name in faults}
    assert max(entered.values()) <= 2, entered
    assert sum(codes.values()) == CALLS
    assert codes["OK"] >= CALLS - 4, codes
    assert after.code == "OK"
    assert resting["egress-3"] == 0, resting
    assert [resting[name] for name in faults] == [1, 1]
    assert "the proxy did not open a tunnel within 5 s" in log
    assert "the head of the proxy's response is larger than 65536 bytes" in log
