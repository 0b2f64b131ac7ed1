"""JSON schemas of the models, as callers get them: in the OpenAPI document and in the catalogue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

Json = dict[str, Any]


def params_schema(model: type[BaseModel]) -> Json:
    """Return the schema of a model of params, with all schemas that it needs."""
    schema: Json = for_callers(model.model_json_schema(), {})
    return schema


def markdown(text: str) -> str:
    """Convert a docstring to Markdown: the literals of reStructuredText become code spans.

    >>> markdown("Same as ``cat_id``.")
    'Same as `cat_id`.'
    """
    return re.sub(r"``(.+?)``", r"`\1`", text)


def for_callers(part: Any, titles: Mapping[str, str]) -> Any:
    """Return a schema with Markdown descriptions, with references by title, and without titles of fields."""
    if isinstance(part, list):
        return [for_callers(each, titles) for each in part]
    if not isinstance(part, dict):
        return part
    converted = {key: for_callers(value, titles) for key, value in part.items()}
    for field in converted.get("properties", {}).values():
        field.pop("title", None)  # pydantic makes it from the key: "Cat Id"
        field.pop("group", None)  # the place of an argument in Scrapy Cloud's form
    if isinstance(part.get("description"), str):
        converted["description"] = markdown(part["description"])
    if isinstance(part.get("$ref"), str):
        converted["$ref"] = titles.get(part["$ref"], part["$ref"])
    return converted
