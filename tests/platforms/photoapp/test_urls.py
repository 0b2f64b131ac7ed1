"""Requests to the photo app: nothing but the params varies in their paths."""

from __future__ import annotations

import pytest
from scrapy import Request

from crawler.platforms import photoapp
from crawler.platforms.photoapp.urls import embed_request, post_request, reels_request, share_request

ORIGIN = photoapp.PLATFORM.origin


@pytest.mark.parametrize(
    ("request_", "path", "params"),
    [
        (post_request("DeAZ0uAgNuA"), "/p/DeAZ0uAgNuA/", {"shortcode": "DeAZ0uAgNuA"}),
        (embed_request("De_-0uAgNuA"), "/p/De_-0uAgNuA/embed/captioned/", {"shortcode": "De_-0uAgNuA"}),
        (reels_request("some.name_1"), "/some.name_1/reels/", {"username": "some.name_1"}),
        (reels_request("../p/x?y#z"), "/..%2Fp%2Fx%3Fy%23z/reels/", {"username": "../p/x?y#z"}),
        (share_request("share/p/BAx"), "/share/p/BAx/", {"share": "share/p/BAx"}),
    ],
)
def test_requests_have_their_path_and_params(request_: Request, path: str, params: dict[str, str]) -> None:
    assert (request_.method, request_.url) == ("GET", ORIGIN + path)
    assert request_.meta["page_params"] == params


def test_only_share_links_disable_redirects() -> None:
    assert share_request("share/x").meta["dont_redirect"]
    assert "dont_redirect" not in post_request("x").meta
