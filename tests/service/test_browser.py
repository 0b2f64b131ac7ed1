"""The endpoint's browser: it is shared, limited, and replaced after a crash, and all contexts are closed."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawler.sandbox.shortvideo.site import Site
from crawler.sandbox.shortvideo.world import LONG
from tests.browsers import alive, chromium_tree, memory, require_chromium
from tests.service.client import CATEGORY, HEADERS, Reply, call, many
from tests.service.conftest import Service, running

SEARCH = "/v1/scrapers/shortvideo-photo-search-v4"
LONG_TIMEOUTS = ("DOWNLOAD_TIMEOUT=100", "BROWSER_QUIET=40", "BROWSER_PAGES=4")
SHORT_STEPS = "from crawler.browser import chromium; chromium.STEP_TIMEOUT_SECONDS = 6"


@pytest.fixture(scope="module")
def browsing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    require_chromium()
    with running(tmp_path_factory.mktemp("browsing") / "log", *LONG_TIMEOUTS) as started:
        yield started


def search(service: Service, words: str, *, wait: int = 60, **params: Any) -> Reply:
    headers = HEADERS | {"Prefer": f"wait={wait}"}
    return call(service.url, SEARCH, {"keywords": words, **params}, headers=headers, timeout=wait + 300)


def pages(service: Service) -> list[str]:
    """Return the log lines about browser pages."""
    return [line for line in service.logged().splitlines() if "event=browser_page" in line]


def test_no_browser_is_started_before_a_page_needs_it(browsing: Service) -> None:
    assert call(browsing.url, CATEGORY, {"cat_id": "976759"}).status == 200
    assert chromium_tree(browsing.pid) == []


def test_a_search_loads_one_page_and_logs_its_requests(browsing: Service) -> None:
    before = len(pages(browsing))
    reply = search(browsing, "one load")
    assert reply.body["data"] == Site().expected_record({"keywords": "one load"})
    (line,) = pages(browsing)[before:]
    assert "'document': 1" in line
    assert re.search(r"blocked=.*'image': \d+", line)
    assert "open_contexts=0" in line


@pytest.mark.soak
def test_pages_by_cursor_return_every_row_once(browsing: Service) -> None:
    rows: list[str] = []
    cursor = "0"
    for _ in range(4):
        data = search(browsing, LONG, cursor=cursor, count=20).body["data"]
        assert data["has_more"]
        rows += [row["aweme_id"] for row in data["search_item_list"]]
        cursor = data["cursor"]
    expected = [
        row["aweme_id"]
        for start in ("0", "30", "60")
        for row in Site().expected_record({"keywords": LONG, "cursor": start})["search_item_list"]
    ]
    assert rows == expected[:80]
    assert cursor == "80"


def test_ten_targets_share_four_pages(browsing: Service) -> None:
    before = len(pages(browsing))
    searches = [{"keywords": f"term {number}", "count": 5} for number in range(10)]
    replies = asyncio.run(
        many(
            browsing.url,
            [(SEARCH, params) for params in searches],
            at_once=10,
            headers=HEADERS | {"Prefer": "wait=120"},
        )
    )
    assert [reply.body["data"] for reply in replies] == [Site().expected_record(params) for params in searches]
    lines = pages(browsing)[before:]
    open_contexts = [int(found[1]) for line in lines if (found := re.search(r"open_contexts=(\d+)", line))]
    assert len(lines) == 10
    assert max(open_contexts) <= 4
    assert open_contexts[-1] == 0


def test_a_target_past_its_deadline_leaves_no_context_open(browsing: Service) -> None:
    reply = search(browsing, "hang", wait=2)
    assert reply.code == "UPSTREAM_TIMEOUT"
    assert search(browsing, "after a hang").status == 200
    assert "open_contexts=0" in pages(browsing)[-1]


def test_an_unresponsive_browser_is_replaced_and_ends_with_the_service(tmp_path: Path) -> None:
    require_chromium()
    with running(tmp_path / "log", *LONG_TIMEOUTS, before=SHORT_STEPS) as service:
        assert search(service, "before the stop").status == 200
        stopped = chromium_tree(service.pid)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        reply = search(service, "stopped", wait=2)
        assert (reply.code, reply.body["status"]["retryable"]) == ("UPSTREAM_TIMEOUT", True)
        assert search(service, "after the stop", wait=60).status == 200
        deadline = time.monotonic() + 300
        while set(stopped) & set(chromium_tree(service.pid)) and time.monotonic() < deadline:
            time.sleep(0.2)
        browser = chromium_tree(service.pid)
        assert browser
        assert not set(stopped) & set(browser)
        service.process.terminate()
        service.process.wait(timeout=300)
        assert service.process.returncode == 0
        assert not any(map(alive, browser))


def test_without_a_browser_the_error_explains_how_to_install_one(tmp_path: Path) -> None:
    with running(tmp_path / "log", 'PLAYWRIGHT_LAUNCH_OPTIONS={"executable_path": "/nowhere/chromium"}') as service:
        reply = search(service, "whales")
        assert reply.code == "INTERNAL_ERROR"
        assert "apt-get install chromium" in reply.body["status"]["message"]


@pytest.mark.soak
def test_two_hundred_targets_do_not_grow_the_browsers_memory(tmp_path: Path) -> None:
    require_chromium()
    memory_by_targets: dict[int, int] = {}
    with running(tmp_path / "log", *LONG_TIMEOUTS) as service:
        codes: Counter[str] = Counter()
        for number in range(1, 201):
            codes[search(service, f"term {number}", count=12).code] += 1
            if number in {50, 200}:
                memory_by_targets[number] = memory(chromium_tree(service.pid))
        assert codes == {"OK": 200}
    print(f"memory of the browser's processes: {memory_by_targets}")  # noqa: T201  # prints the measured figure
    assert memory_by_targets[200] <= 1.1 * memory_by_targets[50]
