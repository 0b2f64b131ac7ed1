"""Short-video: API responses with and without results, and failures.

``tests/platforms/shortvideo/test_pages.py`` covers further failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from crawler.errors import (
    ExtractionFailed,
    UpstreamBlocked,
    UpstreamError,
    UpstreamTimeout,
)
from crawler.platforms.shortvideo.pages import ResultsPage, SearchPage
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.shortvideo import page as shortvideo_page
from crawler.sandbox.shortvideo.site import Site
from tests.make_fixtures import Case, Failure

ORIGIN = "https://www.tiktok.com"
CALL = f"{ORIGIN}/api/search/photo/full/?keyword="

CALL_FAULTS: dict[str, Failure] = {
    "antispam-check": (UpstreamBlocked, "antispam_check"),
    "blind": (ExtractionFailed, "blind"),
    "no-authors": (ExtractionFailed, "blind"),
    "renamed-list": (ExtractionFailed, "no_list"),
    "renamed-pictures": (ExtractionFailed, "blind"),
    "results-deep": (ExtractionFailed, "broken_data_block"),
    "results-not-json": (UpstreamError, "not_json"),
}
WITH_DATA = ("missing-author", "no-picture-urls", "odd-status", "raw-controls")
WITHOUT_RESULTS = ("no-results", "sensitive")

CAPTCHA = b'<html><body><div id="tiktok-verify-ele"><img></div></body></html>'
CAPTCHA_MOUNT = b'<div id="tiktok-verify-ele"></div>'
NO_ANSWER = UpstreamTimeout, "no_answer"


def cases() -> Iterator[Case]:
    """Yield the cases of the short-video platform."""
    site = Site(light=True)
    answer = site.answer("whales", 0)
    truth = site.expected_record({"keywords": "whales"}) | {"cursor": str(answer["cursor"])}
    yield _response("results", orjson.dumps(answer), "whales", truth)
    # The search for all kinds of results has the same items, each in an entry.
    entries = [{"type": 1, "item": each} for each in answer.pop("item_list")]
    yield _response("general-results", orjson.dumps({"data": entries, **answer}), "whales", truth)
    expected: dict[str, Failure | dict[str, Any] | None] = {
        **CALL_FAULTS,
        **dict.fromkeys(WITH_DATA),
        **{name: site.expected_record({"keywords": name}) for name in WITHOUT_RESULTS},
    }
    for name, result in expected.items():
        _, _, body = site.damaged(name, FakeRequest("/", {"keyword": name, "offset": "0"}))
        yield _response(name, body, name, result)
    searching = site.page(FakeRequest("/search/photo", {"q": "whales"}))[2]
    pages: dict[str, tuple[bytes, Failure]] = {
        "captcha": (CAPTCHA, (UpstreamBlocked, "captcha")),
        "captcha-mount": (searching + CAPTCHA_MOUNT, NO_ANSWER),
        "login": (shortvideo_page.login(), (UpstreamBlocked, "login_wall")),
        "waiting-room": (shortvideo_page.waiting_room(opens=False), (UpstreamBlocked, "waiting_room")),
        "no-answer": (searching, NO_ANSWER),
        "other-page": (b"<html><title>Something else</title></html>", (ExtractionFailed, "no_search_page")),
    }
    for name, (body, failure) in pages.items():
        url = f"{ORIGIN}/{'login' if name == 'login' else 'search/photo'}?q=whales"
        yield Case(SearchPage, name, url, 200, body, {"keywords": "whales"}, failure)


def _response(name: str, body: bytes, keywords: str, expected: Failure | dict[str, Any] | None = None) -> Case:
    return Case(ResultsPage, name, CALL + keywords, 200, body, {"keywords": keywords}, expected)
