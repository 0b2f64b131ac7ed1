"""What must happen to every item. Knows no platform: the target's scraper names the schema."""

from __future__ import annotations

from scrapy.exceptions import DropItem

from crawler.errors import ExtractionFailed
from crawler.items import Record, validated


class InvalidItem(ExtractionFailed, DropItem):
    """Raised when page and schema disagree. Scrapy drops the item; the accounting sees the typed error."""


class ValidationPipeline:
    """Passes on exactly what the scraper's data model validated, or drops the item with the paths that do not fit."""

    def process_item(self, item: Record) -> Record:
        try:
            data = validated(item.target.scraper.data, item.data)
        except ExtractionFailed as error:
            raise InvalidItem(error.message, details=error.details, reason=error.reason) from error
        return Record(item.target, data, item.fetched_at)
