"""The item pipelines, which validate items and make the lines of batch feeds."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError
from scrapy.exceptions import DropItem

from crawler.errors import ExtractionFailed
from crawler.platforms.model import first_problem, validation_details
from crawler.targets.target import Record
from crawler.targets.tracker import record_in_progress


class InvalidItem(ExtractionFailed, DropItem):
    """Raised when an item does not match its data model. Scrapy drops the item; the target fails with this error."""


class ValidationPipeline:
    """Replaces the data of an item with its validated data, or drops the item if the data does not match its model."""

    def process_item(self, item: Any) -> Record:
        record = record_in_progress(item)
        try:
            data = validated(record.target.scraper.data, record.data)
        except ExtractionFailed as error:
            raise InvalidItem(error.message, details=error.details, reason=error.reason) from error
        record.clear()
        record.update(data)
        return record


class BatchLinePipeline:
    """The last pipeline: converts the item of a batch target to a feed line, which contains the target's id and params.

    The data of a single target (from spider arguments or an HTTP call) stays the item.
    """

    def process_item(self, item: Any) -> Record:
        record = record_in_progress(item)
        return record.as_line() if record.target.batch else record


def validated(model: type[BaseModel], data: dict[str, Any]) -> dict[str, Any]:
    """Validate data with a data model. Return the validated data in the form of JSON, without fields that were not set.

    Raises:
        ExtractionFailed: the data does not match the model. ``details`` have the path of each invalid value.
    """
    try:
        return model.model_validate(data).model_dump(mode="json", by_alias=True, exclude_unset=True)
    except ValidationError as error:
        raise ExtractionFailed(
            f"The page's data does not match the scraper's schema: {first_problem(error)}",
            details=validation_details(error),
            reason="invalid_data",
        ) from error
