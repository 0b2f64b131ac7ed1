"""The rules for dlt in docs/loading.md: the example as printed, and what happens without its parts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.crawls import ROOT

# Not importorskip: each process of a test run would import dlt.
pytestmark = pytest.mark.skipif(find_spec("dlt") is None, reason="needs dlt: pip install -e '.[dev]'")
PROGRAM = re.compile(r"^cat > load\.py <<'END'\n(.*?)^END$", re.MULTILINE | re.DOTALL)
(EXAMPLE,) = PROGRAM.findall((ROOT / "docs/loading.md").read_text())
MERGE_KEY = '    merge_key="listing",\n'
CATEGORY, SEARCH = {"cat_id": "976759", "page": 1}, {"query": "mustard", "page": 1}


def product(params: dict[str, Any], item_id: str, price: Any, **more: Any) -> dict[str, Any]:
    row = {"params": params, "item_id": item_id, "name": f"Product {item_id}", "is_sponsored": False}
    return {**row, "price": {"current_price": price}, "availability": {"in_stock": True}} | more


FIRST = [
    product(CATEGORY, "a", None),
    product(CATEGORY, "b", 9, is_sponsored=True),
    product(CATEGORY, "b", 2.5),
    product(CATEGORY, "c", 3),
    product(SEARCH, "a", 1.5),
    product(SEARCH, "a", 1.5),
]
WITHOUT_SEARCH = [product(CATEGORY, "a", 1), product(CATEGORY, "b", 2.5)]
"""The next day: the search failed, one price is new, and one product is gone."""


def load(folder: Path, rows: list[dict[str, Any]], program: str = EXAMPLE) -> subprocess.CompletedProcess[str]:
    (folder / "load.py").write_text(program)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    environment = {**os.environ, "RUNTIME__DLTHUB_TELEMETRY": "false"}
    command = [sys.executable, "load.py", "rows.jsonl"]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=environment)


def versions(folder: Path, *, current: bool) -> list[Any]:
    """Return the listing, id and price of the current versions or of the former ones."""
    with duckdb.connect(str(folder / "shop.duckdb")) as connection:
        found = connection.execute(
            "select listing like '%query%', item_id, price from retail.products where (_dlt_valid_to is null) = $1"
            " order by all",
            [current],
        )
        return found.fetchall()


CURRENT = [(False, "a", 1.0), (False, "b", 2.5), (True, "a", 1.5)]
FORMER = [(False, "a", None), (False, "c", 3.0)]


def test_a_failed_page_ends_no_rows_and_a_load_with_other_types_changes_nothing(tmp_path: Path) -> None:
    for rows in (FIRST, WITHOUT_SEARCH):
        run = load(tmp_path, rows)
        assert run.returncode == 0, run.stderr
    assert (versions(tmp_path, current=True), versions(tmp_path, current=False)) == (CURRENT, FORMER)
    run = load(tmp_path, [product(CATEGORY, "a", "from $5")])
    assert run.returncode != 0
    assert "data_type" in run.stderr
    assert (versions(tmp_path, current=True), versions(tmp_path, current=False)) == (CURRENT, FORMER)


@pytest.mark.soak
def test_without_a_merge_key_a_failed_page_ends_its_rows(tmp_path: Path) -> None:
    assert MERGE_KEY in EXAMPLE
    for rows in (FIRST, WITHOUT_SEARCH):
        run = load(tmp_path, rows, EXAMPLE.replace(MERGE_KEY, ""))
        assert run.returncode == 0, run.stderr
    assert (versions(tmp_path, current=True), versions(tmp_path, current=False)) == (
        CURRENT[:2],
        [*FORMER, CURRENT[2]],
    )


@pytest.mark.soak
def test_without_own_types_a_price_gets_a_second_column(tmp_path: Path) -> None:
    own = re.compile(r"    columns=.*\n    schema_contract=.*\n")
    program, count = own.subn("", EXAMPLE)
    assert count == 1
    for price in (5, 4.99):
        run = load(tmp_path, [product(CATEGORY, "a", price)], program)
        assert run.returncode == 0, run.stderr
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        found = [name for name, *_ in connection.execute("describe retail.products").fetchall()]
    assert len([name for name in found if name.startswith("price")]) == 2
