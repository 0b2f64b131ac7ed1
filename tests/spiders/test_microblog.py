"""The microblog spider against the sandbox, in crawls and in the endpoint: each source, and each page."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawler.platforms.microblog import PLATFORM
from crawler.sandbox.microblog.site import FAULTS, PLANS, Site
from tests.crawls import crawl, crawl_each, on, options, platforms
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


def test_a_platform_without_tokens_gives_records_of_the_other_sources(tmp_path: Path) -> None:
    """One token request serves all targets. Each account claims more posts than its embed contains."""
    handles = ["quiet_harbor", "old_lantern", "cut_short", "half_listed"]
    handles += [handle_of("same-cursor"), handle_of("stale-cursor")]  # these faults affect only the timeline
    targets = tmp_path / "targets.jsonl"
    targets.write_text("\n".join(json.dumps({"id": handle, "username": handle}) for handle in handles))
    with platforms() as origins:
        urllib.request.urlopen(f"{origins['microblog']}/1.1/guest/activate.json?refuse=1").close()  # noqa: S310
        code, out, failures, log = microblog(tmp_path, *options(*on(origins)), "-a", f"targets={targets}")
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


def test_a_public_page_that_cannot_be_downloaded(tmp_path: Path) -> None:
    """The connection for the page is refused. The other sources supply the record."""
    handle = handle_of("page-off")
    with platforms() as origins:
        settings = options(*on({**origins, PLATFORM.origin: "http://127.0.0.1:9"}, 1), "RETRY_TIMES=0")
        code, out, failures, log = microblog(tmp_path, *settings, "-a", f"username={handle}")
    assert (code, failures, len(out)) == (0, [], 1), log
    same(out[0], SITE.expected_record({"username": handle}))
