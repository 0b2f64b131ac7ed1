"""What the simulated short-video site can do wrong, by the words that are searched for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.faults import COMMON, Fault
from crawler.sandbox.shortvideo import page as shortvideo_page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crawler.sandbox.protocol import Answer, FakeRequest, HonestAnswer
    from crawler.sandbox.shortvideo.world import Post

FAULTS = COMMON | {
    # The page
    "login-redirect": Fault("TARGET_RESTRICTED", "a redirect to the page of the login"),
    "waiting-room": Fault("OK", "a page that keeps visitors waiting, and lets a browser in"),
    "waiting-room-closed": Fault("UPSTREAM_BLOCKED", "the same, for ever"),
    "no-script": Fault("UPSTREAM_TIMEOUT", "the page's script does not come: nobody asks for results"),
    "captcha": Fault("UPSTREAM_BLOCKED", "a captcha over the page, and no results"),
    "captcha-later": Fault("OK", "a captcha after the first answer"),
    "login-wall": Fault("OK", "the login's window after the first answer; asking further is refused"),
    "login-wall-at-once": Fault("TARGET_RESTRICTED", "the login's window, and no results"),
    # The call
    "no-results": Fault("OK", "an empty list"),
    "sensitive": Fault("OK", "an empty list, and a word of help"),
    "odd-status": Fault("OK", "a full list under a status that is not 0"),
    "raw-controls": Fault("OK", "line breaks that stand raw in the captions"),
    "app-shape": Fault("OK", "rows as the app has them"),
    "refused-status": Fault("UPSTREAM_BLOCKED", "no list under a status that is not 0"),
    "verify-check": Fault("UPSTREAM_BLOCKED", "an empty list: a robot is suspected"),
    "antispam-check": Fault("UPSTREAM_BLOCKED", "an empty list: spam is suspected"),
    "params-check": Fault("UPSTREAM_BLOCKED", "an empty list: a wrong signature is suspected"),
    "captcha-json": Fault("UPSTREAM_BLOCKED", "a captcha instead of the list"),
    "login-json": Fault("TARGET_RESTRICTED", "only accounts are answered"),
    "login-json-later": Fault("OK", "the same from the second answer on"),
    "repeated-page": Fault("OK", "the first answer for ever; asking further is refused"),
    "results-empty-body": Fault("UPSTREAM_BLOCKED", "an empty body"),
    "results-empty-later": Fault("OK", "an empty body from the second answer on"),
    "results-server-error": Fault("UPSTREAM_ERROR", "500"),
    "results-rate-limited": Fault("UPSTREAM_RATE_LIMITED", "429 with Retry-After"),
    "results-slow": Fault("OK", "late"),
    "results-hang": Fault("UPSTREAM_TIMEOUT", "no answer ever"),
    "results-reset": Fault("UPSTREAM_TIMEOUT", "the connection is reset"),
    "results-not-json": Fault("UPSTREAM_ERROR", "a page of markup"),
    "results-broken": Fault("EXTRACTION_FAILED", "JSON that ends in the middle"),
    "results-deep": Fault("EXTRACTION_FAILED", "ten thousand nested lists"),
    "no-list": Fault("EXTRACTION_FAILED", "an answer without a list"),
    "blind": Fault("EXTRACTION_FAILED", "rows whose keys have new names"),
    "missing-author": Fault("EXTRACTION_FAILED", "a row without its author's id"),
    "no-picture-urls": Fault("EXTRACTION_FAILED", "a row whose pictures have no URL"),
    "missing-author-once": Fault("OK", "a row without its author's id, the first time"),
    # Doors that only scripts open are open here: this platform is always read in the browser.
    "browser-only": Fault("OK", "403 with a page whose script lets a browser in"),
}
"""What the site can do wrong, by the words that are searched for."""

WALLS = {
    "captcha": ("captcha", 0),
    "captcha-later": ("captcha", 1),
    "login-wall": ("login", 1),
    "login-wall-at-once": ("login", 0),
}
"""Walls that the page itself puts up: their kind, and after how many answers."""
CUT_SHORT = frozenset(
    {"captcha-later", "login-wall", "login-json-later", "raw-controls", "repeated-page", "results-empty-later"}
)
"""Faults that leave the first answer: the page's own script stumbles over raw controls too."""

ON_PAGE = frozenset({"login-redirect", "waiting-room", "waiting-room-closed"})
"""The site's own faults of the page; its others are faults of the page's call."""
FIRST_AGAIN = frozenset({"repeated-page"})
"""Faults that damage the first answer, whichever the call is for."""
JSON = {"Content-Type": "application/json; charset=utf-8"}

_PAGE = COMMON.keys() | ON_PAGE
_CALL = {
    "results-empty-body": "empty-body",
    "results-server-error": "server-error",
    "results-rate-limited": "rate-limited",
    "results-slow": "slow",
    "results-hang": "hang",
    "results-reset": "reset",
}


def of_page(words: str) -> str | None:
    """The fault that is played on the page itself."""
    return words if words in _PAGE else None


def of_call(words: str, offset: int) -> str | None:
    """The fault that is played on the page's call for the rows from ``offset``."""
    if offset == 0 if words in {"login-json-later", "results-empty-later"} else offset and words.endswith("-once"):
        return None
    if words == "results-empty-later":
        return "empty-body"
    if words in _CALL:
        return _CALL[words]
    return words if words in _ANSWERS or words.removesuffix("-once") in _DAMAGES else None


def readable(words: str, posts: Sequence[Post], first: int) -> Sequence[Post]:
    """The posts that can be read in spite of a fault."""
    if words in {"no-results", "sensitive"}:
        return ()
    return posts[:first] if words in CUT_SHORT else posts


def damaged_page(name: str, ask: FakeRequest, honest: HonestAnswer) -> Answer:
    """The answer of a fault of the search page."""
    if name == "login-redirect":
        return 302, {"Location": "/login?redirect_url=%2Fsearch"}, b""
    if name == "waiting-room" and "_wafchallengeid=42" in ask.headers.get("cookie", ""):
        return honest()
    return 200, {}, shortvideo_page.waiting_room(opens=name == "waiting-room")


def damaged_results(name: str, honest: HonestAnswer) -> Answer:
    """The answer of a fault of the page's call."""
    if name in _ANSWERS:
        return 200, JSON, _ANSWERS[name]
    status, headers, body = honest()
    answer = orjson.loads(body)
    found = _DAMAGES[name](answer)
    return status, headers, found if isinstance(found, bytes) else orjson.dumps(answer)


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


def _odd_status(answer: dict[str, Any]) -> None:
    answer["status_code"] = 403


def _raw_controls(answer: dict[str, Any]) -> bytes:
    return orjson.dumps(answer).replace(rb"\n", b"\n")


def _broken(answer: dict[str, Any]) -> bytes:
    body = orjson.dumps(answer)
    return body[: len(body) // 2]


def _blind(answer: dict[str, Any]) -> None:
    answer["item_list"] = [{f"{key}V3": value for key, value in row.items()} for row in answer["item_list"]]


def _missing_author(answer: dict[str, Any]) -> None:
    del answer["item_list"][0]["author"]["id"]


def _no_picture_urls(answer: dict[str, Any]) -> None:
    for image in answer["item_list"][0]["imagePost"]["images"]:
        image["imageURL"] = {"urlList": []}


def _as_it_is(answer: dict[str, Any]) -> None:
    """The first answer again is damage enough."""


_DAMAGES: dict[str, Callable[[dict[str, Any]], bytes | None]] = {
    "odd-status": _odd_status,
    "raw-controls": _raw_controls,
    "results-broken": _broken,
    "blind": _blind,
    "missing-author": _missing_author,
    "no-picture-urls": _no_picture_urls,
    "repeated-page": _as_it_is,
}
