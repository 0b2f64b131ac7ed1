"""Requests of the photo app: what is asked for reaches the path, and nothing else does."""

from __future__ import annotations

import pytest
from scrapy import Request

from crawler.platforms.photoapp.requests import embed_request, post_request, reels_request, share_request

ORIGIN = "https://photos.example"


@pytest.mark.parametrize(
    ("request_", "path", "asked"),
    [
        (post_request(ORIGIN, "DeAZ0uAgNuA"), "/p/DeAZ0uAgNuA/", {"shortcode": "DeAZ0uAgNuA"}),
        (embed_request(ORIGIN, "De_-0uAgNuA"), "/p/De_-0uAgNuA/embed/captioned/", {"shortcode": "De_-0uAgNuA"}),
        (reels_request(ORIGIN, "some.name_1"), "/some.name_1/reels/", {"username": "some.name_1"}),
        (reels_request(ORIGIN, "../p/x?y#z"), "/..%2Fp%2Fx%3Fy%23z/reels/", {"username": "../p/x?y#z"}),
        (share_request(ORIGIN, "share/p/BAx"), "/share/p/BAx/", {"share": "share/p/BAx"}),
    ],
)
def test_requests(request_: Request, path: str, asked: dict[str, str]) -> None:
    assert (request_.method, request_.url) == ("GET", ORIGIN + path)
    assert request_.meta["page_params"] == asked


def test_a_page_is_asked_for_as_a_browser_opens_a_link() -> None:
    headers = post_request(ORIGIN, "x").headers
    assert headers["Sec-Fetch-Mode"] == b"navigate"
    assert headers["Sec-Fetch-Dest"] == b"document"
    assert headers["Accept-Language"].startswith(b"en-US")  # type: ignore[union-attr]  # it has one


def test_only_the_redirect_of_a_share_link_is_not_followed() -> None:
    assert share_request(ORIGIN, "share/x").meta["dont_redirect"]
    assert "dont_redirect" not in post_request(ORIGIN, "x").meta
