from __future__ import annotations

from typing import Any

import pytest

from crawler.errors import InvalidRequest
from crawler.registry import scrapers
from crawler.targets.parser import check_params

SCRAPER = scrapers()["shortvideo-photo-search-v4"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"keywords": "whales"}, {"keywords": "whales", "cursor": "0", "count": 30}),
        ({"keywords": "a b", "cursor": "12", "count": 1}, {"keywords": "a b", "cursor": "12", "count": 1}),
        ({"keywords": "fi3-7", "count": 100}, {"keywords": "fi3-7", "cursor": "0", "count": 30}),
        ({"keywords": "x" * 200}, {"keywords": "x" * 200, "cursor": "0", "count": 30}),
    ],
)
def test_valid_params(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert check_params(SCRAPER, given).model_dump(exclude_none=True) == expected


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"keywords": ""}, "keywords"),
        ({"keywords": "  \t"}, "keywords"),
        ({"keywords": "x" * 201}, "keywords"),
        ({"keywords": 7}, "keywords"),
        ({"keywords": None}, "keywords"),
        ({"keywords": "x", "cursor": 0}, "cursor"),
        ({"keywords": "x", "cursor": "-1"}, "cursor"),
        ({"keywords": "x", "cursor": ""}, "cursor"),
        ({"keywords": "x", "cursor": "12\n"}, "cursor"),
        ({"keywords": "x", "cursor": "٣"}, "cursor"),
        ({"keywords": "x", "cursor": "1" * 7}, "cursor"),
        ({"keywords": "x", "count": 0}, "count"),
        ({"keywords": "x", "count": "12"}, "count"),
        ({"keywords": "x", "count": 1.5}, "count"),
        ({"keywords": "x", "url": "http://127.0.0.1"}, "url"),
        ({"keywords": "https://www.tiktok.com/search?q=x"}, "keywords"),
    ],
)
def test_invalid_params_are_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        check_params(SCRAPER, given)
    assert field in {detail["loc"][0] for detail in raised.value.details}
