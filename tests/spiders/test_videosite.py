"""Crawls of the video site end to end; and the same target from the endpoint, a crawl and saved responses."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from crawler.commands.extract import extract
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.videosite.site import FAULTS, Site
from crawler.spiders.videosite import VideositeSpider
from tests import crawls
from tests.service.client import call
from tests.service.conftest import Service, running
from tests.videosite import ORIGIN, SCRAPER, comparable

crawl = partial(crawls.crawl, spider="videosite")
PATH = "/v1/scrapers/videosite-profile-v3"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running(tmp_path_factory.mktemp("videosite") / "log") as started:
        yield started


def assert_ten_pages(pages: list[dict[str, Any]]) -> None:
    site = Site()
    assert [len(page["posts"]) for page in pages] == [30] * 9 + [27]
    ids = [post["content_id"] for page in pages for post in page["posts"]]
    assert ids == [item.id for item in site.named("harborlights").items["videos"]]
    for number, page in enumerate(pages, 1):
        assert comparable(page) == site.expected_record({"username": "harborlights", "page": number})


def test_ten_pages_in_a_crawl(tmp_path: Path) -> None:
    status, out, failures, log = crawl(tmp_path, "-a", "username=@harborlights", "-a", "max_pages=10")
    assert (status, failures) == (0, []), log
    assert_ten_pages(out)
    assert "OK=10" in log


@pytest.mark.soak  # the fast tier reads each fault in its process: test_videosite_reader.py
def test_every_fault_has_its_code_in_a_crawl(tmp_path: Path) -> None:
    # "auto" leaves details out on a busy machine.
    targets = {name: {"username": f"@{name}", "details": "all"} for name in FAULTS}
    codes, out = crawls.crawl_each(tmp_path, "videosite", targets)
    assert codes == {name: fault.code for name, fault in FAULTS.items()}
    for line in out:
        assert comparable(line["data"]) == Site().expected_record({"username": line["id"]}), line["id"]


# Over HTTP


def test_endpoint_crawl_and_saved_responses_give_equal_records(service: Service, tmp_path: Path) -> None:
    params = {"username": "tinychannel1109", "include_about": "true"}
    by_http = call(service.url, PATH, params).body["data"]
    _, (by_crawl,), _, _ = crawl(tmp_path, "-a", "username=tinychannel1109", "-a", "include_about=true")
    saved = asyncio.run(extract(SCRAPER, _saved("tinychannel1109"), _page_params(params), url=ORIGIN))
    assert orjson.dumps(by_http) == orjson.dumps(by_crawl) == orjson.dumps(saved)


def test_saved_responses_give_the_same_cursor(service: Service) -> None:
    params = {"username": "saltmill"}
    by_http = call(service.url, PATH, params).body["data"]["pagination"]
    body = Site().page(FakeRequest("/@saltmill/videos"))[2]
    assert asyncio.run(extract(SCRAPER, [body], _page_params(params), url=ORIGIN))["pagination"] == by_http


def _page_params(params: dict[str, Any]) -> dict[str, Any]:
    return VideositeSpider.page_params(SCRAPER, params)


def _saved(name: str) -> list[bytes]:
    """Return the responses of a small channel, in the way users would save them."""
    site = Site()
    channel = site.named(name)
    about = orjson.dumps({"continuation": f"about-{channel.id}"})
    return [
        site.page(FakeRequest(f"/@{name}/videos"))[2],
        site.page(FakeRequest("/youtubei/v1/browse", {}, "POST", {}, about))[2],
        site.page(FakeRequest("/feeds/videos.xml", {"playlist_id": f"UULF{channel.id[2:]}"}))[2],
    ]


@pytest.mark.parametrize(
    ("given", "expected"), [({"include_about": "true"}, True), ({"include_about": "false"}, False)]
)
def test_a_saved_page_is_read_with_the_switch_that_is_given(given: dict[str, str], *, expected: bool) -> None:
    scraper = next(each for each in VideositeSpider.scrapers if "include_about" in each.params.model_fields)
    assert VideositeSpider.page_params(scraper, given) == {"include_about": expected}
    assert VideositeSpider.page_params(scraper, {}) == {}
