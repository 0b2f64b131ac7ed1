"""Requests to the retail platform: only the params vary in the URL."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.platforms import retail
from crawler.platforms.retail.urls import listing_request

ORIGIN = retail.PLATFORM.origin


@pytest.mark.parametrize(
    ("params", "url"),
    [
        ({"cat_id": "3944_1_2"}, "/browse/3944_1_2"),
        ({"cat_id": "3944", "page": 2}, "/browse/3944?page=2"),
        ({"cat_id": "3944", "sort": "price_low"}, "/browse/3944?sort=price_low"),
        ({"cat_id": "3944", "min_price": 0.0, "max_price": 19.9}, "/browse/3944?min_price=0.00&max_price=19.90"),
        ({"query": "mustard & co / 50%"}, "/search?q=mustard+%26+co+%2F+50%25"),
        ({"query": "mustard", "page": 3, "sort": "new"}, "/search?q=mustard&page=3&sort=new"),
    ],
)
def test_urls(params: dict[str, Any], url: str) -> None:
    request = listing_request(**params)
    assert (request.method, request.url) == ("GET", ORIGIN + url)


def test_page_params_contain_the_params() -> None:
    request = listing_request(cat_id="3944", page=2, sort="new", min_price=5)
    assert request.meta["page_params"].items() >= {"cat_id": "3944", "page": 2, "sort": "new"}.items()
