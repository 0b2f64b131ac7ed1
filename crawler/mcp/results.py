"""The size of the results of tools: they must fit into the context of a language model."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import orjson

CHARACTERS = 50
"""If n entries of each list are kept, n times this number of characters of each text are kept."""
MAX_ENTRIES = 100_000
MAX_LISTS = 10
"""Maximum number of lists that ``cut`` names."""
SHORT_BYTES = 200
"""Maximum size of a value that is kept if no list can be shortened enough."""
CUT = "This is a part of the result. Call the tool again with `fields`, or with a larger `max_kb`, to read more of it."


def size(value: Any) -> int:
    """Return the number of bytes of a value as JSON."""
    return len(orjson.dumps(value))


def bounded(content: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """Return the content of a result, with at most ``max_bytes`` as JSON.

    If it is too large, all lists keep the same number of first entries, the largest that fits, and long texts their
    beginning. ``cut`` has the size of the whole content, and the lengths of the lists that were cut. If not even one
    entry of each list fits, long values are null.
    """
    whole = size(content)
    if whole <= max_bytes:
        return content

    def first(entries: int) -> dict[str, Any]:
        lists: dict[str, int] = {}
        kept: dict[str, Any] = _first(content, entries, "", lists)
        named = sorted(lists.items(), key=lambda each: each[0].count("."))[:MAX_LISTS]
        return kept | {"cut": {"message": CUT, "bytes": whole, "lists": dict(named)}}

    if entries := bisect_right(range(1, MAX_ENTRIES), max_bytes, key=lambda number: size(first(number))):
        return first(entries)
    short = {key: value if size(value) <= SHORT_BYTES else None for key, value in content.items()}
    return short | {"cut": {"message": CUT, "bytes": whole, "lists": {}}}


def _first(value: Any, entries: int, path: str, lists: dict[str, int]) -> Any:
    """Return the first entries of each list in a value. ``lists``: gets the lengths of those that were longer."""
    match value:
        case list():
            if len(value) > entries:
                lists[path] = max(len(value), lists.get(path, 0))
            return [_first(each, entries, f"{path}[]", lists) for each in value[:entries]]
        case dict():
            return {key: _first(each, entries, f"{path}.{key}".strip("."), lists) for key, each in value.items()}
        case str() if len(value) > CHARACTERS * entries:
            return value[: CHARACTERS * entries] + "…"
    return value
