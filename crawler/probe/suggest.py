"""``scrapy extract --suggest``: the lines of ``payload.py`` to change after a platform has renamed or moved a key.

A *gap* is a declared key that is absent from all rows of a payload. A *candidate* is a key beside it that no contract
declares, that no recorded page of the checkout has, and whose values have the declared types. Each suggestion is the
declaration with the candidate's path added in front of the declared one, so that pages from before the change are still
read. A suggestion is a guess: a person compares its values with the documented ones.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from web_poet.testing import Fixture
from web_poet.utils import get_fq_class_name

import crawler
from crawler.errors import ScrapeError
from crawler.logs import one_line
from crawler.platforms.page import PlatformPage
from crawler.probe.recorder import read
from crawler.reading.careful import find, objects
from crawler.reading.contract import EACH, OFTEN_ROWS, Contract, Step, Value, is_flat, joined, steps, values

Keys = tuple[str, ...]
Rows = dict[tuple[type[Contract], str], list[dict[str, Any]]]
"""Contract and path -> the objects of payloads there."""

FIXTURES = Path(crawler.__file__).parents[1] / "tests/fixtures"
"""Folder of the recorded pages. The folder exists in a checkout of the project, but not in an installed package."""
MAX_ROWS = 300
MAX_KEY = 100
"""Maximum number of characters of a suggested key."""
MAX_KEYS = 500
"""Maximum number of paths of keys in an object that are examined."""
MAX_SHOWN = 3
"""Maximum number of candidates for a key, and of values of a candidate, that are shown."""


class Suggestion(NamedTuple):
    """A changed declaration, with which an absent value may be read."""

    file: Path
    number: int
    """The number of the declaration's first line in the file."""
    line: str
    """The declaration with the most likely new path, on one line."""
    declared: str
    """The declared path that is absent."""
    found: dict[str, list[Any]]
    """The new path -> some of its values. The most likely path comes first."""

    def __str__(self) -> str:
        file = self.file.relative_to(Path.cwd()) if self.file.is_relative_to(Path.cwd()) else self.file
        paths = (
            f"{path} ({', '.join(one_line(str(each), 40) for each in found)})" for path, found in self.found.items()
        )
        return f"{file}:{self.number}: {self.line}\n  {one_line(f'{self.declared} -> ' + ' or '.join(paths), 600)}"


class Part(NamedTuple):
    """A value on whose path a key is absent: the path, and its rest after this key."""

    value: Value
    path: str
    tail: tuple[Step, ...]


class Gap(NamedTuple):
    """A key that is absent from all rows of a payload, or whose value has become an object (``inside``)."""

    kind: type[Contract]
    lead: tuple[Step, ...]
    """The part of the path up to its last list."""
    keys: Keys
    """The keys of the path after its last list, up to the absent key."""
    parts: tuple[Part, ...]
    """The values of the contract whose paths contain the absent key."""
    inside: bool


class Candidate(NamedTuple):
    """A path at which the values have the types of all values that the absent key led to."""

    gap: Gap
    keys: Keys
    inner: int
    """The number of declared keys that the objects at the path have."""
    found: list[list[Any]]
    """The values at the path, for each of the gap's values."""

    @property
    def rank(self) -> tuple[int, bool, float]:
        """A sort key: the most likely candidates come last. A value that identifies rows differs between them."""
        parts = zip(self.gap.parts, self.found, strict=True)
        identities = [found for part, found in parts if part.value.kind == "identity"]
        differs = not any(all(each == found[0] for each in found) for found in identities)
        new, old = (each.lower().replace("_", "") for each in (self.keys[-1], self.gap.keys[-1]))
        return self.inner, differs, SequenceMatcher(None, new, old).ratio()


def suggestions(pages: Sequence[PlatformPage]) -> list[Suggestion]:
    """Return the changes with which more of the pages may be read. ``pages``: pages that ``read`` has read."""
    known = _rows(read(page).page for kind in dict.fromkeys(map(type, pages)) for page in recorded(kind))
    found: dict[tuple[Path, int], Suggestion] = {}
    for (kind, _), rows in (place for page in pages for place in _rows([page]).items()):
        before = [row for (other, _), every in known.items() if other is kind for row in every]
        candidates = {gap: list(_candidates(gap, rows, before)) for gap in gaps(kind, rows)}
        renamed = {each.keys for every in candidates.values() for each in every}
        for gap, every in candidates.items():
            # A key inside an object that was itself renamed is not new.
            every.sort(key=lambda each: (each.keys[:-1] not in renamed, each.rank), reverse=True)
            for one in changed_declarations(gap, every[:MAX_SHOWN]) if every else ():
                found.setdefault((one.file, one.number), one)
    return list(found.values())


def recorded(kind: type[PlatformPage]) -> Iterator[PlatformPage]:
    """Yield the pages of a class that the project's fixtures contain."""
    for folder in sorted((FIXTURES / get_fq_class_name(kind)).glob("*/")):  # the same order on each machine
        page = Fixture(folder).get_page(kind)
        assert isinstance(page, PlatformPage)
        yield page


def _rows(pages: Iterable[PlatformPage]) -> Rows:
    found: Rows = {}
    for page in pages:
        for root, data in page.payloads or ():
            with suppress(ScrapeError):
                for place, rows in objects(root, data).items():
                    found.setdefault(place, []).extend(rows[:MAX_ROWS])
    return found


# Gaps


def gaps(kind: type[Contract], rows: list[dict[str, Any]]) -> Iterator[Gap]:
    """Yield a contract's keys that are absent from all rows.

    ``sometimes`` values are skipped, unless the contract has ``one_of``. ``often`` values are skipped if there are
    fewer than ``OFTEN_ROWS`` rows.
    """
    if kind.one_of:
        rows = [row for row in rows if all(_break([row], value) for value in values(kind))]
    found: dict[tuple[tuple[Step, ...], bool], list[Part]] = {}
    for value in values(kind):
        is_expected = value.required or kind.one_of or (value.often and len(rows) >= OFTEN_ROWS)
        if is_expected and (at := _break(rows, value)):
            path, inside, part = at
            found.setdefault((path, inside), []).append(part)
    for (path, inside), parts in found.items():
        last = max((n for n, step in enumerate(path, 1) if not isinstance(step, str) or step == EACH), default=0)
        if last < len(path):
            yield Gap(kind, path[:last], tuple(map(str, path[last:])), tuple(parts), inside)


def _break(rows: list[dict[str, Any]], value: Value) -> tuple[tuple[Step, ...], bool, Part] | None:
    """Return a value's path up to the key that is absent from all rows, and whether the key leads to an object instead.

    If the value has several paths, the path of which the most keys exist is used. None: one of the paths exists, or no
    row contains an object that could have the key.
    """
    found = [(_depth(rows, steps(path), is_plain=not (value.contracts or value.many)), path) for path in value.paths]
    if not rows or any(depth is None for depth, _ in found):
        return None
    depth, path = max(((depth or 0, path) for depth, path in found), key=lambda each: (abs(each[0]), each[1]))
    whole = steps(path)
    return whole[: abs(depth)], depth < 0, Part(value, path, whole[abs(depth) :])


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
        return [value[step]] if step in value else []
    if isinstance(value, list):
        return value if step == EACH else value[step : step + 1 or None] if isinstance(step, int) else []
    return []


def _objects_at(rows: list[dict[str, Any]], path: tuple[Step, ...]) -> list[dict[str, Any]]:
    held: list[Any] = rows
    for step in path:
        held = [each for every in held for each in _inside(every, step)]
    return [each for each in held if isinstance(each, dict)]


# Candidates


def _candidates(gap: Gap, rows: list[dict[str, Any]], known: list[dict[str, Any]]) -> Iterator[Candidate]:
    """Yield the new keys at places to which the absent key may have moved. ``known``: objects of recorded pages."""
    anchors = _objects_at(rows, gap.lead)
    declared = {steps(path)[:length] for value in values(gap.kind) for path in value.paths for length in range(1, 40)}
    every = all if any(part.value.required for part in gap.parts) else any
    paths = dict.fromkeys(keys for each in anchors[:OFTEN_ROWS] for keys in _paths(each, len(gap.keys) + 1))
    for keys in paths:
        is_near = keys[:-1] == (gap.keys if gap.inside else gap.keys[:-1]) or keys[-1] == gap.keys[-1]
        if keys == gap.keys or not is_near or (*gap.lead, *keys) in declared or not _is_path(keys):
            continue
        if every(find(each, keys).cause is None for each in anchors):
            is_known = any(keys[-1] in each for each in _objects_at(known, (*gap.lead, *keys[:-1])))
            candidate = None if is_known else _candidate(gap, keys, anchors)
            if candidate:
                yield candidate


def _is_path(keys: Keys) -> bool:
    return all(key.isprintable() and 0 < len(key) <= MAX_KEY and not set('.[]*"\\') & set(key) for key in keys)


def _paths(data: dict[str, Any], depth: int) -> list[Keys]:
    """Return the paths of all keys in an object and in the objects inside it, the object's own keys first."""
    found: list[Keys] = [(key,) for key in data]
    for keys in found:
        value = find(data, keys).value
        if len(keys) < depth and isinstance(value, dict) and len(found) < MAX_KEYS:
            found += [(*keys, key) for key in value]
    return found


def _candidate(gap: Gap, keys: Keys, anchors: list[dict[str, Any]]) -> Candidate | None:
    """Return the candidate for a path, or None if the values at the path do not have the declared types."""
    held, inner, shown = _objects_at(anchors, keys), 0, []
    for value, path, tail in gap.parts:
        if is_flat(joined((*gap.lead, *keys, *tail))) != is_flat(path):
            return None
        now = [each for each in (find(each, (*keys, *tail)) for each in anchors) if each.cause is None]
        entries = _flat(each.value for each in now)
        number = _fit(value, entries)
        if number is None and (len(gap.parts) == 1 or entries):
            return None
        inner += (number or 0) + any(tail[:1] and tail[0] in each for each in held)
        shown.append(entries)
    return Candidate(gap, keys, inner, shown) if inner or any(shown) else None


def _flat(found: Iterable[Any]) -> list[Any]:
    """Return the values that are not null, with lists replaced by their entries."""
    return [each for value in found for each in (value if isinstance(value, list) else [value]) if each is not None]


def _fit(value: Value, entries: list[Any]) -> int | None:
    """Return the number of declared keys in the objects found, or None if what was found has a wrong type."""
    if not value.contracts:
        return 0 if entries and all(map(partial(_is_of, value.type), entries)) else None
    return max((number for each in entries if (number := _declared_keys(value, each))), default=None)


def _declared_keys(value: Value, entry: Any) -> int:
    """Return the number of keys that each object of the value's contract has, 0 if the object lacks one of them."""
    if not isinstance(entry, dict):
        return 0
    kinds = value.contracts
    kind = next((each for each in kinds if each.tag and entry.get(each.tag[0]) == each.tag[1]), kinds[0])
    needed = [each for each in values(kind) if each.required]
    if kind.one_of:
        needed = [each for each in values(kind) if _break([entry], each) is None][:1]
    return 0 if any(_break([entry], each) for each in needed) else len(needed) or bool(kind.tag)


def _is_of(kind: Any, entry: Any) -> bool:
    try:
        msgspec.convert(entry, kind)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


# Declarations


def changed_declarations(gap: Gap, candidates: list[Candidate]) -> Iterator[Suggestion]:
    """Yield the declarations of a gap's values. ``candidates``: the most likely one comes first."""
    for number, (value, path, tail) in enumerate(gap.parts):
        new = {joined((*gap.lead, *each.keys, *tail)): each.found[number][:MAX_SHOWN] for each in candidates}
        file, line, source = declaration(gap.kind, value.name)
        yield Suggestion(file, line, _with_path(source, value, path, next(iter(new))), path, new)


def declaration(kind: type[Contract], name: str) -> tuple[Path, int, str]:
    """Return the file of a value's declaration, the number of its first line, and its source."""
    owner = next(each for each in kind.__mro__ if name in vars(each))
    file = Path(inspect.getsourcefile(owner) or "")
    return file, *_declarations(file)[owner.__name__, name]


@cache
def _declarations(file: Path) -> dict[tuple[str, str], tuple[int, str]]:
    """Return the annotated assignments of all classes of a file: class and name -> number of the first line, source."""
    text = file.read_text(encoding="utf-8")
    lines = text.split("\n")  # as the syntax tree counts them
    return {
        (owner.name, ast.unparse(each.target)): (
            each.lineno,
            "\n".join(lines[each.lineno - 1 : each.end_lineno]).strip(),
        )
        for owner in ast.walk(ast.parse(text))
        if isinstance(owner, ast.ClassDef)
        for each in owner.body
        if isinstance(each, ast.AnnAssign)
    }


def _with_path(source: str, value: Value, old: str, new: str) -> str:
    """Return a declaration with a new path as its first one, without the old path if one is a prefix of the other."""
    (found,) = ast.parse(source).body
    assert isinstance(found, ast.AnnAssign)
    assert isinstance(found.value, ast.Call)
    paths = [ast.get_source_segment(source, each) or "" for each in found.value.args]
    shorter = min(len(steps(old)), len(steps(new)))
    if steps(old)[:shorter] == steps(new)[:shorter]:  # no type describes a value and an object at the same place
        paths = [f'"{each}"' for each in value.paths if each != old]
    options = [ast.get_source_segment(source, each) or "" for each in found.value.keywords]
    arguments = ", ".join([f'"{new}"', *paths, *options])
    annotation = ast.get_source_segment(source, found.annotation)
    return f"{value.name}: {annotation} = {ast.unparse(found.value.func)}({arguments})"
