"""The SQL pipeline: batches, an unavailable database, a rejected record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from crawler.outputs.sql.pipeline import SqlPipeline
from crawler.outputs.sql.rows import Row
from crawler.outputs.sql.sink import WriteCounts
from crawler.registry import scrapers
from crawler.spiders.retail import RetailSpider
from crawler.targets.target import Record, Target

CATEGORY = scrapers()["retail-category-v4"]


class Pipeline:
    """The pipeline with a fake sink, in a fake crawler that records why it is closed."""

    def __init__(self, write: Callable[[list[str]], None]) -> None:
        self.batches: list[list[str]] = []
        self.closed: list[str] = []

        def sink(rows: list[Row]) -> WriteCounts:
            names = [str(row.values["item_id"]) for row in rows if row.table.name == "retail_products"]
            self.batches.append(names)
            write(names)
            return WriteCounts(new=len(rows))

        async def close(reason: str) -> None:
            self.closed.append(reason)

        crawler: Any = SimpleNamespace(
            settings=Settings({"SQL_SINK": "x"}),
            spider=SimpleNamespace(name="retail", on_demand=False, scrapers=RetailSpider.scrapers),
            engine=SimpleNamespace(close_spider_async=close),
        )
        crawler.stats = MemoryStatsCollector(SimpleNamespace(settings=Settings()))  # type: ignore[arg-type]
        self.stats = crawler.stats
        self.pipeline = SqlPipeline.from_crawler(crawler)
        self.pipeline.sink = SimpleNamespace(write=sink)  # type: ignore[assignment]

    def process(self, *items: str) -> list[Any]:
        """Process items concurrently, and return their results."""

        async def all_at_once() -> list[Any]:
            work = [self.pipeline.process_item(record(item)) for item in items]
            return await asyncio.gather(*work, return_exceptions=True)

        return asyncio.run(all_at_once())


def record(item: str) -> Record:
    target = Target(item, CATEGORY, CATEGORY.params.model_validate({"cat_id": "1"}))
    return Record({"products": [{"item_id": item}]}, target, datetime.now(UTC))


def test_records_that_arrive_during_a_write_form_one_batch() -> None:
    pipeline = Pipeline(lambda _: None)
    items = [str(n) for n in range(50)]
    assert [each.target.id for each in pipeline.process(*items)] == items
    assert [name for batch in pipeline.batches for name in batch] == items
    assert len(pipeline.batches) <= 2
    assert pipeline.stats.get_value("sql/new") == 100, "a product and a listing each"


def test_writes_are_retried_while_the_database_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.outputs.sql.pipeline.RETRY_DELAYS_SECONDS", (0.0, 0.0, 0.0))
    tries = iter([ConnectionError("away"), ConnectionError("away"), None])

    def write(_: list[str]) -> None:
        problem = next(tries, None)
        if problem:
            raise problem

    pipeline = Pipeline(write)
    assert [each.target.id for each in pipeline.process("a", "b")] == ["a", "b"]
    assert pipeline.closed == []


def test_a_permanently_unavailable_database_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.outputs.sql.pipeline.RETRY_DELAYS_SECONDS", (0.0, 0.0))

    def write(_: list[str]) -> None:
        raise ConnectionError("disk removed")

    pipeline = Pipeline(write)
    assert {type(each) for each in pipeline.process("a", "b", "c")} == {ConnectionError}
    assert pipeline.closed == ["SQL_SINK cannot be written: disk removed"]
    tried = len(pipeline.batches)
    assert {type(each) for each in pipeline.process("d")} == {ConnectionError}
    assert len(pipeline.batches) == tried, "later records are not tried"


def test_a_rejected_record_does_not_fail_others() -> None:
    def write(names: list[str]) -> None:
        if "b" in names:
            raise ValueError("not this one")

    done = Pipeline(write).process("a", "b", "c")
    assert [isinstance(each, ValueError) for each in done] == [False, True, False]
