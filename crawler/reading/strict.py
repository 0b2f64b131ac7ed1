"""The strict pass: one decode of a payload into typed objects, by msgspec.

A contract is compiled to msgspec Structs: one for the contract, and one for each object on the paths of its values. The
keys of an ``identity`` or ``always`` value with one path are required fields, so that the decoder itself finds missing
values. The Struct of a contract is a subclass of the contract. The Struct has a field for each value whose only path is
a single key, and a property for each other value.

The strict pass returns an instance if the payload has all that is declared, with the declared types, else None. Keys
that are not declared are ignored. If the pass returns None, ``careful.py`` finds the differences.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from operator import attrgetter
from types import NoneType
from typing import Any, Union

import msgspec

from crawler.reading.contract import (
    EACH,
    EMPTY,
    OFTEN_ROWS,
    C,
    Contract,
    Step,
    Value,
    contracts,
    is_flat,
    per_contract,
    steps,
    values,
)

MAX_ROWS = 2_000
"""Maximum number of rows of one kind in a payload. The largest recorded payload has 98. Reading far more rows would
block the event loop."""


def decoded(kind: type[C], body: bytes) -> C | None:
    """Return the contract's instance, or None if the document is not exactly as declared, or has too many rows."""
    decoder = _decoder(kind)
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value: C = decoder.decode(body)
        if _is_complete(kind, value, body):
            return value
    return None


@per_contract
def _decoder(kind: type[Contract]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Compiler().struct(kind))


# Checks for missing parts that types cannot express


@dataclass(frozen=True)
class _Check:
    """The checks of the decoded objects of one contract."""

    lacks_one: Getter | None
    """A function that returns whether an object lacks a required value with several paths. Such a value cannot be a
    required field. None: the contract has no such value."""
    often: tuple[Getter, ...]
    """The getters of the ``often`` values."""
    one_of: tuple[Getter, ...]
    """The getters of the values of which each object has at least one. Empty for a contract without ``one_of``."""
    inside: tuple[tuple[Getter, bool, tuple[type[Contract], ...], tuple[Step, ...]], ...]
    """The values that contain objects which need checks. For each such value: its getter, whether it is a list, the
    contracts of the objects, and the keys of the objects. Entries of a list have no keys."""


@per_contract
def _check(kind: type[Contract]) -> _Check:
    read = {value: attrgetter(value.name) for value in values(kind)}
    return _Check(
        lacks_one=lacks_one_of([value.paths for value in read if value.required and len(value.paths) > 1]),
        often=tuple(read[value] for value in read if value.often),
        one_of=tuple(
            read[value] for value in sorted(read, key=lambda each: (len(each.paths), len(each.steps))) if kind.one_of
        ),
        inside=tuple(
            (
                read[value],
                value.many,
                value.contracts,
                () if value.many else tuple(steps(path)[-1] for path in value.paths),
            )
            for value in read
            if any(map(_needs_check, value.contracts))
        ),
    )


@per_contract
def _needs_check(kind: type[Contract]) -> bool:
    """Whether the decoded objects of the contract, or objects inside them, can still be incomplete or too many."""
    return any(
        each.one_of or value.often or value.kind == "identity" or (value.required and len(value.paths) > 1)
        for each in contracts(kind)
        for value in values(each)
    )


Level = tuple[type[Contract], list[Any], tuple[Step, ...]]
"""A contract, its objects on one level of a payload, and the keys that contain them. Entries of a list have no keys."""


def _is_complete(kind: type[Contract], value: Contract, body: bytes) -> bool:
    """Whether no object of the payload lacks a part that types cannot require. Objects are checked level by level."""
    waiting: list[Level] = [(kind, [value], ())]
    empty: Counter[tuple[Step, ...]] = Counter()
    for contract, rows, keys in waiting:
        check = _check(contract)
        if len(rows) > MAX_ROWS or not _are_complete(check, rows):
            return False
        if check.one_of:
            empty[keys] += _number_without_value(check, rows)
        waiting += _inside(check, rows)
    return all(_are_empty(body, keys, number) for keys, number in empty.items() if number)


def _are_complete(check: _Check, rows: list[Any]) -> bool:
    if check.lacks_one and any(map(check.lacks_one, rows)):
        return False
    often = check.often if len(rows) >= OFTEN_ROWS else ()
    return not (often and any(all(read(row) in EMPTY for row in rows) for read in often))


def _number_without_value(check: _Check, rows: list[Any]) -> int:
    empty = 0
    while rows:  # most rows have the value that the first one has
        read = next((read for read in check.one_of if read(rows[0]) not in (None, [])), None)
        empty += read is None
        rows = rows[1:] if read is None else [row for row in rows if read(row) in (None, [])]
    return empty


def _inside(check: _Check, rows: list[Any]) -> Iterator[Level]:
    for read, many, kinds, keys in check.inside:
        found = chain.from_iterable(map(read, rows)) if many else map(read, rows)
        if len(kinds) == 1:
            if below := list(filter(None, found)):  # no contract defines when its instances are false
                yield kinds[0], below, keys
            continue
        by_struct: defaultdict[type[Any], list[Any]] = defaultdict(list)
        for each in found:
            by_struct[type(each)].append(each)
        by_struct.pop(NoneType, None)
        for struct, below in by_struct.items():
            yield next(kind for kind in kinds if issubclass(struct, kind)), below, keys


def _are_empty(body: bytes, keys: tuple[Step, ...], number: int) -> bool:
    """Whether all objects without a value are ``{}`` in the document. ``number``: how many such objects there are.

    Any other object without a value has only unknown keys, nulls or empty lists.
    """
    found = (re.findall(rb'"%b"\s*:\s*\{\s*\}' % re.escape(str(key).encode()), body) for key in keys)
    return number == sum(map(len, found))


def _attribute(value: Value, root: _Node) -> property:
    """Return the property for a value that has no field of its own in the Struct."""
    first = steps(value.paths[0])
    return property(getter_of_keys(first) if len(value.paths) == 1 and root.has_parents(first) else getter(value.paths))


# Compilation


@dataclass
class _Node:
    """A place in a payload: on the path of a value, or at the end of the path."""

    required: bool = False
    never_null: bool = False
    """Whether the place is on the path of a value that is never null, is the value itself, or is an entry of a list."""
    keys: dict[str, _Node] = field(default_factory=dict)
    """If the place is an object: the places under its keys."""
    entry: _Node | None = None
    """If the place is a list: the place of each of its entries."""
    leaf: Any = None
    """The type of the value whose path ends here, without null."""

    def add(self, path: tuple[Step, ...], leaf: Any, *, required: bool, never_null: bool) -> None:
        """Add the path of a value below this node."""
        self.required |= required
        self.never_null |= never_null
        if not path:
            self.leaf = leaf
        elif isinstance(path[0], int) or path[0] == EACH:
            self.entry = self.entry or _Node(never_null=True)
            self.entry.add(path[1:], leaf, required=required, never_null=never_null)
        else:
            self.keys.setdefault(path[0], _Node()).add(path[1:], leaf, required=required, never_null=never_null)

    def has_parents(self, path: tuple[Step, ...]) -> bool:
        """Whether a path has only keys, and no object on the path may be null."""
        if len(path) == 1:
            return isinstance(path[0], str) and path[0] in self.keys
        node = self.keys.get(str(path[0]))
        return node is not None and node.never_null and node.has_parents(path[1:])


class _Compiler:
    """Compiles contracts that may contain each other, and themselves."""

    def __init__(self) -> None:
        self._structs: dict[type[Contract], type[Any]] = {}
        self._open: list[type[Contract]] = []
        self._made: list[type[Any]] = []

    def struct(self, kind: type[Contract]) -> type[Any]:
        """Return the Struct of a contract."""
        if kind not in self._structs:
            self._open.append(kind)
            self._structs[kind] = struct = self._compiled(kind)
            self._open.pop()
            for each in self._made:  # msgspec resolves the names in annotations in the namespace of the class
                setattr(each, _reference(kind), struct)
        return self._structs[kind]

    def _compiled(self, kind: type[Contract]) -> type[Any]:
        root, fields = _Node(), dict[str, str]()
        for value in values(kind):
            leaf, only = self._leaf(value), len(value.paths) == 1
            # An identity may be null at one of its paths if it is found at another one.
            never_null = not value.nullable and (only or value.kind != "identity")
            for path in value.paths:
                root.add(steps(path), leaf, required=only and value.required, never_null=never_null)
            if not (value.many or len(value.paths) > 1 or len(steps(value.paths[0])) > 1 or value.paths[0] in fields):
                fields[value.paths[0]] = value.name
        namespace: dict[str, Any] = {
            value.name: _attribute(value, root) for value in values(kind) if value.name not in fields.values()
        }
        tag = {} if kind.tag is None else {"tag_field": kind.tag[0], "tag": kind.tag[1]}
        struct = msgspec.defstruct(
            kind.__name__,
            [self._field(key, node, fields.get(key) or field_name(key)) for key, node in root.keys.items()],
            bases=(kind, msgspec.Struct),
            namespace=namespace,
            kw_only=True,
            eq=False,
            **tag,  # type: ignore[arg-type]
        )
        self._made.append(struct)
        return struct

    def _leaf(self, value: Value) -> Any:
        kinds = [_reference(kind) if kind in self._open else self.struct(kind) for kind in value.contracts]
        return Union[(*(kinds or [value.type]),)]  # Union, because the alternatives are in a variable

    def _field(self, key: str, node: _Node, name: str) -> tuple[str, Any, Any]:
        kind = self._type(node)
        if node.required:
            return name, kind, msgspec.field(name=key)
        # The default is an empty object, so that reading the path needs no check for an absent object.
        default = self._made[-1]() if node.keys else None
        return name, kind, msgspec.field(name=key, default=default)

    def _type(self, node: _Node) -> Any:
        if sum(map(bool, (node.leaf is not None, node.keys, node.entry))) > 1:
            raise TypeError("a path ends where another one continues: declare a contract for the object")
        null = () if node.never_null else (None,)
        if node.leaf is not None:
            return Union[(node.leaf, *null)]
        if node.entry is not None:
            entry: Any = self._type(node.entry)
            return Union[(list[entry], *null)]
        fields = [self._field(key, each, field_name(key)) for key, each in node.keys.items()]
        part = msgspec.defstruct("Part", fields, frozen=True, gc=False, kw_only=True)
        self._made.append(part)
        return Union[(part, *null)]


def _reference(kind: type[Contract]) -> str:
    return f"contract_{kind.__module__.replace('.', '_')}_{kind.__qualname__.replace('.', '_')}"


Getter = Callable[[Any], Any]


def getter(paths: Sequence[str]) -> Getter:
    """Return the function that reads the value at the first of several paths that has a value.

    If no path has a value, the function returns None, or [] if the paths contain ``[]`` or ``*``.
    """
    return _compiled(_first(paths))


def getter_of_keys(path: tuple[Step, ...]) -> Getter:
    """Return the function that reads the value at a path that has only keys, and on which no object is ever null."""
    return attrgetter(".".join(field_name(str(key)) for key in path))


def lacks_one_of(values: Sequence[Sequence[str]]) -> Getter | None:
    """Return the function that returns whether an object lacks any of several values, or None if no values are given.

    ``values``: the paths of each value.
    """
    tests = (f"({_first(paths)}) is None" if is_flat(paths[0]) else f"not ({_first(paths)})" for paths in values)
    return _compiled(" or ".join(tests)) if values else None


def _first(paths: Sequence[str]) -> str:
    expressions = [_expression(steps(path), "row") for path in paths]
    if not is_flat(paths[0]):
        return " or ".join(expressions)
    firsts = (f"found if (found := {each}) is not None else " for each in expressions[:-1])
    return "".join(firsts) + expressions[-1]


def _compiled(expression: str) -> Getter:
    getter: Getter = eval(f"lambda row: {expression}")  # noqa: S307  # the names are made by field_name
    return getter


def _expression(path: tuple[Step, ...], row: str, depth: int = 0) -> str:
    """Return the expression for the value at a path below a variable. The variable is not null.

    ``depth``: the number of lists around the variable, for the names of further variables.
    """
    count = next((index for index, step in enumerate(path) if isinstance(step, int) or step == EACH), len(path))
    found = _chain([field_name(str(key)) for key in path[:count]], row) if count else row
    if count == len(path):
        return found
    step, below = path[count], path[count + 1 :]
    rows, one, inside = (f"{name}{depth}" for name in ("rows", "one", "inside"))
    entry = f"{rows}[{step}]" if isinstance(step, int) else f"entry{depth}"
    is_list = EACH in below
    value = _expression(below, entry, depth + 1) if below else entry
    if isinstance(step, int):
        is_short = f"len({rows}) <= {step}" if step >= 0 else f"len({rows}) < {-step}"
        return f"({'[]' if is_list else 'None'} if not ({rows} := {found}) or {is_short} else {value})"
    each = f"for {entry} in {rows}"
    if not below:
        values = rows
    elif is_list:
        values = f"[{one} {each} if ({inside} := {value}) for {one} in {inside}]"
    else:
        values = f"[{one} {each} if ({one} := {value}) is not None]"
    return f"([] if not ({rows} := {found}) else {values})"


def _chain(names: list[str], row: str) -> str:
    """Return the expression for an attribute of an attribute, and so on. Each object but the first may be null."""
    first = f"{row}.{names[0]}"
    inner = "".join(f"None if (part := part.{name}) is None else " for name in names[1:-1])
    return f"(None if (part := {first}) is None else {inner}part.{names[-1]})" if names[1:] else first


@cache
def field_name(key: str) -> str:
    """Return the name of the Struct's field for a key: an identifier that is not the name of a method or value."""
    return "key_" + "".join(each if each.isalnum() and each.isascii() else f"_{ord(each)}_" for each in key)
