"""``scrapy probe`` against a shop whose responses contain secrets: the report, and fixtures that replay correctly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from operator import getitem
from pathlib import Path
from unittest.mock import Mock

import pytest
from scrapy import Request
from scrapy.http import TextResponse
from web_poet.testing import Fixture

from crawler.downloads.egress_setting import DIRECT
from crawler.platforms.retail.pages import ListingPage
from crawler.platforms.videosite.pages import ContinuationPage
from crawler.probe import report
from crawler.probe.recorder import Recorder
from crawler.probe.report import empty_fields
from crawler.registry import scrapers
from tests.shop import Shop, open_shop

CATEGORY = "retail-category-v4"
SECRETS = {
    "cookie": "vtc-Zk9Aq77b",
    "token": "tok_51HxQ2eZvKYlo",
    "address": "203.0.113.77",
    "mail": "jo.doe@mail.example.org",
}


@pytest.fixture
def shop() -> Iterator[Shop]:
    with open_shop() as served:
        page = f'{{"csrfToken":"{SECRETS["token"]}","ip":"{SECRETS["address"]}","m":"{SECRETS["mail"]}"}}'
        cookie = f"<script>var seen='{SECRETS['cookie']}';var s={page}</script></body>"
        served.alter = lambda body: body.replace(b"</body>", cookie.encode())
        served.headers = {"Set-Cookie": f"vtc={SECRETS['cookie']}; Path=/", "X-Client-Ip": SECRETS["address"]}
        yield served


def test_a_target_is_reported_and_saved_without_secrets(shop: Shop, tmp_path: Path) -> None:
    assert all(secret.encode() in shop.answer("/browse/976759")[2] for secret in SECRETS.values())
    probe = shop.scrapy("probe", CATEGORY, "-a", "cat_id=976759", "-a", "page=2", "--save", str(tmp_path))
    assert probe.returncode == 0, probe.stderr
    assert re.search(r"outcome +OK after \d+\.\d\d s", probe.stdout)
    assert re.search(r"sources +listing\n", probe.stdout)
    assert re.search(r"request 1  200  \d\.\d\d s  \d+ kB  listing  GET \S+/browse/976759\?page=2\n", probe.stdout)
    assert re.search(r"documented.*breadcrumbs", probe.stdout)
    assert "UNEXPECTED" not in probe.stdout
    (fixture,) = tmp_path.glob("crawler.platforms.retail.pages.ListingPage/probe-1")
    saved = "".join(path.read_text() for path in fixture.rglob("*") if path.is_file())
    assert "csrfToken" in saved
    for name, secret in SECRETS.items():
        assert secret not in saved, name
    assert "127.0.0.1" not in saved
    assert "Set-Cookie" not in saved
    Fixture(fixture).assert_full_item_correct(ListingPage)


def test_a_failed_extraction_is_saved_as_a_fixture_of_its_error(shop: Shop, tmp_path: Path) -> None:
    whole = shop.alter
    shop.alter = lambda body: whole(body).replace(b'"itemStacks"', b'"stacks"')
    probe = shop.scrapy("probe", CATEGORY, "--save", str(tmp_path))
    assert probe.returncode == 4, probe.stderr
    assert "outcome    EXTRACTION_FAILED" in probe.stdout
    assert "props.pageProps.initialData.searchResult.itemStacks[]: " in probe.stdout
    assert probe.stdout.count("\nrequest ") == 2, "it is retried once"
    fixtures = sorted(path.name for path in tmp_path.glob("*/*"))
    assert fixtures == ["probe-1", "probe-2"]
    for path in tmp_path.glob("*/*"):
        Fixture(path).assert_toitem_exception(ListingPage)


def test_a_renamed_key_is_reported_as_empty_in_every_row(shop: Shop) -> None:
    shop.alter = lambda body: body.replace(b'"averageRating"', b'"meanRating"').replace(b'"canonicalUrl"', b'"link"')
    probe = shop.scrapy("probe", CATEGORY)
    always_empty = probe.stdout.partition("EVERY ROW")[2].partition("UNEXPECTED")[0]
    assert "products[].rating.average (6 of 6)" in always_empty, probe.stdout
    assert re.search(r"UNEXPECTED +products\[\]\.url \(6 of 6\)", probe.stdout), probe.stdout


def test_an_unreachable_platform_is_reported(shop: Shop, tmp_path: Path) -> None:
    origins = '{"retail": "http://127.0.0.1:9"}'
    probe = shop.scrapy("probe", CATEGORY, "--save", str(tmp_path), PLATFORM_ORIGINS=origins)
    assert probe.returncode == 4
    assert "outcome    UPSTREAM_ERROR" in probe.stdout
    assert "sources    none" in probe.stdout
    assert "request 3  no response" in probe.stdout
    assert not list(tmp_path.iterdir())


def test_a_response_that_a_spider_reads_itself_is_recorded_with_its_page_object() -> None:
    text = '{"onResponseReceivedActions": [{"appendContinuationItemsAction": "é"}]}'
    recorder = Recorder(Mock(), scrapers()["videosite-profile-v3"], DIRECT)
    request = Request("https://www.youtube.com/")
    recorder.request_reached_downloader(request)
    body = text.encode("latin-1")
    recorder.response_received(TextResponse(request.url, 404, body=body, encoding="latin-1", request=request))
    [page] = [each.page for each in recorder.downloads]
    assert isinstance(page, ContinuationPage)
    assert (page.response.status, page.response.text) == (404, text)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Expected one scraper"),
        (["nothing"], 2, "Unknown scraper 'nothing'; known scrapers are "),
        ([CATEGORY, "-a", "cat_id"], 2, "-a name=value"),
        ([CATEGORY, "-a", "cat_id=food"], 2, "retail-category-v4: cat_id: a category's id is a number"),
    ],
)
def test_wrong_usage_is_reported(shop: Shop, arguments: list[str], code: int, message: str) -> None:
    probe = shop.scrapy("probe", *arguments)
    assert probe.returncode == code
    assert message in probe.stdout + probe.stderr


def test_no_other_output_is_written(shop: Shop, tmp_path: Path) -> None:
    feeds = json.dumps({f"sqlite:///{tmp_path}/out.db": {"format": "sql"}})
    outputs = {"FEEDS": feeds, "FAILURES_FEED": tmp_path / "failures.jsonl"}
    shop.scrapy("probe", CATEGORY, "-a", "cat_id=1_2_3", **outputs)
    assert not list(tmp_path.iterdir())


def test_empty_fields_are_documented_in_the_page_or_in_the_schema() -> None:
    data = {
        "breadcrumbs": [],
        "heading": "",
        "category_name": "",
        "products": [{"price": {"current_price": None}, "name": "", "rating": {}}],
    }
    empty, _ = empty_fields(scrapers()[CATEGORY], data)
    documented = {each.path: each.documented for each in empty}
    assert documented["products[].price.current_price"], "by the platform's page"
    assert documented["category_name"], "by the schema"
    assert not documented["heading"]
    assert not documented["products[].name"], "the schema documents that it is never empty"


def test_an_installed_package_has_the_schema_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "DOCS", tmp_path)
    data = {"category_name": "", "breadcrumbs": [], "products": [{"price": {"current_price": None}}]}
    documented = {each.path: each.documented for each in empty_fields(scrapers()[CATEGORY], data)[0]}
    assert documented["category_name"]
    assert report.documented_names("retail") == set()


@pytest.mark.parametrize(
    ("scraper", "rows", "key"),
    [
        ("microblog-profile", ["data", "main"], "hashtags"),
        ("videosite-profile-v3", ["posts"], "mentions"),
        ("professional-profile-v4", ["posts"], "hashtags"),
    ],
)
def test_a_list_without_entries_is_not_unexpected(scraper: str, rows: list[str], key: str) -> None:
    """An example of such a list is the hashtags of a post without hashtags."""
    found = scrapers()[scraper]
    record = import_module(f"crawler.sandbox.{found.platform}.site").Site(light=True).expected_record(found.example)
    for row in reduce(getitem, rows, record):
        row[key] = []
    documented = {each.path: each.documented for each in empty_fields(found, record)[0]}
    assert documented[f"{'.'.join(rows)}[].{key}"]
