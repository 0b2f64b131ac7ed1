"""What a data model looks like to those who load it: one description, from which all table formats are made.

A shape is a kind of scalar, ``Struct`` (an object whose keys are known) or ``ListOf`` (a list). What has no fixed shape
(a list of anything, an object of any keys, a model within itself) is ``json``: its JSON text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import orjson
from pydantic import BaseModel

from crawler.platforms.model import Entity, Model

Scalar = Literal["text", "integer", "number", "boolean", "json"]

SCALARS: dict[Any, Scalar] = {str: "text", int: "integer", float: "number", bool: "boolean"}
LARGEST = 2**63
"""Integers of all table formats are smaller than this."""


@dataclass(frozen=True)
class ListOf:
    """A list."""

    of: ColumnType


@dataclass(frozen=True)
class Struct:
    """An object: its keys as they are spelt in the data, and what it is where that is known."""

    of: dict[str, ColumnType]
    entity: Entity | None = None


ColumnType = Scalar | ListOf | Struct


@dataclass(frozen=True)
class RecordPath:
    """Where in the data objects of one kind are."""

    path: tuple[str, ...]
    """The keys that lead there; lists on the way are gone through."""
    fields: Struct
    many: bool
    """Whether there may be several."""

    def rows(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """The objects that are there, in order."""
        found: list[Any] = [data]
        for key in self.path:
            met = [each.get(key) for each in found]
            found = [row for value in met for row in (value if isinstance(value, list) else [value]) if row is not None]
        return found


def column_type_of(annotation: Any, within: tuple[type[BaseModel], ...] = ()) -> ColumnType:
    """The shape of a type annotation. ``within`` are the models that it is part of.

    >>> shape_of(list[int | None])
    Many(of='integer')
    """
    origin = get_origin(annotation)
    arguments = [each for each in get_args(annotation) if each is not type(None)]
    if origin is Annotated:
        return column_type_of(arguments[0], within)
    if origin in {Union, UnionType}:
        first, *others = (column_type_of(each, within) for each in arguments)
        for other in others:
            first = merged(first, other)
        return first
    if origin is Literal:
        kinds = {type(each) for each in arguments}
        return SCALARS.get(kinds.pop(), "json") if len(kinds) == 1 else "json"
    if origin is list:
        return ListOf(column_type_of(arguments[0], within))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in within:
        return _of_model(annotation, within) or "json"
    return SCALARS.get(annotation, "json")


def _of_model(model: type[BaseModel], within: tuple[type[BaseModel], ...] = ()) -> Struct | None:
    fields = {
        info.serialization_alias or info.alias or name: column_type_of(info.annotation, (*within, model))
        for name, info in model.model_fields.items()
    }
    return Struct(fields, model.entity if issubclass(model, Model) else None) if fields else None


def column_type_of_models(models: list[type[BaseModel]]) -> Struct:
    """One shape into which the data of several models fits.

    Raises:
        TypeError: a model without fields: there is nothing to load.
    """
    shapes = [_of_model(model) for model in models]
    whole = shapes[0]
    for other in shapes:
        if whole is None or other is None:
            raise TypeError("a data model has no fields")
        whole = _merged_fields(whole, other)
    assert whole is not None
    return whole


def merged(one: ColumnType, other: ColumnType) -> ColumnType:
    """A shape into which both fit.

    >>> merged("integer", "number"), merged("text", "integer")
    ('number', 'json')
    """
    if one == other:
        return one
    if isinstance(one, Struct) and isinstance(other, Struct):
        return _merged_fields(one, other)
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        return ListOf(merged(one.of, other.of))
    return "number" if {str(one), str(other)} == {"integer", "number"} else "json"


def _merged_fields(one: Struct, other: Struct) -> Struct:
    names = dict.fromkeys([*one.of, *other.of])
    either = {n: merged(one.of.get(n, other.of.get(n, "json")), other.of.get(n, one.of.get(n, "json"))) for n in names}
    return Struct(either, one.entity or other.entity)


def record_paths(fields: Struct, path: tuple[str, ...] = (), *, many: bool = False) -> Iterator[RecordPath]:
    """Every place of objects in the data, the data itself first."""
    yield RecordPath(path, fields, many)
    for name, shape in fields.of.items():
        inner = shape
        while isinstance(inner, ListOf):
            inner = inner.of
        if isinstance(inner, Struct):
            yield from record_paths(inner, (*path, name), many=many or isinstance(shape, ListOf))


def rows_named(fields: Struct, name: str) -> RecordPath:
    """The list in the data that ``-a explode=`` means: by its entity's name, its key, or its whole path.

    Raises:
        ValueError: there is no such list, or there are several; the message names those that there are.
    """
    lists = [place for place in record_paths(fields) if place.many]
    for names in (_entity_name, lambda place: ".".join(place.path), lambda place: place.path[-1]):
        found = [place for place in lists if names(place) == name]
        if len(found) == 1:
            return found[0]
    known = ", ".join(".".join(place.path) for place in lists) or "no list of objects"
    raise ValueError(f"explode={name}: the data has no such list, or several; it has {known}")


def _entity_name(place: RecordPath) -> str | None:
    return place.fields.entity.name if place.fields.entity else None


def coerce(value: Any, shape: ColumnType) -> Any:
    """A value of valid data as its column takes it: all keys there, and text for what has no fixed shape.

    An integer that no table format can hold is null, as is whatever the data leaves out.
    """
    if value is None:
        return None
    if isinstance(shape, Struct):
        return {name: coerce(value.get(name), each) for name, each in shape.of.items()}
    if isinstance(shape, ListOf):
        return [coerce(each, shape.of) for each in value]
    if shape == "json":
        return orjson.dumps(value).decode()
    if shape == "integer" and not -LARGEST <= value < LARGEST:
        return None
    return value
