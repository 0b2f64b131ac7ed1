"""``PAYLOAD_NAMES`` lines suggested for changed payloads: seeded changes, insufficient evidence, incorrect lines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.platforms import platforms
from crawler.platforms.names import parse_names
from crawler.platforms.page import PlatformPage
from crawler.platforms.retail import payload
from crawler.platforms.retail.pages import SearchPage
from crawler.probe.repair import as_json, repair, report
from crawler.probe.reread import read_again
from crawler.reading.json import script_block
from crawler.reading.names import NO_NAMES, Line, Names
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from tests.probe.changes import Change, changes_of

SEEDS = range(1, 11)
"""The seeds were chosen before the code was ever run on their changes."""


def drawn(seed: int, *operations: str) -> Change:
    every = list(platforms())
    return changes_of(every[seed % len(every)], seed, operations or ("rename", "rename", "move"))


def outcome(change: Change, good: list[PlatformPage]) -> tuple[bool, list[str]]:
    """Return whether the suggested line restores the item from before the change, and the incorrect lines."""
    found = repair(change.changed, good, NO_NAMES)
    wrong = [str(each) for each in found.proven if each.line.further != change.further]
    if not found.proven or wrong:
        return False, wrong
    (page,) = read_again(change.changed, found.names)
    assert page.problems == [], change
    assert asyncio.run(page.page.to_item()) == change.truth, change
    return True, []


@pytest.mark.parametrize(("pages", "least"), [("good", 8), ("same", 9)])
def test_ten_drawn_changes_of_six_platforms_are_mended(pages: str, least: int) -> None:
    """``pages``: the pages from before the change, of other targets (``good``) or of the same target (``same``)."""
    changes = [drawn(seed) for seed in SEEDS]
    assert {str(each).partition(".")[0] for each in changes} == set(platforms())
    found = [outcome(each, getattr(each, pages)) for each in changes]
    assert [wrong for _, wrong in found if wrong] == []
    assert sum(right for right, _ in found) >= least
    for change in changes:
        (page,) = read_again(change.changed, NO_NAMES)
        assert any(change.value.paths[0].partition(".")[0] in each for each in page.problems), change


@pytest.mark.soak
def test_no_line_is_wrong_in_many_drawn_changes() -> None:
    changes = map(drawn, range(500, 700))
    found = [outcome(change, pages) for change in changes for pages in (change.good, change.same)]
    assert [wrong for _, wrong in found if wrong] == []
    assert sum(right for right, _ in found) > 0.6 * len(found)


@pytest.mark.parametrize("pages", ["good", "same"])
def test_a_removed_key_beside_a_new_one_of_the_same_type_proves_nothing(pages: str) -> None:
    changes = [drawn(seed, "replace") for seed in range(1, 37)]
    found = [repair(each.changed, getattr(each, pages), NO_NAMES) for each in changes]
    assert [str(line) for each in found for line in each.proven] == []
    assert all(each.left for each in found)


# A page of the shop

BODY = Site(light=True).page(FakeRequest("/search", {"q": "mustard"}))[2]
BLOCK = script_block(BODY, "__NEXT_DATA__")
Row = dict[str, Any]


def shop(*changes: Callable[[Row], object]) -> SearchPage:
    """Return a page of search results, all of whose products were changed."""
    assert BLOCK is not None
    data = orjson.loads(BLOCK)
    for stack in data["props"]["pageProps"]["initialData"]["searchResult"]["itemStacks"]:
        for row in stack["items"]:
            for change in changes if row["__typename"] == "Product" else ():
                change(row)
    response = HttpResponse("https://shop.example/search?q=mustard", BODY.replace(BLOCK, orjson.dumps(data)))
    return SearchPage(response=response, page_params=PageParams(query="mustard", page=1, sort="best_match"))


def rename(key: str, new: str) -> Callable[[Row], object]:
    return lambda row: row.update({new: row.pop(key)})


def remove(key: str) -> Callable[[Row], object]:
    return lambda row: row.pop(key)


def add(key: str, value: Callable[[Row], Any]) -> Callable[[Row], object]:
    return lambda row: row.update({key: value(row)})


def rating(row: Row) -> float:
    return round(1 + int(row["usItemId"]) % 37 / 10, 1)


def moved(row: Row) -> None:
    row["fulfillment"] = {"availabilityStatusV2": row.pop("availabilityStatusV2")}


CHANGES: dict[str, tuple[Callable[[Row], object], dict[str, str]]] = {
    "inside a path": (lambda row: rename("thumbnailUrl", "thumbnail_url")(row["imageInfo"]), {
        "imageInfo.thumbnailUrl": "imageInfo.thumbnail_url"
    }),
    "another level": (moved, {"availabilityStatusV2": "fulfillment.availabilityStatusV2"}),
    "another type": (lambda row: row.update(averageRating=[row["averageRating"]]), {}),
    "an object": (lambda row: row.update(averageRating={"value": row["averageRating"], "of": 5.0}), {}),
    "a near synonym": (rename("averageRating", "starRating"), {}),
    "a near synonym beside another": (
        lambda row: (rename("averageRating", "starRating")(row), add("sellerRating", rating)(row)), {}
    ),
    "a removed key": (remove("averageRating"), {}),
    "a removed key and a new one": (lambda row: (remove("averageRating")(row), add("sellerRating", rating)(row)), {}),
    "three keys, two of which have known values": (
        lambda row: (rename("sellerId", "a")(row), rename("sellerName", "b")(row), rename("offerId", "c")(row)),
        {"offerId": "c", "sellerId": "a", "sellerName": "b"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "lines"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("has_good", [False, True])
def test_only_proven_lines_are_used(change: Callable[[Row], object], lines: dict[str, str], *, has_good: bool) -> None:
    other = [add("usItemId", lambda row: f"9{row['usItemId']}"), add("averageRating", rating)]
    found = repair([shop(change)], [shop(*other)] if has_good else [], NO_NAMES)
    written = orjson.loads(as_json(found.names))
    if not has_good and "averageRating" not in str(lines):
        assert written in ({}, {"retail.Row": lines}), "the level of a key is known from a good page only"
    else:
        assert written == ({"retail.Row": lines} if lines else {})
    assert (found.left == []) == bool(written)
    assert parse_names(as_json(found.names).encode()).lines == found.names.lines


def test_values_of_the_same_rows_prove_a_line_with_any_name() -> None:
    found = repair([shop(rename("averageRating", "q"), add("r", rating))], [shop()], NO_NAMES)
    assert [(each.line.further, "are those of a good page" in each.evidence) for each in found.proven] == [("q", True)]


def test_an_unproven_line_is_shown_with_the_values_to_compare() -> None:
    found = repair([shop(rename("averageRating", "starRating"))], [shop(add("usItemId", lambda _row: "1"))], NO_NAMES)
    (line,) = [each for each in report(found) if each.startswith("unproven")]
    assert line.startswith("unproven   retail.Row averageRating -> starRating: not proven, compare the values; now")
    assert ", before " in line
    assert line.isprintable()


@pytest.mark.parametrize("old", [False, True], ids=["a new key", "a key of the good page, too"])
def test_a_wrong_line_is_found_by_the_values_of_good_pages(*, old: bool) -> None:
    line = Line(payload.Row, "averageRating", "sellerRating")
    changed = shop(rename("averageRating", "starRating"), add("sellerRating", rating))
    good = shop(add("sellerRating", rating), add("usItemId", lambda row: f"9{row['usItemId']}")) if old else shop()
    found = repair([changed], [good], Names((line,)))
    (sentence,) = found.wrong
    assert sentence.startswith("PAYLOAD_NAMES: retail.Row: sellerRating is not averageRating: its value in a row")
    right = Names((Line(payload.Row, "averageRating", "starRating"),))
    assert repair([changed], [good], right).wrong == []
