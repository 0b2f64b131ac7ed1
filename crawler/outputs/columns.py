"""Column types: they describe the data models, and the columns of CSV, XLSX and SQL are made from them.

A column type is a scalar, ``Struct`` (an object with known keys) or ``ListOf`` (a list). Values without one fixed type
are stored as JSON text (``json``): values of any or of several types, objects with arbitrary keys, and models that
contain themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import orjson
from pydantic import BaseModel

from crawler.platforms.model import Mark, Rows

Scalar = Literal["text", "integer", "number", "boolean", "json"]

SCALARS: dict[Any, Scalar] = {str: "text", int: "integer", float: "number", bool: "boolean"}
INTEGER_LIMIT = 2**63
"""Integers in tables have 64 bits: they must be at least ``-INTEGER_LIMIT`` and less than ``INTEGER_LIMIT``."""


@dataclass(frozen=True)
class ListOf:
    """The type of a list column."""

    of: ColumnType
    name: str | None = None
    """The name that the list's mark ``Rows`` declares."""


@dataclass(frozen=True)
class Struct:
    """The type of an object: its keys as in the data, each with a type."""

    of: dict[str, ColumnType]
    marks: dict[str, Mark] = field(default_factory=dict)
    """Key -> the mark of its field."""

    def marked(self, mark: Mark) -> list[tuple[str, ...]]:
        """Return the paths of the marked keys of this object and of the objects in it, but not of those in lists."""
        found = [(name,) for name, each in self.marks.items() if each is mark]
        inner = ((name, each) for name, each in self.of.items() if isinstance(each, Struct))
        return found + [(name, *path) for name, each in inner for path in each.marked(mark)]


ColumnType = Scalar | ListOf | Struct


@dataclass(frozen=True)
class RecordPath:
    """A path in the data, and the type of the objects at this path."""

    path: tuple[str, ...]
    """The keys that lead to the objects. If a key contains a list, the path continues in each of its entries."""
    fields: Struct
    many: bool
    """Whether a list is on the path, so that there may be several objects."""
    is_list: bool = False
    """Whether the objects are the entries of a list that is not inside another list."""
    name: str | None = None
    """The name of the list, if it declares one."""

    @property
    def position_column(self) -> str:
        """The name of the column with the position in the list: not ``position`` if the objects have such a key."""
        return "list_position" if "position" in self.fields.of else "position"

    def rows(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the objects at this path, in the order of the data."""
        found: list[Any] = [data]
        for key in self.path:
            values = [each.get(key) for each in found]
            lists = [value if isinstance(value, list) else [value] for value in values]
            found = [row for rows in lists for row in rows if row is not None]
        return found

    def distinct_rows(self, data: dict[str, Any]) -> dict[tuple[Any, ...], tuple[int, dict[str, Any]]]:
        """Return the objects at this path with their positions, by natural key: of equal keys, the first organic one.

        If the objects have no natural key, each is identified by its position.
        """
        key, advertised = self.fields.marked(Mark.KEY), self.fields.marked(Mark.ADVERTISED)
        rows = list(enumerate(self.rows(data)))
        rows.sort(key=lambda row: any(value_at(row[1], path) for path in advertised))
        found: dict[tuple[Any, ...], tuple[int, dict[str, Any]]] = {}
        for position, row in rows:
            found.setdefault(tuple(value_at(row, path) for path in key) or (position,), (position, row))
        return found


def value_at(data: dict[str, Any], path: tuple[str, ...]) -> Any:
    """Return the value at a path through objects, or None if a key is missing or an object is null.

    >>> value_at({"price": {"amount": 2}}, ("price", "amount")), value_at({"price": None}, ("price", "amount"))
    (2, None)
    """
    found: Any = data
    for key in path:
        found = found.get(key) if found else None
    return found


def column_type_of(annotation: Any, within: tuple[type[BaseModel], ...] = ()) -> ColumnType:
    """Return the column type of a type annotation. ``within``: the models in which the annotation is nested.

    >>> column_type_of(list[int | None])
    ListOf(of='integer', name=None)
    """
    origin = get_origin(annotation)
    arguments = [each for each in get_args(annotation) if each is not type(None)]
    if origin is Annotated:
        return column_type_of(arguments[0], within)
    if origin in {Union, UnionType}:
        return reduce(merged, (column_type_of(each, within) for each in arguments))
    if origin is Literal:
        kinds = {type(each) for each in arguments}
        return SCALARS.get(kinds.pop(), "json") if len(kinds) == 1 else "json"
    if origin is list:
        return ListOf(column_type_of(arguments[0], within))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in within:
        return _of_model(annotation, within) if annotation.model_fields else "json"
    return SCALARS.get(annotation, "json")


def _of_model(model: type[BaseModel], within: tuple[type[BaseModel], ...] = ()) -> Struct:
    fields: dict[str, ColumnType] = {}
    marks: dict[str, Mark] = {}
    for name, info in model.model_fields.items():
        key = info.serialization_alias or info.alias or name
        fields[key] = column_type_of(info.annotation, (*within, model))
        for mark in info.metadata:
            if isinstance(mark, Mark):
                marks[key] = mark
            elif isinstance(mark, Rows):
                fields[key] = replace(cast("ListOf", fields[key]), name=mark.name)
    return Struct(fields, marks)


def column_type_of_models(models: list[type[BaseModel]]) -> Struct:
    """Return one type that can hold the data of all given models."""
    return reduce(merged_fields, map(_of_model, models))


def merged(one: ColumnType, other: ColumnType) -> ColumnType:
    """Return a column type that can hold the values of both types.

    >>> merged("integer", "number"), merged("text", "integer")
    ('number', 'json')
    """
    if one == other:
        return one
    if isinstance(one, Struct) and isinstance(other, Struct):
        return merged_fields(one, other)
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        return ListOf(merged(one.of, other.of), one.name or other.name)
    return "number" if {str(one), str(other)} == {"integer", "number"} else "json"


def merged_fields(one: Struct, other: Struct) -> Struct:
    """Return the type of an object that can hold the values of objects of both types."""
    names = dict.fromkeys([*one.of, *other.of])
    either = {n: merged(one.of.get(n, other.of.get(n, "json")), other.of.get(n, one.of.get(n, "json"))) for n in names}
    return Struct(either, one.marks | other.marks)


def record_paths(fields: Struct) -> Iterator[RecordPath]:
    """Yield the path of each type of object in the data, starting with the empty path of the data itself."""
    yield from _paths_below(RecordPath((), fields, many=False))


def _paths_below(parent: RecordPath) -> Iterator[RecordPath]:
    yield parent
    for name, column_type in parent.fields.of.items():
        inner = without_lists(column_type)
        if isinstance(inner, Struct):
            is_list = isinstance(column_type, ListOf)
            own = column_type.name if isinstance(column_type, ListOf) else None
            found = RecordPath((*parent.path, name), inner, parent.many or is_list, is_list and not parent.many, own)
            yield from _paths_below(found)


def without_lists(column_type: ColumnType) -> Scalar | Struct:
    """Return the type of the values in a list, or in lists of lists. Other types are returned unchanged."""
    while isinstance(column_type, ListOf):
        column_type = column_type.of
    return column_type


def find_row_path(fields: Struct, name: str) -> RecordPath:
    """Find the list that ``-a explode=`` names by its declared name, its whole path or its key.

    Lists inside lists cannot be chosen, because their rows would not identify the entry that contains them.

    Raises:
        ValueError: no list has this name, or several lists have it. The message contains the paths of all lists.
    """
    lists = [each for each in record_paths(fields) if each.is_list]
    for name_of in (lambda each: each.name, lambda each: ".".join(each.path), lambda each: each.path[-1]):
        found = [each for each in lists if name_of(each) == name]
        if len(found) == 1:
            return found[0]
    known = ", ".join(".".join(each.path) for each in lists) or "none"
    raise ValueError(f"explode={name}: the data has no such list, or several; its lists are: {known}")


def coerce(value: Any, column_type: ColumnType) -> Any:
    """Convert a value from the data to its column type.

    An object gets all keys of its type: a key that is missing in the data becomes None. ``json`` values become text.
    Integers that are too large for 64 bits become None.
    """
    if value is None:
        return None
    if isinstance(column_type, Struct):
        return {name: coerce(value.get(name), each) for name, each in column_type.of.items()}
    if isinstance(column_type, ListOf):
        return [coerce(each, column_type.of) for each in value]
    if column_type == "json":
        return orjson.dumps(value).decode()
    if column_type == "integer" and not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
        return None
    return value
