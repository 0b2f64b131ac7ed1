"""Other pages of the short-video platform, and values that its results do not contain (findings SV-5 and SV-6)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import orjson
import pytest
from scrapy import Request
from web_poet import HttpResponse, PageParams

from crawler.browser.sessions import CapturedResponse
from crawler.downloads.page_spider import PageSpider
from crawler.errors import ExtractionFailed, ScrapeError, UpstreamBlocked
from crawler.platforms.page import PlatformPage
from crawler.platforms.shortvideo.pages import STATE_MARK, ResultsPage, SearchPage
from crawler.platforms.shortvideo.schema import PhotoSearch, PhotoSearchParams
from crawler.reading.contract import Unread
from crawler.sandbox.shortvideo.site import Site
from crawler.spiders.shortvideo import SearchSession, ShortvideoSpider
from tests.mutations import fixtures


@pytest.mark.parametrize("scope", ["webapp.video-detail", "webapp.reflow.video.detail", "webapp.user-detail"])
def test_sv_5_another_page_is_not_a_timeout(scope: str) -> None:
    state = orjson.dumps({"__DEFAULT_SCOPE__": {scope: {}}}).decode()
    body = f'<html><script id="{STATE_MARK}" type="application/json">{state}</script></html>'.encode()
    page = SearchPage(
        response=HttpResponse("https://www.tiktok.com/search/photo?q=a", body, status=200), page_params=PageParams({})
    )
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page.to_item())
    assert isinstance(raised.value, ExtractionFailed)
    assert raised.value.reason == "no_search_page"


def web_rows() -> list[dict[str, Any]]:
    return list(next(each for each in fixtures("shortvideo") if each.case.name == "results").item["search_item_list"])


def test_sv_6_values_that_are_not_stated_are_null_or_empty() -> None:
    rows = web_rows()
    assert rows
    assert {(row["is_top"], row["commerce_info"]["organic_log_extra"]) for row in rows} == {(None, "")}


def test_sv_6_the_schema_states_what_has_more_means() -> None:
    assert "login_wall" in PhotoSearch.model_json_schema()["properties"]["has_more"]["description"]


def test_a_row_with_an_unknown_structure_is_left_out_with_a_warning() -> None:
    fixture = next(each for each in fixtures("shortvideo") if each.case.name == "results")
    payload = orjson.loads(fixture.body)
    payload["item_list"].append({"newKind": {"id": "1"}})
    page = fixture.case.page_object(orjson.dumps(payload))
    item = asyncio.run(page.to_item())
    assert dict(item) == fixture.item
    rows = len(payload["item_list"])
    assert page.unread == [Unread("item_list[].id", "missing", 1, rows, loses_rows=True)]


# SV3-3: keys of photo posts renamed in all rows


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("stats", "item_list[].stats"),
        ("statsV2", "item_list[].statsV2"),
        ("desc", "item_list[].desc"),
        ("music", "item_list[].music"),
        ("music.title", "item_list[].music.title"),
        ("textLanguage", "item_list[].textLanguage"),
        ("imagePost.cover", "item_list[].imagePost.cover"),
        ("video", "item_list[].video"),
        ("author.nickname", "item_list[].author.nickname"),
    ],
)
def test_sv3_3_a_key_renamed_in_all_rows_is_reported(path: str, expected: str) -> None:
    payload = Site().answer("whales", 0)
    *holders, key = path.split(".")
    for row in payload["item_list"]:
        for holder in holders:
            row = row.get(holder, {})  # noqa: PLW2901  # videos have no pictures
        if key in row:
            row[f"{key}V9"] = row.pop(key)
    response = HttpResponse("https://www.tiktok.com/api/search/photo/full/", orjson.dumps(payload))
    page = ResultsPage(response=response, page_params=PageParams({}))
    asyncio.run(page.to_item())
    assert expected in {each.path for each in page.unread}


@pytest.mark.parametrize(
    "path",
    [
        *("desc", "music", "video", "statsV2", "stats", "author.avatarLarger", "author.avatarThumb", "music.title"),
        *("music.coverLarge", "music.duration", "music.original", "video.width", "video.cover", "statsV2.diggCount"),
        *("statsV2.repostCount", "imagePost.images", "isAd", "textLanguage", "itemCommentStatus", "privateItem"),
    ],
)
def test_a_key_that_is_null_in_all_rows_is_reported(path: str) -> None:
    payload = Site().answer("whales", 0)
    *holders, key = path.split(".")
    for row in payload["item_list"]:
        for holder in holders:
            row = row.get(holder, {})  # noqa: PLW2901  # videos have no pictures
        if key in row:
            row[key] = None
    response = HttpResponse("https://www.tiktok.com/api/search/photo/full/", orjson.dumps(payload))
    page = ResultsPage(response=response, page_params=PageParams({}))
    with suppress(ExtractionFailed):
        asyncio.run(page.to_item())
    assert f"item_list[].{path}" in {each.path.removesuffix("[]") for each in page.unread if each.cause == "null"}


@pytest.mark.parametrize("key", ["imageWidth", "imageHeight"])
def test_pictures_without_their_size_are_reported(key: str) -> None:
    payload = results()
    for row in payload["item_list"]:
        for picture in row.get("imagePost", {}).get("images", []):
            picture[key] = None
    assert any(f"item_list[].imagePost.images[].{key}: null" in each for each in read(payload)[1])


def test_results_without_their_page_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[tuple[str, str | None]] = []
    monkeypatch.setattr(
        PageSpider, "keep", lambda _self, page, _request, error=None: kept.append((page.source, error and error.reason))
    )
    spider, response = ShortvideoSpider(), HttpResponse("https://video.example/", b"x")
    session = SearchSession(PhotoSearchParams(keywords="whales"), quiet=1, pause=0)
    session.error = ExtractionFailed("unreadable", reason="of the results")
    request = Request("https://video.example/", meta={"page_session": session})
    results = ResultsPage(response=response, page_params=PageParams({}))
    page = SearchPage(response=response, page_params=PageParams({}))
    for each, error in (
        (results, session.error),
        (page, session.error),
        (page, ExtractionFailed("another page", reason="of the page")),
        (page, None),
    ):
        spider.keep(each, request, error)
    assert kept == [("search", "of the results"), ("search page", "of the page"), ("search page", None)]


# Results on other paths

PHOTO, GENERAL = "/api/search/photo/full/", "/api/search/general/full/"


def session_of(path: str, body: object, status: int = 200) -> tuple[SearchSession, bool | None]:
    """Return a session that has received one response, and what the session said of it."""
    session = SearchSession(PhotoSearchParams(keywords="whales"), quiet=1, pause=0)
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    response = CapturedResponse(f"https://www.tiktok.com{path}?q=x", status, {}, data)
    return session, asyncio.run(session.take(response))


@pytest.mark.parametrize("path", [PHOTO, PHOTO.rstrip("/"), "/api/search/photo/v2/", GENERAL, "/api/search/x"])
@pytest.mark.parametrize("form", ["item_list", "itemList", "data"])
def test_photo_posts_are_read_on_every_path_of_a_search(path: str, form: str) -> None:
    session, said = session_of(path, in_envelope(results(), form))
    assert said is False
    assert list(session.rows.values()) == read(results())[0]["search_item_list"]
    assert (session.error, session.elsewhere) == (None, None)


RENAMED = [{"idV9": "1", "authorV9": {}}]
VIDEOS = [row for row in Site().answer("whales", 0)["item_list"] if "imagePost" not in row]


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"item_list": RENAMED, "cursor": 12, "has_more": 1}, 200, "unknown_path"),
        ({"photos": RENAMED, "cursor": 12, "has_more": 0}, 200, "unknown_path"),
        ({"data": [{"itemV9": {}}], "has_more": 1}, 200, "unknown_path"),
        ({"item_list": VIDEOS, "cursor": 12, "has_more": 1}, 200, "unknown_path"),
        ({"status_code": 2483, "status_msg": "Please login"}, 200, "login_wall"),
        ({"type": "verify"}, 200, "captcha"),
        ({"item_list": [], "has_more": 0, "search_nil_info": {"search_nil_type": "verify_check"}}, 200, "verify_check"),
        # Calls for suggestions, and failures that say nothing about the results
        ({"sug_list": [{"content": "whales"}], "status_code": 0}, 200, None),
        ({"item_list": [], "cursor": 0, "has_more": 0}, 200, None),
        ({"status_code": 10101}, 200, None),
        ({"item_list": RENAMED, "cursor": 12, "has_more": 1}, 500, None),
        ({"type": "verify"}, 403, None),
        (b"", 200, None),
        (b"<html>", 200, None),
        (b'{"item_list": [', 200, None),
        (b"null", 200, None),
        ([], 200, None),
    ],
)
def test_what_a_response_on_another_path_explains(body: object, status: int, reason: str | None) -> None:
    session, said = session_of(GENERAL, body, status)
    assert (said, session.error, session.rows, session.data()) == (None, None, {}, None)
    assert (session.elsewhere[1].reason if session.elsewhere else None) == reason
    if session.elsewhere and reason == "unknown_path":
        assert [(each["loc"], each["msg"]) for each in session.elsewhere[1].details] == [(["url"], GENERAL)]
        assert GENERAL in session.elsewhere[1].message


@pytest.mark.parametrize("wall", [None, "login"])
def test_a_response_on_another_path_is_the_outcome_if_there_are_no_results_and_no_wall(
    monkeypatch: pytest.MonkeyPatch, wall: str | None
) -> None:
    kept: list[PlatformPage] = []
    monkeypatch.setattr(PageSpider, "keep", lambda _self, page, _request, _error=None: kept.append(page))
    session, _ = session_of(GENERAL, {"item_list": RENAMED, "cursor": 12, "has_more": 1})
    session.end_marker = wall
    state = f'<html><script id="{STATE_MARK}">{{}}</script></html>'.encode()
    page = SearchPage(
        response=HttpResponse("https://www.tiktok.com/search/photo?q=a", state), page_params=PageParams({})
    )
    request = Request("https://www.tiktok.com/", meta={"page_session": session})
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(ShortvideoSpider().read_item(page, request))
    assert raised.value.reason == ("login_wall" if wall else "unknown_path")
    assert [each.response.body for each in kept] == [orjson.dumps({"item_list": RENAMED, "cursor": 12, "has_more": 1})]


# Missing values that users would notice in the record


def results(**changed: Any) -> dict[str, Any]:
    """Return a response with two photo posts and a video. ``changed`` replaces keys of the first photo post."""
    payload = Site().answer("whales", 0)
    photos = [row for row in payload["item_list"] if "imagePost" in row][:2]
    videos = [row for row in payload["item_list"] if "imagePost" not in row][:1]
    photos[0] |= changed
    return {**payload, "item_list": [*photos, *videos]}


def read(payload: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    response = HttpResponse("https://www.tiktok.com/api/search/photo/full/", orjson.dumps(payload))
    page = ResultsPage(response=response, page_params=PageParams({}))
    item = asyncio.run(page.to_item())
    return item, [str(each) for each in page.unread]


def in_envelope(payload: dict[str, Any], form: str) -> Any:
    """Return a response with its rows in another envelope that the platform, or a service that wraps it, uses."""
    rows, rest = payload["item_list"], {key: value for key, value in payload.items() if key != "item_list"}
    entries = [*({"type": 1, "item": row} for row in rows), {"type": 4, "user_list": [{"user_info": {}}]}]
    return {
        "item_list": payload,
        "itemList": {**rest, "itemList": rows},
        "data": {**rest, "data": entries},
        "wrapped item_list": {"code": 200, "params": {}, "data": payload},
        "wrapped data": {"code": 200, "data": {**rest, "data": entries}},
        "wrapped twice": {"code": 200, "data": {"data": {**rest, "itemList": rows}}},
        "beside an object": {**payload, "data": {"unknown": 1}},
        "list of entries": entries,
        "list of rows": rows,
    }[form]


FORMS = {
    "item_list": "item_list[]",
    "itemList": "itemList[]",
    "data": "data[].item",
    "wrapped item_list": "item_list[]",
    "wrapped data": "data[].item",
    "wrapped twice": "itemList[]",
    "beside an object": "item_list[]",
    "list of entries": "data[].item",
    "list of rows": "item_list[]",
}
"""Envelope -> the path of its rows in warnings."""


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_read_in_every_envelope(form: str) -> None:
    item, unread = read(in_envelope(results(), form))
    expected = read(results())[0]
    if form.startswith("list"):  # the saved list has no position
        expected |= {"cursor": "0", "has_more": False}
    assert (item, unread) == (expected, [])


@pytest.mark.parametrize(("form", "path"), FORMS.items())
def test_a_row_that_cannot_be_read_is_reported_with_its_path_in_the_envelope(form: str, path: str) -> None:
    payload = results()
    payload["item_list"][0]["photos"] = payload["item_list"][0].pop("imagePost")
    payload["item_list"][1]["imagePost"]["images"][0]["imageURL"]["urlList"] = []
    payload["item_list"][1]["imagePost"]["images"].append(results()["item_list"][1]["imagePost"]["images"][0])
    item, unread = read(in_envelope(payload, form))
    assert len(item["search_item_list"]) == 1
    assert unread[0] == f"{path}.imagePost: missing in 1 of 3, not collected"
    assert unread[1].startswith(f"{path}.imagePost.images[].imageURL.urlList[]: null in 1 of ")


@pytest.mark.parametrize(
    "rows",
    [[], None],
)
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("form", ["itemList", "data"])
def test_an_empty_list_in_another_envelope_is_a_result_only_at_the_end(form: str, more: int, rows: Any) -> None:
    payload = {"status_code": 0, form: rows, "cursor": 0, "has_more": more}
    if more:
        with pytest.raises(ExtractionFailed):
            read(payload)
    else:
        assert read(payload)[0]["search_item_list"] == []


@pytest.mark.parametrize("data", ["", "x", 0, [], {}, [{"aweme_info": {"aweme_id": "1"}}]])
def test_a_login_wall_is_one_whatever_is_under_data(data: Any) -> None:
    with pytest.raises(UpstreamBlocked) as raised:
        read({"status_code": 2483, "data": data})
    assert raised.value.reason == "login_wall"


def test_entries_of_another_kind_are_not_an_empty_result() -> None:
    """The app's general search has its posts under another key."""
    payload = {"status_code": 0, "data": [{"type": 1, "aweme_info": {"aweme_id": "1"}}], "cursor": 12, "has_more": 0}
    with pytest.raises(ExtractionFailed) as raised:
        read(payload)
    assert raised.value.reason == "blind"


@pytest.mark.parametrize("images", [[], None])
def test_photo_posts_of_which_none_has_pictures_are_not_an_empty_success(images: Any) -> None:
    payload = results(imagePost={"images": images, "cover": None})
    assert len(read(payload)[0]["search_item_list"]) == 1  # a single photo post without pictures is possible
    for row in payload["item_list"][:2]:
        row["imagePost"]["images"] = images
    with pytest.raises(ExtractionFailed) as raised:
        read(payload)
    assert [each["loc"] for each in raised.value.details] == [["item_list[]", "imagePost", "images[]"]]


def test_a_video_may_have_an_empty_list_of_pictures() -> None:
    payload = results()
    payload["item_list"][-1]["imagePost"] = {"images": [], "cover": None}
    assert read(payload) == read(results())


def test_a_picture_without_an_address_is_a_warning() -> None:
    payload = results()
    pictures = [row["imagePost"]["images"] for row in payload["item_list"] if "imagePost" in row]
    pictures[0][0]["imageURL"]["urlList"] = []
    pictures[0].append({**pictures[0][0], "imageURL": {"urlList": ["https://cdn.example/a.jpeg"]}})
    of = sum(map(len, pictures))
    assert read(payload)[1] == [f"item_list[].imagePost.images[].imageURL.urlList[]: null in 1 of {of}"]


LIST_KEYS = ["isAd", "itemCommentStatus", "privateItem", "statsV2", "textLanguage"]


@pytest.mark.parametrize("key", LIST_KEYS)
def test_a_key_that_stands_beside_others_is_reported_in_a_single_row(key: str) -> None:
    payload = results()
    del payload["item_list"][0][key]
    assert read(payload)[1] == [f"item_list[].{key}: missing in 1 of 2"]
    payload["item_list"][0][key] = None
    assert read(payload)[1] == [f"item_list[].{key}: null in 1 of 3"]


def test_a_post_of_a_page_without_the_keys_of_lists_is_not_reported() -> None:
    payload = results()
    for key in LIST_KEYS:
        del payload["item_list"][0][key]
    assert read(payload)[1] == []


@pytest.mark.parametrize(
    ("likes", "shown", "unread"),
    [("12", 12, []), (12.0, 12, []), ("1.2K", None, ["item_list[].stats.diggCount: type in 1 of 3"])],
)
def test_a_rounded_text_is_not_a_count(likes: Any, shown: int | None, unread: list[str]) -> None:
    payload = results()
    row = payload["item_list"][0] = {k: v for k, v in payload["item_list"][0].items() if k not in LIST_KEYS}
    row["stats"]["diggCount"] = likes
    item, warnings = read(payload)
    assert (item["search_item_list"][0]["statistics"]["digg_count"], warnings) == (shown, unread)


@pytest.mark.parametrize("key", ["cursor", "has_more"])
@pytest.mark.parametrize(("value", "problem"), [("soon", "type"), (None, "null")])
def test_a_position_that_cannot_be_read_is_a_warning(key: str, value: Any, problem: str) -> None:
    assert read(results() | {key: value})[1] == [f"{key}: {problem}"]


def test_a_status_code_may_be_a_text() -> None:
    with pytest.raises(UpstreamBlocked, match="login"):
        read({"status_code": "2483", "item_list": [], "has_more": 0, "cursor": 0})


@pytest.mark.parametrize("time", [1_747_676_981, "1747676981", 1_747_676_981.0, 1_747_676_981_000, "soon"])
def test_a_time_in_other_units_is_a_warning(time: Any) -> None:
    payload = results()
    payload["item_list"][0]["createTime"] = time
    found, unread = read(payload)
    is_read = time not in {1_747_676_981_000, "soon"}
    assert [row["create_time"] for row in found["search_item_list"]][:1] == [1_747_676_981] or not is_read
    assert ("item_list[].createTime: type in 1 of 3" in unread) is not is_read
