"""The item pipeline that writes records to the SQL sink. A target gets its outcome after its rows are committed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import structlog
from scrapy.exceptions import CloseSpider, NotConfigured

from crawler.outputs.sql.rows import rows_of, tables_of
from crawler.targets.tracker import record_in_progress

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawler.outputs.sql.rows import Row
    from crawler.outputs.sql.sink import SqlSink, WriteCounts
    from crawler.spiders.base import PlatformSpider
    from crawler.targets.target import Record

logger = structlog.get_logger(__name__)
Waiting: TypeAlias = "tuple[list[Row], asyncio.Future[None]]"
"""The rows of a record, and a future that is done when they are committed."""

RETRY_DELAYS_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds to wait before each retry while the database is unavailable.

Targets whose rows are not committed stay in flight. When ``TARGETS_IN_FLIGHT`` is reached, the crawl waits.
"""


class SqlPipeline:
    """Writes records to the database ``SQL_SINK`` in batches. Records that arrive during a write form the next batch.

    A record is passed to the next pipeline only after its rows are committed. Therefore every target with the outcome
    ``OK`` is in the database, even if the process is killed.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.url = str(crawler.settings["SQL_SINK"])
        self.tables = tables_of(cast("PlatformSpider", crawler.spider).scrapers)
        self.sink: SqlSink | None = None
        self._waiting: list[Waiting] = []
        self._writer: asyncio.Task[None] | None = None
        self._given_up: ConnectionError | None = None
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SqlPipeline:
        if not crawler.settings["SQL_SINK"] or cast("PlatformSpider", crawler.spider).on_demand:
            raise NotConfigured
        return cls(crawler)

    async def open_spider(self) -> None:
        """Connect to the database, and create missing tables and columns.

        Raises:
            CloseSpider: the database or its driver is not available.
        """
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415  # only crawls with this sink import it

        from crawler.outputs.sql.sink import SqlSink  # noqa: PLC0415  # imports SQLAlchemy, too

        try:
            self.sink = SqlSink(self.url, self.tables.values())
            await asyncio.to_thread(self.sink.open)
        except ImportError as error:
            raise CloseSpider(f"SQL_SINK needs a driver ({error}): install the extra 'postgresql'") from None
        except (SQLAlchemyError, ValueError) as error:
            reason = str(getattr(error, "orig", error)).partition("\n")[0]
            raise CloseSpider(f"SQL_SINK cannot be used: {reason}") from None

    async def close_spider(self) -> None:
        """Disconnect from the database. All records have been written before this is called."""
        if self.sink is not None:
            await asyncio.to_thread(self.sink.close)

    async def process_item(self, item: Any) -> Record:
        """Write a record, and return it when its rows are committed. Errors of the database are raised."""
        if self._given_up is not None:
            raise self._given_up
        record = record_in_progress(item)
        rows = list(rows_of(record, self.tables))
        if rows:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((rows, done))
            if self._writer is None or self._writer.done():
                self._writer = asyncio.create_task(self._write_all())
            await done
        return record

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            await self._write(batch)

    async def _write(self, batch: Sequence[Waiting]) -> None:
        """Write records. If the database rejects them, write each record alone, so that only the wrong ones fail."""
        try:
            await self._commit([row for rows, _ in batch for row in rows])
        except ConnectionError as error:
            self._give_up(error, batch)
        except Exception as error:  # noqa: BLE001  # the waiting records must get any error
            if len(batch) == 1:
                batch[0][1].set_exception(error)
                return
            logger.warning("sql_batch_failed", records=len(batch), error=str(error).partition("\n")[0])
            for each in batch:
                await self._write([each])
        else:
            for _, done in batch:
                done.set_result(None)

    async def _commit(self, rows: list[Row]) -> None:
        """Write rows in a thread. If the database is unavailable, retry for about a minute."""
        assert self.sink is not None
        for wait in (*RETRY_DELAYS_SECONDS, None):
            try:
                self._count(await asyncio.to_thread(self.sink.write, rows))
            except ConnectionError as error:
                if wait is None:
                    raise
                logger.warning("sql_sink_unavailable", again_in_seconds=wait, error=str(error))
                await asyncio.sleep(wait)
            else:
                return

    def _give_up(self, error: ConnectionError, batch: Sequence[Waiting]) -> None:
        """End the run, because the data of further targets could not be stored."""
        assert self.crawler.engine is not None
        if self._given_up is None:
            end = self.crawler.engine.close_spider_async(reason=f"SQL_SINK cannot be written: {error}")
            self._ending = asyncio.create_task(end)
        self._given_up = error
        for _, done in (*batch, *self._waiting):
            done.set_exception(error)
        self._waiting = []

    def _count(self, written: WriteCounts) -> None:
        stats: Any = self.crawler.stats
        for name in ("new", "changed", "unchanged", "history"):
            stats.inc_value(f"sql/{name}", written[name])
