"""JSON schemas of the models, as callers get them: in the OpenAPI document and in the catalogue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from crawler.platforms.model import schema_name

Json = dict[str, Any]
COMPONENTS = "#/components/schemas/"


class Refs:
    """Makes the references to the schemas of models, and collects the models that the document refers to.

    The name of a schema is its title, which is unique. Pydantic would add the module to names that occur twice.
    """

    def __init__(self) -> None:
        self._models: dict[type[BaseModel], None] = {}

    def __getitem__(self, model: type[BaseModel]) -> Json:
        """Return the reference to the schema of a model."""
        self._models[model] = None
        return {"$ref": COMPONENTS + schema_name(model)}

    def schemas(self) -> Json:
        """Return the schemas of all models that were referred to, and those that they need, by name."""
        # In validation mode, a field with a default is optional in the schema, as in the specification.
        _, defined = models_json_schema(
            [(model, "validation") for model in self._models], ref_template=COMPONENTS + "{model}"
        )
        schemas = defined["$defs"]
        titles = {COMPONENTS + key: COMPONENTS + schema["title"] for key, schema in schemas.items()}
        assert len(set(titles.values())) == len(titles), "two models have the same title"
        return {schema["title"]: _for_callers(schema, titles) for schema in schemas.values()}


def params_schema(model: type[BaseModel]) -> Json:
    """Return the schema of a model of params, with all schemas that it needs."""
    schema: Json = _for_callers(model.model_json_schema(), {})
    return schema


def markdown(text: str) -> str:
    """Convert a docstring to Markdown: the literals of reStructuredText become code spans.

    >>> markdown("Same as ``cat_id``.")
    'Same as `cat_id`.'
    """
    return re.sub(r"``(.+?)``", r"`\1`", text)


def _for_callers(part: Any, titles: Mapping[str, str]) -> Any:
    """Return a schema with Markdown descriptions, with references by title, and without titles of fields."""
    if isinstance(part, list):
        return [_for_callers(each, titles) for each in part]
    if not isinstance(part, dict):
        return part
    converted = {key: _for_callers(value, titles) for key, value in part.items()}
    for field in converted.get("properties", {}).values():
        field.pop("title", None)  # pydantic makes it from the key: "Cat Id"
        field.pop("group", None)  # the place of an argument in Scrapy Cloud's form
    if isinstance(part.get("description"), str):
        converted["description"] = markdown(part["description"])
    if isinstance(part.get("$ref"), str):
        converted["$ref"] = titles.get(part["$ref"], part["$ref"])
    return converted
