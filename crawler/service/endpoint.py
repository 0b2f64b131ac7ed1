"""All parts of one serving process, put together: what it is made of, how it starts, how it ends."""

from __future__ import annotations

import asyncio
import resource
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from crawler.downloads.shared import SharedState
from crawler.service import idempotency, metrics, usage
from crawler.service.cache import Cache
from crawler.service.edge import EdgeSite
from crawler.service.idempotency import Idempotency
from crawler.service.limits import KeyLimits
from crawler.service.open_crawlers import OpenCrawlers
from crawler.service.resources import LONGEST_WAIT, Api
from crawler.service.store import Store, store_of
from crawler.service.usage import Usage

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from crawler.service.keys import Keys

logger = structlog.get_logger(__name__)

PURGE_EVERY = 600.0
"""Seconds between two rounds of forgetting answers that were kept for an ``Idempotency-Key``."""

OTHER_FILES = 512
"""File descriptors beside those of the clients' connections."""


class Endpoint:
    """A serving process: the endpoint's site, the open crawlers behind it, and what it remembers."""

    def __init__(self, settings: Settings, keys: Keys) -> None:
        self.settings = settings.copy()
        extensions = self.settings.getdict("EXTENSIONS") | metrics.prepare()
        self.settings.set("EXTENSIONS", extensions, priority="cmdline")
        self.store = Store(store_of(self.settings), usage.SCHEMA + idempotency.SCHEMA)
        self.usage = Usage(self.store)
        self.idempotency = Idempotency(self.store, ttl=self.settings.getfloat("IDEMPOTENCY_HOURS") * 60 * 60)
        self.crawlers = OpenCrawlers(self.settings, SharedState())
        self.cache = Cache(
            self.crawlers.call,
            ttls={name: float(ttl) for name, ttl in self.settings.getdict("RESPONSE_CACHE").items()},
            max_bytes=self.settings.getint("RESPONSE_CACHE_MB") * 1024 * 1024,
            longest=LONGEST_WAIT,
        )
        connections = self.settings.getint("SERVICE_MAX_CONNECTIONS")
        _allow_files(connections + OTHER_FILES)
        self.limits = KeyLimits(self.settings)
        self.api = Api(self.crawlers, keys, self.limits, self.cache, self.idempotency, self.usage)
        self.site = EdgeSite(self.api, connections)
        self._upkeep: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Starts to take calls."""
        self.crawlers.open()
        self._upkeep = asyncio.ensure_future(self._keep_up())

    async def drain(self) -> None:
        """Ends when the calls in flight are answered and written down."""
        await self.crawlers.drain()
        await self.api.finish()
        if self._upkeep:
            self._upkeep.cancel()
            with suppress(asyncio.CancelledError):
                await self._upkeep
        await self.usage.flush()
        await self.store.close()
        await self.limits.close()

    async def _keep_up(self) -> None:
        loop = asyncio.get_running_loop()
        purge_at = loop.time()
        while True:
            metrics.collect(self.crawlers, self.settings, self.site.connections)
            await self.usage.flush()
            if loop.time() >= purge_at:
                purge_at = loop.time() + PURGE_EVERY
                try:
                    await self.idempotency.purge()
                except Exception:  # any database's, any driver's: the next round may find it better
                    logger.exception("purge_failed")
            await asyncio.sleep(usage.FLUSH_EVERY)


def _allow_files(number: int) -> None:
    """Raises this process's limit of open files as far as it may: the usual 1,024 are fewer than the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
