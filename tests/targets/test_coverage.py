"""Counts of listings for which each page is a separate target."""

from __future__ import annotations

from dataclasses import replace

from crawler.registry import spiders
from crawler.targets.coverage import Coverage
from crawler.targets.listings import Listings
from crawler.targets.parser import TargetParser
from crawler.targets.target import Target


def page(number: int) -> Target:
    target = TargetParser(spiders()["retail"].scrapers).parse({"cat_id": "976759", "page": str(number)}, text=True)
    assert isinstance(target, Target)
    return target if number == 1 else replace(target, parent="a")


def test_a_page_that_is_released_again_on_another_lane_counts_once() -> None:
    listings = Listings()
    first, second = page(1), page(2)
    listings.add(first, ["a", "b"], 4, is_first=True)
    listings.pass_on(first, second)
    for released in (second, replace(second)):
        listings.add(released, ["c", "d"], 4, is_first=False)
    assert listings.close(second, ended=True) == Coverage(4, 4)


def test_a_later_page_with_the_same_rows_is_reported() -> None:
    listings = Listings()
    first, second = page(1), page(2)
    listings.add(first, ["a", "b"], 4, is_first=True)
    listings.pass_on(first, second)
    listings.add(second, ["a", "b"], 4, is_first=False)
    assert listings.close(second, ended=True) == Coverage(4, 2, ("repeated_page", "fewer_than_stated"))
