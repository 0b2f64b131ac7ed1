"""``-a since=``: pages are followed only until an entry was seen in the last run or is older than the given time."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from scrapy.settings import Settings

from crawler.jobs.extension import argument_problems
from crawler.jobs.seen import SeenByCrawls
from crawler.registry import scrapers
from crawler.spiders.retail import RetailSpider
from crawler.targets.parser import check_params
from crawler.targets.target import Outcome, Record, Target
from tests import forks
from tests.crawls import command, lines
from tests.http_server import Handler, served
from tests.timeline.spider import ORIGIN

PAGE = 3


@dataclass
class Site:
    """A simulated site on which all users have the same timeline."""

    origin: str = ""
    posts: list[int] = field(default_factory=list)
    pinned: list[int] = field(default_factory=list)
    times: dict[int, int] = field(default_factory=dict)
    """Post id -> its time in Unix seconds. Other posts have no time."""
    broken: set[str] = field(default_factory=set)
    """Cursors for which the site responds with an error."""
    requests: int = 0

    def page(self, cursor: str) -> dict[str, Any]:
        start = int(cursor or 0)
        shown = self.posts[start : start + PAGE]
        top = [] if start else self.pinned
        more = start + PAGE < len(self.posts)
        return {
            "posts": {"main": [{"post_id": str(post), "time": self.times.get(post)} for post in (*top, *shown)]},
            "cursor": str(start + PAGE) if more else "",
        }


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()

    class Page(Handler):
        def do_GET(self) -> None:  # noqa: N802  # http.server's name
            found.requests += 1
            cursor = parse_qs(urlsplit(self.path).query).get("cursor", [""])[0]
            self.answer(json.dumps(found.page(cursor)).encode(), 403 if cursor in found.broken else 200)

    with served(Page) as found.origin:
        yield found


def run(tmp_path: Path, site: Site, store: str, **arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run a crawl that writes to ``out.jsonl``."""
    settings = {
        "SPIDER_MODULES": "tests.timeline",
        "PLATFORM_ORIGINS": json.dumps({ORIGIN: site.origin}),
        "PLATFORM_BUDGETS": json.dumps({"timeline": {"concurrency": 4, "delay": 0}}),
        "STORE": store,
        "FAILURES_FEED": tmp_path / "failures.jsonl",
    }
    given = {"user": "someone", "since": "last", "max_pages": 50} | arguments
    start = command("timeline", given, settings, "-O", str(tmp_path / "out.jsonl"))
    return forks.run(start)


def crawl(tmp_path: Path, site: Site, store: str = "", **arguments: Any) -> list[Any]:
    """Run a crawl, and return the lines of its feed."""
    ended = run(tmp_path, site, store or str(tmp_path / "store.sqlite3"), **arguments)
    assert ended.returncode in {0, 4}, ended.stderr
    return lines(tmp_path / "out.jsonl")


def pages(tmp_path: Path, site: Site, **arguments: Any) -> list[list[int]]:
    """Run a crawl, and return the posts of each fetched page."""
    fetched = crawl(tmp_path, site, **arguments)
    return [[int(post["post_id"]) for post in page["posts"]["main"]] for page in fetched]


def rows(tmp_path: Path, site: Site, **arguments: Any) -> list[tuple[int, int]]:
    """Run a crawl that writes one line per post, and return the post and the position in each line."""
    return [(int(row["post_id"]), row["position"]) for row in crawl(tmp_path, site, explode="main", **arguments)]


def test_paging_stops_at_entries_that_the_last_run_saw(tmp_path: Path, site: Site) -> None:
    site.posts, site.pinned = list(range(10, 0, -1)), [2]
    assert pages(tmp_path, site) == [[2, 10, 9, 8], [7, 6, 5], [4, 3, 2], [1]]
    assert pages(tmp_path, site) == [[2, 10, 9, 8]], "nothing is new"
    site.posts = list(range(14, 0, -1))
    assert pages(tmp_path, site) == [[2, 14, 13, 12], [11, 10, 9]], "a pinned post that was seen stops nothing"
    site.posts = [16, 15, *range(10, 0, -1)]
    assert pages(tmp_path, site) == [[2, 16, 15, 10]], "also if the newest posts of the last run were deleted"
    assert len(pages(tmp_path, site, user="another")) == 4, "each listing has its own ids"
    assert len(pages(tmp_path, site, since="last", max_pages=2, user="a third")) == 2, "max_pages applies"


@pytest.mark.parametrize(
    ("store", "reason"),
    [("/", "[Errno 21] Is a directory: '/'"), ("postgresql://me:secret@127.0.0.1:1/x", "connection failed: ")],
    ids=["folder", "no server"],
)
def test_a_store_that_cannot_be_opened_is_refused(tmp_path: Path, site: Site, store: str, reason: str) -> None:
    site.posts = [1]
    ended = run(tmp_path, site, store)
    assert (ended.returncode, site.requests) == (2, 0)
    assert f"\nSTORE cannot be opened: {reason}" in ended.stderr
    assert "secret" not in ended.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_with_explode_only_new_entries_are_written(tmp_path: Path, site: Site) -> None:
    site.posts, site.pinned = [4, 3, 2, 1], [1]
    assert rows(tmp_path, site) == [(1, 0), (4, 1), (3, 2), (2, 3), (1, 0)]
    assert rows(tmp_path, site) == []
    site.posts = [6, 5, 4, 3, 2, 1]
    assert rows(tmp_path, site) == [(6, 1), (5, 2)], "the position is the place in the page"


def test_a_day_stops_paging_and_selects_entries(tmp_path: Path, site: Site) -> None:
    noon = 43_200
    first = round(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
    site.posts, site.pinned = list(range(9, 0, -1)), [1]
    site.times = {9: first + noon, 8: first, 7: first - 1, 6: first - noon, 1: first - 9 * noon}
    assert pages(tmp_path, site, since="2026-11-01") == [[1, 9, 8, 7]], "the last post of the page is older"
    assert rows(tmp_path, site, since="2026-11-01") == [(9, 1), (8, 2)]
    assert rows(tmp_path, site, since="2026-10-31") == [(9, 1), (8, 2), (7, 3), (6, 0), (5, 1), (4, 2), (3, 0), (2, 1)]
    assert not (tmp_path / "store.sqlite3").exists()


@pytest.mark.parametrize(
    ("since", "valid"),
    [("last", True), ("2026-11-01", True), ("yesterday", False), ("2026-13-01", False), ("01.11.2026", False)],
)
def test_since_is_last_or_a_day(since: str, *, valid: bool) -> None:
    assert bool(argument_problems(RetailSpider, {"since": since})) != valid


def test_the_sandbox_has_its_own_seen_entries(tmp_path: Path) -> None:
    scraper = scrapers()["microblog-profile"]
    target = Target("t", scraper, check_params(scraper, scraper.example))
    data = {"data": {"main": [{"post_id": "2", "upload_timestamp": 1}]}}

    async def new_in(*, sandbox: bool) -> frozenset[str] | None:
        since = SeenByCrawls.of(Settings({"STORE": str(tmp_path / "store.sqlite3"), "SANDBOX": sandbox}))
        await since.load(target)
        found = since.new_entries(target, data)
        since.completed(Outcome(target, Record(data, target, datetime.now(UTC)), None, 0))
        await since.close()
        return found

    found = [asyncio.run(new_in(sandbox=sandbox)) for sandbox in (True, True, False, False)]
    assert found == [{"2"}, frozenset(), {"2"}, frozenset()]


def test_an_incompletely_read_listing_is_read_again(tmp_path: Path, site: Site) -> None:
    site.posts = list(range(4, 0, -1))
    assert len(pages(tmp_path, site)) == 2
    site.posts = list(range(12, 0, -1))
    site.broken = {"6"}
    assert pages(tmp_path, site) == [[12, 11, 10], [9, 8, 7]]
    site.broken = set()
    assert pages(tmp_path, site) == [[12, 11, 10], [9, 8, 7], [6, 5, 4]]


@pytest.mark.parametrize("name", sorted({scraper.name for scraper in scrapers().values() if scraper.entries}))
def test_declared_entries_exist_in_the_data(name: str) -> None:
    scraper = scrapers()[name]
    sandbox = import_module(f"crawler.sandbox.{scraper.platform}.site").Site()
    assert scraper.entries is not None
    entries = scraper.entries.of(sandbox.expected_record({"scraper": name, **scraper.example}))
    assert len(entries) > 1
    assert all(isinstance(each[scraper.entries.key], str) and each[scraper.entries.key] for each in entries)
    assert all(isinstance(each[scraper.entries.time], int | None) for each in entries)


def test_since_is_refused_for_a_spider_without_sorted_listings(tmp_path: Path) -> None:
    start = command("retail", {"query": "mustard", "since": "last"}, {"STORE": tmp_path / "store.sqlite3"})
    run = forks.run(start)
    assert run.returncode == 2
    assert "since=last requires a listing that is sorted by newest first" in run.stderr
