"""Components as users write them. Their methods append a line to the file that the variable ``OWN_LOG`` names.

The add-on ``Disabling`` and the classes with wrong or changed behaviour append nothing.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from itemadapter import ItemAdapter
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.exporters import JsonItemExporter
from scrapy.http import Response
from scrapy.settings import BaseSettings

from crawler.middlewares import ThrottleMiddleware
from crawler.pipelines import ValidationPipeline


def ran(name: str) -> None:
    """Append the name of a component that was called to the file."""
    with Path(os.environ["OWN_LOG"]).open("a") as log:
        log.write(f"{name}\n")


class Webhook:
    """An extension."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Webhook:
        extension = cls()
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        return extension

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        ran(f"extension {reason}")


class Pipeline:
    """An item pipeline."""

    def process_item(self, item: Any) -> Any:
        ran("pipeline")
        return item


class WrongTitle:
    """An item pipeline that sets a value of a wrong type."""

    def process_item(self, item: Any) -> Any:
        adapter = ItemAdapter(item)
        adapter["heading"] = 12345
        return item


class LosesSecondPages:
    """An item pipeline that drops the second page of each listing."""

    def process_item(self, item: Any) -> Any:
        if ItemAdapter(item)["page"] == 2:
            raise DropItem("lost")
        return item


class Middleware:
    """A downloader middleware and spider middleware."""

    def process_request(self, request: Request) -> None:
        ran("downloader middleware")

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        ran("spider middleware")
        async for each in result:
            yield each


class Exporter(JsonItemExporter):
    """A feed exporter."""

    def finish_exporting(self) -> None:
        ran("exporter")
        super().finish_exporting()


class Addon:
    """An add-on."""

    def update_settings(self, settings: BaseSettings) -> None:
        ran("add-on")


class Disabling:
    """An add-on that disables the validation of records."""

    def update_settings(self, settings: BaseSettings) -> None:
        settings.set_in_component_priority_dict("ITEM_PIPELINES", ValidationPipeline, None)


class StricterValidation(ValidationPipeline):
    """A subclass of an essential pipeline."""


class SlowerThrottle(ThrottleMiddleware):
    """A subclass of an essential middleware."""
