"""Other pages of the short-video platform, and values that its results do not contain."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from scrapy import Request
from web_poet import HttpResponse, PageParams

from crawler.browser.sessions import CapturedResponse
from crawler.errors import ExtractionFailed, ScrapeError, UpstreamBlocked, UpstreamTimeout
from crawler.platforms.shortvideo.pages import LOGIN_WALL, STATE_MARK, ResultsPage, SearchPage
from crawler.platforms.shortvideo.schema import PhotoSearchParams
from crawler.sandbox.shortvideo.site import Site
from crawler.spiders.base import PlatformSpider
from crawler.spiders.shortvideo import SearchSession, ShortvideoSpider


def test_results_without_their_page_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[tuple[str, str | None]] = []
    monkeypatch.setattr(
        PlatformSpider,
        "keep",
        lambda _self, page, _request, error=None: kept.append((page.source, error and error.reason)),
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


@pytest.mark.parametrize(
    ("path", "wall", "kept_for", "outcome"),
    [
        (GENERAL, None, "unknown_path", "unknown_path"),
        (GENERAL, "login", "unknown_path", "login_wall"),
        (PHOTO, None, "no_list", "no_list"),
    ],
)
def test_an_unreadable_response_is_kept_and_is_the_outcome_if_there_are_no_results_and_no_wall(
    monkeypatch: pytest.MonkeyPatch, path: str, wall: str | None, kept_for: str, outcome: str
) -> None:
    kept: list[tuple[bytes, str | None]] = []
    monkeypatch.setattr(
        PlatformSpider,
        "keep",
        lambda _self, page, _request, error=None: kept.append((page.response.body, error and error.reason)),
    )
    session, _ = session_of(path, body := {"photos": RENAMED, "cursor": 12, "has_more": 1})
    session.end_marker = wall
    state = f'<html><script id="{STATE_MARK}">{{}}</script></html>'.encode()
    page = SearchPage(
        response=HttpResponse("https://www.tiktok.com/search/photo?q=a", state), page_params=PageParams({})
    )
    request = Request("https://www.tiktok.com/", meta={"page_session": session})
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(ShortvideoSpider().read_item(page, request))
    assert raised.value.reason == outcome
    assert kept == [(orjson.dumps(body), kept_for)]


@pytest.mark.parametrize(
    ("count", "marker", "error", "reason"),
    [
        (2, None, None, None),
        (2, "login", None, None),
        (2, "captcha", None, "challenge"),
        (3, None, None, "no_answer"),
        (3, "login", None, LOGIN_WALL),
        (3, "captcha", None, "challenge"),
        (3, "captcha", UpstreamTimeout("Late.", reason="timeout"), "challenge"),
        (3, None, UpstreamBlocked("A CAPTCHA.", reason="captcha"), "challenge"),
        (3, None, UpstreamBlocked("A login.", reason=LOGIN_WALL), LOGIN_WALL),
        (3, None, UpstreamTimeout("Late.", reason="timeout"), "timeout"),
    ],
)
def test_what_interrupts_a_search_with_two_posts(
    count: int, marker: str | None, error: ScrapeError | None, reason: str | None
) -> None:
    session, _ = session_of(PHOTO, results())
    session.end, session.end_marker, session.error = count, marker, error
    assert (session.interruption and session.interruption.reason) == reason


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
