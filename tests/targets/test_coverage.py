"""Counts of listings for which each page is a separate target."""

from __future__ import annotations

from crawler.targets.coverage import Coverage, Tally


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
