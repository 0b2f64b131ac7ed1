"""The result of a crawl is shown as a summary on a terminal, and as log lines elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from crawler.errors import InvalidRequest, ScrapeError, TargetNotFound, UpstreamBlocked
from crawler.monitoring.summary import Summary
from crawler.outputs.feed_files import failures_feed
from crawler.platforms.coverage import Coverage
from crawler.registry import scrapers
from crawler.targets.parser import check_params
from crawler.targets.target import InvalidTarget, Outcome, Target
from crawler.targets.warning import OutcomeWarning
from tests import forks
from tests.crawls import ROOT, command, lines, sandbox
from tests.monitoring.test_progress import on_terminal

CATEGORY = scrapers()["retail-category-v4"]
OK_STATS = {"finish_reason": "finished", "elapsed_time_seconds": 75.4, "targets/OK": 3}


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    with sandbox("--light") as found:
        yield found


def target(**own: Any) -> Target:
    return Target(own.pop("id", "t"), CATEGORY, check_params(CATEGORY, {"cat_id": "4044"}), **own)


def failed(error: ScrapeError, line: int | None = None) -> Outcome:
    return Outcome(target(line=line), None, error, 0)


def summary(stats: dict[str, Any], *, batch: bool = True) -> Summary:
    """A summary of a crawl with these stats."""
    spider = SimpleNamespace(name="retail", platform="retail", batch=batch, args=SimpleNamespace())
    stats_collector = SimpleNamespace(get_stats=lambda: stats)
    return Summary(cast("Any", SimpleNamespace(spider=spider, stats=stats_collector, settings=Settings())))


def closed(made: Summary, uri: str, count: int, *, failures: bool = False) -> None:
    (options,) = failures_feed("failures.jsonl").values()
    slot = SimpleNamespace(uri=uri, uri_template=uri.rstrip("0123456789"), itemcount=count)
    slot.feed_options = options if failures else {}
    made.feed_slot_closed(cast("Any", slot))


@pytest.mark.parametrize(
    ("stats", "written", "lines"),
    [
        pytest.param(
            {},
            {"out.csv": 1_200},
            ["retail: 3 targets, 3 with data, in 1:15", "  data:       out.csv (1,200 lines)"],
            id="all targets have data",
        ),
        pytest.param(
            {},
            {"part-1": 2, "part-2": 2, "part-3": 2},
            ["retail: 3 targets, 3 with data, in 1:15", "  data:       part-1 to part-3 (6 lines)"],
            id="batches are one line",
        ),
        pytest.param(
            {"finish_reason": "shutdown", "feedexport/failed_count/x": 2},
            {},
            [
                "retail: 3 targets, 3 with data, in 1:15",
                "  stopped:    shutdown",
                "  data:       not written: add -O out.csv, -O out.jsonl or -O out.xlsx",
                "  incomplete: lines are missing from the data: see the errors above",
            ],
            id="a run that was stopped, and whose data was not written",
        ),
    ],
)
def test_the_ends_of_a_run(stats: dict[str, Any], written: dict[str, int], lines: list[str]) -> None:
    made = summary({**OK_STATS, **stats})
    for uri, count in written.items():
        closed(made, uri, count)
    assert [*made.lines()] == lines


def test_failures_warnings_and_what_to_do_next() -> None:
    stats = {
        **OK_STATS,
        "targets/TARGET_NOT_FOUND": 2,
        "targets/UPSTREAM_BLOCKED": 1,
        "targets/partial": 1,
        "sources/failed/timeline/stale_query_id": 1,
    }
    made = summary(stats)
    made.target_completed(failed(TargetNotFound("The platform has no such page."), line=7))
    made.target_completed(failed(TargetNotFound("Another message."), line=8))
    made.target_completed(failed(UpstreamBlocked("Blocked.")))
    closed(made, "out.jsonl", 3)
    closed(made, "failures-1", 2, failures=True)
    closed(made, "failures-2", 1, failures=True)
    assert [*made.lines()] == [
        "retail: 6 targets, 3 with data, in 1:15",
        "  failed:     2 TARGET_NOT_FOUND: The platform has no such page. (line 7, cat_id=4044)",
        "  failed:     1 UPSTREAM_BLOCKED: Blocked. (t, cat_id=4044)",
        "  partial:    1 with data lacks a part of it, as its warnings say",
        "  warnings:   1 without timeline (stale_query_id)",
        "  data:       out.jsonl (3 lines)",
        "  failures:   failures-1 to failures-2 (3 lines)",
        "  next:       scrapy targets retry failures-1",
        "  next:       scrapy targets retry failures-2",
    ]


def test_notes_are_counted_and_logged_once() -> None:
    made = summary(OK_STATS)
    sentence = "count=30 was used instead of 99: it is the limit."
    with structlog.testing.capture_logs() as logs:
        for name, note in (("a", sentence), ("b", sentence), ("c", "")):
            made.target_completed(Outcome(target(id=name, note=note), None, None, 0))
    assert f"  note:       2 with: {sentence}" in [*made.lines()]
    assert logs == [{"event": "note", "id": "a", "note": sentence, "log_level": "info"}]


def test_unread_paths_are_sorted_by_targets_and_bounded() -> None:
    stats = {f"unread/listing/rows[].key{number}": number for number in range(1, 12)}
    made = summary({**OK_STATS, **stats, "unread/page/a/b": 1_200, "unread_rows/page/a/b": 3_400})
    _, *shown, last, _, advice = made.lines()
    assert shown == [
        "  unread:     1,200 with a/b of page (3,400 rows not collected)",
        *(f"  unread:     {number} with rows[].key{number} of listing" for number in range(11, 4, -1)),
    ]
    assert last == "  unread:     and 4 more paths"
    assert advice.startswith("  next:       the platform may have changed its pages: ")


def test_notes_and_incomplete_listings_are_bounded() -> None:
    made = summary(OK_STATS)
    for number in range(9):
        warning = OutcomeWarning("listing", "EXTRACTION_FAILED", "incomplete", coverage=Coverage(9, number))
        made.target_completed(Outcome(target(note=f"note {number}"), None, None, 0, warnings=(warning,)))
    lines = [*made.lines()]
    assert [line for line in lines if "note:" in line] == [f"  note:       1 with: note {n}" for n in range(5)]
    assert [line for line in lines if "incomplete:" in line] == [
        f"  incomplete: {n} of 9 collected (cat_id=4044)" for n in range(5)
    ]


def test_failures_in_a_file_are_no_data_in_a_file() -> None:
    made = summary(OK_STATS)
    closed(made, "failures.jsonl", 2, failures=True)
    assert [*made.lines()][1:] == [
        "  failures:   failures.jsonl (2 lines)",
        "  data:       not written: add -O out.csv, -O out.jsonl or -O out.xlsx",
    ]


def test_one_target_shows_its_error() -> None:
    stats = {"finish_reason": "finished", "elapsed_time_seconds": 2, "targets/UPSTREAM_BLOCKED": 1}
    made = summary(stats, batch=False)
    made.target_completed(failed(UpstreamBlocked("Blocked.")))
    assert [*made.lines()] == [
        "retail: 1 target, 0 with data, in 0:02",
        "  failed:     1 UPSTREAM_BLOCKED: Blocked.",
        "  next:       run the command again: the error may be temporary",
    ]


@pytest.mark.parametrize("on_demand", [True, False])
def test_only_the_endpoint_s_crawlers_have_no_summary(*, on_demand: bool) -> None:
    crawler = get_crawler()
    crawler.spider = cast("Any", SimpleNamespace(on_demand=on_demand))
    if on_demand:
        with pytest.raises(NotConfigured):
            Summary.from_crawler(crawler)
    else:
        assert isinstance(Summary.from_crawler(crawler), Summary)


@pytest.mark.parametrize(("batch", "level"), [(True, "info"), (False, "error")])
def test_log_lines_of_failed_targets_name_the_target(*, batch: bool, level: str) -> None:
    made = summary(OK_STATS, batch=batch)
    malformed = InvalidTarget("f.csv:3", InvalidRequest("Line 3 is broken."), raw="1;2;" + "x" * 900, line=3)
    with structlog.testing.capture_logs() as logged:
        made.target_completed(failed(TargetNotFound("No such page."), line=7))
        made.target_completed(Outcome(malformed, None, malformed.error, 0))
    assert logged[0] == {
        "event": "target_failed",
        "log_level": level,
        "id": "t",
        "line": 7,
        "scraper": "retail-category-v4",
        "params": "cat_id=4044",
        "code": "TARGET_NOT_FOUND",
        "message": "No such page.",
    }
    assert (logged[1]["id"], logged[1]["line"], logged[1]["params"]) == ("f.csv:3", 3, ("1;2;" + "x" * 900)[:200])


def test_a_terminal_shows_a_summary_instead_of_the_log(tmp_path: Path, settings: dict[str, Any]) -> None:
    targets, out = tmp_path / "targets.csv", tmp_path / "out.csv"
    targets.write_text("id,cat_id\na,976759\nb,1_2_3\n")
    own = {**settings, "FAILURES_FEED": tmp_path / "failed.jsonl"}
    shown = on_terminal(command("retail", {"targets": targets}, own, "-O", str(out))).replace("\r\n", "\n")
    assert "2/2" in shown, "the bar"
    *_, said = shown.partition("retail: ")
    assert re.sub(r"\d+:\d\d", "0:00", said) == (
        "2 targets, 1 with data, in 0:00\n"
        "  failed:     1 TARGET_NOT_FOUND: The platform has no such page. (line 3, cat_id=1_2_3)\n"
        f"  data:       {out} (1 line)\n"
        f"  failures:   {tmp_path}/failed.jsonl (1 line)\n"
    )
    assert "INFO" not in shown
    assert "event=" not in shown
    details = on_terminal(command("retail", {"cat_id": "976759"}, own, "-L", "INFO"))
    assert "event=targets_done" in details
    assert "with data, in" not in details


def test_elsewhere_the_log_is_complete(settings: dict[str, Any]) -> None:
    """The last log lines do not contain the last target's id, and a single target has no failures file."""
    start = command("retail", {"cat_id": "1_2_3"}, settings)
    before = {*(ROOT / "failures").glob("*")}
    run = forks.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 4, run.stderr
    found = {event: line for line in run.stderr.splitlines() for event in re.findall(r"event=(\w+)", line)}
    assert "request_id=" in found["target_failed"]
    assert re.search(r" params=.*cat_id=1_2_3", found["target_failed"])
    for event in ("targets_done", "progress"):
        assert "request_id=" not in found[event], found[event]
    assert {*(ROOT / "failures").glob("*")} == before
    assert "with data, in" not in run.stderr


def test_the_failures_of_a_batch_are_in_a_folder(tmp_path: Path, settings: dict[str, Any]) -> None:
    targets = tmp_path / "targets.jsonl"
    targets.write_text(json.dumps({"id": "a", "cat_id": "1_2_3"}) + "\n")
    before = {*(ROOT / "failures").glob("*")}
    run = forks.run(command("retail", {"targets": targets}, settings), check=False, cwd=ROOT, capture_output=True)
    assert run.returncode == 4
    (written,) = {*(ROOT / "failures").glob("*")} - before
    assert [line["id"] for line in lines(written)] == ["a"]
    assert re.fullmatch(r"retail-.*\.jsonl", written.name)
    written.unlink()
