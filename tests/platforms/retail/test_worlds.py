"""A crawl of a category with a fault collects everything, or reports what is missing and why."""

from __future__ import annotations

from functools import cache

import pytest

from crawler.sandbox.retail.site import Site
from crawler.sandbox.retail.trees import WORLD_FAULTS, WORLD_SIZES, world_id
from tests.platforms.retail.worlds import FEWEST, Sweep, sweep

MAY_LACK = {"filter-ignored", "moving", "shrinking", "repeated-page", "leads-back", "overstated"}
"""With these faults, a crawl may miss products, or may not be able to know that it has all of them."""
QUICK = [("976759", seed) for seed in (1, 2)] + [("4044", 3)]
ALL = [(size, seed) for size in WORLD_SIZES for seed in range(1, 21)]


@cache
def site() -> Site:
    return Site()


@cache
def swept(size: str, fault: str, seed: int) -> Sweep:
    return sweep(site(), world_id(size, fault, seed))


def check(size: str, fault: str, seed: int) -> None:
    found = swept(size, fault, seed)
    assert found.is_honest, found
    assert found.coverage.collected <= found.truth
    assert found.coverage.collected == found.truth or fault in MAY_LACK, found
    assert found.coverage.collected >= 0.9 * found.truth, found


@pytest.mark.parametrize("fault", WORLD_FAULTS)
@pytest.mark.parametrize(("size", "seed"), QUICK)
def test_nothing_is_lost_in_silence(size: str, seed: int, fault: str) -> None:
    check(size, fault, seed)


@pytest.mark.soak
@pytest.mark.parametrize("fault", WORLD_FAULTS)
@pytest.mark.parametrize(("size", "seed"), ALL)
def test_nothing_is_lost_in_silence_in_any_world(size: str, seed: int, fault: str) -> None:
    check(size, fault, seed)


@pytest.mark.parametrize("size", ["976759", "4044", pytest.param("880001", marks=pytest.mark.soak)])
def test_priced_products_take_few_requests(size: str) -> None:
    assert swept(size, "priced", 4).requests <= 1.1 * FEWEST[size]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("overstated", "fewer_than_stated"), ("repeated-page", "repeated_page")],
)
def test_the_reason_is_named(fault: str, reason: str) -> None:
    found = swept("976759", fault, 1)
    assert reason in found.coverage.reasons


def test_a_loop_of_categories_ends() -> None:
    assert swept("4044", "tree-loop", 3).requests <= 1.1 * FEWEST["4044"]
