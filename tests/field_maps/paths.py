"""Reads payloads by paths. The field maps use these functions in place of the project's own ``crawler.reading``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def at(value: Any, path: str) -> Any:
    """Return the value at a path of keys and positions, such as ``a.0.b``; None if it is missing."""
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.lstrip("-").isdecimal() and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def first(value: Any, *paths: str) -> Any:
    """Return the value at the first path with a value that is not null, else None."""
    return next((found for path in paths if (found := at(value, path)) is not None), None)


def values(value: Any, key: str) -> Iterator[Any]:
    """Yield the values of a key at any depth, in the payload's order."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name == key:
                yield each
            yield from values(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from values(each, key)
