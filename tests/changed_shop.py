"""A shop whose payload changes in flight. Commands under test import this module.

On the pages of the search ``basket``, a key is renamed in every row. The pages of ``kettle`` have two rows of new
types. The pages of ``pillow`` have both changes.
"""

from __future__ import annotations

import re
from functools import wraps

from crawler.sandbox.protocol import FakeRequest, FakeResponse
from crawler.sandbox.retail.site import Site

RENAMED, TILES, CHANGED = "basket", "kettle", "pillow"
BEFORE = "import tests.changed_shop as shop; shop.install()"
"""Python code that changes the shop, for the arguments ``before`` of ``forks.run()`` and ``running()``."""

ITEMS = "props.pageProps.initialData.searchResult.itemStacks[].items[]"
RATING = f"{ITEMS}.averageRating"
UNKNOWN = f"{ITEMS}.…unknown"
ROWS = re.compile(rb'"items":\[(?={"__typename":"Product")')
"""Matches the start of a list of products."""
NEW_TILES = rb'{"__typename":"NewTile"},{"__typename":"Tile\u001b[2J"},'
"""Two rows of unknown types. The name of the second type would clear a terminal."""


def changed(body: bytes, query: str) -> bytes:
    """Return the page of a query as the shop would send it after its change."""
    if query in {RENAMED, CHANGED}:
        body = body.replace(b'"averageRating":', b'"starRating":')
    if query in {TILES, CHANGED}:
        body = ROWS.sub(lambda found: found[0] + NEW_TILES, body, count=1)
    return body


def install() -> None:
    """Change the simulated shop of this process."""
    page = Site.page

    @wraps(page)
    def changed_page(self: Site, request: FakeRequest) -> FakeResponse:
        status, headers, body = page(self, request)
        return status, headers, changed(body, request.args.get("q", ""))

    Site.page = changed_page  # type: ignore[method-assign]
