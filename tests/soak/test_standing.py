"""The standing attack finds wrong outcomes, and the product withstands it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.soak import standing
from tests.soak.books import Books
from tests.soak.clients import Ledger
from tests.soak.targets import SEARCH, Lines, Wanted

GOOD = Wanted(SEARCH, {"query": "tea"}, "OK")
GONE = Wanted(SEARCH, {"query": "gone-1"}, "TARGET_NOT_FOUND")
LINES: Lines = {"a": GOOD, "b": GONE, "c": None}


def record(id_: str, query: str = "tea") -> dict[str, Any]:
    return {"id": id_, "params": {"query": query, "page": 1}, "data": {"query": query}}


def failure(id_: str, code: str) -> dict[str, Any]:
    return {"id": id_, "params": LINES[id_].params if LINES[id_] else "x", "code": code}  # type: ignore[union-attr]


ALL = [failure("b", "TARGET_NOT_FOUND"), failure("c", "SCRAPER_NOT_FOUND")]


@pytest.mark.parametrize(
    ("records", "failures", "difference"),
    [
        ([record("a")], ALL, ""),
        ([], [failure("a", "UPSTREAM_ERROR"), *ALL], ""),
        ([], ALL, "no outcome ['a'], too many []"),
        ([record("a"), record("a")], ALL, "no outcome [], too many ['a']"),
        ([record("a")], [failure("a", "UPSTREAM_ERROR"), *ALL], "no outcome [], too many ['a']"),
        ([record("a", "coffee")], ALL, "the params {'query': 'coffee', 'page': 1} for "),
        ([{**record("a"), "data": {"query": "coffee"}}], ALL, "the record of 'coffee' for "),
        ([record("a"), record("b", "gone-1")], ALL[1:], "OK for "),
        ([], [failure("a", "TARGET_NOT_FOUND"), *ALL], "TARGET_NOT_FOUND for "),
        ([record("a")], [ALL[0], failure("c", "UPSTREAM_ERROR")], "UPSTREAM_ERROR for a line that is no target"),
    ],
)
def test_a_lost_doubled_or_wrong_outcome_is_a_difference(
    records: list[dict[str, Any]], failures: list[dict[str, Any]], difference: str
) -> None:
    ledger = Ledger()
    books = Books(SimpleNamespace(ledger=ledger), "")  # type: ignore[arg-type]  # its clients are not used
    books.check_outcomes("job", LINES, records, failures)
    assert len(ledger.differences) == bool(difference)
    assert difference in "".join(ledger.differences)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_the_product_withstands_everything_at_once(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert standing.main(["--seed", str(seed), "--minutes", "2"]) == 0, capsys.readouterr().out
