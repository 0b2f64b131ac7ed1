"""Finds the keys of contracts that are absent from all rows of a payload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from crawler.reading.contract import OFTEN_ROWS, Contract, Value, values
from crawler.reading.paths import ANY, EACH, Step, joined, steps

Keys = tuple[str, ...]
"""A path of keys."""


class Part(NamedTuple):
    """A value on whose path a key is absent, and the rest of the path after this key."""

    value: Value
    tail: tuple[Step, ...]


@dataclass(frozen=True)
class Gap:
    """A key that is absent from all rows of a payload, or whose value has become an object (``inside``)."""

    kind: type[Contract]
    lead: tuple[Step, ...]
    """The part of the path up to its last list."""
    keys: Keys
    """The keys of the path after its last list, up to the absent key."""
    parts: tuple[Part, ...]
    """The values of the contract whose paths contain the absent key, each with the rest of its path."""
    inside: bool = False
    """Whether the key exists, but its value is an object instead of a plain value or a list."""

    @property
    def known(self) -> str:
        return joined((*self.lead, *self.keys))


def gaps(kind: type[Contract], own: type[Contract], rows: list[dict[str, Any]]) -> Iterator[Gap]:
    """Yield a contract's keys that are absent from all rows.

    ``sometimes`` values are skipped, unless the contract has ``one_of``. ``often`` values are skipped if there are
    fewer than ``OFTEN_ROWS`` rows. ``own``: the contract without additional paths.
    """
    if kind.one_of:
        rows = [row for row in rows if all(break_of([row], value) for value in values(kind))]
    found: dict[tuple[tuple[Step, ...], bool], list[Part]] = {}
    for value in values(kind):
        if value.required or kind.one_of or (value.often and len(rows) >= OFTEN_ROWS):
            gap = break_of(rows, value)
            if gap:
                found.setdefault(gap[:2], []).append(Part(value, gap[2]))
    for (path, inside), parts in found.items():
        last = max((n for n, step in enumerate(path, 1) if not isinstance(step, str) or step in {EACH, ANY}), default=0)
        if last < len(path):
            yield Gap(own, path[:last], tuple(map(str, path[last:])), tuple(parts), inside)


def break_of(rows: list[dict[str, Any]], value: Value) -> tuple[tuple[Step, ...], bool, tuple[Step, ...]] | None:
    """Return a value's path up to the key that is absent from all rows, a flag, and the rest of the path.

    The flag is true if the last key before the rest exists, but its value is an object that lacks the rest. If the
    value has several paths, the path of which the most keys exist is used. None: one of the paths exists, or no row
    contains an object that could have the key.
    """
    found = [(_depth(rows, steps(path), is_plain=not (value.contracts or value.many)), path) for path in value.paths]
    if not rows or any(depth is None for depth, _ in found):
        return None
    depth, path = max((abs(depth or 0), path) for depth, path in found)
    inside = any(each == (-depth, path) for each in found)
    return steps(path)[:depth], inside, steps(path)[depth:]


def _depth(rows: list[Any], path: tuple[Step, ...], *, is_plain: bool) -> int | None:
    """Return the number of steps up to the absent key, as a negative number if the key has an object. None: no key is
    absent.
    """
    held = rows
    for depth, step in enumerate(path):
        if step == EACH and held and all(isinstance(each, dict) for each in held):
            return -depth
        inside = [each for every in held for each in _inside(every, step)]
        if not inside and isinstance(step, str) and any(isinstance(each, dict) for each in held):
            return depth + 1
        held = [each for each in inside if each is not None]
    return -len(path) if is_plain and held and all(isinstance(each, dict) for each in held) else None


def _inside(value: Any, step: Step) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values()) if step == ANY else [value[step]] if step in value else []
    if isinstance(value, list):
        return value if step == EACH else value[step : step + 1 or None] if isinstance(step, int) else []
    return []


def at(rows: list[dict[str, Any]], path: tuple[Step, ...]) -> list[Any]:
    """Return the values at a path in all rows."""
    held: list[Any] = rows
    for step in path:
        held = [each for every in held for each in _inside(every, step)]
    return held
