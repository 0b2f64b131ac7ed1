"""The base classes of all params and data models, and the identity of a model's records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from crawler.errors import Detail

VALUE_ERROR_PREFIX = "Value error, "
"""What pydantic puts before the message of a validator's ``ValueError``."""


@dataclass(frozen=True)
class Entity:
    """The identity of a data model's records, which are crawled repeatedly and change over time.

    All fields are named by their path within the model, joined by dots: ``price.current_price``.
    """

    name: str
    """The plural name: used for the table ``<platform>_<name>``, and for ``-a explode=<name>``."""
    key: tuple[str, ...] = ()
    """Fields that identify a record on the whole platform, never empty. Without any, the target is the key."""
    history: tuple[str, ...] = ()
    """Fields whose former values are kept: prices and counts."""
    placement: tuple[str, ...] = ()
    """Fields about where a record was shown (an advertisement). A change in these alone does not rewrite the row."""


class Model(BaseModel):
    """The base of all data models: exactly the contract's keys, and no value is converted.

    A field that the contract calls optional has a default, and is omitted if the page omits it.
    Every other key is always present.
    """

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        use_attribute_docstrings=True,
    )

    entity: ClassVar[Entity | None] = None
    """The identity of the model's records, None if they have none of their own."""


class Params(BaseModel):
    """The base of all params models: unknown keys are refused, and no value is converted.

    An unused key is omitted, never null: ``targets.check_params`` refuses null.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema for callers, without null: a default of None only marks a key as optional."""
        described = handler.resolve_ref_schema(handler(schema))
        for field in described.get("properties", {}).values():
            if "default" in field and field["default"] is None:
                del field["default"]
                (allowed,) = (each for each in field.pop("anyOf") if each != {"type": "null"})
                field.update(allowed)
        return described


def validation_details(error: ValidationError) -> list[Detail]:
    """The errors of a validation, one entry per location, without the given values and without pydantic's prefix."""
    return [
        {"loc": list(each["loc"]), "msg": each["msg"].removeprefix(VALUE_ERROR_PREFIX), "type": each["type"]}
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]
