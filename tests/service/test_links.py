"""Calls with URLs of the real platforms, as users paste them, to an endpoint with the sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from tests.crawls import comparable
from tests.service.client import call
from tests.service.conftest import Service

SAME: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("retail-category-v4", {"cat_id": "976759"}, {"url": "https://www.walmart.com/cp/food/976759?povid=x"}),
    (
        "retail-category-v4",
        {"cat_id": "976759", "page": 2, "sort": "price_low"},
        {"url": "walmart.com/browse/food/976759?page=2&sort=price_low"},
    ),
    ("retail-search-v4", {"query": "mustard"}, {"url": "https://www.walmart.com/search?q=mustard&typeahead=m"}),
    ("microblog-profile", {"username": "quiet_harbor"}, {"url": "https://twitter.com/quiet_harbor?s=20"}),
    ("professional-profile-v4", {"username": "mara-lindqvist"}, {"url": "se.linkedin.com/in/mara-lindqvist/de"}),
    ("videosite-profile-v3", {"username": "@harborlights"}, {"url": "https://m.youtube.com/@harborlights?si=x"}),
    (
        "videosite-profile",
        {"username": "@harborlights", "type": "short"},
        {"url": "https://www.youtube.com/@harborlights/shorts"},
    ),
    ("videosite-profile", {"username": "HarborLightsTV"}, {"url": "https://www.youtube.com/c/HarborLightsTV"}),
    ("videosite-profile", {"username": "user/HarborLightsTV"}, {"url": "youtube.com/HarborLightsTV/videos"}),
    (
        "photoapp-post-v4",
        {"url": "https://www.instagram.com/p/DaSandbox01/"},
        {"url": "instagram.com/somebody/reel/DaSandbox01?igsh=x"},
    ),
]


@pytest.mark.parametrize(("scraper", "own", "link"), SAME)
def test_us3_2_a_link_gives_the_record_of_the_params(
    service: Service, scraper: str, own: dict[str, Any], link: dict[str, Any]
) -> None:
    records = [call(service.url, f"/v1/scrapers/{scraper}", params) for params in (own, link)]
    assert [record.status for record in records] == [200, 200], [record.body for record in records]
    first, second = (comparable(record.body["data"]) for record in records)
    assert first == second


@pytest.mark.parametrize(
    ("scraper", "url", "message"),
    [
        ("retail-category-v4", "https://www.walmart.com/search?q=a", "which retail-search-v4 can read"),
        ("videosite-profile", "https://x.com/nasa", "which microblog-profile can read (spider microblog)"),
        ("videosite-profile", "https://youtu.be/dQw4w9WgXcQ", "this is a short link to a video"),
        ("microblog-profile", "https://t.co/aB3dE5fG7h", "t.co has short links"),
        ("shortvideo-photo-search-v4", "https://vm.tiktok.com/ZMhKq3xYz/", "vm.tiktok.com has short links"),
        ("professional-profile-v4", "https://user:secret@www.linkedin.com/in/a", "a user name or a password"),
    ],
)
def test_us3_2_other_links_are_refused_and_name_the_scraper(
    service: Service, scraper: str, url: str, message: str
) -> None:
    reply = call(service.url, f"/v1/scrapers/{scraper}", {"url": url})
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    assert reply.body["error"]["details"][0]["loc"] == ["url"]
    assert message in reply.body["error"]["message"]
    assert "secret" not in str(reply.body)
