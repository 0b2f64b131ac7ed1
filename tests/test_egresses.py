"""Crawls through three real proxies to a sandbox that serves https and logs the proxy of each request."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from crawler.service.keys import KeyStore
from tests.browsers import require_chromium
from tests.egresses import Stage, at, check_budget, crawl, probe_egresses, queries, secrets_in, shared_stage
from tests.service.client import SEARCH, call
from tests.service.conftest import running
from tests.service.metrics_of import becomes

__all__ = ["at", "shared_stage"]


def test_targets_use_all_egresses_within_their_budgets(at: Stage, tmp_path: Path) -> None:
    """On average, requests through an egress start at least half a delay apart: each delay varies by up to half."""
    delay = 0.3
    budgets = json.dumps({"retail": {"concurrency": 1, "delay": delay}})
    run = crawl(at, tmp_path, "retail", queries(24), PLATFORM_BUDGETS=budgets)
    run.check_each_target_once(24)
    assert run.codes == {"OK": 24}
    assert set(at.clients()) == set(at.proxies.relays)
    check_budget(at, delay, *at.proxies.relays)


def test_all_requests_of_a_target_use_one_egress_and_its_guest_token(at: Stage, tmp_path: Path) -> None:
    handles = ["quiet_harbor", "old_lantern", "iron_meadow", "relay_station", "popular_tide", "lone_wolf"]
    run = crawl(at, tmp_path, "microblog", [{"username": handle} for handle in handles])
    run.check_each_target_once(6)
    clients: defaultdict[str, set[str]] = defaultdict(set)
    tokens: defaultdict[str, set[str]] = defaultdict(set)
    for each in at.seen():
        for handle in handles:
            if handle in each["uri"]:
                clients[handle].add(each["client"])
        if each["token"]:
            tokens[each["token"]].add(each["client"])
    assert clients.keys() == set(handles)
    assert all(len(used) == 1 for used in clients.values()), clients
    assert len({client for used in clients.values() for client in used}) == 3
    assert len(tokens) >= 2
    assert all(len(used) == 1 for used in tokens.values()), tokens


def test_pages_in_the_browser_use_the_egress_of_their_target(at: Stage, tmp_path: Path) -> None:
    require_chromium()
    words = ["whales", "harbour", "lighthouse"]
    run = crawl(at, tmp_path, "shortvideo", [{"keywords": word} for word in words], DOWNLOAD_TIMEOUT=60)
    run.check_each_target_once(3)
    assert run.codes == {"OK": 3}
    assert set(at.clients()) == set(at.proxies.relays)
    for word in words:
        assert len({each["client"] for each in at.seen() if f"keyword={word}" in each["uri"]}) == 1, word


def test_a_refused_target_is_not_sent_elsewhere_while_its_egress_rests(at: Stage, tmp_path: Path) -> None:
    """Eight rows have the same blocked target. The seven repeats get the first one's outcome without a request."""
    walls = [{"query": "challenge"}] * 8
    budgets = json.dumps({"retail": {"concurrency": 1, "delay": 0.05}})
    settings = {"PLATFORM_BUDGETS": budgets, "BREAKER_THRESHOLD": 1, "BREAKER_COOLDOWN": 600, "TARGETS_IN_FLIGHT": 1}
    run = crawl(at, tmp_path, "retail", [*walls, *queries(12)], **settings)
    run.check_each_target_once(20)
    assert run.codes == {"OK": 12, "UPSTREAM_BLOCKED": 8}
    refused = [each for each in at.seen() if "challenge" in each["uri"]]
    assert len(refused) == 1
    others = {each["client"] for each in at.seen()} - {refused[0]["client"]}
    assert len(others) == 2, "the others go on"
    assert [each["client"] for each in at.seen()].count(refused[0]["client"]) == 1, "it rests"


def test_a_probe_goes_through_each_egress(at: Stage) -> None:
    code, found = probe_egresses(at)
    assert code == 0
    assert at.clients() == dict.fromkeys(("egress-1", "egress-2", "egress-3"), 1)
    for name, report in found.items():
        assert report.startswith(f"{name} (http://127.0.0.1:")
        assert "outcome    OK" in report


def test_the_service_shows_its_egresses_without_credentials(at: Stage, tmp_path: Path) -> None:
    """The service's crawlers are replaced after every target, which must not reset the budgets."""
    delay = 0.2
    at.proxies.relays["egress-3"].set("407")
    settings = at.settings | {
        "PLATFORM_BUDGETS": json.dumps({"retail": {"concurrency": 1, "delay": delay}}),
        "SERVICE_RECYCLE_TARGETS": 1,
        "BREAKER_COOLDOWN": 600,
        "BREAKER_THRESHOLD": 5,
    }
    keys = tmp_path / "keys.sqlite"
    key = KeyStore(keys).create("tests")
    given = [f"{name}={value}" for name, value in (settings | {"KEYS_FILE": str(keys)}).items()]
    with running(tmp_path / "log", *given, sandbox=False) as service:
        headers = {"X-API-Key": key, "Content-Type": "application/json"}
        replies = [call(service.url, SEARCH, params, headers=headers) for params in queries(9)]
        assert {reply.code for reply in replies} == {"OK"}
        assert becomes(service.url, 1, "crawler_egress_resting", platform="retail", egress="egress-3")
        assert becomes(service.url, 0, "crawler_egress_targets_per_hour", platform="retail", egress="egress-3")
        assert becomes(service.url, 1, "crawler_egress_failures_total", platform="retail", egress="egress-3")
        assert becomes(service.url, 0, "crawler_egress_resting", platform="retail", egress="egress-1")
        routes = ("/metrics", "/healthz", "/readyz", "/openapi.json")
        shown = repr([call(service.url, route, method="GET").body for route in routes])
    assert "crawler_egress_resting" in shown
    assert not secrets_in(shown, service.logged(), repr(replies))
    check_budget(at, delay, "egress-1", "egress-2")
