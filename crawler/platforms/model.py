"""The base classes of all params and data models, and ``Entity``, which describes how to identify a model's records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from crawler.errors import Detail

PLATFORM_MODULE = re.compile(r"crawler\.platforms\.(?P<platform>\w+)\.")

VALUE_ERROR_PREFIX = "Value error, "
"""The prefix that pydantic adds to the message of a ``ValueError`` that a validator raises."""


@dataclass(frozen=True)
class Entity:
    """How to identify a data model's records, which are crawled repeatedly and change over time.

    A nested field is named by its path in the model, joined by dots: ``price.current_price``.
    """

    name: str
    """The records' plural name. It is used in the table name ``<platform>_<name>`` and in ``-a explode=<name>``."""
    key: tuple[str, ...] = ()
    """Fields that together identify a record on the platform; never empty. If there are none, the target is the key."""
    history: tuple[str, ...] = ()
    """Fields whose earlier values are kept, such as prices and counts."""
    placement: tuple[str, ...] = ()
    """Fields about the place where a record was shown, such as an advertisement. If no other field changes, the stored
    row is not rewritten."""


def schema_name(model: type) -> str:
    """Return the name of a model in JSON schemas. It begins with the model's platform, so that no two names are equal.

    ``crawler.platforms.retail.schema.Product`` is ``RetailProduct``; a model that platforms share keeps its name.
    """
    module = PLATFORM_MODULE.match(model.__module__)
    return f"{module['platform'].capitalize()}{model.__name__}" if module else model.__name__


class Model(BaseModel):
    """Base class of all data models. A model accepts exactly the contract's keys, and converts no value.

    A field that the contract calls optional has a default, and is omitted from the data if the page does not have it.
    Every other key is always present.
    """

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        use_attribute_docstrings=True,
        model_title_generator=schema_name,
    )

    entity: ClassVar[Entity | None] = None
    """How to identify the model's records. None if no fields identify a record."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema without defaults: in these models, a default only marks a key as optional.

        Generated clients would otherwise insert the defaults: a price of 0 for a product without this price.
        """
        described = handler.resolve_ref_schema(handler(schema))
        for field in described.get("properties", {}).values():
            field.pop("default", None)
        return described


class Params(BaseModel):
    """Base class of all params models. A model refuses unknown keys, and converts no value.

    A caller must omit unused keys: ``targets.check_params`` refuses null.
    """

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        model_title_generator=schema_name,
    )

    exactly_one_of: ClassVar[tuple[str, ...]] = ()
    """Optional params of which a target needs exactly one. The model itself checks this."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the JSON schema for callers, without null. A default of None only marks a key as optional."""
        described = handler.resolve_ref_schema(handler(schema))
        for field in described.get("properties", {}).values():
            if "default" in field and field["default"] is None:
                del field["default"]
                (allowed,) = (each for each in field.pop("anyOf") if each != {"type": "null"})
                field.update(allowed)
        return described


def validation_details(error: ValidationError) -> list[Detail]:
    """Return a validation's errors, one entry per location, without the rejected values and pydantic's prefix."""
    return [
        {"loc": list(each["loc"]), "msg": each["msg"].removeprefix(VALUE_ERROR_PREFIX), "type": each["type"]}
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]
