"""Requests to the professional network: only the member's name varies in the URL."""

from __future__ import annotations

import pytest

from crawler.platforms import professional
from crawler.platforms.professional.urls import profile_request

ORIGIN = professional.PLATFORM.origin


@pytest.mark.parametrize(
    ("slug", "path"),
    [
        ("jane-doe-1a2b", "/in/jane-doe-1a2b"),
        ("josé-maría", "/in/jos%C3%A9-mar%C3%ADa"),
        ("נועה", "/in/%D7%A0%D7%95%D7%A2%D7%94"),
        ("a/../b?c#d", "/in/a%2F..%2Fb%3Fc%23d"),
    ],
)
def test_urls(slug: str, path: str) -> None:
    request = profile_request(slug)
    assert (request.method, request.url) == ("GET", ORIGIN + path)
    assert request.meta["page_params"] == {"slug": slug}


def test_the_public_site_has_country_editions() -> None:
    origins = professional.PLATFORM.other_origins
    assert {"https://se.linkedin.com", "https://uk.linkedin.com"} <= origins
    assert all(len(origin) == len("https://se.linkedin.com") for origin in origins)
