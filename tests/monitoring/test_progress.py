"""Progress of a crawl in the log and on a terminal (a pseudo-terminal)."""

from __future__ import annotations

import json
import os
import pty
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
import structlog
from scrapy.utils.test import get_crawler

from crawler.downloads.lanes import Suspension
from crawler.monitoring.progress import Progress
from crawler.sandbox.retail.site import FAULTS, Site
from tests import forks
from tests.crawls import ROOT, command, sandbox

TARGETS = 60


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    with sandbox("--light", "--latency", "0.3") as found:
        yield {**found, "LOGSTATS_INTERVAL": 0.2}


@pytest.fixture
def targets(tmp_path: Path) -> Path:
    """A file of sixty targets, ten of which do not exist."""
    missing = next(cat for cat, fault in Site().faults.items() if FAULTS[fault].code == "TARGET_NOT_FOUND")
    file = tmp_path / "targets.jsonl"
    rows = [{"cat_id": missing if number % 6 == 0 else "976759"} for number in range(TARGETS)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def on_terminal(start: list[str], before: str = "") -> str:
    """Return a command's output on a pseudo-terminal. ``before`` is Python code that its process runs first."""
    terminal, stderr = pty.openpty()
    written = b""
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with forks.Popen(start, cwd=ROOT, stderr=stderr, env=env, before=before):
        os.close(stderr)
        while True:
            try:
                written += os.read(terminal, 65_536)
            except OSError:  # Linux: the other end is closed
                break
    os.close(terminal)
    return written.decode()


def events(log: str) -> list[dict[str, str]]:
    return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in log.splitlines() if "event=progress" in line]


def test_progress_is_logged_at_intervals(tmp_path: Path, settings: dict[str, Any], targets: Path) -> None:
    own = {**settings, "FAILURES_FEED": tmp_path / "failures.jsonl", "LOGSTATS_INTERVAL": 0.02}
    run = forks.run(command("retail", {"targets": targets}, own), check=False, cwd=ROOT, capture_output=True, text=True)
    found = events(run.stderr)
    assert len(found) > 2, run.stderr
    counted = [event for event in found if event["left"]]  # the first line may precede the count of the file's lines
    assert {int(event["done"]) + int(event["left"]) for event in counted} == {TARGETS}
    done = [int(event["done"]) for event in found]
    assert done == sorted(done)
    assert (found[-1]["done"], found[-1]["failed"], found[-1]["TARGET_NOT_FOUND"]) == ("60", "10", "10")
    assert "\x1b" not in run.stderr, "no bar without a terminal"
    assert "waiting" not in run.stderr, "it can send requests"


def test_a_terminal_shows_a_bar_and_the_log_above_it(tmp_path: Path, settings: dict[str, Any], targets: Path) -> None:
    own = {**settings, "FAILURES_FEED": tmp_path / "f.jsonl"}
    shown = on_terminal(command("retail", {"targets": targets}, own, "-L", "INFO"))
    assert re.search(r"\d+/60.* left", shown)
    assert "event=targets_done" in shown
    assert events(shown) == [], "the bar replaces the log lines"


def test_a_log_file_has_progress_lines_in_addition_to_the_bar(
    tmp_path: Path, settings: dict[str, Any], targets: Path
) -> None:
    log = tmp_path / "run.log"
    own = {**settings, "FAILURES_FEED": tmp_path / "failures.jsonl", "LOG_FILE": log}
    shown = on_terminal(command("retail", {"targets": targets}, own))
    assert "60/60" in shown
    assert "failed: TARGET_NOT_FOUND 10" in shown
    assert events(log.read_text())[-1]["done"] == "60"
    assert "\x1b" not in log.read_text()


def test_the_rate_is_the_average_of_the_last_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress(get_crawler(settings_dict={"LOGSTATS_INTERVAL": 1}))
    assert progress.crawler.stats is not None
    rates = []
    for seconds, done in ((0, 0), (30, 60), (60, 60), (90, 180), (400, 490)):
        monkeypatch.setattr("time.monotonic", lambda now=1_000.0 + seconds: now)
        progress.crawler.stats.set_value("targets/OK", done)
        rates.append(progress.rate())
    assert rates == [0.0, 60 / 30, 60 / 60, 120 / 60, 310 / 310]


class FakeBar:
    """Keeps what the bar of a crawl shows."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.state: dict[str, Any] = {}

    def leave(self, _task: int) -> None: ...

    def show(self, _task: int, lines: list[tuple[str, str]], **state: Any) -> None:
        self.lines, self.state = lines, state


WAITS = [Suspension("egress berlin", "egress_failed", 29.2), Suspension("egress paris", "http_429", 60.0)]
FOR = "egress berlin (egress_failed, 30 s), egress paris (http_429, 60 s)"


@pytest.mark.parametrize(
    ("rows", "pushed", "done", "waits", "lines", "state", "logged"),
    [
        pytest.param(
            *(None, 0, {"OK": 1_200}, []),
            [("1 page", "")],
            {"total": None, "completed": 1_200, "expected": "?", "rate": 2.0, "left": ""},
            {"done": 1_200, "left": None, "failed": 0, "per_second": 2.0, "seconds_left": None},
            id="the file is not read to its end",
        ),
        pytest.param(
            *(2_000, 100, {"OK": 1_190, "TARGET_NOT_FOUND": 10}, WAITS),
            [("failed: TARGET_NOT_FOUND 10", "red"), (f"waiting 30 s for {FOR}", "yellow"), ("1 page", "")],
            {"total": 2_100, "completed": 1_200, "expected": "2,100", "rate": 2.0, "left": "7:30 left"},
            {
                "done": 1_200,
                "left": 900,
                "failed": 10,
                "per_second": 2.0,
                "seconds_left": 450,
                "waiting": 30,
                "waiting_for": FOR,
                "TARGET_NOT_FOUND": 10,
            },
            id="targets failed, and the crawl waits",
        ),
        pytest.param(
            *(1_000, 0, {"OK": 1_200}, []),
            [("1 page", "")],
            {"total": 1_200, "completed": 1_200, "expected": "1,200", "rate": 2.0, "left": "0:00 left"},
            {"done": 1_200, "left": 0, "failed": 0, "per_second": 2.0, "seconds_left": 0},
            id="a target had several outcomes",
        ),
        pytest.param(
            *(5, 0, {}, []),
            [("1 page", "")],
            {"total": 5, "completed": 0, "expected": "5", "rate": 0.0, "left": ""},
            {"done": 0, "left": 5, "failed": 0, "per_second": 0.0, "seconds_left": None},
            id="nothing is done yet",
        ),
    ],
)
def test_the_bar_and_the_log_line_have_the_figures(  # noqa: PLR0913, PLR0917  # a table
    monkeypatch: pytest.MonkeyPatch,
    rows: int | None,
    pushed: int,
    done: dict[str, int],
    waits: list[Suspension],
    lines: list[tuple[str, str]],
    state: dict[str, Any],
    logged: dict[str, Any],
) -> None:
    bar, crawler = FakeBar(), get_crawler(settings_dict={"LOGSTATS_INTERVAL": 1})
    assert crawler.stats is not None
    crawler.spider = cast(
        "Any",
        SimpleNamespace(
            name="retail",
            lanes=None,
            status_lines=["1 page"],
            source=SimpleNamespace(expected=rows),
            tracker=SimpleNamespace(pushed=pushed),
        ),
    )
    monkeypatch.setattr("crawler.monitoring.progress.suspensions", lambda _: waits)
    monkeypatch.setattr("crawler.monitoring.bar.Bar.join", lambda _: (bar, 1))
    monkeypatch.setattr("crawler.monitoring.progress.stderr_is_terminal", lambda: True)
    calls = Mock()
    monkeypatch.setattr("crawler.monitoring.progress.create_looping_call", lambda _: calls)
    monkeypatch.setattr("time.monotonic", lambda: 1_000.0)
    progress = Progress(crawler)
    progress.spider_opened()
    for code, count in done.items():
        crawler.stats.set_value(f"targets/{code}", count)
    monkeypatch.setattr("time.monotonic", lambda: 1_600.0)
    progress._refresh()
    assert (bar.lines, bar.state) == (lines, state)
    with structlog.testing.capture_logs() as logs:
        progress._log()
    assert logs == [{"event": "progress", "log_level": "info", **logged}]
    progress.spider_closed()
    assert calls.start.call_count == calls.stop.call_count > 0


def test_the_progress_line_says_that_the_run_waits_and_for_whom(
    tmp_path: Path, settings: dict[str, Any], targets: Path
) -> None:
    """Nothing can connect to the two proxies of the crawl, which gives up after two seconds."""
    proxies = [{"name": name, "proxy": f"http://127.0.0.1:{port}"} for name, port in (("berlin", 9), ("paris", 11))]
    waits = {"BREAKER_COOLDOWN": 1, "BREAKER_GIVE_UP": 2, "RETRY_TIMES": 0}
    own = {**settings, "EGRESSES": json.dumps(proxies), "FAILURES_FEED": tmp_path / "failures.jsonl", **waits}
    run = forks.run(command("retail", {"targets": targets}, own), check=False, cwd=ROOT, capture_output=True, text=True)
    waiting = [line for line in run.stderr.splitlines() if "event=progress" in line and "waiting_for=" in line]
    assert waiting, run.stderr
    named = {name for line in waiting for name in re.findall(r"egress (\w+) \(egress_failed, \d+ s\)", line)}
    assert named == {"berlin", "paris"}
    assert all(re.search(r"waiting=\d+ ", line) for line in waiting)


def test_an_interval_of_zero_disables_both(tmp_path: Path, settings: dict[str, Any], targets: Path) -> None:
    own = {**settings, "LOGSTATS_INTERVAL": 0, "FAILURES_FEED": tmp_path / "failures.jsonl"}
    shown = on_terminal(command("retail", {"targets": targets}, own, "-L", "INFO"))
    assert "event=targets_done" in shown
    assert "\x1b" not in shown
    assert events(shown) == []
