"""Many throttled targets in a row: after a few downloads, crawls stop, their targets stay pending, and calls fail."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crawler.platforms.microblog.schema import CURSOR
from crawler.platforms.requests import encode_cursor
from crawler.registry import scrapers, spider_for, spiders
from crawler.sandbox.microblog.site import Site as Microblog
from crawler.sandbox.photoapp.site import Site as Photoapp
from crawler.sandbox.shortvideo.site import Site as Shortvideo
from crawler.targets.parser import TargetParser
from tests import forks
from tests.browsers import require_chromium
from tests.crawls import crawl
from tests.service.client import HEADERS, Reply, many
from tests.service.conftest import Service, running
from tests.service.downloads_log import ENABLED
from tests.structured_fields import parse_list

IN_FLIGHT, THRESHOLD, TARGETS = 4, 5, 20
DETAILS = 17
"""Two items more than the Atom feed contains, so that each target of the video site requests two items separately."""


def microblog(fault: str) -> dict[str, str]:
    return {"username": next(handle for handle, name in Microblog().faults.items() if name == fault)}


def photoapp(fault: str) -> dict[str, str]:
    return {"url": Photoapp().url_of_fault(fault)}


def numbered(spider: str, params: dict[str, str], number: int) -> dict[str, Any]:
    """Return the params of the target with this number and the same fault (docs/sandbox.md)."""
    ((name, value),) = params.items()
    if spider == "retail":
        return {**params, "min_price": number}
    if spider == "photoapp":
        return {name: value.replace("FAULT000", f"FAULT{number:03}")}
    return {name: f"{value}{'_' if spider == 'microblog' else '-'}{number}"}


def crawl_throttled(
    tmp_path: Path, spider: str, params: dict[str, str], *options: str, before: str = ""
) -> tuple[int, Any, Any, str]:
    """Run targets with the same fault as a job, which is created if needed, until the crawl gives up."""
    settings = {
        "TARGETS_IN_FLIGHT": IN_FLIGHT,
        "BREAKER_THRESHOLD": THRESHOLD,
        "BREAKER_COOLDOWN": 3_600,
        "BREAKER_GIVE_UP": 1,
        "DOWNLOAD_TIMEOUT": 60,
        "STORE": tmp_path / "jobs.sqlite3",
    }
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    targets = tmp_path / "targets.jsonl"
    if not targets.exists():
        scraper = TargetParser(spiders()[spider].scrapers).scraper(None, params).name
        rows = ({"id": str(n), "scraper": scraper, **numbered(spider, params, n)} for n in range(TARGETS))
        targets.write_text("".join(json.dumps(row) + "\n" for row in rows))
        forks.run([*forks.SCRAPY, "jobs", "push", "throttled", str(targets), "-s", "SANDBOX=1", *given], check=True)
    return crawl(tmp_path, *given, "-a", "job=throttled", *options, spider=spider, before=before)


def responses(log: str) -> int:
    found = re.search(r"'downloader/response_count': (\d+)", log)
    return int(found[1]) if found else 0


SITE = "https://www.linkedin.com/in/"


@pytest.mark.parametrize(
    ("spider", "params", "sources", "redirects"),
    [
        ("retail", {"query": "challenge"}, 1, 0),
        ("microblog", microblog("login-wall"), 3, 1),
        pytest.param("shortvideo", {"keywords": "captcha"}, 1, 0, marks=pytest.mark.soak),
    ],
)
def test_throttled_targets_stop_a_crawl_and_stay_pending(
    tmp_path: Path, spider: str, params: dict[str, str], sources: int, redirects: int
) -> None:
    """Each source gets at most as many requests as the breaker's threshold plus the targets in flight."""
    code, out, first, log = crawl_throttled(tmp_path, spider, params)
    assert (code, out) == (1, []), log
    assert "platform_shut" in log
    assert "stayed shut" in log
    codes = Counter(failure["code"] for failure in first)
    assert codes.keys() <= {"UPSTREAM_BLOCKED", "UPSTREAM_RATE_LIMITED"}, codes
    assert codes.total() <= THRESHOLD + IN_FLIGHT
    assert codes or sources > 1, "with several sources, a slow crawl may end before a target has tried all of them"
    if spider != "shortvideo":  # a browser page causes several responses
        tokens = 1 if spider == "microblog" else 0
        assert responses(log) <= (THRESHOLD + IN_FLIGHT) * sources * (1 + redirects) + tokens
    code, _, failures, log = crawl_throttled(tmp_path, spider, params, "-s", "BREAKER_THRESHOLD=0")
    assert code == 4, log
    assert Counter(failure["id"] for failure in failures) == {str(n): 1 for n in range(TARGETS)}, first


LATE = """
from crawler.downloads.breaker import Breakers
closed, lies = Breakers.closed, list(range(12))
Breakers.closed = lambda self, sources: closed(self, sources) or bool(lies and lies.pop() is not None)
"""
"""Sources look usable at first although their circuit breakers are open, as if the breakers had opened just after."""


def test_a_target_whose_requests_were_all_held_back_stays_pending(tmp_path: Path) -> None:
    """The circuit breakers of all its sources open while the target changes from one to the next."""
    code, out, failures, log = crawl_throttled(tmp_path, "microblog", microblog("login-wall"), before=LATE)
    assert (code, out) == (1, []), log
    assert {failure["code"] for failure in failures} <= {"UPSTREAM_BLOCKED"}
    assert "event=target_waits" in log


# The endpoint

PATHS = {each.platform: f"/v1/scrapers/{spider_for(each).scrapers[0].name}" for each in scrapers().values()}
"""The path of the first scraper of each platform's spider."""
CATEGORY, SEARCH = "/v1/scrapers/retail-category-v4", "/v1/scrapers/retail-search-v4"
OPEN = "CIRCUIT_OPEN"


CALLS = {
    "rate limit": {
        "microblog": (microblog("all-limited"), 3, 0),
        "photoapp": (photoapp("rate-limited"), 1, 0),
        "professional": ({"url": f"{SITE}rate-limited"}, 1, 0),
        "retail": ({"query": "rate-limited"}, 1, 0),
        "shortvideo": ({"keywords": "rate-limited"}, 1, 0),
        "videosite": ({"username": "@rate-limited"}, 3, 0),
    },
    "block": {
        "microblog": (microblog("login-wall"), 3, 1),
        "photoapp": (photoapp("login-redirect"), 2, 1),  # the embed page is tried after the login wall
        "professional": ({"url": f"{SITE}login-wall"}, 1, 1),
        "retail": ({"query": "challenge"}, 1, 0),
        "shortvideo": ({"keywords": "captcha"}, 1, 0),
        "videosite": ({"username": "@consent"}, 3, 0),
    },
}
"""Kind of throttling -> platform -> params of a target, the number of its sources, and the redirects of each source."""


@contextmanager
def endpoint(folder: Path) -> Iterator[tuple[Service, Path]]:
    """Run an endpoint whose circuit breakers stay open. Yields it and the file that logs its downloads."""
    downloads = folder / "downloads"
    downloads.touch()
    settings = (
        f"BREAKER_THRESHOLD={THRESHOLD}",
        "BREAKER_COOLDOWN=3600",
        "DOWNLOAD_TIMEOUT=60",
        f"VIDEOSITE_ENRICH_MAX={DETAILS}",
        ENABLED,
        f"DOWNLOADS_LOG={downloads}",
    )
    with running(folder / "log", *settings) as service:
        yield service, downloads


def call_in_a_row(service: Service, *calls: tuple[str, dict[str, str]]) -> list[Reply]:
    """Make each call ``TARGETS`` times, with ``IN_FLIGHT`` calls at once, as the crawls above do with their targets."""
    headers = HEADERS | {"Prefer": "wait=60"}
    return asyncio.run(many(service.url, [*calls] * TARGETS, at_once=IN_FLIGHT, headers=headers))


def check_refused(replies: list[Reply], sources: int) -> None:
    """Check that a few calls failed with the platform's error, and all later ones with ``CIRCUIT_OPEN``."""
    codes = Counter(reply.code for reply in replies)
    failed = codes.total() - codes[OPEN]
    assert codes.keys() <= {"UPSTREAM_BLOCKED", "UPSTREAM_RATE_LIMITED", OPEN}
    assert 0 < failed <= (THRESHOLD + IN_FLIGHT) * sources, codes
    for reply in replies:
        if reply.code == OPEN:
            assert reply.status == 503
            assert int(reply.headers["Retry-After"]) == reply.body["error"]["retry_after"] > 0


@pytest.fixture(scope="module", params=["rate limit", "block"])
def throttled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Service, Path]]:
    """A kind of throttling, an endpoint, and the file that logs the endpoint's downloads."""
    with endpoint(tmp_path_factory.mktemp("throttled")) as (service, downloads):
        yield request.param, service, downloads


@pytest.mark.parametrize("platform", sorted(CALLS["block"]))
def test_throttled_calls_are_refused(throttled: tuple[str, Service, Path], platform: str) -> None:
    """Each source gets at most as many requests as the breaker's threshold plus the calls in flight."""
    kind, service, downloads = throttled
    params, sources, redirects = CALLS[kind][platform]
    path = SEARCH if platform == "retail" else PATHS[platform]
    if platform == "shortvideo":
        require_chromium()
    replies = call_in_a_row(service, (path, params))
    assert replies[-1].code == OPEN
    check_refused(replies, sources)
    by_source = Counter(line for line in downloads.read_text().splitlines() if line.startswith(f"{platform} "))
    limited = {source: number for source, number in by_source.items() if source != "microblog guest_token"}
    assert len(limited) <= sources
    assert all(number <= (THRESHOLD + IN_FLIGHT) * (1 + redirects) for number in limited.values()), by_source


def test_calls_after_interrupted_searches_are_refused(tmp_path: Path) -> None:
    """The next response of each search is empty."""
    require_chromium()
    fault = "results-empty-later"
    with endpoint(tmp_path) as (service, _):
        replies = call_in_a_row(service, (PATHS["shortvideo"], {"keywords": fault}))
    partial = [reply for reply in replies if reply.code == "OK"]
    assert THRESHOLD <= len(partial) <= THRESHOLD + IN_FLIGHT
    assert {reply.code for reply in replies[len(partial) + IN_FLIGHT :]} == {OPEN}
    expected = Shortvideo().expected_record({"keywords": fault})
    for reply in partial:
        assert reply.body["data"] == expected
        assert reply.headers["X-Partial"].startswith("search; reason=challenge")
        assert len(parse_list(reply.headers["X-Partial"])) == 1


@pytest.mark.parametrize(
    "sources",
    [
        {
            "microblog": (microblog("timeline-off"), "timeline"),
            "photoapp": (photoapp("embed-forbidden"), "embed"),
            "videosite": ({"username": "@bot-check"}, "video"),
        },
        pytest.param(
            {"microblog": (microblog("embed-limited"), "embed"), "videosite": ({"username": "@no-page"}, "")},
            marks=pytest.mark.soak,
        ),
        pytest.param({"microblog": (microblog("page-off"), "page")}, marks=pytest.mark.soak),
    ],
    ids=" ".join,
)
def test_calls_do_without_a_throttled_source(tmp_path: Path, sources: dict[str, tuple[dict[str, str], str]]) -> None:
    """Successful requests to other sources do not reset the breaker of the throttled source.

    ``sources``: platform -> params of a target, and the source that the warning names ("": no warning).
    """
    with endpoint(tmp_path) as (service, downloads):
        replies = {name: call_in_a_row(service, (PATHS[name], params)) for name, (params, _) in sources.items()}
    found = Counter(downloads.read_text().splitlines())
    for platform, (_, source) in sources.items():
        assert {reply.code for reply in replies[platform]} == {"OK"}
        throttled_source = f"{platform} {source or 'channel'}"
        assert THRESHOLD <= found[throttled_source] <= THRESHOLD + IN_FLIGHT, found
        if source:
            partial = [parse_list(reply.headers["X-Partial"]) for reply in replies[platform]]
            assert {name for entries in partial for name, _ in entries} == {source}
            failed = [entry for entry in partial[-1] if entry[1]["reason"] != "limit"]
            assert failed == [(source, {"reason": "circuit_open", "code": OPEN})]


def timeline_of(fault: str) -> dict[str, str]:
    """Return the params of a page that only the source "timeline" can supply."""
    handle = microblog(fault)["username"]
    payload = {"handle": handle, "user_id": Microblog().account(handle).user.id, "cursor": "", "seen": []}
    return {"username": handle, "cursor": encode_cursor(CURSOR, payload)}


def test_good_calls_between_throttled_ones_do_not_reset_the_breaker(tmp_path: Path) -> None:
    post = {"url": "https://www.instagram.com/p/DaSandbox01/"}
    calls = [
        ((CATEGORY, {"cat_id": "976759"}), (SEARCH, {"query": "challenge"})),
        ((PATHS["photoapp"], post), (PATHS["photoapp"], photoapp("share-login"))),
        ((PATHS["microblog"], microblog("timeline-off")), (PATHS["microblog"], timeline_of("timeline-off"))),
    ]
    with endpoint(tmp_path) as (service, _):
        for good, bad in calls:
            replies = call_in_a_row(service, good, bad)
            assert {reply.code for reply in replies[::2]} == {"OK"}
            assert replies[-1].code == OPEN
            check_refused(replies[1::2], 1)
