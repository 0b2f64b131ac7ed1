"""``-a since=last``: pages are followed only down to entries that the last run has seen."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from crawler.registry import scrapers
from crawler.targets.incremental import MAX_IDS_PER_LISTING, Seen, SeenFile, entry_ids
from crawler.targets.target import Entries, Outcome, Record, Target, check_params
from tests.crawls import ROOT, command, lines

PAGE = 3


@dataclass
class Site:
    """The timelines of all users: the same posts for each."""

    origin: str = ""
    posts: list[int] = field(default_factory=list)
    pinned: list[int] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    """Cursors whose pages fail."""

    def page(self, cursor: str) -> dict[str, Any]:
        start = int(cursor or 0)
        shown = self.posts[start : start + PAGE]
        top = [] if start else self.pinned
        more = start + PAGE < len(self.posts)
        return {
            "posts": {"main": [{"post_id": str(post)} for post in (*top, *shown)]},
            "cursor": str(start + PAGE) if more else "",
        }


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cursor = parse_qs(urlsplit(self.path).query).get("cursor", [""])[0]
            self.send_response(403 if cursor in found.broken else 200)
            self.end_headers()
            self.wfile.write(json.dumps(found.page(cursor)).encode())

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    found.origin = f"http://127.0.0.1:{server.server_port}"
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def pages(tmp_path: Path, site: Site, **arguments: Any) -> list[list[int]]:
    """Run a crawl, and return the posts of each page that it fetched."""
    settings = {
        "SPIDER_MODULES": "tests.timeline",
        "PLATFORM_ORIGINS": json.dumps({"timeline": site.origin}),
        "PLATFORM_BUDGETS": json.dumps({"timeline": {"concurrency": 4, "delay": 0}}),
        "SEEN_FILE": tmp_path / "seen.sqlite",
        "FAILURES_FEED": tmp_path / "failures.jsonl",
    }
    given = {"user": "someone", "since": "last", "max_pages": 50} | arguments
    out = tmp_path / "out.jsonl"
    start = command("timeline", given, settings, "-O", str(out))
    run = subprocess.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode in {0, 4}, run.stderr
    return [[int(post["post_id"]) for post in page["posts"]["main"]] for page in lines(out)]


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


def test_an_incompletely_read_listing_is_read_again(tmp_path: Path, site: Site) -> None:
    site.posts = list(range(4, 0, -1))
    assert len(pages(tmp_path, site)) == 2
    site.posts = list(range(12, 0, -1))
    site.broken = {"6"}
    assert pages(tmp_path, site) == [[12, 11, 10], [9, 8, 7]]
    site.broken = set()
    assert pages(tmp_path, site) == [[12, 11, 10], [9, 8, 7], [6, 5, 4]]


def test_only_the_newest_ids_are_kept(tmp_path: Path) -> None:
    seen = SeenFile(tmp_path / "seen.sqlite")
    seen.add("a", [str(number) for number in range(MAX_IDS_PER_LISTING)])
    seen.add("a", ["new", "newer"])
    seen.add("b", ["0"])
    kept = {"new", "newer", *(str(number) for number in range(MAX_IDS_PER_LISTING - 2))}
    assert seen.ids("a") == kept
    assert seen.ids("b") == {"0"}


def test_a_locked_file_does_not_block_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is used in a thread. If the ids cannot be read, all pages are read."""
    path = tmp_path / "seen.sqlite"
    scraper = replace(scrapers()["retail-search-v4"], entries=Entries("posts.main", "post_id"))
    target = Target("t", scraper, check_params(scraper, {"query": "x"}))
    data = {"posts": {"main": [{"post_id": "3"}, {"post_id": "2"}]}}
    threads: set[threading.Thread] = set()
    read = SeenFile.ids

    def ids(file: SeenFile, listing: str) -> frozenset[str]:
        threads.add(threading.current_thread())
        return read(file, listing)

    monkeypatch.setattr(SeenFile, "ids", ids)

    async def next_page_is_read(*, locked: bool) -> bool:
        file = SeenFile(path)
        file._file = replace(file._file, busy_timeout=0.0)
        seen = Seen(file)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            if locked:
                other.execute("BEGIN EXCLUSIVE")
            await seen.load(target)
            unseen = seen.unseen_below(target, data)
            seen.completed(Outcome(target, Record(data, target, datetime.now(UTC)), None, 0))
            await seen.close()
        return unseen

    found = [asyncio.run(next_page_is_read(locked=locked)) for locked in (False, False, True, False)]
    assert found == [True, False, True, False]
    assert threading.main_thread() not in threads


@pytest.mark.parametrize("name", sorted({scraper.name for scraper in scrapers().values() if scraper.entries}))
def test_declared_entries_exist_in_the_data(name: str) -> None:
    scraper = scrapers()[name]
    sandbox = import_module(f"crawler.sandbox.{scraper.platform}.site").Site()
    ids = entry_ids(scraper.entries, sandbox.expected_record({"scraper": name, **scraper.example}))
    assert len(ids) > 1
    assert all(isinstance(each, str) and each for each in ids)


def test_since_is_refused_for_a_spider_without_sorted_listings(tmp_path: Path) -> None:
    start = command("retail", {"query": "mustard", "since": "last"}, {"SEEN_FILE": tmp_path / "seen.sqlite"})
    run = subprocess.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 2
    assert "since=last requires a listing that is sorted by newest first" in run.stderr
