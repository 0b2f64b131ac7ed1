"""Reads the declarations of the settings in ``crawler/settings.py``: their types, meanings and permitted values."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, get_type_hints

from pydantic import TypeAdapter
from scrapy.settings import default_settings

import crawler.settings

USER_AND_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")
HIDDEN = "***"


@dataclass(frozen=True)
class Declaration:
    """A setting with a declared type."""

    name: str
    adapter: TypeAdapter[Any]
    """Validates values of the setting, and converts them to its type."""

    @property
    def is_own(self) -> bool:
        """Whether the setting is the project's own, and not one of Scrapy."""
        return not hasattr(default_settings, self.name)

    @cached_property
    def expectation(self) -> str:
        """What a value must be, such as "a whole number of at least 1"."""
        return _expectation(self.adapter.json_schema())

    def shown(self, value: object) -> str:
        """Return a value for messages and listings, without passwords and keys."""
        schema = self.adapter.json_schema()
        if value and "password" in {part.get("format") for part in (schema, *schema.get("anyOf", ()))}:
            return HIDDEN
        return USER_AND_PASSWORD.sub(f"{HIDDEN}@", repr(value))


@cache
def declarations() -> dict[str, Declaration]:
    """Return the settings with a declared type, by name, in the order of the settings module."""
    kinds = get_type_hints(crawler.settings, include_extras=True)
    # Settings of the same type share its adapter, which takes about a millisecond to build.
    adapters = {key: TypeAdapter(kind) for key, kind in {id(kind): kind for kind in kinds.values()}.items()}
    return {name: Declaration(name, adapters[id(kind)]) for name, kind in kinds.items()}


def meanings() -> dict[str, str]:
    """Return the text below each of the project's settings: a string literal after its assignment, as one line."""
    body = ast.parse(inspect.getsource(crawler.settings)).body
    return {
        statement.target.id: " ".join(below.value.value.split())
        for statement, below in pairwise(body)
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def _expectation(schema: dict[str, Any]) -> str:
    """Describe a JSON schema: by its description, or else by its type and bounds."""
    if "description" in schema:
        return str(schema["description"])
    if "anyOf" in schema:
        return ", or ".join("None" if each == {"type": "null"} else _expectation(each) for each in schema["anyOf"])
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if schema["type"] == "array":
        return f"a list, in which each entry is {_expectation(schema['items'])}"
    word = {"integer": "a whole number", "number": "a number", "boolean": "True or False", "string": "text"}
    return word[schema["type"]] + _bounds(schema)


def _bounds(schema: dict[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        return f" above {schema['exclusiveMinimum']:g}"
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    return "" if least is None else f" of at least {least:g}"
