"""The forty lines of Python in ``docs/clients.md``: links in, rows out, and each form of paging."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from tests.crawls import ROOT
from tests.service.conftest import Service

PAGE = (ROOT / "docs/clients.md").read_text()


@pytest.fixture(scope="module")
def client(service: Service) -> dict[str, Any]:
    found = re.search(r"^cat > client.py <<'END'\n(.*?)^END$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1].replace("http://127.0.0.1:8000", service.url), names)  # noqa: S102  # the page's own code
    assert len(found[1].splitlines()) <= 40
    return names


def test_links_become_rows_and_failures(client: dict[str, Any]) -> None:
    links = ["https://www.walmart.com/browse/976759", "https://x.com/gone", "no link"]
    rows, failures = client["run"](links)
    assert [row["scraper"] for row in rows] == ["retail-category-v4"]
    assert sorted(failure["code"] for failure in failures) == ["INVALID_REQUEST", "TARGET_NOT_FOUND"]


PAGED = {
    "retail-category-v4": ({"cat_id": "976759"}, "products"),
    "retail-search-v4": ({"query": "mustard"}, "products"),
    "microblog-profile": ({"username": "quiet_harbor"}, "data.main"),
    "videosite-profile": ({"username": "@harborlights"}, "posts"),
    "videosite-profile-v3": ({"username": "@harborlights"}, "posts"),
}
IN_BROWSER = {"shortvideo-photo-search-v4": ({"keywords": "whales"}, "search_item_list")}


@pytest.mark.parametrize(
    ("name", "params", "rows"),
    [
        *((name, *case) for name, case in PAGED.items()),
        *(pytest.param(name, *case, marks=pytest.mark.soak) for name, case in IN_BROWSER.items()),
    ],
)
def test_the_next_page_has_other_rows(client: dict[str, Any], name: str, params: dict[str, str], rows: str) -> None:
    found = []
    for page in itertools.islice(client["pages"](name, **params), 2):
        for key in rows.split("."):
            page = page[key]  # noqa: PLW2901  # the list of rows in the record
        found.append(page)
    first, second = found
    assert first
    assert second
    assert first[0] != second[0]


def test_a_refusal_that_a_repetition_cannot_help_is_raised(client: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match=r"^TARGET_NOT_FOUND: "):
        next(client["pages"]("microblog-profile", username="gone"))
