"""Shortens records, so that they fit into the context of a language model."""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from sys import maxsize
from typing import Any

import orjson

ELLIPSIS = "…"
CHARACTERS = 50
"""If ``fit`` keeps n entries of each list, it keeps n times this number of characters of each text, and of keys."""
MAX_ENTRIES = 100_000

Parts = dict[str, dict[str, Any]]
"""The shortened values by path: of ``total`` entries, characters or keys (``unit``), the first ``kept`` are left.

The values of all entries of a list have one path, with the numbers of the largest one: ``products[].badges``.
"""


def size(value: Any) -> int:
    """Return the number of bytes of a value as JSON."""
    return len(orjson.dumps(value))


def limited(value: Any, entries: int, parts: Parts, characters: int = maxsize, path: str = "") -> Any:
    """Return the value with at most ``entries`` entries of each list, and ``characters`` characters of each text.

    ``characters`` is also the maximum number of keys of an object. What was left out is added to ``parts``.
    """
    if isinstance(value, list):
        kept, unit, found = entries, "entries", [*islice(value, entries)]
        shortened: Any = [limited(each, entries, parts, characters, f"{path}[]") for each in found]
    elif isinstance(value, dict):
        kept, unit = min(len(value), characters), "keys"
        rest = islice(value.items(), kept)
        shortened = {
            key: limited(each, entries, parts, characters, f"{path}.{key}" if path else key) for key, each in rest
        }
    elif isinstance(value, str) and len(value) > characters:
        kept, unit, shortened = characters, "characters", value[:characters] + ELLIPSIS
    else:
        return value
    if len(value) > kept and len(value) > parts.get(path, {"total": 0})["total"]:
        parts[path] = {"path": path, "kept": kept, "total": len(value), "unit": unit}
    return shortened


def fit(value: Any, room: int) -> tuple[Any, Parts]:
    """Return the value with at most ``room`` bytes as JSON, and what was left out.

    All lists keep the same number of first entries: the largest number that fits. Texts keep their beginning. If not
    even one entry fits, the value is null.
    """

    def with_entries(number: int) -> int:
        return size(limited(value, number, {}, CHARACTERS * number))

    number = bisect_right(range(1, MAX_ENTRIES), room, key=with_entries)
    parts: Parts = {}
    if not number:
        return None, {"": {"path": "", "kept": 0, "total": size(value), "unit": "bytes"}}
    return limited(value, number, parts, CHARACTERS * number), parts
