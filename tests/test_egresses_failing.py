"""Failed and suspended egresses, refused targets: other processes, restarts, browser pages and retries know them."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crawler.registry import find_scraper
from tests import forks
from tests.browsers import require_chromium
from tests.crawls import comparable, lines
from tests.egresses import (
    Stage,
    at,
    crawl,
    crawling,
    finished,
    probe_egresses,
    queries,
    secrets_in,
    shared_stage,
    wait_for,
)
from tests.proxies import Fault
from tests.stored_facts import suspensions

WALL = {"query": "challenge"}


__all__ = ["at", "shared_stage"]


def scrapy(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    return forks.run([*forks.SCRAPY, *arguments, *given])


@pytest.mark.soak
def test_a_killed_proxy_loses_no_target_and_is_used_again_when_it_runs_again(at: Stage, tmp_path: Path) -> None:
    """The crawl uses the proxies without relays, so that the system refuses connections to the killed proxy."""
    budgets = json.dumps({"retail": {"concurrency": 1, "delay": 0.1}})
    settings = {"PLATFORM_BUDGETS": budgets, "BREAKER_COOLDOWN": 1, "TARGETS_IN_FLIGHT": 6}
    settings["EGRESSES"] = json.dumps(at.proxies.direct)
    source, killed = at.proxies.sources["egress-2"], at.proxies.processes["egress-2"]
    with crawling(at, tmp_path, "retail", queries(300), **settings) as process:
        wait_for(lambda: len(at.seen()) > 20)
        killed.kill()
        wait_for(lambda: "event=egress_failed" in (tmp_path / "log").read_text())
        before = [each["client"] for each in at.seen()].count(source)
        code, found = probe_egresses(at, EGRESSES=settings["EGRESSES"])
        while_killed = [each["client"] for each in at.seen()].count(source)
        killed.start()
        process.wait(600)
    run = finished(tmp_path, process.returncode)
    run.check_each_target_once(300)
    assert run.codes == {"OK": 300}
    assert code == 4
    assert "cannot connect to the proxy" in found["egress-2"]
    assert ["outcome    OK" in found[name] for name in ("egress-1", "egress-3")] == [True, True]
    assert before == while_killed
    assert [each["client"] for each in at.seen()].count(source) > while_killed, "it is used again"


@pytest.mark.parametrize(
    "fault", ["407", *(pytest.param(each, marks=pytest.mark.soak) for each in ("refuse", "hang", "502", "reset"))]
)
def test_a_browser_page_whose_proxy_fails_is_loaded_through_another(at: Stage, tmp_path: Path, fault: Fault) -> None:
    require_chromium()
    at.proxies.relays["egress-2"].set(fault)
    targets = [{"keywords": word} for word in ("whales", "harbour", "lighthouse")]
    run = crawl(at, tmp_path, "shortvideo", targets, DOWNLOAD_TIMEOUT=30, BREAKER_COOLDOWN=600)
    run.check_each_target_once(3)
    assert run.codes == {"OK": 3}, run.failures
    assert "event=target_restarted" in run.log
    if fault != "reset":  # with a reset, requests reach the platform
        assert set(at.clients()) == {"egress-1", "egress-3"}


def test_a_response_that_is_too_large_is_not_blamed_on_its_egress(at: Stage, tmp_path: Path) -> None:
    """Two targets that lose their connections would suspend an egress."""
    run = crawl(at, tmp_path, "retail", queries(7), DOWNLOAD_MAXSIZE=10_000, BREAKER_COOLDOWN=1)
    run.check_each_target_once(7)
    assert run.codes == {"UPSTREAM_ERROR": 7}
    assert "event=target_restarted" not in run.log
    assert len(at.seen()) == 7
    assert {each["upstream"]["reason"] for each in run.failures} == {"cancelled"}


def test_a_target_starts_anew_if_its_egress_fails_during_its_enrichment(at: Stage, tmp_path: Path) -> None:
    """The data and warnings from before the restart are discarded."""
    example = find_scraper("videosite-profile").example
    budgets = json.dumps({"videosite": {"concurrency": 2, "delay": 0.3, "sources": {}}})
    names = {source: name for name, source in at.proxies.sources.items()}
    settings = {"PLATFORM_BUDGETS": budgets, "BREAKER_COOLDOWN": 600, "DOWNLOAD_TIMEOUT": 6}
    with crawling(at, tmp_path, "videosite", [example], **settings) as process:
        wait_for(lambda: any("/player" in each["uri"] for each in at.seen()))
        failing = at.seen()[0]["client"]
        at.proxies.relays[names[failing]].set("refuse")
        process.wait(600)
    run = finished(tmp_path, process.returncode)
    run.check_each_target_once(1)
    assert run.codes == {"OK": 1}, run.failures
    assert run.log.count("event=target_restarted") == 1
    (record,) = run.records
    assert record.get("warnings", []) == []
    started_anew = [each for each in at.seen() if each["client"] != failing]
    assert len({each["client"] for each in started_anew}) == 1
    assert started_anew[0]["uri"] == at.seen()[0]["uri"], "its first request"
    (tmp_path / "again").mkdir()
    undisturbed = crawl(at, tmp_path / "again", "videosite", [example], EGRESSES="[]")
    assert comparable(record["data"]) == comparable(undisturbed.records[0]["data"])


def test_a_retried_target_that_was_refused_is_not_sent_while_its_egress_rests(at: Stage, tmp_path: Path) -> None:
    """``scrapy targets retry`` writes the targets file of a second crawl, which runs in another process."""
    store: dict[str, Any] = {"SHARED_LIMITS": 1, "STORE": str(tmp_path / "jobs.sqlite3")}
    settings = store | {"BREAKER_THRESHOLD": 1, "BREAKER_COOLDOWN": 600}
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    run = crawl(at, first, "retail", [WALL], **settings)
    assert run.codes == {"UPSTREAM_BLOCKED": 1}
    assert len(at.seen()) == 1

    retried = scrapy("targets", "retry", str(first / "failures.jsonl"))
    targets = [json.loads(line) for line in retried.stdout.splitlines()]
    assert [target["query"] for target in targets] == ["challenge"]
    run = crawl(at, second, "retail", [*targets, *queries(6)], **settings)
    assert run.codes == {"OK": 6, "CIRCUIT_OPEN": 1}
    assert [each["upstream"]["reason"] for each in run.failures] == ["refused_before"]
    assert Counter("challenge" in each["uri"] for each in at.seen()) == {True: 1, False: 6}
    refused = at.seen()[0]["client"]
    assert [each["client"] for each in at.seen()].count(refused) == 1, "the egress rests in the second crawl, too"

    (name,) = [name for name, source in at.proxies.sources.items() if source == refused]
    assert suspensions(store["STORE"], "retail") == {name: [("search", "challenge")]}


def test_credentials_are_in_no_saved_fixture_log_or_traceback(at: Stage, tmp_path: Path) -> None:
    """The only egress has credentials. First it works, then its proxy fails, then a pipeline raises an exception."""
    settings = at.settings | {"EGRESSES": json.dumps(at.proxies.egresses[1:2]), "LOG_LEVEL": "DEBUG"}
    fixtures = tmp_path / "fixtures"
    saved = scrapy("probe", "retail-search-v4", "-a", "query=tea", "--save", str(fixtures), **settings)
    assert saved.returncode == 0, saved.stderr
    assert set(at.clients()) == {"egress-2"}
    files = [file for file in fixtures.rglob("*") if file.is_file()]
    assert files
    at.proxies.relays["egress-2"].set("407")
    failed = scrapy("probe", "retail-search-v4", "-a", "query=tea", **settings)
    assert "the proxy answered with status 407" in failed.stdout + failed.stderr
    at.proxies.relays["egress-2"].set("")
    pipelines = json.dumps({"tests.service.broken_pipelines.Raises": 1})
    run = crawl(at, tmp_path, "retail", queries(1), ITEM_PIPELINES=pipelines, **settings)
    assert "Traceback" in run.log
    texts = [file.read_bytes().decode("latin-1") for file in files]
    assert not secrets_in(saved.stdout, saved.stderr, failed.stdout, failed.stderr, *texts)
    assert lines(tmp_path / "failures.jsonl"), "searched for credentials, too"
