"""Crawls that close early while their targets wait for a platform that never responds.

Each run must end within its grace period plus the time its pipelines take. Download timeouts are an hour, so a run that
waits for the platform is ended by ``RUN_TIMEOUT_SECONDS``.
"""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crawler.sandbox.protocol import FakeResponse
from tests import forks
from tests.browsers import require_chromium
from tests.crawls import ROOT, command, lines
from tests.hanging_platform import HangingPlatform, hanging_platform

GRACE_SECONDS = 1
RUN_TIMEOUT_SECONDS = 240
"""A run that takes longer is assumed to wait for the platform. Most runs end within five seconds."""
COMPONENTS = "tests.targets.shutdown_components"
PIPELINES = {f"{COMPONENTS}.SlowPipeline": 400}
EXTENSIONS = {f"{COMPONENTS}.Events": 600, f"{COMPONENTS}.BrokenTargets": 600}


class Closed(NamedTuple):
    """The results of a crawl."""

    code: int
    outcomes: Counter[str]
    """Number of lines in the feed and in the failures feed, by target."""
    codes: dict[str, str]
    scheduled: set[str]
    closings: list[str]
    """The reason of each ``spider_closed`` signal."""
    log: str


class Crawl:
    """A crawl in a folder, with one target for each query."""

    def __init__(
        self, folder: Path, origin: str, queries: list[str], settings: dict[str, Any], *, spider: str = "retail"
    ) -> None:
        self.folder = folder
        targets = folder / "targets.jsonl"
        param = "query" if spider == "retail" else "keywords"
        targets.write_text("".join(json.dumps({"id": q, param: q}) + "\n" for q in queries))
        given = {
            "PLATFORM_ORIGINS": json.dumps({spider: origin}),
            "PLATFORM_BUDGETS": json.dumps({spider: {"concurrency": 3, "delay": 0}}),
            "CLOSE_GRACE": GRACE_SECONDS,
            "DOWNLOAD_TIMEOUT": 3_600,
            "FAILURES_FEED": folder / "failures.jsonl",
            "ITEM_PIPELINES": json.dumps(PIPELINES),
            "EXTENSIONS": json.dumps(EXTENSIONS),
            "EVENTS_FILE": folder / "events",
            **settings,
        }
        self.start = command(spider, {"targets": targets}, given, "-O", str(folder / "out.jsonl"))

    def run(self, *arguments: str, stop: threading.Event | None = None) -> Closed:
        """Run the crawl. SIGTERM is sent when ``stop`` is set."""
        with (self.folder / "log").open("w") as log:
            process = forks.Popen([*self.start, *arguments], cwd=ROOT, stderr=log)
            try:
                if stop is not None:
                    assert stop.wait(RUN_TIMEOUT_SECONDS)
                    process.send_signal(signal.SIGTERM)
                code = process.wait(RUN_TIMEOUT_SECONDS)
            finally:
                process.kill()
                process.wait()
        data, failures = lines(self.folder / "out.jsonl"), lines(self.folder / "failures.jsonl")
        events = [line.split(" ", 1) for line in (self.folder / "events").read_text().splitlines()]
        return Closed(
            code,
            Counter(line["id"] for line in [*data, *failures]),
            {line["id"]: line.get("code", "OK") for line in [*data, *failures]},
            {detail for event, detail in events if event == "scheduled"},
            [detail for event, detail in events if event == "closed"],
            (self.folder / "log").read_text(),
        )


HANGING = [f"hang {number}" for number in range(4)]


@pytest.mark.parametrize(
    ("settings", "queries", "reason"),
    [
        pytest.param({"CLOSESPIDER_TIMEOUT": 2}, ["mustard"], "closespider_timeout", id="timeout"),
        pytest.param({}, ["close", "mustard"], "enough", id="CloseSpider in a target"),
        pytest.param(
            {"CLOSESPIDER_ITEMCOUNT": 1, "CONCURRENT_REQUESTS": 3},
            ["mustard"],
            "closespider_itemcount",
            id="all of Scrapy's slots in use",
        ),
    ],
)
def test_a_closing_crawl_ends_within_its_grace(
    tmp_path: Path, settings: dict[str, Any], queries: list[str], reason: str
) -> None:
    with hanging_platform() as platform:
        closed = Crawl(tmp_path, platform.origin, [*queries, *HANGING], settings).run()
        platform.wait_until(lambda seen: seen.unanswered == 0)
    assert closed.closings == [reason], closed.log
    assert_one_outcome_each(closed)
    assert {closed.codes[query] for query in HANGING if query in closed.scheduled} == {"SHUTTING_DOWN"}
    assert closed.code == 1


def assert_one_outcome_each(closed: Closed) -> None:
    assert set(closed.outcomes.values()) == {1}, closed.outcomes
    assert closed.scheduled <= set(closed.outcomes), closed.log


def test_sigterm_ends_a_crawl_within_its_grace(tmp_path: Path) -> None:
    with hanging_platform() as platform:
        crawl = Crawl(tmp_path, platform.origin, ["mustard", *HANGING], {})
        closed = crawl.run(stop=event_when(platform, lambda seen: seen.unanswered == 3))
    assert closed.closings == ["shutdown"], closed.log
    assert_one_outcome_each(closed)
    assert closed.codes == {"mustard": "OK", **dict.fromkeys(HANGING, "SHUTTING_DOWN")}
    assert closed.code == 1


def event_when(platform: HangingPlatform, condition: Any) -> threading.Event:
    """Return an event that is set once a condition holds for the platform."""
    event = threading.Event()

    def watch() -> None:
        platform.wait_until(condition)
        event.set()

    threading.Thread(target=watch, daemon=True).start()
    return event


def contains(file: Path, text: str) -> bool:
    """Return whether a file exists and contains a text."""
    return file.exists() and text in file.read_text()


def answer_when(platform: HangingPlatform, file: Path, text: str) -> None:
    """Let the platform respond once a file contains a text."""

    def watch() -> None:
        platform.wait_until(lambda _: contains(file, text))
        platform.release.set()

    threading.Thread(target=watch, daemon=True).start()


def test_sigterm_while_the_crawl_closes_waits_for_the_pipelines(tmp_path: Path) -> None:
    with hanging_platform() as platform:
        settings = {"CLOSESPIDER_ITEMCOUNT": 1, "CLOSE_GRACE": 3_600}
        crawl = Crawl(tmp_path, platform.origin, ["mustard", "hang"], settings)
        answer_when(platform, tmp_path / "log", "Received SIGTERM")
        closed = crawl.run(stop=event_when(platform, lambda _: contains(tmp_path / "log", "Closing spider")))
    assert closed.closings == ["closespider_itemcount"], closed.log
    assert closed.codes == {"mustard": "OK", "hang": "OK"}


def test_closing_during_followups_does_not_yield_a_partial_record(tmp_path: Path) -> None:
    with hanging_platform() as platform:
        crawl = Crawl(tmp_path, platform.origin, ["followups"], {})
        closed = crawl.run(stop=event_when(platform, lambda seen: seen.unanswered == 1))
    assert closed.codes == {"followups": "SHUTTING_DOWN"}, closed.log
    assert closed.closings == ["shutdown"]
    assert len(platform.requested_paths) == 2, "a closing crawl starts no requests"
    assert "Traceback" not in closed.log


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        pytest.param(
            {"BREAKER_THRESHOLD": 1, "CONCURRENT_REQUESTS": 2},
            (403, {"Retry-After": "600"}, b"no"),
            id="for the circuit breaker",
        ),
        pytest.param({"RETRY_BACKOFF_MAX": 90}, (503, {"Retry-After": "60"}, b"later"), id="for a retry"),
        pytest.param({"TARGETS_IN_FLIGHT": 1}, None, id="for the window"),
    ],
)
def test_waiting_targets_end_at_once(tmp_path: Path, settings: dict[str, Any], answer: FakeResponse | None) -> None:
    with hanging_platform(lambda _path, _args: answer) as platform:
        queries = [f"query {number}" for number in range(8)]
        crawl = Crawl(tmp_path, platform.origin, queries, {**settings, "CLOSESPIDER_TIMEOUT": 3})
        closed = crawl.run()
    assert closed.closings == ["closespider_timeout"], closed.log
    assert_one_outcome_each(closed)
    assert "SHUTTING_DOWN" in closed.codes.values()


def test_browser_downloads_end_within_the_grace(tmp_path: Path) -> None:
    require_chromium()
    with hanging_platform(lambda _path, _args: None) as platform:
        crawl = Crawl(tmp_path, platform.origin, ["whales"], {}, spider="shortvideo")
        closed = crawl.run(stop=event_when(platform, lambda seen: seen.unanswered == 1))
        platform.wait_until(lambda seen: seen.unanswered == 0)
    assert closed.codes == {"whales": "SHUTTING_DOWN"}, closed.log
    assert closed.closings == ["shutdown"]
    assert "Traceback" not in closed.log


# Downloads that are no longer awaited


def test_a_robots_txt_received_after_the_first_deadline_is_obeyed(tmp_path: Path) -> None:
    with hanging_platform(lambda path, args: None if path == "/robots.txt" else platform.page(path, args)) as platform:
        platform.robots = b"User-agent: *\nDisallow: /search"
        settings = {"ROBOTSTXT_OBEY": 1, "TARGET_TIMEOUT": 8, "TARGETS_IN_FLIGHT": 1}
        crawl = Crawl(tmp_path, platform.origin, ["first", "second"], settings)
        with (tmp_path / "targets.jsonl").open("a") as targets:
            targets.write('{"id": "allowed", "cat_id": "976759"}\n')
        answer_when(platform, tmp_path / "events", "scheduled second")
        closed = crawl.run()
    assert closed.codes == {"first": "UPSTREAM_TIMEOUT", "second": "BLOCKED_BY_POLICY", "allowed": "OK"}, closed.log
    assert [url.partition("?")[0] for url in platform.requested_paths if url.startswith("/search")] == []
    assert platform.requested_paths.count("/robots.txt") == 1


def test_every_request_releases_its_download_slot(tmp_path: Path) -> None:
    """With only one download slot, the next request can start however the previous request ended."""
    settings = {
        "PLATFORM_BUDGETS": json.dumps({"retail": {"concurrency": 1, "delay": 0}}),
        "DOWNLOADER_MIDDLEWARES": json.dumps({f"{COMPONENTS}.InterferingMiddleware": 995}),
        "HTTPCACHE_ENABLED": 1,
        "HTTPCACHE_DIR": tmp_path / "cache",
        "ROBOTSTXT_OBEY": 1,
        "TARGETS_IN_FLIGHT": 1,
    }
    queries = ["refused", "answered", "replaced", "mustard"]
    with hanging_platform() as platform:
        crawl = Crawl(tmp_path, platform.origin, queries, settings)
        with (tmp_path / "targets.jsonl").open("a") as targets:
            targets.write('{"id": "cached", "query": "mustard"}\n')
        closed = crawl.run()
    failed = {"refused": "UPSTREAM_ERROR", "answered": "TARGET_NOT_FOUND"}
    assert closed.codes == {**dict.fromkeys([*queries, "cached"], "OK"), **failed}, closed.log
    assert len(platform.requested_paths) == 3, "robots.txt, and one request for each of two targets"
