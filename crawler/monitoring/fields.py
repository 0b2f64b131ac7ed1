"""Finds the fields of data models, and counts how often they are filled in data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from annotated_types import MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from crawler.configuration.names import description

EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Values that count as empty. 0 and false are not empty."""


class FieldCount(BaseModel):
    """The counts of a field: of ``rows`` objects, ``filled`` have a value, and ``null`` have null."""

    rows: int = 0
    filled: int = 0
    null: int = 0

    @property
    def null_rate(self) -> float:
        """Share of the rows in which the field is null. Other empty rows have "" or [], or lack the key."""
        return self.null / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class DataField:
    """A field of a data model."""

    key: str
    """The field's key in the data."""
    may_be_empty: bool
    """Whether the type of the field allows null, an empty text or an empty list."""
    may_be_null: bool
    may_be_absent: bool
    """Whether the data may lack the key."""
    is_list: bool
    models: tuple[type[BaseModel], ...]
    """The models of the objects that the field contains."""
    model: type[BaseModel]
    """The model that has the field."""
    name: str
    """The name of the field in its model."""

    @property
    def description(self) -> str:
        """The docstring of the field; "" if it has none."""
        return description(self.model, self.name)


class Value(NamedTuple):
    """The value of a field in a record's data."""

    path: str
    """Path from the root of the data, such as ``products[].price.current_price``."""
    field: DataField
    value: Any
    """The value; None if the data does not have the key."""
    is_given: bool

    @property
    def is_empty(self) -> bool:
        """Whether the value is empty."""
        return self.value in EMPTY


@cache
def fields_of(*models: type[BaseModel]) -> tuple[DataField, ...]:
    """Return the fields of a model. If several models are given, fields with the same key are merged."""
    found: dict[str, DataField] = {}
    for model in models:
        for name, info in model.model_fields.items():
            each = _field(model, name, info)
            known = found.get(each.key, each)
            found[each.key] = replace(
                known,
                may_be_empty=known.may_be_empty or each.may_be_empty,
                may_be_null=known.may_be_null or each.may_be_null,
                may_be_absent=known.may_be_absent or each.may_be_absent,
                is_list=known.is_list or each.is_list,
                models=tuple(dict.fromkeys((*known.models, *each.models))),
            )
    return tuple(found.values())


def _field(model: type[BaseModel], name: str, info: FieldInfo) -> DataField:
    kinds = list(_kinds(info.annotation))
    is_bounded = any(isinstance(each, MinLen) and each.min_length > 0 for each in info.metadata)
    return DataField(
        key=info.serialization_alias or info.alias or name,
        may_be_empty=not is_bounded and any(kind in {NoneType, str, list} for kind in kinds),
        may_be_null=not {None, NoneType}.isdisjoint(kinds),
        may_be_absent=not info.is_required(),
        is_list=list in kinds,
        models=tuple(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)),
        model=model,
        name=name,
    )


def _kinds(annotation: Any) -> Iterator[Any]:
    """Yield the types in an annotation, including the types of a list's entries."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif origin in {Union, UnionType}:
        for each in get_args(annotation):
            yield from _kinds(each)
    elif origin is list:
        yield list
        # The texts in a list are not fields; the objects in it have fields.
        yield from (kind for each in get_args(annotation) for kind in _kinds(each) if kind not in {str, NoneType})
    else:
        yield annotation


def values_of(data: dict[str, Any], *models: type[BaseModel], path: str = "") -> Iterator[Value]:
    """Yield all field values of valid data and its nested objects, in the order of the models.

    All entries of a list have the same path.
    """
    for field in fields_of(*models):
        found = Value(f"{path}{field.key}", field, data.get(field.key), field.key in data)
        yield found
        if field.models and found.value:
            below = f"{found.path}[]." if field.is_list else f"{found.path}."
            for row in found.value if isinstance(found.value, list) else (found.value,):
                if row is not None:
                    yield from values_of(row, *field.models, path=below)


def count_fields(data: dict[str, Any], model: type[BaseModel], counts: dict[str, FieldCount]) -> None:
    """Count the fields of a record's data. ``counts``: path of a field -> its count, to be increased."""
    for each in values_of(data, model):
        count = counts.get(each.path)
        if count is None:
            count = counts[each.path] = FieldCount()
        count.rows += 1
        if each.value is None:
            count.null += each.is_given
        elif not each.is_empty:
            count.filled += 1


def optional_values(model: type[BaseModel], data: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """For each value in ``data`` that may be empty, yield its path and whether it is empty.

    Paths contain no list brackets: all entries of a list share one path.
    """
    return (
        (value.path.replace("[]", ""), value.is_empty) for value in values_of(data, model) if value.field.may_be_empty
    )
