"""The page objects of the short-video search: expected records, typed errors, and damaged data."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.browser.sessions import CapturedResponse
from crawler.errors import ScrapeError
from crawler.pipelines import validated
from crawler.platforms.shortvideo.pages import ResultsPage, SearchPage
from crawler.platforms.shortvideo.schema import PhotoSearch, PhotoSearchParams
from crawler.reading.contract import Unread
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.shortvideo.site import PAGE_SIZE, Site
from crawler.spiders.shortvideo import SearchSession

URL = "https://www.tiktok.com/api/search/photo/full/?keyword=whales"
PAGES = (ResultsPage, SearchPage)


def read(body: bytes, *, status: int = 200, url: str = URL, **params: Any) -> dict[str, Any]:
    response = HttpResponse(url, body, status=status, headers={"Content-Type": "application/json; charset=utf-8"})
    page = next(page for page in PAGES if page.recognise(response.text))
    data = asyncio.run(page(response=response, page_params=PageParams(params)).to_item())
    return validated(PhotoSearch, data)


def session_data(site: Site, words: str, **params: Any) -> dict[str, Any] | None:
    """Return the data of a browser session that receives the site's responses one after the other."""

    async def run() -> dict[str, Any] | None:
        session = SearchSession(PhotoSearchParams(keywords=words, **params), quiet=1, pause=0)
        offset = 0
        while True:
            answer = site.answer(words, offset)
            offset = answer["cursor"]
            if await session.take(CapturedResponse(URL, 200, {}, orjson.dumps(answer))):
                return session.data()

    return asyncio.run(run())


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(5, 200))])
@pytest.mark.parametrize("words", ["whales", "long list"])
def test_sites_of_all_seeds_give_the_expected_records(seed: int, words: str) -> None:
    site = Site(seed)
    for cursor, count in (("0", 30), ("7", 11), ("25", 30), ("990", 30)):
        data = session_data(site, words, cursor=cursor, count=count)
        assert data is not None
        assert validated(PhotoSearch, data) == site.expected_record(
            {"keywords": words, "cursor": cursor, "count": count}
        )


@pytest.mark.parametrize(
    "count", [pytest.param(1, marks=pytest.mark.soak), 7, pytest.param(12, marks=pytest.mark.soak), 30]
)
@pytest.mark.parametrize("words", ["whales", "long list"])
def test_cursors_return_each_row_once(words: str, count: int) -> None:
    site = Site(3)
    rows: list[str] = []
    cursor, more = "0", True
    while more:
        data = session_data(site, words, cursor=cursor, count=count)
        assert data is not None
        assert len(data["search_item_list"]) <= count
        rows += [row["aweme_id"] for row in data["search_item_list"]]
        cursor, more = data["cursor"], data["has_more"]
    assert rows == [p.id for p in site.posts(words) if p.kind == "photo" and not p.hidden]
    assert len(rows) == len(set(rows)) > 2 * PAGE_SIZE


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        (b"", "UPSTREAM_BLOCKED", "empty_body"),
        (b" \n", "UPSTREAM_BLOCKED", "empty_body"),
        (b'{"type": "verify"}', "UPSTREAM_BLOCKED", "captcha"),
        (b'{"data": {"type": "verify"}}', "UPSTREAM_BLOCKED", "captcha"),
        (b'{"status_code": 2483}', "UPSTREAM_BLOCKED", "login_wall"),
        (b'{"status_code": 2483, "item_list": []}', "UPSTREAM_BLOCKED", "login_wall"),
        (b'{"status_code": 403, "item_list": []}', "UPSTREAM_ERROR", "unknown_status"),
        (b'{"status_code": -1, "item_list": [], "has_more": 0}', "UPSTREAM_ERROR", "unknown_status"),
        (
            b'{"status_code": 0, "search_nil_info": {"search_nil_type": "verify_check"}}',
            "UPSTREAM_BLOCKED",
            "verify_check",
        ),
        (b'{"log_pb": {}}', "EXTRACTION_FAILED", "no_rows"),
        (b'{"status_code": 0}', "EXTRACTION_FAILED", "no_rows"),
        (b"[1, 2]", "EXTRACTION_FAILED", "blind"),
        (b'{"item_list": [{"idV3": "1"}]}', "EXTRACTION_FAILED", "blind"),
        (b'{"item_list": [', "EXTRACTION_FAILED", "broken_data_block"),
        (b'<div id="tiktok-verify-ele"><img></div>', "UPSTREAM_BLOCKED", "captcha"),
        (b'<div id="tiktok-verify-ele" style="height: 9em"></div>', "UPSTREAM_BLOCKED", "captcha"),
        (b'<div class="captcha-verify-container">', "UPSTREAM_BLOCKED", "captcha"),
        (b'<html><div id="loginContainer">', "UPSTREAM_BLOCKED", "login_wall"),
        (b'<html><p id="wci">', "UPSTREAM_BLOCKED", "waiting_room"),
        (b"<html>", "EXTRACTION_FAILED", "no_search_page"),
        (b"<html><script id=__UNIVERSAL_DATA_FOR_REHYDRATION__>", "UPSTREAM_TIMEOUT", "no_answer"),
    ],
)
def test_error_responses(body: bytes, code: str, reason: str) -> None:
    with pytest.raises(ScrapeError) as raised:
        read(body)
    assert (raised.value.code, raised.value.reason) == (code, reason)


def test_an_unknown_status_is_quoted() -> None:
    with pytest.raises(ScrapeError) as raised:
        read(b'{"status_code": 10101, "item_list": []}')
    assert [(each["loc"], each["msg"]) for each in raised.value.details] == [(["status_code"], "10101")]


@pytest.mark.parametrize(
    "body",
    [
        b'{"status_code": 0, "has_more": 0}',
        b'{"status_code": 0, "item_list": [], "has_more": 0}',
        b'{"status_code": 0, "item_list": null, "has_more": 0}',
        b'{"item_list": [], "search_nil_info": {"search_nil_type": "no_result"}}',
        b'{"search_nil_info": {"search_nil_type": "no_result"}, "guide_words": [{"word": "y"}]}',
        b'{"data": {"itemList": [], "hasMore": false}}',
    ],
)
def test_empty_list_is_a_result(body: bytes) -> None:
    assert read(body, keywords="x") == {"cursor": "0", "has_more": False, "keywords": "x", "search_item_list": []}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"status_code": 0, "cursor": 12, "has_more": 1, "photo_list": [{}]}', "no_list"),
        (b'{"status_code": 0, "cursor": 5, "has_more": 0, "photo_list": [{"id": "1"}]}', "no_list"),
        (b'{"status_code": 0, "item_list": [], "has_more": 1}', "no_rows"),
        (b'{"status_code": 0, "item_list": []}', "no_rows"),
        (b'{"item_list": [], "has_more": 0, "search_nil_info": {"search_nil_type": "new_check"}}', "unknown_nil_type"),
    ],
)
def test_sv_2_empty_list_without_an_end_is_not_a_result(body: bytes, reason: str) -> None:
    with pytest.raises(ScrapeError) as raised:
        read(body)
    assert (raised.value.code, raised.value.reason) == ("EXTRACTION_FAILED", reason)


@pytest.mark.parametrize("key", ["item_list", "imagePost"])
@pytest.mark.parametrize("wall", [None, "login"])
def test_sv_2_renamed_keys_are_not_an_empty_result(key: str, wall: str | None) -> None:
    body = orjson.dumps(Site(3).answer("whales", 0)).replace(f'"{key}"'.encode(), b'"renamed"')

    async def run() -> None:
        session = SearchSession(PhotoSearchParams(keywords="whales"), quiet=1, pause=0)
        assert await session.take(CapturedResponse(URL, 200, {}, body))
        session.end_marker = wall
        session.data()

    with pytest.raises(ScrapeError) as raised:
        asyncio.run(run())
    assert raised.value.code == "EXTRACTION_FAILED"


STATE = b"<html><script id=__UNIVERSAL_DATA_FOR_REHYDRATION__>%s</script>"


@pytest.mark.parametrize(
    ("state", "url", "code"),
    [
        (b'{"__DEFAULT_SCOPE__":{"webapp.video-detail":{}}}', "https://www.tiktok.com", "EXTRACTION_FAILED"),
        (b'{"__DEFAULT_SCOPE__":{"webapp.user-detail":{}}}', "https://www.tiktok.com", "EXTRACTION_FAILED"),
        (b"{}", "https://www.tiktok.com/@someone", "EXTRACTION_FAILED"),
        (b"{}", "https://www.tiktok.com/", "EXTRACTION_FAILED"),
        (b"{}", "https://www.tiktok.com", "UPSTREAM_TIMEOUT"),
        (b"{}", "https://www.tiktok.com/search/photo?q=x", "UPSTREAM_TIMEOUT"),
    ],
)
def test_sv_5_page_of_a_post_or_an_account_is_not_the_search_page(state: bytes, url: str, code: str) -> None:
    with pytest.raises(ScrapeError) as raised:
        read(STATE % state, url=url)
    assert raised.value.code == code


def test_sv_1_empty_element_of_a_captcha_is_not_one() -> None:
    with pytest.raises(ScrapeError) as raised:
        read(STATE % b"{}" + b'<div id="tiktok-verify-ele"> </div>', url="https://www.tiktok.com/search/photo?q=x")
    assert raised.value.code == "UPSTREAM_TIMEOUT"


def answer() -> dict[str, Any]:
    return Site(light=True).answer("whales", 0)


@pytest.mark.parametrize(
    ("value", "more"), [(1, True), (0, False), ("1", True), ("0", False), (True, True), (None, False), ("false", False)]
)
def test_has_more_in_all_formats(value: object, more: bool) -> None:  # noqa: FBT001
    assert read(orjson.dumps(answer() | {"has_more": value}))["has_more"] is more


@pytest.mark.parametrize("name", ["statsV2", "stats"])
def test_either_block_of_figures_is_sufficient(name: str) -> None:
    found = answer()
    for row in found["item_list"]:
        del row[name]
    figures = [row["statistics"]["digg_count"] for row in read(orjson.dumps(found))["search_item_list"]]
    assert all(isinstance(figure, int) for figure in figures)


def test_sv_4_photo_post_without_a_mandatory_part_is_left_out() -> None:
    found = answer()
    whole = read(orjson.dumps(found))["search_item_list"]
    found["item_list"][0]["imagePost"] = {"pictures": [1]}
    assert read(orjson.dumps(found))["search_item_list"] == whole[1:]


def test_sv_2_rows_of_an_unknown_structure_beside_photo_posts_are_reported() -> None:
    found = answer()
    whole = read(orjson.dumps(found))["search_item_list"]
    first, second = [item for item in found["item_list"] if "imagePost" in item][:2]
    for item in (first, second):
        item["renamed"] = item.pop("imagePost")
    page = ResultsPage(response=HttpResponse(URL, orjson.dumps(found)), page_params=PageParams(keywords="whales"))
    posts = validated(PhotoSearch, asyncio.run(page.to_item()))["search_item_list"]
    assert posts == whole[2:]
    assert posts
    rows = len(found["item_list"])
    assert page.unread == [Unread("item_list[].imagePost", "missing", 2, rows, loses_rows=True)]


def test_sv_4_photo_posts_that_all_lack_a_mandatory_part_raise() -> None:
    found = answer()
    for row in found["item_list"]:
        row["imagePost"] = {"pictures": [1]}
    with pytest.raises(ScrapeError) as raised:
        read(orjson.dumps(found))
    assert raised.value.details[0]["loc"] == ["item_list[]", "imagePost", "images[]"]


@pytest.mark.parametrize("images", [[], None])
def test_post_without_pictures_is_left_out(images: object) -> None:
    found = answer()
    whole = len(read(orjson.dumps(found))["search_item_list"])
    found["item_list"][0]["imagePost"]["images"] = images
    assert len(read(orjson.dumps(found))["search_item_list"]) == whole - 1


def test_search_page_is_recognised() -> None:
    page = Site(light=True).page(FakeRequest("/search/photo", {"q": "whales"}))[2].decode()
    assert [each.recognise(page) for each in PAGES] == [False, True]
