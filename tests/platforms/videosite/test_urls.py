"""Requests to the video site: only the params vary in URL and body."""

from __future__ import annotations

import orjson
import pytest
from scrapy import Request

from crawler.platforms import videosite
from crawler.platforms.videosite import urls as upstream

ORIGIN = videosite.PLATFORM.origin
CHANNEL = "UCuAXFkgsw1L7xaCfnd5JJOw"


@pytest.mark.parametrize(
    ("request_", "url"),
    [
        (upstream.channel_request("@some.body", "videos"), "/@some.body/videos"),
        (
            upstream.channel_request("@АсельИсакова-т4ц", "shorts"),
            "/@%D0%90%D1%81%D0%B5%D0%BB%D1%8C%D0%98%D1%81%D0%B0%D0%BA%D0%BE%D0%B2%D0%B0-%D1%824%D1%86/shorts",
        ),
        (upstream.channel_request(f"channel/{CHANNEL}", "streams"), f"/channel/{CHANNEL}/streams"),
        (upstream.channel_request("user/a?b#c", "videos"), "/user/a%3Fb%23c/videos"),
        (upstream.about_page_request(CHANNEL), f"/channel/{CHANNEL}/about"),
        (upstream.feed_request(CHANNEL), f"/feeds/videos.xml?channel_id={CHANNEL}"),
        (upstream.feed_request(CHANNEL, "shorts"), f"/feeds/videos.xml?playlist_id=UUSH{CHANNEL[2:]}"),
    ],
)
def test_page_requests(request_: Request, url: str) -> None:
    assert (request_.method, request_.url) == ("GET", ORIGIN + url)


def test_a_playlist_is_requested_with_its_params() -> None:
    body = orjson.loads(upstream.playlist_request(CHANNEL, "streams").body)
    assert (body["browseId"], body["params"]) == (f"VLUULV{CHANNEL[2:]}", "wgYCCAA%3D")


def test_newer_client_version_is_used() -> None:
    request = upstream.video_request("-abcdefghij", ids=upstream.SHIPPED.with_version("2.20270101.00.00"))
    assert orjson.loads(request.body)["context"]["client"]["clientVersion"] == "2.20270101.00.00"
    assert request.headers["X-YouTube-Client-Version"] == b"2.20270101.00.00"


@pytest.mark.parametrize(
    ("request_", "page_params"),
    [
        (upstream.channel_request("@a.b", "videos"), {"handle": "a.b", "tab": "videos"}),
        (upstream.channel_request(f"channel/{CHANNEL}", "videos"), {"channel": CHANNEL, "tab": "videos"}),
        (upstream.channel_request("c/name", "videos"), {"tab": "videos"}),
        (upstream.browse_request(CHANNEL, "shorts"), {"channel": CHANNEL, "tab": "shorts"}),
        (upstream.video_request("-abcdefghij"), {"video": "-abcdefghij"}),
    ],
)
def test_page_params_contain_the_expected_echo(request_: Request, page_params: dict[str, str]) -> None:
    assert request_.meta["page_params"] == page_params
