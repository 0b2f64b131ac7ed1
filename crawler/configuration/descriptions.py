"""The descriptions of models' fields: the docstrings below the fields.

With ``use_attribute_docstrings``, pydantic reads the source of each model when the model is imported. Reading the
sources took a tenth of the CPU time of a crawl's start. These functions read the source when a description is needed,
such as for OpenAPI.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Described(BaseModel):
    """A model with the docstrings of its fields in its JSON schema. pydantic builds its validator at the first use.

    The validators are built late, because most processes need few of them: a nested model is usually validated only as
    a part of another model.
    """

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        described = handler.resolve_ref_schema(handler(schema))
        properties = described.get("properties", {})
        for name, text in docstrings(cls).items():
            properties[name if name in properties else cls.model_fields[name].alias].setdefault("description", text)
        return described


def description(model: type[BaseModel], name: str) -> str:
    """Return the description of a model's field: the ``description`` of ``Field()``, else its docstring, else ""."""
    return model.model_fields[name].description or docstrings(model).get(name, "")


@cache
def docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the docstrings below the fields of a model and its base classes, by the names of the fields.

    Models must be defined at the top level of a module. Without the source of a module, its fields have no docstrings.
    """
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        found |= _classes(each.__module__).get(each.__name__, {}) if issubclass(each, Described) else {}
    return {name: text for name, text in found.items() if name in model.model_fields}


@cache
def _classes(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings below the variables of a module's classes."""
    with suppress(OSError, TypeError):  # no source; no file
        tree = ast.parse(inspect.getsource(sys.modules[module]))
        return {each.name: dict(_below_variables(each)) for each in tree.body if isinstance(each, ast.ClassDef)}
    return {}


def _below_variables(kind: ast.ClassDef) -> list[tuple[str, str]]:
    return [
        (variable.target.id, inspect.cleandoc(below.value.value))
        for variable, below in zip(kind.body, kind.body[1:], strict=False)
        if isinstance(variable, ast.AnnAssign) and isinstance(variable.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    ]
