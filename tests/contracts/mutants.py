"""Changed copies of payloads, generated from contracts: each declared key renamed, removed, retyped or set to null.

Lists of objects are also emptied. The contract determines whether a change must be detected. These changes may stay
undetected: any change of a key if another path of its value exists in the payload; any change of a ``sometimes`` key
that is not also ``often``; a change of such an ``often`` key in a single row or in less than ten rows; null in an
``always`` key that is not also ``often``, and in an object on the path of a value; an empty list, unless all lists at
the path are empty and their objects have an ``identity``. In contracts without nulls, each null must be detected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import orjson

from crawler.errors import ScrapeError
from crawler.reading.contract import ANY, EACH, OFTEN_ROWS, Contract, Step, Unread, Value, join, steps, values
from tests.contracts.responses import Payload, Response

Operation = Literal["rename", "remove", "retype", "null", "empty"]
OPERATIONS: tuple[Operation, ...] = ("rename", "remove", "retype", "null", "empty")
Place = tuple[str | int, ...]
"""A concrete path in a payload."""


@dataclass(frozen=True)
class Mutant:
    """A changed copy of a payload."""

    contract: type[Contract]
    """The contract of the whole payload."""
    path: str
    operation: Operation
    value_paths: tuple[str, ...]
    """All paths of the value. A missing value is reported under one of them."""
    places: tuple[Place, ...] = field(repr=False)
    """The places in the payload at which the key is changed: all, or the first one for the scope ``row``."""
    scope: Literal["page", "row"]
    kind: str
    """The kind of the value, or ``tag``."""
    must_be_noticed: bool

    def __str__(self) -> str:
        return f"{self.contract.__name__}.{self.path} {self.operation} {self.scope} ({self.kind})"

    def apply(self, data: Any) -> Any:
        """Return a changed copy of a payload."""
        changed = orjson.loads(orjson.dumps(data))
        for *holders, key in self.places:
            holder = changed
            for step in holders:
                holder = holder[step]
            _change(holder, key, self.operation)
        return changed


def _change(holder: Any, key: Any, operation: Operation) -> None:
    value = holder[key]
    if operation == "rename":
        holder[f"{key}Renamed"] = value
    if operation in {"rename", "remove"}:
        del holder[key]
    elif operation == "retype":
        holder[key] = {"0": value} if isinstance(value, list) else [value]
    else:
        holder[key] = None if operation == "null" else type(value)()


class Objects(NamedTuple):
    """The objects of a contract at a declared path of a payload, with their concrete paths."""

    kind: type[Contract]
    path: str
    places: list[Place]


def mutants(payload: Payload) -> Iterator[Mutant]:
    """Yield the mutants of a payload, in a fixed order."""
    seen: dict[tuple[str, Operation, str], Mutant] = {}
    for objects in objects_in(payload):
        for mutant in _of_objects(payload, objects):
            key = (mutant.path, mutant.operation, mutant.scope)
            if key not in seen or mutant.must_be_noticed > seen[key].must_be_noticed:
                seen[key] = mutant
    yield from seen.values()


def objects_in(payload: Payload) -> Iterator[Objects]:
    waiting = [Objects(payload.kind, "", [()])]
    for objects in waiting:
        yield objects
        for value in values(objects.kind):
            if not value.contracts:
                continue
            for path, found in _read_places(payload, objects, value).items():
                for kind in value.contracts:
                    places = [place for place in found if _is_of(kind, at(payload.data, place), value)]
                    if places and len(waiting) < 1_000:
                        waiting.append(Objects(kind, join(objects.path, path), places))


def _read_places(payload: Payload, objects: Objects, value: Value) -> dict[str, list[Place]]:
    """Return where a value is read in all objects, by declared path: in each object, the first path with a value."""
    read: dict[str, list[Place]] = {}
    for start in objects.places:
        for path in value.paths:
            found = list(_places(payload.data, start, steps(path)))
            if any(at(payload.data, place) is not None for place in found):
                read.setdefault(path, []).extend(found)
                break
    return read


def _is_of(kind: type[Contract], data: Any, value: Value) -> bool:
    if not isinstance(data, dict):
        return False
    return len(value.contracts) == 1 or (kind.tag is not None and data.get(kind.tag[0]) == kind.tag[1])


def at(data: Any, place: Place) -> Any:
    for step in place:
        data = data[step]
    return data


def _places(data: Any, start: Place, path: tuple[Step, ...]) -> Iterator[Place]:
    """Yield the concrete paths that exist, below a place."""
    if not path:
        yield start
        return
    value, step = at(data, start), path[0]
    inside: list[str | int] = []
    if step == EACH:
        inside = list(range(len(value))) if isinstance(value, list) else []
    elif step == ANY:
        inside = [key for key, each in value.items() if isinstance(each, dict)] if isinstance(value, dict) else []
    elif isinstance(step, int):
        inside = [step] if isinstance(value, list) and -len(value) <= step < len(value) else []
    else:
        inside = [step] if isinstance(value, dict) and step in value else []
    for each in inside:
        yield from _places(data, (*start, each), path[1:])


class _Key(NamedTuple):
    """A key on the path of a value, with its places in all objects of one contract."""

    path: str
    places: list[Place]
    value: Value | None
    """None for a tag."""
    rows: int
    is_leaf: bool
    value_paths: tuple[str, ...] = ()
    has_fallback: bool = False
    """Whether another path of the value also exists in the payload."""
    nulls: bool = True
    """Whether the payload may have null in place of the value."""


def _of_objects(payload: Payload, objects: Objects) -> Iterator[Mutant]:
    rows = len(objects.places)
    if objects.kind.tag is not None:
        tag, _ = objects.kind.tag
        places = [each for start in objects.places for each in _places(payload.data, start, (tag,))]
        yield from _of_key(payload, _Key(join(objects.path, tag), places, None, rows, is_leaf=True))
    for value in values(objects.kind):
        present = [path for path in value.paths if any(_all_places(payload, objects, steps(path)))]
        for path in map(steps, present):
            for length, step in enumerate(path, 1):
                if isinstance(step, int) or step in {EACH, ANY}:
                    continue
                places = list(_all_places(payload, objects, path[:length]))
                is_leaf = path[length:] in {(), (EACH,)}
                own = join(objects.path, _joined(path[:length]))
                all_paths = tuple(join(objects.path, each) for each in value.paths)
                key = _Key(own, places, value, rows, is_leaf, all_paths, len(present) > 1, value.nullable)
                yield from _of_key(payload, key)


def _all_places(payload: Payload, objects: Objects, path: tuple[Step, ...]) -> Iterator[Place]:
    for start in objects.places:
        yield from _places(payload.data, start, path)


def _joined(path: tuple[Step, ...]) -> str:
    joined = ""
    for step in path:
        joined = f"{joined}[{step}]" if isinstance(step, int) else join(joined, step)
    return joined


def _of_key(payload: Payload, key: _Key) -> Iterator[Mutant]:
    for operation in OPERATIONS:
        places = [place for place in key.places if _can_change(at(payload.data, place), operation, key)]
        for scope, chosen in (("page", places), ("row", places[:1])):
            if chosen and (scope == "page" or len(places) > 1):
                kind = "tag" if key.value is None else key.value.kind
                noticed = _must_be_noticed(key, operation, scope)
                yield Mutant(payload.kind, key.path, operation, key.value_paths, tuple(chosen), scope, kind, noticed)  # type: ignore[arg-type]


def _can_change(value: Any, operation: Operation, key: _Key) -> bool:
    if operation in {"rename", "remove"}:
        return True
    if operation == "empty":
        return isinstance(value, list) and bool(value) and key.value is not None and bool(key.value.contracts)
    return value is not None


def _must_be_noticed(key: _Key, operation: Operation, scope: str) -> bool:
    value = key.value
    if value is None:
        return True
    if key.has_fallback:
        return False
    if operation == "empty":
        return scope == "page" and any(each.kind == "identity" for kind in value.contracts for each in values(kind))
    often = value.often and scope == "page" and key.rows >= OFTEN_ROWS
    if operation == "null":
        return not key.nulls or often or (value.kind == "identity" and key.is_leaf)
    return often or value.required


def is_noticed(mutant: Mutant, response: Response) -> bool:
    """Whether reading the mutant results in an error, or in a new unread path that belongs to the changed value."""

    def change(kind: type[Contract], data: Any) -> Any:
        fits = kind is mutant.contract and all(_exists(data, place) for place in mutant.places)
        return mutant.apply(data) if fits else data

    result = response.read(change)
    if isinstance(result.error, ScrapeError):
        return True
    new = [each for each in result.unread if each not in response.original.unread]
    return any(_is_related(each, path) for each in new for path in (mutant.path, *mutant.value_paths))


def _exists(data: Any, place: Place) -> bool:
    try:
        at(data, place)
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _is_related(unread: Unread, path: str) -> bool:
    known = unread.path.removesuffix("…unknown").rstrip(".")
    return path.startswith(known) or unread.path.startswith(path)
