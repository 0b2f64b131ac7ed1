"""The fields of a data model, with their descriptions, and how often they are filled in data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from annotated_types import MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

EMPTY: tuple[Any, ...] = (None, "", [], {})
"""Values that count as empty. 0 and false are values."""


class FieldCount(BaseModel):
    """Counts of a field: ``rows`` objects have it, ``filled`` of them with a value, ``null`` of them with null."""

    rows: int = 0
    filled: int = 0
    null: int = 0

    @property
    def coverage(self) -> float:
        """Share of the rows with a value."""
        return self.filled / self.rows if self.rows else 0.0

    @property
    def null_rate(self) -> float:
        """Share of the rows with null. Other empty rows have an empty text, an empty list or no key."""
        return self.null / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class DataField:
    """A field of a data model."""

    key: str
    """The key in the data."""
    description: str
    """The docstring of the field, "" without one."""
    may_be_empty: bool
    """Whether its type allows null, an empty text or an empty list."""
    is_list: bool
    models: tuple[type[BaseModel], ...]
    """The models of the objects in the field."""


class Value(NamedTuple):
    """A field's value in data."""

    path: str
    """Path from the root of the data: ``products[].price.current_price``."""
    field: DataField
    value: Any
    """None also where the key is absent."""
    is_given: bool

    @property
    def is_empty(self) -> bool:
        """Whether the value is empty."""
        return self.value in EMPTY


@cache
def fields_of(*models: type[BaseModel]) -> tuple[DataField, ...]:
    """The fields of a model, or the merged fields of the models of a union."""
    found: dict[str, DataField] = {}
    for model in models:
        for name, info in model.model_fields.items():
            each = _field(name, info)
            known = found.get(each.key, each)
            found[each.key] = replace(
                known,
                may_be_empty=known.may_be_empty or each.may_be_empty,
                is_list=known.is_list or each.is_list,
                models=tuple(dict.fromkeys((*known.models, *each.models))),
            )
    return tuple(found.values())


def _field(name: str, info: FieldInfo) -> DataField:
    kinds = list(_kinds(info.annotation))
    is_bounded = any(isinstance(each, MinLen) and each.min_length > 0 for each in info.metadata)
    return DataField(
        key=info.serialization_alias or info.alias or name,
        description=info.description or "",
        may_be_empty=not is_bounded and any(kind in {NoneType, str, list} for kind in kinds),
        is_list=list in kinds,
        models=tuple(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)),
    )


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types in an annotation, including those of a list's rows."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif origin in {Union, UnionType}:
        for each in get_args(annotation):
            yield from _kinds(each)
    elif origin is list:
        yield list
        # Texts in a list are not fields: only models in it count.
        yield from (kind for each in get_args(annotation) for kind in _kinds(each) if kind not in {str, NoneType})
    else:
        yield annotation


def values_of(data: dict[str, Any], *models: type[BaseModel], path: str = "") -> Iterator[Value]:
    """Yield each field of valid data and of its objects, in the models' order. Rows of a list share one path."""
    for field in fields_of(*models):
        found = Value(f"{path}{field.key}", field, data.get(field.key), field.key in data)
        yield found
        if field.models and found.value:
            below = f"{found.path}[]." if field.is_list else f"{found.path}."
            for row in found.value if isinstance(found.value, list) else (found.value,):
                if row is not None:
                    yield from values_of(row, *field.models, path=below)


def count_fields(data: dict[str, Any], model: type[BaseModel], counts: dict[str, FieldCount]) -> None:
    """Add the fields of a record's data to the counts, by path."""
    for each in values_of(data, model):
        count = counts.get(each.path)
        if count is None:
            count = counts[each.path] = FieldCount()
        count.rows += 1
        if each.value is None:
            count.null += each.is_given
        elif not each.is_empty:
            count.filled += 1
