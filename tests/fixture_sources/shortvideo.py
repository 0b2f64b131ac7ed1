"""Short-video: responses with results, and every error of a response or of the page."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from crawler.platforms.shortvideo.pages import ResultsPage, SearchPage
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.shortvideo import page as shortvideo_page
from crawler.sandbox.shortvideo.site import Site
from tests.make_fixtures import Case

ORIGIN = "https://www.tiktok.com"
CALL = f"{ORIGIN}/api/search/photo/full/?keyword="
PAGE = f"{ORIGIN}/search/photo?q="

CALL_FAULTS = (
    "antispam-check",
    "blind",
    "captcha-json",
    "login-json",
    "missing-author",
    "no-authors",
    "no-list",
    "no-picture-urls",
    "no-results",
    "odd-status",
    "raw-controls",
    "refused-status",
    "renamed-list",
    "renamed-pictures",
    "results-broken",
    "results-deep",
    "results-not-json",
    "sensitive",
)

CAPTCHA_MOUNT = b'<div id="tiktok-verify-ele"></div>'


def cases() -> Iterator[Case]:
    """The platform's fixtures."""
    site = Site(light=True)
    yield _response("web-results", orjson.dumps(site.answer("whales", 0)), "whales")
    for fault in CALL_FAULTS:
        _, _, body = site.damaged(fault, FakeRequest("/", {"keyword": fault, "offset": "0"}))
        yield _response(fault, body, fault)
    yield _response("empty-body", b"", "x")
    yield _response("rate-limited", b"slow down", "x", status=429)
    for name, body, path in (
        ("captcha", b'<html><body><div id="tiktok-verify-ele"><img></div></body></html>', "/search/photo"),
        ("captcha-mount", site.page(FakeRequest("/search/photo", {"q": "x"}))[2] + CAPTCHA_MOUNT, "/search/photo"),
        ("login", shortvideo_page.login(), "/login"),
        ("waiting-room", shortvideo_page.waiting_room(opens=False), "/search/photo"),
        ("no-answer", site.page(FakeRequest("/search/photo", {"q": "whales"}))[2], "/search/photo"),
        ("other-page", b"<html><title>Something else</title></html>", "/search/photo"),
    ):
        yield Case(SearchPage, name, f"{ORIGIN}{path}?q=whales", 200, body, {"keywords": "whales"})


def _response(name: str, body: bytes, keywords: str, *, status: int = 200) -> Case:
    return Case(ResultsPage, name, CALL + keywords, status, body, {"keywords": keywords})
