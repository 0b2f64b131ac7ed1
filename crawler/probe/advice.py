"""Adds to warnings about unread parts the lines of ``PAYLOAD_NAMES`` that would make these parts readable."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, cast

import structlog
from scrapy import signals
from scrapy.exceptions import NotConfigured

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from crawler.platforms.names import PayloadNames
    from crawler.spiders.base import PlatformSpider
    from crawler.storage.kept import Keeper

logger = structlog.get_logger(__name__)

WAIT_SECONDS = 5.0
"""Maximum number of seconds that a crawl waits for suggestions when it ends.

The process itself exits only after the queued responses are written, which may take longer.
"""


class Advice:
    """Extension that derives suggested lines from the kept responses, in the thread that writes these responses to
    disk.

    The extension costs nothing in a run without unread parts. Each unread path is examined once per process.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Advice:
        spider = cast("PlatformSpider", crawler.spider)
        if not spider.keeper.keep:
            raise NotConfigured
        spider.keeper.suggest = partial(suggested, spider.payload_names, crawler.settings)
        advice = cls(spider.keeper)
        crawler.signals.connect(advice.spider_closed, signals.spider_closed)
        return advice

    async def spider_closed(self) -> None:
        """Wait for the suggestions from the last responses, so that they are logged before the crawl ends."""
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(self._keeper.wait), WAIT_SECONDS)


def suggested(names: PayloadNames, settings: BaseSettings, folder: Path) -> dict[str, str]:
    """Return the proven lines for the kept responses in a source's folder, by the unread path that they repair.

    A line is a JSON object, as in the file of ``PAYLOAD_NAMES``. The line is logged with its evidence, but without
    values.
    """
    from crawler.probe.repair import as_line, repair_source  # noqa: PLC0415  # imported late, because most crawls do not need it
    from crawler.probe.reread import overrides_for  # noqa: PLC0415

    found = {}
    for each in repair_source(folder, names.current, partial(overrides_for, settings=settings)).proven:
        line = as_line(each.line)
        logger.warning(
            "unread_suggestion",
            platform=folder.parent.name,
            source=folder.name,
            paths=", ".join(each.mends),
            line=line,
            evidence=each.evidence,
        )
        found.update(dict.fromkeys(each.mends, line))
    return found
