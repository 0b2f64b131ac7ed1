"""The bases of all params and data models, and what a model's objects are to those who load them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from crawler.errors import Detail


@dataclass(frozen=True)
class Entity:
    """What a data model's objects are to whoever loads them: things that are met again, and that change.

    All fields are named by their path within the model, joined by dots: ``price.current_price``.
    """

    name: str
    """The plural under which they are known: the table ``<platform>_<name>``, and ``-a explode=<name>``."""
    key: tuple[str, ...] = ()
    """Fields that tell one from another on the whole platform, never empty. None: the target itself is the key."""
    history: tuple[str, ...] = ()
    """Fields whose former values are kept: prices and counts."""
    placement: tuple[str, ...] = ()
    """Fields of the place where it was seen (an advertisement), not of the thing: no reason to write it anew."""


class Model(BaseModel):
    """The base of all data models: exactly the contract's keys, and no value is converted.

    A field that the contract calls optional has a default, and is left out where the page leaves it out;
    every other key is always there.
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
    """What the model's objects are, where they are things that are met again."""


class Params(BaseModel):
    """The base of all params models: unknown keys are refused, and no value is converted.

    A key that is not wanted is left out; null is no value of any param (``targets.check_params`` refuses it).
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema as a caller sees it: "None" is how Python says that a key was left out, not a value to send."""
        described = handler.resolve_ref_schema(handler(schema))
        for field in described.get("properties", {}).values():
            if "default" in field and field["default"] is None:
                del field["default"]
                (allowed,) = (each for each in field.pop("anyOf") if each != {"type": "null"})
                field.update(allowed)
        return described


def validation_details(error: ValidationError) -> list[Detail]:
    """What does not fit a model, one entry a place, without the value that was given."""
    return [
        {"loc": list(each["loc"]), "msg": each["msg"], "type": each["type"]}
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]
