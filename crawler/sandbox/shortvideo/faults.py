"""The faults of the simulated short-video site. The search keywords select them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.faults import COMMON, Fault, unnumbered
from crawler.sandbox.shortvideo import page as shortvideo_page
from crawler.sandbox.shortvideo.page import Overlay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawler.sandbox.protocol import FakeRequest, FakeResponse, FaultlessResponse
    from crawler.sandbox.shortvideo.world import Post

FAULTS = COMMON | {
    # Faults of the page
    "login-redirect": Fault("UPSTREAM_BLOCKED", "a redirect to the login page"),
    "waiting-room": Fault("OK", "a waiting room that opens for browsers"),
    "waiting-room-closed": Fault("UPSTREAM_BLOCKED", "a waiting room that never opens"),
    "no-script": Fault("UPSTREAM_TIMEOUT", "the page's script fails to load, so the page requests no results"),
    "captcha": Fault("UPSTREAM_BLOCKED", "a CAPTCHA over the page, without results"),
    "captcha-later": Fault("OK", "a CAPTCHA after the first response"),
    "login-wall": Fault("OK", "the login dialog after the first response; the next page requires a login"),
    "login-wall-at-once": Fault("UPSTREAM_BLOCKED", "the login dialog, without results"),
    "login-wall-100ms": Fault("OK", "the login dialog appears 0.1 s before the first response arrives"),
    "login-wall-1s": Fault("OK", "the login dialog appears 1 s before the first response arrives"),
    "login-wall-3s": Fault("OK", "the login dialog appears 3 s before the first response arrives"),
    "login-prompt": Fault("OK", "a login dialog with a close button after the first response"),
    "login-prompt-returns": Fault(
        "OK", "a login dialog with a close button, which appears again after it was closed; the next page is refused"
    ),
    "other-dialogs": Fault("OK", "a login dialog, an age gate and a consent dialog, each with a close button"),
    "captcha-over-login": Fault("UPSTREAM_BLOCKED", "a CAPTCHA over a login dialog with a close button"),
    "captcha-mount": Fault("OK", "the empty element into which the platform puts a CAPTCHA"),
    "silent-wall": Fault(
        "OK", "the page requests no further results after the first response; the next page is refused"
    ),
    # Faults of the API call
    "no-results": Fault("OK", "an empty list"),
    "sensitive": Fault("OK", "an empty list with a help notice"),
    "odd-status": Fault("OK", "a JSON body with rows and a status code other than 0"),
    "raw-controls": Fault("OK", "unescaped line breaks in the captions"),
    "refused-status": Fault("UPSTREAM_ERROR", "a JSON body with a status code other than 0 and without results"),
    "verify-check": Fault("UPSTREAM_BLOCKED", "an empty list that is marked as a bot check"),
    "antispam-check": Fault("UPSTREAM_BLOCKED", "an empty list that is marked as a spam check"),
    "params-check": Fault("UPSTREAM_BLOCKED", "an empty list that is marked as a signature check"),
    "captcha-json": Fault("UPSTREAM_BLOCKED", "a CAPTCHA instead of the list"),
    "login-json": Fault("UPSTREAM_BLOCKED", "a JSON response that requires an account, in place of the list"),
    "login-json-later": Fault("OK", "a JSON response that requires an account, in place of every list after the first"),
    "repeated-page": Fault("OK", "every response repeats the first one"),
    "results-empty-body": Fault("UPSTREAM_BLOCKED", "the call for results gets an empty body"),
    "results-empty-later": Fault("OK", "the second and later calls for results get an empty body"),
    "results-server-error": Fault("UPSTREAM_ERROR", "the call for results gets status 500"),
    "results-rate-limited": Fault("UPSTREAM_RATE_LIMITED", "the call for results gets status 429 with `Retry-After`"),
    "results-slow": Fault("OK", "the call for results gets a slow response"),
    "results-hang": Fault("UPSTREAM_TIMEOUT", "the call for results gets no response"),
    "results-reset": Fault("UPSTREAM_TIMEOUT", "the connection of the call for results is reset"),
    "results-not-json": Fault("UPSTREAM_ERROR", "the call for results gets an HTML page"),
    "results-broken": Fault("EXTRACTION_FAILED", "the call for results gets truncated JSON"),
    "results-deep": Fault("EXTRACTION_FAILED", "the call for results gets ten thousand nested lists"),
    "no-list": Fault("EXTRACTION_FAILED", "a response without a list"),
    "blind": Fault("EXTRACTION_FAILED", "rows with renamed keys"),
    "unknown-path": Fault("EXTRACTION_FAILED", "rows with renamed keys, from another path than usual"),
    "renamed-list": Fault("EXTRACTION_FAILED", "the list under another key"),
    "renamed-pictures": Fault("EXTRACTION_FAILED", "rows with their pictures under another key"),
    "renamed-row": Fault("OK", "a row with its pictures under another key, which is left out"),
    "renamed-list-once": Fault("OK", "the list under another key, in the first response only"),
    "missing-author": Fault("OK", "a row without its author's id, which is left out"),
    "missing-author-once": Fault("OK", "a row without its author's id, in the first response only"),
    "no-picture-urls": Fault("OK", "a row whose pictures have no URL, which is left out"),
    "no-authors": Fault("EXTRACTION_FAILED", "all rows without their author's id"),
    # The spider always reads this platform in a browser. The browser runs the script, so the outcome is OK.
    "browser-only": Fault("OK", "403 with a page whose script lets browsers through"),
}
"""The faults by name. A search with the name as keywords selects the fault."""

OVERLAYS = {
    "captcha": Overlay("captcha"),
    "captcha-later": Overlay("captcha", after=1),
    "captcha-over-login": Overlay("captcha-over-login", closable=True),
    "captcha-mount": Overlay("mount"),
    "login-wall": Overlay("login", after=1),
    "login-wall-at-once": Overlay("login"),
    "login-wall-100ms": Overlay("login", in_flight=True),
    "login-wall-1s": Overlay("login", in_flight=True),
    "login-wall-3s": Overlay("login", in_flight=True),
    "login-prompt": Overlay("login", after=1, closable=True),
    "login-prompt-returns": Overlay("login", after=1, closable=True, returns=True),
    "other-dialogs": Overlay("login", after=1, closable=True, others=True),
    "silent-wall": Overlay("none", after=1),
}
"""The overlays that pages show, by the name of the fault."""
WITHOUT_FIRST_ROW = frozenset({"missing-author", "missing-author-once", "no-picture-urls", "renamed-row"})
"""Faults that damage the first row of each response, or with ``-once`` of the first response only.

The record lacks only the search's first post: the first row of a later response repeats the last row of the response
before.
"""
AFTER_FIRST_RESPONSE = frozenset(
    {
        *("captcha-later", "login-wall", "login-wall-100ms", "login-wall-1s", "login-wall-3s", "login-prompt-returns"),
        *("login-json-later", "raw-controls", "repeated-page", "results-empty-later", "silent-wall"),
    }
)
"""Faults after which only the first response can be used. ``raw-controls`` also stops the page's own script."""

ON_PAGE = frozenset({"login-redirect", "waiting-room", "waiting-room-closed"})
"""The faults of this site that replace the HTML page. The site's other faults damage the page's API call, prevent the
load of the page's script (``no-script``), or show one of the ``OVERLAYS``."""
REPEATS_FIRST = frozenset({"repeated-page"})
"""Faults for which every API call gets the first response, whatever offset is requested."""
JSON = {"Content-Type": "application/json; charset=utf-8"}

_PAGE_FAULTS = COMMON.keys() | ON_PAGE
_CALL_TO_COMMON = {
    "results-empty-body": "empty-body",
    "results-server-error": "server-error",
    "results-rate-limited": "rate-limited",
    "results-slow": "slow",
    "results-hang": "hang",
    "results-reset": "reset",
    "login-wall-100ms": "slow-100ms",
    "login-wall-1s": "slow-1s",
    "login-wall-3s": "slow-3s",
}


def page_fault(keywords: str) -> str | None:
    """Return the fault that the keywords select for the HTML page, or None if the page has no fault."""
    name = unnumbered(keywords, FAULTS)
    return name if name in _PAGE_FAULTS else None


def call_fault(keywords: str, offset: int) -> str | None:
    """Return the fault of the page's API call for the rows from ``offset`` on, or None."""
    name = unnumbered(keywords, FAULTS)
    is_later = name in {"login-json-later", "results-empty-later"}
    if offset == 0 if is_later else offset and name.endswith("-once"):
        return None
    if name == "results-empty-later":
        return "empty-body"
    if name in _CALL_TO_COMMON:
        return _CALL_TO_COMMON[name]
    return name if name in _ANSWERS or name.removesuffix("-once") in _DAMAGES else None


def readable_posts(keywords: str, posts: Sequence[Post], first: int) -> Sequence[Post]:
    """Return the posts that a crawl can still read despite the fault. ``first``: posts in the first response."""
    name = unnumbered(keywords, FAULTS)
    if name in {"no-results", "sensitive"}:
        return ()
    return posts[:first] if name in AFTER_FIRST_RESPONSE else posts


def damaged_page(name: str, request: FakeRequest, honest: FaultlessResponse) -> FakeResponse:
    """Build the damaged response to a request for the search page."""
    if name == "login-redirect":
        return 302, {"Location": "/login?redirect_url=%2Fsearch"}, b""
    if name == "waiting-room" and "_wafchallengeid=42" in request.headers.get("cookie", ""):
        return honest()
    return 200, {}, shortvideo_page.waiting_room(opens=name == "waiting-room")


def damaged_results(name: str, honest: FaultlessResponse) -> FakeResponse:
    """Build the damaged response to the page's API call."""
    if name in _ANSWERS:
        return 200, JSON, _ANSWERS[name]
    status, headers, body = honest()
    answer = orjson.loads(body)
    damaged = _DAMAGES[name](answer)
    return status, headers, damaged if isinstance(damaged, bytes) else orjson.dumps(answer)


def _empty(**more: Any) -> bytes:
    return orjson.dumps({"status_code": 0, "item_list": [], "cursor": 0, "has_more": 0, **more})


def _nil(kind: str, item: str = "") -> bytes:
    return _empty(search_nil_info={"search_nil_type": kind, "search_nil_item": item, "is_load_more": "normal"})


_LOGIN = orjson.dumps({"status_code": 2483, "status_msg": "Please login your account first"})
_ANSWERS: dict[str, bytes] = {
    "no-results": _empty(search_nil_info={"search_nil_type": "no_result"}),
    "sensitive": _empty(search_nil_info={"search_nil_type": "sensitive"}, suicide_prevent={"agent": "Helpline"}),
    "refused-status": orjson.dumps({"status_code": 10101, "status_msg": "Server is currently unavailable."}),
    "verify-check": _nil("verify_check"),
    "antispam-check": _nil("antispam_check", "hit_shark"),
    "params-check": _nil("params_check", "invalid_app"),
    "captcha-json": orjson.dumps({"type": "verify", "region": "us", "detail": "slide"}),
    "login-json": _LOGIN,
    "login-json-later": _LOGIN,
    "results-not-json": b"<html><title>Oops</title></html>",
    "results-deep": b'{"item_list":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "no-list": orjson.dumps({"log_pb": {"impr_id": "1"}, "cursor": 12}),
}


_Damage = Callable[[dict[str, Any]], bytes | None]
"""A function that damages a response in place, or returns a damaged body."""


def _broken(answer: dict[str, Any]) -> bytes:
    body = orjson.dumps(answer)
    return body[: len(body) // 2]


def _blind(answer: dict[str, Any]) -> None:
    answer["item_list"] = [{f"{key}V3": value for key, value in row.items()} for row in answer["item_list"]]


def _renamed_pictures(rows: slice) -> _Damage:
    def rename(answer: dict[str, Any]) -> None:
        for row in answer["item_list"][rows]:
            if "imagePost" in row:
                row["photoPost"] = row.pop("imagePost")

    return rename


def _without_authors(rows: slice) -> _Damage:
    def cut(answer: dict[str, Any]) -> None:
        for row in answer["item_list"][rows]:
            del row["author"]["id"]

    return cut


def _no_picture_urls(answer: dict[str, Any]) -> None:
    for image in answer["item_list"][0].get("imagePost", {}).get("images", []):
        image["imageURL"] = {"urlList": []}


_FIRST_ROW, _ALL_ROWS = slice(1), slice(None)
_DAMAGES: dict[str, _Damage] = {
    "odd-status": lambda answer: answer.update(status_code=403),
    "raw-controls": lambda answer: orjson.dumps(answer).replace(rb"\n", b"\n"),
    "results-broken": _broken,
    "blind": _blind,
    "unknown-path": _blind,
    "renamed-list": lambda answer: answer.update(photo_list=answer.pop("item_list")),
    "renamed-pictures": _renamed_pictures(_ALL_ROWS),
    "renamed-row": _renamed_pictures(_FIRST_ROW),
    "missing-author": _without_authors(_FIRST_ROW),
    "no-authors": _without_authors(_ALL_ROWS),
    "no-picture-urls": _no_picture_urls,
    "repeated-page": lambda _: None,  # every call gets the first response, unchanged
}
