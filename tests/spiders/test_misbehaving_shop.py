"""Exhaustive crawls of a shop on loopback that misbehaves: complete with exit code 0, or incomplete with 4, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawls import lines
from tests.misbehaving import MODES, ROOT, MisbehavingShop
from tests.shop import Shop, open_shop

QUICK = ["priced", "wall-once", "wall-on-page", "total-low", "filter-stated", "page-lost-rows", "tree-redirect"]
"""The modes of the fast tier: one for each way in which a page becomes a fact."""


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as found:
        yield found


@pytest.mark.parametrize(
    "mode", [mode if mode in QUICK else pytest.param(mode, marks=pytest.mark.soak) for mode in MODES]
)
def test_a_crawl_is_complete_or_states_why_not(shop: Shop, tmp_path: Path, mode: str) -> None:
    # Unpriced products that no total counts are noticed only if a page shows one, which a larger category does.
    site = MisbehavingShop(mode, "ads-foreign", size=1_400 if mode == "total-priced" else 700)
    shop.site = site
    out, failures = tmp_path / "out.jsonl", tmp_path / "failures.jsonl"
    settings = {"FAILURES_FEED": str(failures), "BREAKER_THRESHOLD": 0}
    run = shop.crawl("-a", f"cat_id={ROOT}", "-a", "exhaustive=true", "-O", str(out), **settings)
    ids = [product["item_id"] for line in lines(out) for product in line["data"]["products"]]
    assert len(ids) == len(set(ids)), "each product once"
    if run.returncode == 0:
        assert (set(ids), lines(failures)) == (site.truth, [])
        return
    assert run.returncode == 4, run.stderr
    failed = lines(failures)
    if not failed:  # rows that could not be read are a warning of their own
        assert "unread" in run.stderr
        return
    (failure,) = failed
    assert failure["code"] == "EXTRACTION_FAILED", failure
    assert re.match(
        rf"The category (?:is|may be) incomplete: {len(ids):,}( of [\d,]+)? collected \([a-z_, ]+\)\.",
        failure["message"],
    )
