"""50,000 products in a database need at most 300 MB and 60 seconds of processor time, also when they are replaced."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.crawls import ROOT
from tests.outputs.test_sql import Content
from tests.soak.products import SCRAPER

PRODUCTS = 50_000


@pytest.mark.soak
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_the_cost_of_many_products(request: pytest.FixtureRequest, tmp_path: Path, database: str) -> None:
    url = f"sqlite:///{tmp_path}/out.db" if database == "sqlite" else request.getfixturevalue("postgresql_store")
    command = [sys.executable, "-m", "tests.soak.products", str(PRODUCTS), url]
    for _ in range(2):
        megabytes, seconds = map(float, subprocess.check_output(command, cwd=ROOT, text=True).split())
        assert megabytes <= 300
        assert seconds <= 60
    content = Content(url, SCRAPER)
    assert len(content.rows("retail_search_v4_products", "item_id")) == PRODUCTS
    content.close()
