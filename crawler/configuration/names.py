"""What messages and documents say about names: the known name that is most similar to an unknown one, and the
descriptions of models' fields, which are the docstrings below the fields.

With ``use_attribute_docstrings``, pydantic reads the source of each model when the model is imported. Reading the
sources took a tenth of the CPU time of a crawl's start. These functions read the source when a description is needed,
such as for OpenAPI.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

MAX_NAMED = 5
"""Maximum number of names that a message lists."""


def nearest(name: str, known: Iterable[str], similarity: float = 0.6) -> str | None:
    """Return the known name that is most similar to a name, regardless of case. None: none is similar.

    ``similarity``: the minimum similarity, from 0 to 1, as ``difflib`` computes it.

    >>> nearest("Catid", ["cat_id", "url"])
    'cat_id'
    """
    forms = {each.casefold(): each for each in known}
    found = get_close_matches(name.casefold(), forms, 1, similarity)
    return forms[found[0]] if found else None


def hint(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the end of a message about an unknown name: the most similar known name, or else ``otherwise``.

    >>> hint("catid", ["cat_id", "url"], "the params are cat_id, url")
    'did you mean cat_id?'
    >>> hint("colour", ["cat_id", "url"], "the params are cat_id, url")
    'the params are cat_id, url'
    """
    found = nearest(name, known)
    return otherwise if found is None else f"did you mean {found}?"


def name_unknown(names: Sequence[str], known: Iterable[str]) -> str:
    """Quote the first unknown names, each with the most similar known name: ``'Cat_ID' (did you mean 'cat_id'?)``."""
    known = list(known)
    similar = [(name, nearest(name, known)) for name in names[:MAX_NAMED]]
    return first_of(
        [f"{name!r} (did you mean {found!r}?)" if found else repr(name) for name, found in similar], len(names)
    )


def first_of(texts: Sequence[str], total: int | None = None) -> str:
    """Return the first texts of a list, and how many more it has: ``a, b, c, d, e and 995 more``.

    ``total``: the length of the list, if ``texts`` is only its beginning.
    """
    shown = texts[:MAX_NAMED]
    more = (len(texts) if total is None else total) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


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
