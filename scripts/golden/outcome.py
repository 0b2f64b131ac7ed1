"""Outcomes of targets, their rows in the record, and the differences between rows and between outcomes."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple

HASH_DIGITS = 8
"""Digits of a hash in the record. Two different values have the same hash in one of 4 billion cases."""

Row = dict[str, Any]
"""A row of the record: the fields of an outcome, hashed. Empty fields are left out."""
Paths = dict[str, str]
"""The hash of the values by path."""


def canonical(value: object) -> str:
    """Encode a value as JSON with sorted keys."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def digest(value: object) -> str:
    """Hash the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a target: its data, or its error."""

    code: str
    message: str = ""
    upstream: object = None
    details: object = None
    warnings: tuple[str, ...] = ()
    data: Any = None
    hides_message: bool = False
    """Whether the message may quote a capture, so that the record has its hash."""

    def row(self) -> Row:
        """Return the row of the record, with the paths' hashes as ``data``."""
        values = {
            "code": self.code,
            "message": digest(self.message) if self.message and self.hides_message else self.message,
            "upstream": self.upstream,
            "details": digest(self.details) if self.details else None,
            "warnings": sorted(map(digest, self.warnings)),
            "data": hashes(self.data) if self.data is not None else None,
        }
        return {name: value for name, value in values.items() if value}


def failure(code: str, message: str, upstream: object, details: object) -> Outcome:
    """Return the outcome of a target without data. The port of an origin differs between runs."""
    return Outcome(code, re.sub(r"\b(127\.0\.0\.1|localhost):\d+", r"\1", message), upstream, details)


def hashes(data: object) -> Paths:
    """Return the hash of the values at each path of the data.

    >>> list(hashes({"rows": [{"id": 1, "tags": ["a"]}, {"id": None}], "more": {}}))
    ['more', 'rows[]', 'rows[].id', 'rows[].tags[]']
    """
    values: dict[str, list[object]] = defaultdict(list)
    for path, indexes, value in _values(data, "", ()):
        values[path].append([indexes, value])
    return {path: digest(values[path]) for path in sorted(values)}


def _values(value: object, path: str, indexes: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...], object]]:
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _values(value[key], f"{path}.{key}" if path else key, indexes)
    elif isinstance(value, list):
        yield f"{path}[]", indexes, len(value)
        for index, each in enumerate(value):
            yield from _values(each, f"{path}[]", (*indexes, index))
    else:
        yield path, indexes, value


class Difference(NamedTuple):
    """What differs: a field of a row, or a path of the data; with the old and the new value, as JSON."""

    place: str
    before: str
    after: str


ABSENT = "absent"
"""In place of a value: the row or the path does not exist."""


def _difference(place: str, before: object, after: object) -> Difference:
    return Difference(place, *(ABSENT if each is None else canonical(each) for each in (before, after)))


def row_differences(before: Row | None, after: Row | None) -> list[Difference]:
    """Return the differences between two rows, with the paths of the data that differ."""
    if before is None or after is None:
        codes = [None if row is None else row["code"] for row in (before, after)]
        return [_difference("row", *codes)]
    found = []
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name), after.get(name)
        if name == "data" and old and new:
            found += [_difference(path, old.get(path), new.get(path)) for path in sorted(old.keys() | new.keys())]
        elif name == "data":
            found.append(_difference(name, old and digest(old), new and digest(new)))
        else:
            found.append(_difference(name, old, new))
    return [each for each in found if each.before != each.after]


def outcome_differences(before: Outcome | None, after: Outcome | None) -> list[Difference]:
    """Return the differences between two outcomes, with their values and the places of these in the data."""
    if before is None or after is None:
        return row_differences(*(None if each is None else each.row() for each in (before, after)))
    found = [
        Difference(name, *(canonical(getattr(outcome, name)) for outcome in (before, after)))
        for name in ("code", "message", "upstream", "details")
    ]
    found += [Difference("warnings", canonical(each), ABSENT) for each in before.warnings if each not in after.warnings]
    found += [Difference("warnings", ABSENT, canonical(each)) for each in after.warnings if each not in before.warnings]
    found += _data_differences(before.data, after.data, "")
    return [each for each in found if each.before != each.after]


def _data_differences(before: Any, after: Any, path: str) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            place = f"{path}.{key}" if path else key
            if key in before and key in after:
                yield from _data_differences(before[key], after[key], place)
            else:
                sides = [canonical(side[key]) if key in side else ABSENT for side in (before, after)]
                yield Difference(place, *sides)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_differences(before, after, path)
    elif canonical(before) != canonical(after):
        yield Difference(path or "data", canonical(before), canonical(after))


def _list_differences(before: list[Any], after: list[Any], path: str) -> Iterator[Difference]:
    """Yield the differences between two lists. Equal rows are aligned, so that one lost row is one difference."""
    old, new = [canonical(each) for each in before], [canonical(each) for each in after]
    if len(before) == len(after):
        blocks = [("replace", 0, len(before), 0, len(after))]
    else:
        blocks = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    for kind, start, end, new_start, new_end in blocks:
        if kind == "equal":
            continue
        pairs = min(end - start, new_end - new_start)
        for offset in range(pairs):
            place = f"{path}[{start + offset}]"
            yield from _data_differences(before[start + offset], after[new_start + offset], place)
        for index in range(start + pairs, end):
            yield Difference(f"{path}[{index}]", old[index], ABSENT)
        for index in range(new_start + pairs, new_end):
            yield Difference(f"{path}[{index}]", ABSENT, new[index])
