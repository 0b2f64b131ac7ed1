"""Reads documents by their contracts: in the strict pass, or in the careful pass if they are not as declared.

The careful pass reads decoded data value by value, and reports each difference from the contract. It is used for
payloads that the strict pass refuses, and for plain data that is not JSON. A value that cannot be read becomes None,
and a row without its identity is left out. Each path is reported once per cause, with the number of rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple

import msgspec

from crawler.reading import strict
from crawler.reading.contract import (
    EACH,
    EMPTY,
    MAX_NAME_LENGTH,
    MAX_NAMES,
    OFTEN_ROWS,
    C,
    Cause,
    Contract,
    Step,
    Unread,
    Value,
    contracts,
    invalid_error,
    join,
    per_contract,
    steps,
    values,
)
from crawler.reading.documents import decode
from crawler.reading.strict import MAX_ROWS

ROOT = "$"
"""The path of the whole payload."""
UNKNOWN = "…unknown"
"""The last step of the paths under which unknown names from the platform are reported."""


class Reading(NamedTuple, Generic[C]):
    """The result of reading a payload: the contract's instance, and the unread parts.

    ``value`` is None if the payload is not an object of the contract, such as an object without its identity.
    """

    value: C | None
    unread: list[Unread]


def read_plain(kind: type[C], data: object) -> Reading[C]:
    """Read plain data, such as the literals of a script: dicts, lists, texts, numbers, booleans and None.

    Raises:
        ExtractionFailed: the data has more than ``MAX_ROWS`` rows of one kind, or is nested too deeply.
    """
    value, walk = _walked(kind, data)
    return Reading(value, walk.unread())


def _walked(kind: type[C], data: object) -> tuple[C | None, _Walk]:
    walk = _Walk()
    try:
        return walk.object(kind, data, ""), walk
    except RecursionError as error:
        message = "The payload is nested too deeply."
        raise invalid_error(
            message, [ROOT], "Data nested too deeply", "recursion", reason="broken_data_block"
        ) from error


def objects(kind: type[Contract], data: object) -> dict[tuple[type[Contract], str], list[dict[str, Any]]]:
    """Return the objects that ``read_plain`` finds, by contract and path. Raises the errors of ``read_plain``."""
    _, walk = _walked(kind, data)
    return {(place.kind, place.path): rows for place, rows in walk.rows.items() if place.kind is not None}


class Found(NamedTuple):
    """The value at a path, or the reason why it is absent."""

    value: Any = None
    """The value, or None if the value is null or absent. For a path with ``[]`` or ``*``, a list of values."""
    cause: Cause | None = None
    """Why the value, or a value of the list, could not be found. None: it was found, or is null."""
    is_null: bool = False
    """Whether the value, a value of the list, or an object on the path, is null. An absent value is not null."""
    null_entries: int = 0
    """Number of null entries in lists on the path. A list may be null or empty, but no recorded one has null entries.
    """


_MISSING = Found(cause="missing")
_WRONG = Found(cause="type")


def find(data: Any, path: tuple[Step, ...]) -> Found:
    """Return the value at a path. If an object on the path is null, the value counts as null, not as absent."""
    if not path or data is None:
        return Found(data, is_null=data is None)
    step, rest = path[0], path[1:]
    if step == EACH:
        return _collected(data, rest) if type(data) is list else _WRONG
    if isinstance(step, int):
        return _at(data, step, rest) if type(data) is list else _WRONG
    if type(data) is not dict:
        return _WRONG
    return find(data[step], rest) if step in data else _MISSING


def _at(entries: list[Any], index: int, path: tuple[Step, ...]) -> Found:
    """Return the value at a path below one entry of a list. As in the strict pass, every entry must have the path."""
    chosen = entries[index] if -len(entries) <= index < len(entries) else None
    return _collected(entries, path)._replace(value=find(chosen, path).value)


def _collected(entries: list[Any], path: tuple[Step, ...]) -> Found:
    """Return the values at a path below each non-null entry of a list. The first failure is the cause of all."""
    filled = [each for each in entries if each is not None]
    found = [find(each, path) for each in filled]
    cause = next((each.cause for each in found if each.cause), None)
    inside = [each.value for each in found if each.value is not None]
    is_null = any(each.is_null for each in found)
    nulls = len(entries) - len(filled) + sum(each.null_entries for each in found)
    return Found([one for many in inside for one in many] if EACH in path else inside, cause, is_null, nulls)


class _Place(NamedTuple):
    """The objects of one contract at one path of the payload."""

    path: str
    kind: type[Contract] | None = None
    """The contract. None: all objects at the path, of any contract."""


@dataclass
class _Note:
    """A path that could not be read."""

    owner: _Place
    """The objects that the value belongs to."""
    loses_rows: bool
    count: int = 0
    names: dict[str, None] = field(default_factory=dict)


class _Walk:
    """Reads one payload, and counts the parts that cannot be read."""

    def __init__(self) -> None:
        self._objects: Counter[_Place] = Counter()
        """Number of objects by contract and path. An object of an unknown kind has no contract."""
        self.rows: defaultdict[_Place, list[dict[str, Any]]] = defaultdict(list)
        self._notes: dict[tuple[str, Cause], _Note] = {}

    def unread(self) -> list[Unread]:
        """Return the unread parts, one for each path and cause."""
        for place, rows in self.rows.items():
            if len(rows) >= OFTEN_ROWS:
                self._check_often(place, rows)
        return [
            Unread(path, cause, note.count, max(note.count, self._number(note.owner)), note.loses_rows, (*note.names,))
            for (path, cause), note in self._notes.items()
        ]

    def _check_often(self, place: _Place, rows: list[dict[str, Any]]) -> None:
        assert place.kind is not None
        for value in _often(place.kind):
            if any(_first_found(value, row)[0].value not in EMPTY for row in rows):
                continue
            path = join(place.path, _first_found(value, rows[0])[1])
            if (path, "missing") not in self._notes:
                is_present = any(_first_found(value, row)[0].cause is None for row in rows)
                note = _Note(place, loses_rows=False, count=len(rows))
                self._notes[path, "null" if is_present else "missing"] = note

    def _number(self, place: _Place) -> int:
        if place.kind is not None:
            return self._objects[place]
        return sum(number for each, number in self._objects.items() if each.path == place.path)

    def object(
        self, kind: type[C], data: object, path: str, *, is_entry: bool = False, loses_row: bool = False
    ) -> C | None:
        """Return an instance of a contract, or None if the object cannot be read.

        Args: kind: the contract. data: the object. path: its path. is_entry: whether the object is an entry of a list.
        loses_row: whether a row is left out if the object cannot be read: the object is the row, or an identity of the
        row.
        """
        own = _Place(path, kind)
        self._objects[own] += 1
        if self._objects[own] > MAX_ROWS:
            message = f"The page has more than {MAX_ROWS:,} rows at {path}."
            raise invalid_error(message, [path], "Too many rows", "too_many", reason="too_large")
        if type(data) is not dict:
            self._note(path or ROOT, "type", own, loses_row=loses_row)
            return None
        self.rows[own].append(data)
        attributes: dict[str, Any] = {}
        noted = {key: note.count for key, note in self._notes.items()} if kind.one_of else {}
        for value in _identities_first(kind):
            if value.key in data and type(data[value.key]) in value.classes:  # the usual case
                attributes[value.name] = data[value.key]
                continue
            lost = loses_row and (kind.one_of or value.kind == "identity")
            attributes[value.name] = found = self._value(value, data, own, lost=lost)
            if found is None and value.kind == "identity":
                return None
        if kind.one_of and all(found in (None, []) for found in attributes.values()):
            inside = [note for key, note in self._notes.items() if note.count > noted.get(key, 0)]
            is_empty = not data and not is_entry  # the platform sends {} for an object without values
            if not is_empty and not self._is_known(kind, data, own, inside, loses_row=loses_row):
                return None
        return kind(**attributes)

    def _is_known(
        self, kind: type[Contract], data: dict[str, Any], own: _Place, inside: list[_Note], *, loses_row: bool
    ) -> bool:
        """Whether an object without a readable value has a known format. ``inside``: the unread parts in the object."""
        for note in inside:
            note.loses_rows |= loses_row
        if inside:
            return False
        if not _has_known_path(kind, data):
            self._unknown(own, _unknown_keys(kind, data), loses_row=loses_row)
            return False
        return True

    def _value(self, value: Value, data: dict[str, Any], owner: _Place, *, lost: bool) -> Any:
        """Return a value, or None if it is null, absent or cannot be read. A list is never None."""
        found, at = _first_found(value, data)
        path = join(owner.path, at)
        for each, number in _null_entries(value, data, found, at):
            self._note_null_entries(value, join(owner.path, each), owner, number, lost=lost)
        nulls = () if value.nullable else _null_paths(value, data, found, at)
        if found.cause is None and not nulls and type(found.value) in value.classes:
            return found.value
        if found.cause and (found.cause == "type" or value.required):
            self._note(path, found.cause, owner, loses_row=lost or _holds_rows(value))
        for each in nulls:
            self._note(join(owner.path, each), "null", owner, loses_row=lost or _holds_rows(value))
        if value.many:
            entries = (self._entry(value, each, path, owner, lost=lost) for each in found.value or ())
            return [each for each in entries if each is not None]
        return None if found.value is None else self._entry(value, found.value, path, owner, lost=lost)

    def _note_null_entries(self, value: Value, path: str, owner: _Place, number: int, *, lost: bool) -> None:
        """Report the null entries in the lists on a value's path. In a list of objects, they count as objects."""
        if value.many and value.contracts:
            owner = _Place(path, value.contracts[0])
            self._objects[owner] += number
        self._note(path, "null", owner, loses_row=lost or _holds_rows(value), count=number)

    def _entry(self, value: Value, data: Any, path: str, owner: _Place, *, lost: bool) -> Any:
        """Return a value, or an entry of a list, in its declared type. Return None if it cannot be read."""
        if not value.contracts:
            if type(data) in value.classes:
                return data
            try:
                return msgspec.convert(data, value.type)
            except (msgspec.ValidationError, RecursionError):
                self._note(path, "type", owner, loses_row=lost)
                return None
        kind = value.contracts[0]
        if kind.tag is not None and type(data) is dict:
            key, _ = kind.tag
            if key not in data:
                # The object is read by the first contract of the union.
                self._note(join(path, key), "missing", _Place(path), loses_row=False)
            elif (found := _tagged(value).get(str(data[key]))) is None:
                unknown = _Place(path)
                self._objects[unknown] += 1
                self._unknown(unknown, [str(data[key])], loses_row=lost or (value.many and _holds_rows(value)))
                return None
            else:
                kind = found
        return self.object(kind, data, path, is_entry=value.many, loses_row=value.many or lost)

    def _note(self, path: str, cause: Cause, owner: _Place, *, loses_row: bool, count: int = 1) -> _Note:
        note = self._notes.setdefault((path, cause), _Note(owner, loses_row))
        note.count += count
        return note

    def _unknown(self, place: _Place, names: list[str], *, loses_row: bool) -> None:
        note = self._note(join(place.path, UNKNOWN), "unknown", place, loses_row=loses_row)
        for name in names:
            if len(note.names) < MAX_NAMES:
                note.names[name[:MAX_NAME_LENGTH]] = None


def _first_found(value: Value, data: dict[str, Any]) -> tuple[Found, str]:
    """Return what is found at the paths of a declared value, and the path that led there.

    The first path with a value that is neither null nor an empty list is chosen, or else the first path that exists. If
    no path exists in the object, the path of which the most keys exist is chosen.
    """
    if len(value.paths) == 1:
        return find(data, value.steps), value.paths[0]
    candidates = [(find(data, steps(path)), path) for path in value.paths]
    filled = (each for each in candidates if each[0].value not in (None, []))
    present = (each for each in candidates if each[0].cause is None)
    return next(filled, None) or next(present, None) or max(candidates, key=lambda each: _depth(data, steps(each[1])))


def _null_paths(value: Value, data: dict[str, Any], found: Found, at: str) -> Sequence[str]:
    """Return the paths of a declared value that are null. ``found`` and ``at``: what was found, and its path.

    An identity may be null at one of its paths if it is found at another one.
    """
    if len(value.paths) == 1 or value.kind == "identity":
        return [at] if found.is_null else []
    return [path for path in value.paths if find(data, steps(path)).is_null]


def _null_entries(value: Value, data: dict[str, Any], found: Found, at: str) -> Iterator[tuple[str, int]]:
    """Yield the paths of a declared value that have null entries in their lists, each with the number of these entries.

    ``found`` and ``at``: what was found, and its path.
    """
    for path in value.paths:
        if number := (found if path == at else find(data, steps(path))).null_entries:
            yield path, number


def _along(data: Any, path: tuple[Step, ...]) -> Iterator[Any]:
    """Yield the value at each key of a path, up to the first step that is not an existing key."""
    for key in path:
        if type(data) is not dict or key not in data:
            return
        data = data[key]
        yield data


def _depth(data: Any, path: tuple[Step, ...]) -> int:
    """Return the number of a path's leading keys that exist in the data. Of several paths, the deepest is reported."""
    return sum(1 for _ in _along(data, path))


def _holds_rows(value: Value) -> bool:
    """Whether a value contains rows: objects with an identity, at any depth."""
    return any(map(_has_identity, value.contracts))


@per_contract
def _has_identity(kind: type[Contract]) -> bool:
    return any(value.kind == "identity" for each in contracts(kind) for value in values(each))


def _tagged(value: Value) -> dict[str, type[Contract]]:
    return {each.tag[1]: each for each in value.contracts if each.tag}


@per_contract
def _identities_first(kind: type[Contract]) -> tuple[Value, ...]:
    """Return a contract's values, identities first: of an object without its identity, nothing else is reported."""
    return tuple(sorted(values(kind), key=lambda value: value.kind != "identity"))


@per_contract
def _often(kind: type[Contract]) -> tuple[Value, ...]:
    return tuple(value for value in values(kind) if value.often)


def _has_known_path(kind: type[Contract], data: dict[str, Any]) -> bool:
    """Whether any declared path exists in the object, even if its value is null or an empty list."""
    return any(find(data, steps(path)).cause is None for value in values(kind) for path in value.paths)


def _unknown_keys(kind: type[Contract], data: dict[str, Any]) -> list[str]:
    """Return the unknown keys to report: those of the deepest object that exists on the path of a value."""
    deepest, depth = data, 0
    for path in (path for value in values(kind) for path in value.paths):
        for number, found in enumerate(_along(data, steps(path)), start=1):
            if type(found) is dict and number > depth:
                deepest, depth = found, number
    return list(deepest)


def read(kind: type[C], body: bytes, *, what: str, code_after: bool = False) -> Reading[C]:
    """Read a JSON document.

    Args: kind: the contract of the document. body: the document. what: the name of the document in error messages.
    code_after: whether program code may follow the JSON, because the document was cut out of a script.

    Raises:
        ExtractionFailed: the document is not JSON, is nested too deeply, or has more than ``strict.MAX_ROWS`` rows of
            one kind.
    """
    value = strict.decoded(kind, body)
    if value is not None:
        return Reading(value, [])
    return read_plain(kind, decode(body, what=what, code_after=code_after))
