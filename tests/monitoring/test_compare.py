"""The comparison of a run with the last runs: only significant differences are reported."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import async_playwright

from crawler.browser.chromium import executable
from crawler.errors import ExtractionFailed
from crawler.monitoring.compare import compare
from crawler.monitoring.fields import FieldCount
from crawler.monitoring.run import History, Run
from crawler.monitoring.suite import render
from crawler.reading.unread import Cause, Unread
from crawler.registry import scrapers
from crawler.targets.target import Outcome, Record, Target
from crawler.targets.warning import OutcomeWarning
from tests.browsers import require_chromium

CATEGORY = scrapers()["retail-category-v4"]


def run(filled: int = 0, rows: int = 0, **codes: int) -> Run:
    fields = {"s": {"price": FieldCount(rows=rows, filled=filled)}} if rows else {}
    return Run(spider="x", reason="finished", fields=fields, codes=Counter(codes or {"OK": 1}))


@pytest.mark.parametrize(
    ("last", "now", "change"),
    [
        ([], (0, 100), ""),
        ([(100, 100)], (100, 100), ""),
        ([(100, 100)], (0, 100), "vanished"),
        ([(100, 100)], (0, 3), "vanished"),
        ([(60, 100)], (0, 3), ""),
        ([(6, 6)], (0, 6), "vanished"),
        ([(3, 100)], (0, 20), ""),
        ([(30, 1000)], (0, 1000), "vanished"),
        ([(100, 100)], (85, 100), ""),
        ([(100, 100)], (60, 100), "dropped"),
        ([(10, 20), (10, 20)], (9, 20), ""),
        ([(0, 100)], (100, 100), ""),
        ([(1, 1)] * 10, (0, 1), "vanished"),
        ([(100, 100)] * 5 + [(0, 100)] * 5, (0, 100), "vanished"),
        ([(0, 100)] * 10, (0, 100), ""),
    ],
)
def test_changed_fields_are_reported(last: list[tuple[int, int]], now: tuple[int, int], change: str) -> None:
    report = compare(run(*now), [run(*each) for each in last], max_failed=0.1)
    assert [each.change for each in report.fields] == [change]
    assert report.page_changed == (change == "vanished")
    assert ("price of s" in report.headline) == (change == "vanished")


@pytest.mark.parametrize(
    ("last", "now", "failing", "page_changed"),
    [
        ([], {"OK": 10}, [], False),
        ([], {"OK": 95, "UPSTREAM_BLOCKED": 5}, [], False),
        ([], {"OK": 50, "UPSTREAM_BLOCKED": 50}, ["UPSTREAM_BLOCKED"], False),
        ([], {"TARGET_NOT_FOUND": 50, "OK": 50}, [], False),
        pytest.param([], {"OK": 30, "INVALID_REQUEST": 70}, ["INVALID_REQUEST"], False, id="us_29"),
        ([{"OK": 100}], {"OK": 60, "TARGET_NOT_FOUND": 40}, ["TARGET_NOT_FOUND"], False),
        ([{"OK": 1000}], {"OK": 950, "EXTRACTION_FAILED": 50}, ["EXTRACTION_FAILED"], True),
        ([], {"EXTRACTION_FAILED": 1}, ["EXTRACTION_FAILED"], True),
        ([{"OK": 60, "UPSTREAM_ERROR": 40}], {"OK": 58, "UPSTREAM_ERROR": 42}, ["UPSTREAM_ERROR"], False),
        ([{"OK": 10, "UPSTREAM_ERROR": 90}], {"OK": 100}, [], False),
    ],
)
def test_increased_failures_are_reported(
    last: list[dict[str, int]], now: dict[str, int], failing: list[str], *, page_changed: bool
) -> None:
    report = compare(run(**now), [run(**each) for each in last], max_failed=0.1)
    assert [each.name for each in report.failing] == failing
    assert report.page_changed == page_changed


def test_a_run_counts_filled_and_null_fields() -> None:
    counted = Run(spider="retail")
    target = Target("a", CATEGORY, CATEGORY.params.model_validate({"cat_id": "1"}))
    rows = [{"price": {"current_price": 0.0}, "badges": []}, {"price": {"current_price": None}, "flag": "x"}]
    record = Record({"products": rows, "has_more": False, "title": ""}, target, datetime.now(UTC))
    counted.add_outcome(Outcome(target, record, None, 0))
    fields = counted.fields["retail-category-v4"]
    assert fields["products[].price.current_price"] == FieldCount(rows=2, filled=1, null=1), "0.0 is a value"
    assert fields["has_more"] == FieldCount(rows=1, filled=1), "false is a value"
    assert fields["title"] == FieldCount(rows=1), "empty text is not a value"
    assert fields["products[].flag"] == FieldCount(rows=2, filled=1), "an absent key is not null"
    error = ExtractionFailed("", details=[{"loc": ["a", 3, "b"], "msg": "", "type": ""}] * 2)
    counted.add_outcome(Outcome(target, None, error, 0))
    assert counted.not_understood == {"a[].b": 1}
    assert Run.model_validate_json(counted.model_dump_json()) == counted


def test_history_keeps_the_newest_runs_and_returns_the_complete_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawler.monitoring.run.MAX_RUNS", 4)
    history = History(tmp_path, "x")
    assert history.last(10) == []
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for day in range(6):
        ended = run(day, 10).model_copy(
            update={"started": start + timedelta(days=day), "reason": "shutdown" if day == 4 else "finished"}
        )
        history.add(ended, {".md": "text"})
    assert [each.started.day for each in history.last(10)] == [3, 4, 6], "the run that was stopped is skipped"
    assert [each.started.day for each in history.last(1)] == [6]
    assert len(list((tmp_path / "x").iterdir())) == 8
    (tmp_path / "x/99999999T000000.json").write_text("{cut")
    assert len(history.last(10)) == 3


def test_reports_escape_markup_in_names() -> None:
    now = run(5, 10, OK=1)
    now.fields["<script>"] = {"<b>": FieldCount(rows=1, filled=1)}
    texts = render(compare(now, [run(10, 10)], max_failed=0.1))
    assert set(texts) == {".md", ".html"}
    assert "<script>" not in texts[".html"]
    assert "&lt;b&gt;" in texts[".html"]


def test_us_29_the_report_fits_a_phone(tmp_path: Path) -> None:
    now = run(5, 10, OK=1, UPSTREAM_RATE_LIMITED=3)
    now.fields["retail-category-v4"] = {
        "products[].price." + "a_long_name_" * 6: FieldCount(rows=1_000, filled=999),
    }
    now.not_understood["props.pageProps.initialData." + "searchResult." * 9] = 3
    (tmp_path / "report.html").write_text(render(compare(now, [run(10, 10)], max_failed=0.1))[".html"])

    async def width() -> int:
        async with async_playwright() as playwright:
            program = executable({}, playwright.chromium.executable_path)
            browser = await playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
            page = await browser.new_page(viewport={"width": 390, "height": 844}, is_mobile=True)
            await page.goto(f"file://{tmp_path}/report.html")
            found: int = await page.evaluate("document.documentElement.scrollWidth")
            await browser.close()
            return found

    require_chromium()
    assert asyncio.run(width()) == 390


def with_failed(number: int, *, of: int = 100) -> Run:
    """A complete run in which the timeline failed for some of the targets."""
    counted = run(OK=of)
    counted.failed_sources = Counter(timeline=number)
    return counted


@pytest.mark.parametrize(
    ("last", "now", "failing"),
    [
        ([], with_failed(90), []),
        ([with_failed(0)], with_failed(0), []),
        ([with_failed(0)], with_failed(30), ["timeline"]),
        ([with_failed(30)], with_failed(32), []),
        ([with_failed(30)] * 5, with_failed(60), ["timeline"]),
        ([with_failed(60)], with_failed(30), []),
        ([run(OK=100)] * 10, with_failed(60), []),
    ],
)
def test_co_6_a_source_that_fails_for_more_targets_is_reported(last: list[Run], now: Run, failing: list[str]) -> None:
    report = compare(now, [Run.model_validate_json(each.model_dump_json()) for each in last], max_failed=0.1)
    assert [each.name for each in report.failing_sources] == failing
    assert ("timeline failed for" in report.headline) == bool(failing)
    assert all(("more than before" in text) == bool(failing) for text in render(report).values())
    assert all(("timeline" in text) == bool(report.sources) for text in render(report).values())


def test_co_6_a_run_counts_each_failed_source_once_for_a_target() -> None:
    counted = Run(spider="x")
    target = Target("t", CATEGORY, CATEGORY.params.model_validate(CATEGORY.example))
    warnings = (
        OutcomeWarning("feed", "UPSTREAM_ERROR", "no_feed"),
        OutcomeWarning("video", "UPSTREAM_BLOCKED", "refused"),
    )
    for number in range(3):
        twice = (OutcomeWarning("feed", "UPSTREAM_TIMEOUT", "timeout"),) * (number == 0)
        counted.add_outcome(Outcome(target, None, None, 1, warnings=(*warnings, *twice)))
    assert counted.failed_sources == {"feed": 3, "video": 3}


PATH = "rows[].rating of listing"


def with_unread(number: int, *, of: int = 100) -> Run:
    """A complete run in which a path was unread for some of the targets."""
    counted = run(OK=of)
    counted.unread = Counter({PATH: number} if number else {})
    return counted


@pytest.mark.parametrize(
    ("last", "now", "is_new"),
    [
        ([], with_unread(0), False),
        ([], with_unread(1), True),
        ([with_unread(0)] * 10, with_unread(1), True),
        ([with_unread(0), with_unread(1)], with_unread(90), False),
        ([with_unread(50)], with_unread(0), False),
        ([run(OK=100)], with_unread(1), True),
    ],
)
def test_re3_7_a_path_that_was_not_unread_before_is_reported(last: list[Run], now: Run, *, is_new: bool) -> None:
    report = compare(now, [Run.model_validate_json(each.model_dump_json()) for each in last], max_failed=0.1)
    assert [each.name for each in report.newly_unread] == [PATH] * is_new
    assert report.page_changed == is_new
    assert report.missing == []
    assert (report.headline == f"The platform changed its page. Unread: {PATH}.") == is_new
    for text in render(report).values():
        assert (">new<" in text or "**new**" in text) == is_new
        assert ("could not be read" in text) == bool(report.unread)


def test_re3_7_the_headline_names_fields_and_unread_paths() -> None:
    now = run(OK=100)
    now.codes["EXTRACTION_FAILED"], now.not_understood = 50, Counter({"data.rows": 50})
    now.unread = Counter({f"rows[].key{n} of listing": 1 for n in range(10)})
    headline = compare(now, [run(OK=100)], max_failed=0.1).headline
    assert headline.startswith("The platform changed its page. Missing: data.rows. Unread: rows[].key0 of listing, ")
    assert headline.endswith(" and 2 more.")


def test_re3_7_a_run_counts_each_unread_path_once_for_a_target() -> None:
    counted = Run(spider="x")
    target = Target("t", CATEGORY, CATEGORY.params.model_validate(CATEGORY.example))
    causes: tuple[Cause, ...] = ("missing", "type")
    warnings = tuple(OutcomeWarning.of_unread("listing", Unread("rows[].rating", cause, 3, 40)) for cause in causes)
    for _ in range(3):
        counted.add_outcome(Outcome(target, None, None, 1, warnings=warnings))
    assert (counted.unread, counted.failed_sources) == ({PATH: 3}, {})
