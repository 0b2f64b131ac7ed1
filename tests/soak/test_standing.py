"""The standing attack finds what is wrong in books, outcomes and logs, and the product withstands it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.soak import standing
from tests.soak.books import Books
from tests.soak.clients import Ledger
from tests.soak.product import Product
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


@pytest.mark.parametrize(
    ("log", "found"),
    [
        ("level=info event=call\n", 0),
        ("event=failed\nTraceback (most recent call last):\n  File 'x'\nValueError: 1\n" * 2, 1),
        ('event="never retrieved\\nTraceback (most recent call last):\\n  File x\\nValueError: 1"\n', 1),
    ],
)
def test_a_traceback_in_a_log_is_a_difference(tmp_path: Path, log: str, found: int) -> None:
    product = Product(tmp_path, {}, {}, 1)
    (tmp_path / "logs/serve-1").write_text(log)
    assert len(product.logged_errors()) == found


@pytest.mark.parametrize("differences", [[], ["a target is lost"]])
def test_differences_give_exit_code_1_and_the_command_that_repeats_the_attack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], differences: list[str]
) -> None:
    @contextmanager
    def prepared(seed: int, _folder: Path) -> Iterator[Any]:
        ledger = Ledger(Counter(differences))
        yield SimpleNamespace(
            seed=seed,
            database=SimpleNamespace(server=None),
            product=SimpleNamespace(endpoints=1),
            workers=1,
            kills_endpoint=True,
            run=lambda _: None,
            clients=SimpleNamespace(ledger=ledger),
            struck=Counter[str](),
            tenths=[],
        )

    monkeypatch.setattr(standing, "prepared", prepared)
    assert standing.main(["--seed", "7", "--minutes", "2"]) == len(differences)
    printed = capsys.readouterr().out
    assert ("scripts/attack --seed 7 --minutes 2" in printed) == bool(differences)
    assert all(each in printed for each in differences)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_the_product_withstands_everything_at_once(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert standing.main(["--seed", str(seed), "--minutes", "2"]) == 0, capsys.readouterr().out
