"""The browser's own sandbox, and what happens when the browser or one of its pages crashes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.async_api import BrowserContext, BrowserType, Error, Page
from structlog.testing import capture_logs

from crawler.browser.chromium import Chromium
from crawler.downloads.throttle import Throttle
from crawler.errors import ServiceError
from crawler.sandbox.shortvideo.site import Site
from tests.browsers import chromium_tree, descendants, require_chromium
from tests.crawls import ROOT
from tests.service.client import HEADERS, Reply, many
from tests.service.conftest import Service, running
from tests.service.metrics_of import becomes

SEARCH = "/v1/scrapers/shortvideo-photo-search-v4"
TRIES = 8
"""Number of retries of a download, which is larger than the number of times that a test kills the browser."""


@pytest.fixture(scope="module")
def browsing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    require_chromium()
    settings = ("DOWNLOAD_TIMEOUT=100", "BROWSER_QUIET=40", "BROWSER_PAGES=4", f"RETRY_TIMES={TRIES}")
    with running(tmp_path_factory.mktemp("browsing") / "log", *settings) as started:
        yield started


@asynccontextmanager
async def opened_page() -> AsyncIterator[Page]:
    """Open a page of a Chromium that no other crawl uses."""
    chromium = Chromium()
    chromium.join(Throttle(1), {})
    try:
        async with chromium.page(None) as page:
            yield page
    finally:
        await chromium.leave()


class Searches(threading.Thread):
    """Makes calls that need the browser, all at once."""

    def __init__(self, service: Service, words: list[str]) -> None:
        super().__init__()
        self.service = service
        self.words = words
        self.replies: list[Reply] = []

    def run(self) -> None:
        calls = [(SEARCH, {"keywords": words}) for words in self.words]
        self.replies = asyncio.run(many(self.service.url, calls, headers=HEADERS | {"Prefer": "wait=120"}))

    def outcomes(self) -> Counter[tuple[str, bool]]:
        """Return, for each call, its code and whether its data is correct, with their numbers."""
        self.join()
        expected = [Site().expected_record({"keywords": words}) for words in self.words]
        pairs = zip(self.replies, expected, strict=True)
        return Counter((reply.code, reply.body["data"] == record) for reply, record in pairs)


def page_processes(service: Service) -> list[int]:
    """Return the processes of the browser's pages."""
    return [pid for pid, line in descendants(service.pid).items() if "--type=renderer" in line]


def test_calls_survive_a_browser_that_is_killed(browsing: Service) -> None:
    calls = Searches(browsing, [f"word {number}" for number in range(8)])
    calls.start()
    for _ in range(3):
        assert becomes(browsing.url, 4, "crawler_browser_pages", platform="shortvideo")
        browser = chromium_tree(browsing.pid)[:1]
        for pid in browser:
            os.kill(pid, signal.SIGKILL)
    assert calls.outcomes() == {("OK", True): 8}, browsing.logged()
    assert "reason=BrowserFailed" in browsing.logged()


def test_call_survives_a_crashed_page(browsing: Service) -> None:
    """The process of a page exits and the browser continues, as when memory is short."""
    before = browsing.logged().count("event=browser_started")
    calls = Searches(browsing, ["results-slow"])
    calls.start()
    assert becomes(browsing.url, 1, "crawler_browser_pages", platform="shortvideo")
    for pid in page_processes(browsing):
        os.kill(pid, signal.SIGKILL)
    assert calls.outcomes() == {("OK", True): 1}, browsing.logged()
    assert browsing.logged().count("event=browser_started") <= before + 1


def test_a_driver_that_does_not_start_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver fails as on a minimal Debian, where Playwright's Node.js lacks a library."""
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", "/bin/false")

    async def visit_and_wait() -> None:
        try:
            async with asyncio.timeout(300), opened_page():
                pass
        finally:  # Playwright still waits for the driver's process. If the loop ended first, its pipes would leak.
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    with pytest.raises(ServiceError, match="apt-get install libatomic1") as raised:
        asyncio.run(visit_and_wait())
    assert raised.value.reason == "no_browser"


@pytest.mark.parametrize("operation", ["page", "script"])
def test_an_operation_that_never_ends_is_ended_when_the_browser_is_killed(
    monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """Playwright does not end all operations when the browser crashes, for example the opening of a page."""
    require_chromium()

    others = chromium_tree(os.getpid())

    async def never(*_arguments: Any) -> None:
        [browser, *_] = [pid for pid in chromium_tree(os.getpid()) if pid not in others]
        os.kill(browser, signal.SIGKILL)
        await asyncio.Event().wait()

    async def visit() -> None:
        async with asyncio.timeout(300), opened_page():
            await never()

    if operation == "page":
        monkeypatch.setattr(BrowserContext, "new_page", never)
    with pytest.raises(Error, match="crashed"):
        asyncio.run(visit())


def test_tiny_shared_memory_does_not_break_pages() -> None:
    """Docker gives a container 64 MB of /dev/shm; here it has 64 KB."""
    require_chromium()
    isolated = ["unshare", "--map-root-user", "--mount"]
    if subprocess.run([*isolated, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs mount namespaces: run the tests as root, or allow user namespaces")
    mount = 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"'
    crawl = [sys.executable, "-m", "scrapy", "crawl", "shortvideo", "-s", "SANDBOX=1", "-a", "keywords=whales"]
    options = ["-s", "FAILURES_FEED=/dev/null", "-O", "-:jsonl"]
    run = subprocess.run(
        [*isolated, "sh", "-c", mount, "sh", *crawl, *options],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": "/var/tmp"},  # noqa: S108  # the tests' own folder may be in /dev/shm
    )
    assert run.returncode == 0, run.stderr
    assert "targets/OK': 1" in run.stderr


# The sandbox of Chromium


class Launches:
    """A stub of Playwright's ``BrowserType``: records launches, and raises for those with Chromium's sandbox."""

    def __init__(self, failure: str = "") -> None:
        self.failure = failure
        self.sandboxed: list[bool] = []

    async def launch(self, *, chromium_sandbox: bool, **_options: Any) -> str:
        self.sandboxed.append(chromium_sandbox)
        if self.failure and chromium_sandbox:
            raise Error(self.failure)
        return "browser"


NO_SANDBOX = "Target closed\nBrowser logs:\n[1:1:FATAL:zygote.cc(1)] No usable sandbox! Update your kernel.\nmore"


@dataclass(frozen=True)
class Host:
    """The user, the operator's options, the error of a launch with Chromium's sandbox; and the expected launches."""

    user: int
    options: dict[str, bool]
    failure: str
    sandboxed: list[bool]
    reason: str | None = None
    """The logged reason for a browser without its sandbox."""
    raises: bool = False


@pytest.mark.parametrize(
    "host",
    [
        pytest.param(Host(1000, {}, "", [True]), id="a user"),
        pytest.param(Host(1000, {}, NO_SANDBOX, [True, False], "No usable sandbox! Update your kernel."), id="refused"),
        pytest.param(Host(0, {}, "", [False], "root"), id="root"),
        pytest.param(Host(1000, {"chromium_sandbox": False}, "", [False]), id="switched off"),
        pytest.param(Host(0, {"chromium_sandbox": True}, "", [True]), id="required"),
        pytest.param(Host(1000, {"chromium_sandbox": True}, NO_SANDBOX, [True], raises=True), id="required, refused"),
        pytest.param(Host(1000, {}, "exitCode=null, signal=SIGKILL", [True], raises=True), id="killed"),
        pytest.param(Host(1000, {}, "exitCode=137, signal=null", [True], raises=True), id="killed in a container"),
    ],
)
async def test_browser_uses_its_sandbox_where_the_host_allows_it(monkeypatch: pytest.MonkeyPatch, host: Host) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: host.user)
    launches = Launches(host.failure)
    with capture_logs() as logs, pytest.raises(Error) if host.raises else nullcontext():
        await Chromium()._launch_in_sandbox(cast("BrowserType", launches), dict(host.options))
    assert launches.sandboxed == host.sandboxed
    assert len(logs) == (host.reason is not None)
    assert all(host.reason in entry["reason"] for entry in logs if host.reason)


@pytest.mark.parametrize(
    ("exit_status", "raised"),
    [
        ("exitCode=null, signal=SIGKILL", Error),
        ("exitCode=137, signal=null", Error),
        ("exitCode=127, signal=null", ServiceError),
    ],
)
async def test_a_browser_that_is_killed_while_it_starts_is_not_a_missing_browser(
    monkeypatch: pytest.MonkeyPatch, exit_status: str, raised: type[Exception]
) -> None:
    """An ``Error`` is retried. A ``ServiceError`` means that the installation must be repaired."""

    async def fail(*_arguments: Any, **_options: Any) -> None:
        raise Error(f"Target closed\n[pid=1] <process did exit: {exit_status}>")

    require_chromium()
    monkeypatch.setattr(BrowserType, "launch", fail)
    with pytest.raises(raised):
        async with opened_page():
            pass


async def test_pages_of_a_real_browser_are_in_the_sandbox_unless_it_is_logged() -> None:
    require_chromium()
    with capture_logs() as logs:
        async with opened_page() as page:
            await page.goto("data:text/html,text")
            lines = descendants(os.getpid())
            filters = {seccomp_mode(pid) for pid, line in lines.items() if "--type=renderer" in line}
    is_without = "browser_without_sandbox" in {entry["event"] for entry in logs}
    assert filters == {0 if is_without else 2}
    assert os.geteuid() or is_without


def seccomp_mode(pid: int) -> int:
    """Return a process's mode of system call filtering: 2 in Chromium's sandbox, and 0 outside."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Seccomp:"))
