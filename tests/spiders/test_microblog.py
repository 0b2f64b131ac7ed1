"""The microblog spider against the sandbox, in crawls and in the endpoint: each source, and each page."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crawler.platforms.microblog import PLATFORM
from crawler.sandbox.microblog.site import FAULTS, PLANS, Site
from tests import forks
from tests.crawls import ROOT, crawl, crawl_each
from tests.microblog_pages import same
from tests.service.client import Reply, call
from tests.service.conftest import Service, running

SITE = Site()
PATH = "/v1/scrapers/microblog-profile"
LONG_TIMEOUTS = ("-s", "SOURCE_TIMEOUT=30", "-s", "DOWNLOAD_TIMEOUT=30")
"""Long enough that only requests without any response time out, even on a busy machine."""


def microblog(tmp_path: Path, *arguments: str) -> tuple[int, list[Any], list[Any], str]:
    return crawl(tmp_path, *LONG_TIMEOUTS, *arguments, spider="microblog")


def handle_of(fault: str) -> str:
    return next(handle for handle, name in SITE.faults.items() if name == fault)


def test_a_crawl_of_ten_pages_is_as_expected(tmp_path: Path) -> None:
    code, out, failures, log = microblog(tmp_path, "-a", "username=@Quiet_Harbor", "-a", "max_pages=10")
    assert (code, failures, len(out)) == (0, [], 10), log
    for number, data in enumerate(out, 1):
        same(data, SITE.expected_record({"username": "quiet_harbor", "page": number}))
    ids = [post["post_id"] for data in out for post in data["data"]["main"]]
    assert len(ids) == len(set(ids)) == 10 * 20 + 1, "each once; the pinned post early"


def test_a_crawl_ends_where_the_posts_end(tmp_path: Path) -> None:
    code, out, failures, log = microblog(tmp_path, "-a", "username=old_lantern", "-a", "max_pages=100")
    assert (code, failures) == (0, []), log
    ids = [post["post_id"] for data in out for post in data["data"]["main"]]
    assert sorted(ids) == sorted(post.id for post in SITE.account("old_lantern").posts)
    assert [data["hasMore"] for data in out] == [True] * (len(out) - 1) + [False]


def test_every_fault_and_every_account_has_its_outcome(tmp_path: Path) -> None:
    expected = {name: fault.code for name, fault in FAULTS.items()} | dict.fromkeys(PLANS, "OK")
    expected["nobody"] = "TARGET_NOT_FOUND"
    del expected["hang"]  # tested below with short timeouts
    handles = {name: handle for handle, name in SITE.faults.items()} | {h: h for h in PLANS} | {"nobody": "nobody_here"}
    targets = {name: {"username": handles[name]} for name in expected}
    codes, out = crawl_each(tmp_path, "microblog", targets, *LONG_TIMEOUTS)
    assert codes == expected
    for line in out:
        same(line["data"], SITE.expected_record({"username": line["params"]["username"]}))


def test_sources_without_a_response_time_out(tmp_path: Path) -> None:
    short_timeouts = ("-s", "SOURCE_TIMEOUT=0.2", "-s", "RETRY_TIMES=0")
    _, out, failures, log = microblog(tmp_path, "-a", f"username={handle_of('hang')}", *short_timeouts)
    assert (out, [failure["code"] for failure in failures]) == ([], ["UPSTREAM_TIMEOUT"]), log
    assert log.count("optional_source_failed") == 3, "each source was tried"


@contextmanager
def sandbox() -> Iterator[dict[str, str]]:
    """Run the simulated platforms in a separate process."""
    arguments = [sys.executable, "-m", "scrapy", "sandbox", "--port", "0"]
    with forks.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout
            yield json.loads(process.stdout.readline())["origins"]
        finally:
            process.kill()


def test_a_platform_without_tokens_gives_records_of_the_other_sources(tmp_path: Path) -> None:
    """One token request serves all targets. Each account claims more posts than its embed contains."""
    handles = ["quiet_harbor", "old_lantern", "cut_short", "half_listed"]
    handles += [handle_of("same-cursor"), handle_of("stale-cursor")]  # these faults affect only the timeline
    targets = tmp_path / "targets.jsonl"
    targets.write_text("\n".join(json.dumps({"id": handle, "username": handle}) for handle in handles))
    with sandbox() as origins:
        urllib.request.urlopen(f"{origins['microblog']}/1.1/guest/activate.json?refuse=1").close()  # noqa: S310
        settings = ("-s", "SANDBOX=0", "-s", f"PLATFORM_ORIGINS={json.dumps(origins)}")
        budgets = json.dumps({"microblog": {"concurrency": 8, "delay": 0, "sources": {}}})
        code, out, failures, log = microblog(
            tmp_path, *settings, "-s", f"PLATFORM_BUDGETS={budgets}", "-a", f"targets={targets}"
        )
    assert (code, failures, sorted(line["id"] for line in out)) == (0, [], sorted(handles)), log
    for line in out:
        assert line["data"]["hasMore"], "the timeline was not fetched"
        assert line["data"]["nextCursor"]
        assert len(line["data"]["data"]["main"]) == len(SITE.account(line["id"]).embedded)
    assert "'downloader/request_method_count/POST': 1," in log
    assert log.count("reason=token_refused") == len(handles)


# The endpoint


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("microblog") / "log", "SOURCE_TIMEOUT=30", "DOWNLOAD_TIMEOUT=30") as started:
        yield started


def call_scraper(service: Service, path: str = PATH, **params: Any) -> Reply:
    return call(service.url, path, params)


def test_ten_pages_over_http_continue_after_a_restart(service: Service, tmp_path: Path) -> None:
    cursor: dict[str, str] = {}
    for number in range(1, 6):
        reply = call_scraper(service, username="quiet_harbor", **cursor)
        assert reply.code == "OK", reply.body
        same(reply.body["data"], SITE.expected_record({"username": "quiet_harbor", "page": number}))
        cursor = {"cursor": reply.body["data"]["nextCursor"]}
    with running(tmp_path / "log", "DOWNLOAD_TIMEOUT=30") as another:
        for number in range(6, 11):
            reply = call_scraper(another, username="QUIET_HARBOR", **cursor)
            assert reply.code == "OK", reply.body
            same(reply.body["data"], SITE.expected_record({"username": "quiet_harbor", "page": number}))
            cursor = {"cursor": reply.body["data"]["nextCursor"]}


def test_endpoint_and_crawl_and_alias_give_the_same(service: Service, tmp_path: Path) -> None:
    by_name = call_scraper(service, username="popular_tide")
    by_alias = call_scraper(service, path=f"{PATH}-v4", username="@popular_tide")
    assert json.dumps(by_name.body["data"]) == json.dumps(by_alias.body["data"])
    assert by_name.body["meta"]["scraper"] == by_alias.body["meta"]["scraper"] == "microblog-profile"
    _, out, _, _ = microblog(tmp_path, "-a", "username=popular_tide")
    assert out == [by_name.body["data"]]


def test_repeated_and_rejected_cursors(service: Service) -> None:
    for fault, code in (("same-cursor", "OK"), ("stale-cursor", "INVALID_REQUEST")):
        handle = handle_of(fault)
        cursor = call_scraper(service, username=handle).body["data"]["nextCursor"]
        reply = call_scraper(service, username=handle, cursor=cursor)
        assert reply.code == code, reply.body
        if code == "OK":
            same(reply.body["data"], SITE.expected_record({"username": handle, "page": 2}))
            assert reply.body["data"]["hasMore"] is False
        assert call_scraper(service, username="quiet_harbor", cursor=cursor).code == "INVALID_REQUEST"


def test_a_public_page_that_cannot_be_downloaded(tmp_path: Path) -> None:
    """The connection for the page is refused. The other sources supply the record."""
    handle = handle_of("page-off")
    with sandbox() as origins:
        local = json.dumps({**origins, PLATFORM.origin: "http://127.0.0.1:9"})
        settings = ("-s", "SANDBOX=0", "-s", f"PLATFORM_ORIGINS={local}")
        budgets = json.dumps({"microblog": {"concurrency": 1, "delay": 0, "sources": {}}})
        code, out, failures, log = microblog(
            tmp_path, *settings, "-s", f"PLATFORM_BUDGETS={budgets}", "-s", "RETRY_TIMES=0", "-a", f"username={handle}"
        )
    assert (code, failures, len(out)) == (0, [], 1), log
    same(out[0], SITE.expected_record({"username": handle}))
