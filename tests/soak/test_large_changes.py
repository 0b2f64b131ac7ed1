"""The changes of 50,000 products: all of them, in little memory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.changes import CHANGED, NAMES, NUMBER, PAGES, compared, fill

MAX_MEGABYTES = 100


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_the_changes_of_many_products_need_little_memory(tmp_path: Path, name: str) -> None:
    store = tmp_path / "store.sqlite3"
    asyncio.run(fill(store, name))
    found = compared(store, name)
    targets = PAGES if name == NAMES[0] else 1
    assert found["counts"] == {"compared": targets, "changed": NUMBER // CHANGED}
    assert found["megabytes"] <= MAX_MEGABYTES
