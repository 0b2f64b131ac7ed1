"""The stats that a crawl counts from the warnings of its outcomes."""

from __future__ import annotations

import pytest
import structlog
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from crawler.platforms.coverage import Coverage
from crawler.reading.contract import Unread
from crawler.targets.warning import OutcomeWarning, count_warnings

LOST = Unread("rows[].id", "missing", 2, 5, loses_rows=True)
KEPT = Unread("rows[].name", "null", 3, 5, loses_rows=False)


@pytest.mark.parametrize(
    ("warnings", "stats"),
    [
        ([OutcomeWarning("embed", "UPSTREAM_BLOCKED", "login_wall")], {"sources/failed/embed/login_wall": 1}),
        (
            [OutcomeWarning("search", "EXTRACTION_FAILED", "unread", LOST)] * 2,
            {"unread_rows/search/rows[].id": 4, "unread/search/rows[].id": 1},
        ),
        ([OutcomeWarning("search", "EXTRACTION_FAILED", "unread", KEPT)], {"unread/search/rows[].name": 1}),
        ([OutcomeWarning("search", "EXTRACTION_FAILED", "limit", LOST)], {"sources/failed/search/limit": 1}),
        (
            [
                OutcomeWarning(
                    "list",
                    "EXTRACTION_FAILED",
                    "incomplete",
                    None,
                    Coverage(9, 7, ("page_failed", "no_end", "ceiling")),
                ),
                OutcomeWarning("list", "EXTRACTION_FAILED", "incomplete", None, Coverage(None, 4, ("page_failed",))),
            ],
            {
                "coverage/missing/list/page_failed": 2,
                "coverage/missing/list/no_end": 1,
                "coverage/collected": 11,
                "coverage/expected": 9,
            },
        ),
        ([], {}),
    ],
    ids=["a source", "lost rows", "a lost value", "a limit", "listings", "none"],
)
def test_warnings_are_counted_by_kind(warnings: list[OutcomeWarning], stats: dict[str, int]) -> None:
    counted = MemoryStatsCollector(get_crawler())
    count_warnings(warnings, "retail", counted)
    assert counted.get_stats() == stats


def test_an_unread_path_is_logged_once_and_counted_for_each_target() -> None:
    counted = MemoryStatsCollector(get_crawler())
    unread = KEPT._replace(names=("title", "label"))
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            count_warnings([OutcomeWarning("search", "EXTRACTION_FAILED", "unread", unread)], "retail", counted)
    assert counted.get_stats() == {"unread/search/rows[].name": 2}
    assert [(each["event"], each["platform"], each["source"], each["names"]) for each in logs] == [
        ("unread", "retail", "search", "title, label")
    ]
