"""The simulated short-video site: determinism, realistic structure, and an API that only its own page can call."""

from __future__ import annotations

import orjson
import pytest

from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.shortvideo.page import RESULTS, SCRIPT, signature
from crawler.sandbox.shortvideo.site import FAULTS, PAGE_SIZE, Site

AGENT = "Browser/1.0"


def signed(site: Site, words: str, start: int, **changes: str) -> FakeRequest:
    """Return an API request with the signature that the page's script adds."""
    args = {
        "keyword": words,
        "offset": str(start),
        "search_id": site.log_id(words) if start else "",
        "X-Bogus": signature("|".join((site.nonce(words), words, str(start), AGENT))),
    }
    return FakeRequest(RESULTS, args | changes, headers={"user-agent": AGENT})


def test_signed_call_gets_results() -> None:
    status, _, body = Site().page(signed(Site(), "whales", 0))
    assert (status, orjson.loads(body)["cursor"]) == (200, PAGE_SIZE)


@pytest.mark.parametrize(
    "changes",
    [
        {"X-Bogus": ""},
        {"X-Bogus": "00000000"},
        {"keyword": "another search"},
        {"offset": "24"},
        {"search_id": ""},
    ],
)
def test_call_with_a_wrong_signature_is_refused(changes: dict[str, str]) -> None:
    assert Site().page(signed(Site(), "whales", 12, **changes)) == (200, {"Content-Type": "application/json"}, b"")


def test_call_from_another_browser_is_refused() -> None:
    request = signed(Site(), "whales", 0)
    assert Site().page(FakeRequest(RESULTS, request.args, headers={"user-agent": "Other/1.0"}))[2] == b""


def test_script_is_served_at_another_origin_only() -> None:
    page = Site().page(FakeRequest("/search/photo", {"q": "whales"}, headers={"host": "127.0.0.1:81"}))[2]
    assert f'<script src="//localhost:81{SCRIPT}">'.encode() in page
    assert Site().page(FakeRequest(SCRIPT, headers={"host": "127.0.0.1:81"}))[0] == 404
    assert Site().page(FakeRequest(SCRIPT, headers={"host": "localhost:81"}))[0] == 200


@pytest.mark.parametrize("words", ["whales", "long list"])
def test_responses_overlap_and_contain_other_kinds_of_posts(words: str) -> None:
    site = Site()
    first, second = site.answer(words, 0), site.answer(words, PAGE_SIZE)
    assert first["item_list"][-1] == second["item_list"][0]
    kinds = {post.kind for post in site.posts("long list")}
    assert kinds == {"photo", "video", "live", "empty"}


def test_every_fault_is_listed() -> None:
    faults = Site().catalogue()["faults"]
    assert {name: fault["params"] for name, fault in faults.items()} == {name: {"keywords": name} for name in FAULTS}
