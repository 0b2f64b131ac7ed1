"""Puts saved parts of responses into a response, because page objects read whole responses only.

Some captures are only a part of a response, such as the rows of a listing. The rest of the response is made up: it has
the keys that every recorded response of the platform has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from tests import microblog_parts
from tests.microblog_parts import MADE_UP


def whole(platform: str, body: bytes) -> bytes:
    """Return the response with a saved part of a response of the platform. Any other body is returned unchanged."""
    if platform == "microblog":  # whose parts may also be excerpts of a page
        return microblog_parts.whole(body)
    if platform not in WHOLES or not body.lstrip().startswith((b"{", b"[")):
        return body
    part = orjson.loads(body)
    response = WHOLES[platform](part)
    return body if response is part else orjson.dumps(response)


def _retail(part: Any) -> Any:
    """Return the data block of a page for rows, for a listing, or for the data of a page."""
    if isinstance(part, list):
        made_up = {MADE_UP: True}
        part = made_up | {
            "searchResult": made_up | _RETAIL_LISTING | {"itemStacks": [made_up | _GRID | {"items": part}]}
        }
    if "searchResult" not in part:
        return part
    return {MADE_UP: True, "props": {"pageProps": {"initialData": part}}, "page": "/search"}


_GRID = {"meta": {"layoutEnum": "GRID"}}
_RETAIL_LISTING: dict[str, Any] = {
    "aggregatedCount": None,
    "paginationV2": {"maxPage": None, "pageProperties": {"page": None, "sort": None, "cat_id": None}},
    "errorResponse": {"errors": []},
}
"""The keys of every listing."""

WHOLES: dict[str, Callable[[Any], Any]] = {"retail": _retail}
"""Platform -> the function that completes a part of a JSON document, and returns any other document unchanged."""
