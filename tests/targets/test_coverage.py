"""Counts of listings for which each page is a separate target."""

from __future__ import annotations

import pytest

from crawler.platforms.coverage import Coverage, Tally


def test_a_page_that_is_released_again_on_another_lane_counts_once() -> None:
    tally = Tally()
    tally.add("first", ["a", "b"], 4)
    for _ in range(2):
        tally.add("second", ["c", "d"], 4)
    assert tally.coverage(ended=True) == Coverage(4, 4)


def test_a_later_page_with_the_same_rows_is_reported() -> None:
    tally = Tally()
    tally.add("first", ["a", "b"], 4)
    tally.add("second", ["a", "b"], 4)
    assert tally.coverage(ended=True) == Coverage(4, 2, ("repeated_page", "fewer_than_stated"))


@pytest.mark.parametrize("rows", [["a"], []])
def test_a_listing_is_stuck_after_three_pages_without_a_new_row(rows: list[str]) -> None:
    tally = Tally()
    found = []
    for number, ids in enumerate([["a"], rows, rows, ["a", "b"], rows, rows, rows]):
        tally.add(str(number), ids, 9)
        found.append(tally.is_stuck)
    assert found == [False] * 6 + [True]
    repeated = ("repeated_page",) if rows else ()
    assert tally.coverage(ended=None) == Coverage(9, 2, (*repeated, "no_end"))


@pytest.mark.parametrize(
    ("stated", "ids", "advertised", "ceiling", "reasons"),
    [
        (4, "abcd", 0, 9, ()),
        (4, "abcd", 5, 9, ("ceiling",)),
        (3, "abcd", 0, 9, ("more_than_stated",)),
        (3, "abcd", 0, None, ()),  # the stated number may be rounded
        (5, "abcd", 5, 9, ("fewer_than_stated",)),
        (None, "abcd", 0, 9, ()),
    ],
)
def test_a_listing_with_a_ceiling_is_complete_only_if_it_has_the_stated_number(
    stated: int | None, ids: str, advertised: int, ceiling: int | None, reasons: tuple[str, ...]
) -> None:
    tally = Tally()
    tally.add("first", list(ids), stated, advertised=advertised)
    assert tally.coverage(ended=True, ceiling=ceiling) == Coverage(stated, 4, reasons)


@pytest.mark.parametrize(("ended", "reasons"), [(True, ("unproven",)), (False, ("no_end", "unproven")), (None, ())])
def test_a_listing_with_an_unproven_page_is_never_complete(ended: bool | None, reasons: tuple[str, ...]) -> None:  # noqa: FBT001  # a table
    tally = Tally()
    tally.add("first", ["a"], 2, is_proven=False)
    tally.add("second", ["b"], 2)
    assert tally.coverage(ended=ended) == Coverage(2, 2, reasons)
