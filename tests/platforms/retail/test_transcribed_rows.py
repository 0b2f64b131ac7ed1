"""Rows of the transcribed captures that lack their listing's paging, read inside the listing of another capture.

The expected products come from the field map, as the other expectations of transcribed fixtures do.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from web_poet import HttpResponse, PageParams

from crawler.pipelines import validated
from crawler.platforms.retail.pages import SearchPage
from crawler.platforms.retail.schema import SearchListing
from tests import transcribe
from tests.field_maps import retail
from tests.field_maps.paths import at

FIXTURES = {entry.name: entry for entry in transcribe.entries() if entry.platform == "retail"}


def listing_with(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The payload of a transcribed search with other rows."""
    payload: dict[str, Any] = retail.payload_of(transcribe.fixture_body(FIXTURES["search-page2"]))
    stack = {"meta": {"layoutEnum": "GRID"}, "items": rows}
    at(payload, "props.pageProps.initialData.searchResult")["itemStacks"] = [stack]
    return payload


def read(payload: dict[str, Any]) -> dict[str, Any]:
    echo = at(payload, "props.pageProps.initialData.searchResult.paginationV2.pageProperties")
    script = f'<script id="__NEXT_DATA__" type="application/json">{json.dumps(payload)}</script>'
    response = HttpResponse("https://www.walmart.com/search", script.encode(), encoding="utf-8")
    page = SearchPage(response=response, page_params=PageParams(query=echo["query"], page=echo["page"]))
    return validated(SearchListing, asyncio.run(page.to_item()))


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a capture, as products: one capture was cut by the author of its source, so they lack the type."""
    payload = json.loads(transcribe.fixture_body(FIXTURES[name]))
    listed = payload if isinstance(payload, list) else at(payload, retail.ROWS)
    return [{"__typename": "Product"} | row for row in listed]


@pytest.mark.parametrize("name", ["cp-pricelines-options-range-2026", "items-search-3pages-preowned-ranges-2025-08"])
def test_transcribed_rows_are_read_by_the_field_map(name: str) -> None:
    rows = rows_of(name)
    payload = listing_with(rows)
    wanted = [retail.product(row) for row in rows if row.get("usItemId")]
    assert len(wanted) >= 2
    assert read(payload)["products"] == wanted
