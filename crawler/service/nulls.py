"""How often a field that may be empty is empty: the first sign that a platform has changed its pages."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

from annotated_types import MinLen
from pydantic import BaseModel

EMPTY: tuple[Any, ...] = (None, "", [])


@cache
def optional_fields(model: type[BaseModel]) -> tuple[tuple[str, type[BaseModel] | None, bool], ...]:
    """Of each field: its key, the model below it, and whether it may be empty (null, an empty text or list)."""
    found = []
    for name, info in model.model_fields.items():
        kinds = list(_kinds(info.annotation))
        inner = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        bounded = any(isinstance(each, MinLen) and each.min_length > 0 for each in info.metadata)
        optional = not bounded and any(kind in {type(None), str, list} for kind in kinds)
        found.append((info.serialization_alias or info.alias or name, inner, optional))
    return tuple(found)


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of, down to those of a list's rows."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif origin in {Union, types.UnionType}:
        for each in get_args(annotation):
            yield from _kinds(each)
    elif origin is list:
        yield list
        # Texts in a list are rows, and no field: only models below it count.
        yield from (kind for each in get_args(annotation) for kind in _kinds(each) if kind not in {str, type(None)})
    else:
        yield annotation


def emptiness(model: type[BaseModel], data: dict[str, Any], path: str = "") -> Iterator[tuple[str, bool]]:
    """Each value that may be empty, as its field's path and whether it is: rows of a list under one path."""
    for key, inner, optional in optional_fields(model):
        value = data.get(key)
        where = f"{path}.{key}" if path else key
        if optional:
            yield where, value in EMPTY
        if inner is not None and value:
            for row in value if isinstance(value, list) else (value,):
                yield from emptiness(inner, row, where)
