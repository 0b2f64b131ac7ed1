"""Every scraper's data model refuses records with missing, additional or wrong values, and names their paths."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

import orjson
import pytest

from crawler.errors import ExtractionFailed
from crawler.pipelines import validated
from crawler.registry import scrapers

NAMES = sorted({scraper.name for scraper in scrapers().values()})
OPTIONAL = {"badges", "flag", "max_price"}
"""Keys that a record need not have."""
FIXED = {"company_name_source", "content_type", "content_id", "profile_id"}
"""Keys of ids of a fixed length, and of words of a list."""
OTHER_TYPE: dict[type, Any] = {str: 7, bool: 1, int: "7", float: "7", list: {}, dict: []}
"""Values that must not be converted to the type of the record's value."""

Path = tuple[str | int, ...]


@cache
def example(name: str) -> bytes:
    """Return the record of a scraper's example target, as JSON."""
    scraper = scrapers()[name]
    site = import_module(f"crawler.sandbox.{scraper.platform}.site").Site(light=True)
    return orjson.dumps(site.expected_record({"scraper": name, **scraper.example}))


def objects(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all objects. Of each list, only the first entry is included."""
    if isinstance(value, dict):
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, child in children:
        yield from objects(child, (*path, key))


def changed(name: str, path: Path) -> tuple[Any, Any]:
    """Return a copy of the example record, and its object at a path."""
    record: Any = orjson.loads(example(name))
    holder = record
    for step in path:
        holder = holder[step]
    return record, holder


def refused(name: str, record: Any) -> list[Path]:
    """Return the paths that the data model refuses."""
    try:
        assert validated(scrapers()[name].data, record) == record
    except ExtractionFailed as error:
        return [tuple(detail["loc"]) for detail in error.details]
    return []


@pytest.mark.parametrize("name", NAMES)
def test_missing_additional_and_converted_values_are_refused_with_their_path(name: str) -> None:
    record = orjson.loads(example(name))
    assert refused(name, record) == []
    for path in objects(record):
        _, values = changed(name, path)
        for key, value in values.items():
            damaged, holder = changed(name, path)
            del holder[key]
            assert refused(name, damaged) == ([] if key in OPTIONAL else [(*path, key)])
            holder[key] = OTHER_TYPE.get(type(value), {"other": [1]})
            assert any(each[: len(path) + 1] == (*path, key) for each in refused(name, damaged)), (path, key)
        damaged, holder = changed(name, path)
        holder["surprise"] = 1
        assert refused(name, damaged) == [(*path, "surprise")]


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("retail-search-v4", ("products", 0, "item_id"), ""),
        ("retail-search-v4", ("products", 0, "name"), ""),
        ("retail-search-v4", ("products", 0, "name"), None),
        ("retail-search-v4", ("products", 0, "is_sponsored"), None),
        ("retail-search-v4", ("products", 0, "variant_count"), 1.5),
        ("shortvideo-photo-search-v4", ("search_item_list", 0, "aweme_id"), ""),
        ("shortvideo-photo-search-v4", ("search_item_list", 0, "url"), ""),
        ("shortvideo-photo-search-v4", ("search_item_list", 0, "author", "uid"), ""),
        ("shortvideo-photo-search-v4", ("search_item_list", 0, "create_time"), 0),
        ("shortvideo-photo-search-v4", ("search_item_list", 0, "image_post_info", "images"), []),
        ("photoapp-post-v4", ("taken_at_timestamp",), 0),
        ("retail-category-v4", ("page",), 0),
        ("retail-search-v4", ("page",), 0),
    ],
)
def test_empty_mandatory_values_are_refused_with_their_path(name: str, path: Path, value: Any) -> None:
    record, holder = changed(name, path[:-1])
    holder[path[-1]] = value
    assert refused(name, record) == [path]


@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_mandatory_values_are_accepted(name: str) -> None:
    """A text of one character, and the number 1. The other values are those of ``FIXED``."""
    for path in objects(orjson.loads(example(name))):
        _, values = changed(name, path)
        for key, value in values.items():
            record, holder = changed(name, path)
            if isinstance(value, str):
                holder[key] = ""
                if not refused(name, record):
                    continue
                holder[key] = "1"
                found = refused(name, record)
                assert not found or key in FIXED, (path, key)
            elif type(value) in {int, float}:
                holder[key] = 1
                assert refused(name, record) == [], (path, key)
