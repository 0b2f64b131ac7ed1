"""What comes out: the strict base of all models, the record that a spider yields, and the data models by scraper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from itemadapter import ItemAdapter
from itemadapter.adapter import AdapterInterface
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from crawler.errors import Detail, ExtractionFailed

if TYPE_CHECKING:
    from crawler.targets import Target


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


@dataclass(frozen=True, slots=True)
class Record:
    """A target's data on its way through the pipelines to the feeds and the endpoint."""

    target: Target
    data: dict[str, Any]
    fetched_at: datetime

    def feed_line(self) -> dict[str, Any]:
        """The record's line in a feed: its data; one of many carries what it is joined by."""
        if not self.target.batch:
            return self.data
        return {**self.target.as_dict(), "fetched_at": self.fetched_at, "data": self.data}


class RecordAdapter(AdapterInterface):
    """Shows a record as its feed line to what knows no records: Scrapy Cloud, Scrapy's own exporters."""

    item: Record

    @classmethod
    def is_item_class(cls, item_class: type) -> bool:
        return issubclass(item_class, Record)

    def __getitem__(self, name: str) -> Any:
        return self.item.feed_line()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        raise TypeError("a record is what was validated: it cannot be changed")

    def __delitem__(self, name: str) -> None:
        raise TypeError("a record is what was validated: it cannot be changed")

    def __iter__(self) -> Iterator[str]:
        return iter(self.item.feed_line())

    def __len__(self) -> int:
        return len(self.item.feed_line())


ItemAdapter.ADAPTER_CLASSES = (RecordAdapter, *ItemAdapter.ADAPTER_CLASSES)


def validated(model: type[BaseModel], data: dict[str, Any]) -> dict[str, Any]:
    """The data as the model validated it, ready for JSON.

    Raises:
        ExtractionFailed: with the path of each value that does not fit.
    """
    try:
        return model.model_validate(data).model_dump(mode="json", by_alias=True, exclude_unset=True)
    except ValidationError as error:
        details = validation_details(error)
        where = ".".join(map(str, details[0]["loc"]))
        raise ExtractionFailed(
            f"The page's data does not fit the contract: {where}: {details[0]['msg']}",
            details=details,
            reason="invalid_data",
        ) from error


def validation_details(error: ValidationError) -> list[Detail]:
    """What does not fit a model, one entry a place, without the value that was given."""
    return [
        {"loc": list(each["loc"]), "msg": each["msg"], "type": each["type"]}
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]
