"""Suggests lines for the file of ``PAYLOAD_NAMES``, for a payload in which a key was renamed or moved to another level.

A *good page* is a response of the same source that could be read completely, from before the change. A line is *proven*
if it is the only line with evidence: its values equal those of the same rows on a good page; or its values occur on
good pages under the old key only; or its key has a similar name, is the same key at another level, or contains an
object with the same keys. A value of the same type proves
nothing, because likes and views have the same type. All other lines are unproven. Unproven lines are shown with their
values and the values of good pages, for a person to compare.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import Any, NamedTuple

import msgspec

from crawler.errors import ScrapeError
from crawler.logs import one_line
from crawler.probe.gaps import Gap, Keys, at, break_of, gaps
from crawler.probe.likeness import Agreement, agreement, alike, are_known, has_forms, is_general
from crawler.probe.reread import ReadPage
from crawler.reading.careful import find, objects
from crawler.reading.contract import Contract, Value, values
from crawler.reading.names import Line, Names, WrongLineError, beginnings, check_line, declared, label
from crawler.reading.paths import EACH, Step, joined, steps

Rows = dict[tuple[type[Contract], str], list[dict[str, Any]]]
"""Contract and path -> the objects of payloads."""
MAX_ROWS = 300
MAX_KEYS = 500
"""Maximum number of paths of keys in an object that are examined."""
MAX_LENGTH = 150
"""Maximum characters of the keys of a suggested path."""
SHAPE_DEPTH, SHAPE_ENTRIES = 3, 10
MAX_UNPROVEN = 3
MIN_INNER, MANY = 2, 4
"""Minimum number of keys that identify an object: of an object on good pages; without good pages, of declared keys."""
SHAPE = 0.8
"""Minimum share of the keys of the smaller object that two objects of the same kind have in common."""
SHOWN = 3


class Suggestion(NamedTuple):
    """A line that may make an unread part of a payload readable."""

    line: Line
    evidence: str
    """The evidence for the line, "" if it is not proven."""
    values: list[Any]
    """Values at the new path."""
    before: list[Any]
    """Values at the declared path in good pages."""
    mends: tuple[str, ...] = ()
    """The unread paths that became readable when the line was tried."""

    def __str__(self) -> str:
        kind, known, further = self.line
        shown = one_line(f"{label(kind)} {known} -> {further}", 300)
        facts = [f"now {_examples(self.values)}"] + ([f"before {_examples(self.before)}"] if self.before else [])
        return f"{shown}: {self.evidence or 'not proven, compare the values'}; {', '.join(facts)}"


def _examples(found: list[Any]) -> str:
    return ", ".join(one_line(str(each), 40) for each in found[:SHOWN]) or "no value"


def rows_of(pages: Iterable[ReadPage], names: Names) -> Rows:
    """Return the objects in the payloads of pages that were read with ``names``."""
    found: Rows = {}
    for each in pages:
        for kind, data in each.page.payloads or ():
            try:
                of_payload = objects(names.contract(kind), data)
            except ScrapeError:
                continue
            for (inner, path), rows in of_payload.items():
                found.setdefault((declared(inner), path), []).extend(rows[:MAX_ROWS])
    return found


def of_kind(rows: Rows, kind: type[Contract], path: str | None = None) -> list[dict[str, Any]]:
    """Return the objects of a contract: those at the path if there are any, else all of them."""
    every = [each for (other, _), found in rows.items() if other is kind for each in found]
    return rows.get((kind, path or ""), every)


def suggestions(changed: Rows, good: Rows, names: Names) -> list[Suggestion]:
    """Return the lines that may make changed payloads readable, the proven ones first.

    Args:
        changed: the objects of changed payloads.
        good: the objects of good pages of the same sources. May be empty.
        names: the names in force.
    """
    found: list[Suggestion] = []
    for (kind, path), rows in changed.items():
        for gap in gaps(names.contract(kind), kind, rows):
            found += _of_gap(gap, rows, of_kind(good, kind, path), names)
    lines = {each.line for each in found if each.evidence}
    taken = Counter((line.contract, line.further) for line in lines)
    proven = [each for each in found if each.evidence and taken[each.line.contract, each.line.further] == 1]
    others = [each._replace(evidence="") for each in found if each.line not in {proof.line for proof in proven}]
    return [*{each.line: each for each in proven}.values(), *{each.line: each for each in others}.values()]


def _of_gap(gap: Gap, rows: list[dict[str, Any]], good: list[dict[str, Any]], names: Names) -> list[Suggestion]:
    """Return the lines for an absent key: the single line with evidence, or else unproven lines."""
    anchors = [each for each in at(rows, gap.lead) if isinstance(each, dict)]
    before = [each for each in at(good, gap.lead) if isinstance(each, dict)]
    fitting = []
    for keys in _new_keys(gap, anchors, before):
        compared = _agreement(gap, keys, rows, good, names)
        candidate = _candidate(gap, keys, anchors, before, compared)
        if candidate and not compared.is_refutation:
            fitting.append(candidate)
    for evidence in (
        _Candidate.agrees,
        _Candidate.has_known_values,
        _Candidate.is_called_alike,
        _Candidate.has_moved,
        _Candidate.has_the_same_keys,
    ):
        proofs = [(each, proof) for each in fitting if (proof := evidence(each))]
        if len(proofs) == 1:
            return [proofs[0][0].suggestion(proofs[0][1])]
        if proofs:
            break
    near = sorted(fitting, key=lambda each: -SequenceMatcher(None, each.keys[-1], gap.keys[-1]).ratio())
    return [each.suggestion("") for each in near[:MAX_UNPROVEN]] if before or len(near) <= MAX_UNPROVEN else []


def _new_keys(gap: Gap, anchors: list[dict[str, Any]], before: list[dict[str, Any]]) -> Iterator[Keys]:
    """Yield the paths of unknown keys that all objects have, at places to which the absent key may have moved."""
    known = {steps(each) for each in beginnings(gap.kind)} - {(*gap.lead, *gap.keys)}
    for keys in _paths(anchors[0], len(gap.keys) + 1) if anchors else ():
        is_near = keys[:-1] == (gap.keys if gap.inside else gap.keys[:-1]) or keys[-1] == gap.keys[-1]
        is_short = len(".".join(keys)) <= MAX_LENGTH
        if keys != gap.keys and is_near and is_short and (*gap.lead, *keys) not in known and _is_path(keys):
            present = all(find(each, keys).cause is None for each in anchors)
            if present and not any(find(each, keys).cause is None for each in before):
                yield keys


def _is_path(keys: Keys) -> bool:
    return all(steps(key) == (key,) if key and not set(".[]") & set(key) else False for key in keys)


def _paths(data: dict[str, Any], depth: int) -> list[Keys]:
    """Return the paths of all keys in an object and in the objects inside it, the object's own keys first."""
    found: list[Keys] = [(key,) for key in data]
    for keys in found:
        value = find(data, keys).value
        if len(keys) < depth and isinstance(value, dict) and len(found) < MAX_KEYS:
            found += [(*keys, key) for key in value]
    return found


@dataclass(frozen=True)
class _Candidate:
    """A path at which the values fit the types of all values that the absent key led to."""

    gap: Gap
    keys: Keys
    values: list[Any]
    before: list[Any]
    inner: int
    """The number of declared keys that the objects at the path have."""
    shape: bool | None
    """Whether the objects at the path have the same keys as those in good pages. None: good pages have no such
    objects."""
    is_known: bool
    """Whether all values occur in good pages under the old key, and not all of them under another key."""
    has_good: bool
    """Whether there are good pages to compare with. Without them, it is unknown which keys are new."""
    compared: Agreement

    def suggestion(self, evidence: str) -> Suggestion:
        """Return the candidate as a line with its evidence."""
        line = Line(self.gap.kind, self.gap.known, joined((*self.gap.lead, *self.keys)))
        return Suggestion(line, evidence, self.values, self.before)

    def agrees(self) -> str:
        """Return the evidence that the values equal those of the same rows on a good page, else ""."""
        compared = self.compared
        return f"{compared.equal} of {compared.compared} values are those of a good page" if compared.is_proof else ""

    def has_known_values(self) -> str:
        """Return the evidence that the values occur in good pages under the old key only, else ""."""
        return "its values are among those of good pages" if self.is_known else ""

    def is_called_alike(self) -> str:
        """Return the evidence that the key consists of the absent key's words and is in its place, else ""."""
        is_beside = self.keys[:-1] == self.gap.keys[:-1]
        return "the keys have the same words" if is_beside and alike(self.keys[-1], self.gap.keys[-1]) else ""

    def has_moved(self) -> str:
        """Return the evidence that the key is the absent key at another level, and not a general key, else ""."""
        key = self.gap.keys[-1]
        is_special = self.has_good and (self.shape or not is_general(key))
        return "the same key at another level" if self.keys[-1] == key and is_special else ""

    def has_the_same_keys(self) -> str:
        """Return the evidence that the objects have the same keys as in good pages, or many declared keys, else ""."""
        is_known = self.inner >= MANY and self.shape is not False
        return "its objects have the same keys" if self.shape or is_known else ""


def _candidate(
    gap: Gap, keys: Keys, anchors: list[dict[str, Any]], before: list[dict[str, Any]], compared: Agreement
) -> _Candidate | None:
    """Return the candidate for a path, or None if the values at the path do not fit."""
    try:
        check_line(Line(gap.kind, gap.known, joined((*gap.lead, *keys))))
    except WrongLineError:
        return None
    inner, shown, earlier = 0, [], []
    for value, tail in gap.parts:
        now = [find(each, (*keys, *tail)) for each in anchors]
        number = _fit(value, [each.value for each in now])
        if any(each.cause for each in now):
            return None
        if number is None and (len(gap.parts) == 1 or _flat(each.value for each in now)):
            return None  # for objects, the keys are the evidence
        was = [find(each, (*gap.keys, *tail)).value for each in before]
        if not value.contracts and not has_forms(_flat(each.value for each in now), _flat(was)):
            return None
        inner += (number or 0) + bool(tail and tail != (EACH,))
        shown += _flat(each.value for each in now)
        earlier += _flat(was)
    shape = _has_shape(gap, keys, anchors, before)
    is_known = are_known(shown, earlier) and not any(
        are_known(shown, _flat(find(each, path).value for each in before)) for path in _beside(gap, before)
    )
    return _Candidate(gap, keys, shown, earlier, inner, shape, is_known, bool(before), compared)


def _beside(gap: Gap, before: list[Any]) -> list[Keys]:
    """Return the neighbouring keys of the absent key in good pages."""
    every = {(*gap.keys[:-1], key) for each in before for key in find(each, gap.keys[:-1]).value or ()}
    return sorted(every - {gap.keys})


def _flat(found: Iterable[Any]) -> list[Any]:
    """Return the values that are not null, with lists replaced by their entries."""
    return [each for value in found for each in (value if isinstance(value, list) else [value]) if each is not None]


def _fit(value: Value, found: list[Any]) -> int | None:
    """Return the number of declared keys in the objects found, or None if what was found has a wrong type."""
    entries = _flat(found)
    if not entries:
        return None
    if not value.contracts:
        return 0 if all(map(partial(_is_of, value.type), entries)) else None
    kinds = value.contracts
    number = 0
    for entry in entries:
        if not isinstance(entry, dict):
            return None
        kind = next((each for each in kinds if each.tag and entry.get(each.tag[0]) == each.tag[1]), kinds[0])
        needed = [each for each in values(kind) if each.required]
        if kind.one_of:
            needed = [each for each in values(kind) if break_of([entry], each) is None][:1]
        if any(break_of([entry], each) for each in needed) or not (needed or kind.tag):
            return None
        number = max(number, len(needed))
    return number


def _is_of(kind: Any, entry: Any) -> bool:
    try:
        msgspec.convert(entry, kind)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


def _shape(value: Any, depth: int = SHAPE_DEPTH) -> frozenset[Keys]:
    """Return the paths of the keys in an object, or in the first entries of a list."""
    entries = value[:SHAPE_ENTRIES] if isinstance(value, list) else [value]
    found: set[Keys] = set()
    for entry in entries if depth else ():
        for key, inside in entry.items() if isinstance(entry, dict) else ():
            found |= {(key,), *((key, *each) for each in _shape(inside, depth - 1))}
    return frozenset(found)


def _has_shape(gap: Gap, keys: Keys, anchors: list[Any], before: list[Any]) -> bool | None:
    """Whether the objects at a path have the same keys as the objects in good pages, and no neighbouring objects do.

    None: the good pages have no such objects.
    """
    known = _shape_at(before, gap.keys)
    if len(known) < MIN_INNER:
        return None
    others = (_shape_at(before, each) for each in _beside(gap, before))
    return _is_same(_shape_at(anchors, keys), known) and not any(_is_same(each, known) for each in others)


def _shape_at(objects_: list[Any], keys: Keys) -> frozenset[Keys]:
    return frozenset().union(*(_shape(find(each, keys).value) for each in objects_))


def _is_same(one: frozenset[Keys], other: frozenset[Keys]) -> bool:
    smaller = min(len(one), len(other))
    return smaller >= MIN_INNER and len(one & other) >= SHAPE * smaller


def _agreement(gap: Gap, keys: Keys, rows: list[dict[str, Any]], good: list[dict[str, Any]], names: Names) -> Agreement:
    """Compare the values at a path with the values of the same rows of good pages."""
    value, tail = gap.parts[0]
    if value.contracts:
        return Agreement(0, 0, 0)
    now = by_identity(names.contract(gap.kind), rows, (*gap.lead, *keys, *tail))
    return agreement(now, by_identity(gap.kind, good, (*gap.lead, *gap.keys, *tail)))


def by_identity(kind: type[Contract], rows: list[dict[str, Any]], path: tuple[Step, ...]) -> dict[Any, Any]:
    """Return the values at a path by the identity (id) of their row, or {} if the contract declares no identity."""
    identity = next((each for each in values(kind) if each.kind == "identity" and not each.contracts), None)
    if identity is None:
        return {}
    ids = ((find(row, identity.steps).value, row) for row in rows)
    return {str(each): find(row, path).value for each, row in ids if each is not None}
