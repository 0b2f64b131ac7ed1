"""Shortens records, so that they fit into the context of a language model."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import orjson

ELLIPSIS = "…"
MIN_SHARE = 24
"""Number of bytes into which any value fits: a number unchanged; a list, an object or a text after shortening."""


def size(value: Any) -> int:
    """Return the number of bytes of a value as JSON."""
    return len(orjson.dumps(value))


@dataclass
class Shortener:
    """Shortens a value, and records the omitted parts."""

    root: str = ""
    """The path of the value in its record."""
    offset: int = 0
    """The number of entries or characters before the value, if it is the rest of a list or text."""
    _parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The shortened values by path."""

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The shortened values, outer ones first.

        The value at ``path`` has ``total`` entries, characters or keys (``unit``). ``kept`` of them are left, from
        ``offset`` on.
        """
        return sorted(self._parts.values(), key=lambda part: part["path"].count("."))

    def limit(self, value: Any, limit: int) -> Any:
        """Return the value with at most ``limit`` entries in each list."""
        return self._limit(value, limit, self.root)

    def fit(self, value: Any, room: int) -> Any:
        """Return the value with at most ``room`` bytes as JSON (at least ``MIN_SHARE``).

        Lists keep as many of their first entries as fit. In objects, small values stay whole, and the large ones share
        the rest of the room.
        """
        return self._fit(value, room, self.root)

    def _limit(self, value: Any, limit: int, path: str) -> Any:
        if isinstance(value, dict):
            return {key: self._limit(inner, limit, _join(path, key)) for key, inner in value.items()}
        if not isinstance(value, list):
            return value
        if len(value) > limit:
            self._note(path, limit, len(value), "entries")
        entries = enumerate(value[:limit], self._start(path))
        return [self._limit(each, limit, _join(path, number)) for number, each in entries]

    def _fit(self, value: Any, room: int, path: str) -> Any:
        if size(value) <= room:
            return value
        if isinstance(value, dict):
            return self._fit_object(value, room, path)
        if isinstance(value, list):
            return self._fit_list(value, room, path)
        return self._fit_text(value, room, path) if isinstance(value, str) else None

    def _fit_object(self, value: dict[str, Any], room: int, path: str) -> dict[str, Any]:
        sizes = {key: size(inner) for key, inner in value.items()}
        left, reserved, kept = room - len("{}"), 0, []
        for key, bytes_of_value in sizes.items():
            left -= size(key) + len(":,")
            reserved += min(bytes_of_value, MIN_SHARE)
            if left < reserved:
                left += size(key) + len(":,")
                break
            kept.append(key)
        if len(kept) < len(value):
            self._note(path, len(kept), len(value), "keys")
        rooms = {}
        for number, key in enumerate(sorted(kept, key=sizes.__getitem__)):
            rooms[key] = min(sizes[key], left // (len(kept) - number))
            left -= rooms[key]
        return {key: self._fit(value[key], rooms[key], _join(path, key)) for key in kept}

    def _fit_list(self, value: list[Any], room: int, path: str) -> list[Any]:
        left = room - len("[]")
        kept = []
        for each in value:
            left -= size(each) + len(",")
            if left < 0:
                break
            kept.append(each)
        if not kept and room >= MIN_SHARE + len("[]"):
            kept = [self._fit(value[0], room - len("[]"), _join(path, self._start(path)))]
        if len(kept) < len(value):
            self._note(path, len(kept), len(value), "entries")
        return kept

    def _fit_text(self, text: str, room: int, path: str) -> str:
        length = bisect_right(range(len(text)), room, key=lambda number: size(text[:number] + ELLIPSIS)) - 1
        self._note(path, max(length, 0), len(text), "characters")
        return text[: max(length, 0)] + ELLIPSIS

    def _note(self, path: str, kept: int, length: int, unit: str) -> None:
        start = self._start(path) if unit != "keys" else 0
        part = {"path": path, "offset": start, "total": start + length, "unit": unit}
        self._parts[path] = {**part, **self._parts.get(path, {}), "kept": kept}  # a limited list may be shortened again

    def _start(self, path: str) -> int:
        return self.offset if path == self.root else 0


def _join(path: str, key: str | int) -> str:
    return f"{path}.{key}" if path else str(key)
