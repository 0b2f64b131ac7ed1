from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from crawler.errors import InvalidRequest
from crawler.platforms.shortvideo.payload import Item, Picture
from crawler.platforms.shortvideo.post import photo_post
from crawler.reading.contract import Contract, values
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


# Values that the website does not have


def filled(kind: type[Contract]) -> Any:
    """Return an instance of a contract in which every value is filled."""
    of_kind: dict[type[Contract], dict[str, Any]] = {
        Item: {"created": 1_747_676_981, "anchors": [{"id": "1"}]},
        Picture: {"urls": ["https://cdn.example/a.jpeg"]},
    }
    found: dict[str, Any] = {}
    for value in values(kind):
        plain = True if value.type is bool else 7 if int in get_args(value.type) else "text"
        one: Any = filled(value.contracts[0]) if value.contracts else plain
        found[value.name] = [one] if value.many else one
    return kind(**(found | of_kind.get(kind, {})))


def cells(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from cells(inside, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict) and path != "anchors":
        yield from cells(value[0], path)
    else:
        yield path, value


NEVER_FILLED = {
    r".*\.url_prefix": 16,
    r"(author\.avatar_\w+|music\.\w+|video\.\w+)\.(height|width)": 24,
    r".*\.owner_watermark_image\.(height|width|uri|url_list)": 8,
    r"author\.(events|language|region|short_id|social_info)": 5,
    r"commerce_info\.\w+": 6,
    r"statistics\.(download|forward|lose|lose_comment|chatapp_share)_count": 5,
    r"music\.(is_original|owner_nickname|user_count)": 3,
    r"video\.(data_size|watermark_data_size)": 2,
    r"is_eligible_for_commission|is_nff_or_nr|media_id|shop_product_url": 4,
}
"""The values that no record has: a pattern, and the number of values that it matches."""


def test_the_documented_values_are_never_filled_and_all_others_can_be() -> None:
    every = dict(cells(photo_post(filled(Item))))
    empty = [path for path, value in every.items() if value in (None, "", [])]
    assert {row: sum(bool(re.fullmatch(row, path)) for path in empty) for row in NEVER_FILLED} == NEVER_FILLED
    assert len(empty) == sum(NEVER_FILLED.values())
    page = (Path(__file__).parents[3] / "docs" / "platforms" / "shortvideo.md").read_text()
    assert f"A row has {len(every)} values, and {len(empty)} of them are null or empty in every record." in page
