"""One process of the endpoint: creates its components, opens it and shuts it down."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import resource
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog

from crawler.jobs.job import logged
from crawler.registry import scrapers
from crawler.runtime import COLLECT_SECONDS
from crawler.service import documents, metrics, openapi, usage, webhooks
from crawler.service.app import Api
from crawler.service.edge import EdgeSite
from crawler.service.jobs.client_jobs import tend
from crawler.service.parts import Parts
from crawler.service.status import catalogue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from scrapy.settings import Settings

    from crawler.service.keys import Keys
    from crawler.service.responses import StaticContent

logger = structlog.get_logger(__name__)

LAST_FLUSH_SECONDS = 5.0
"""Maximum seconds for storing the usage counts when the service shuts down."""

UPKEEP_SECONDS = 60.0
"""Interval in seconds at which expired jobs are deleted, and interrupted changes completed."""

INTERNAL_CONNECTIONS = 100
"""Maximum number of open connections to ``SERVICE_INTERNAL_ADDRESS`` per process."""

OTHER_FILES = 512
"""File descriptors reserved for everything except the connections of clients."""


class Endpoint:
    """One process of the endpoint: the HTTP sites, the open crawlers, and the store of jobs and usage."""

    def __init__(
        self,
        settings: Settings,
        keys: Keys,
        pages: Mapping[str, StaticContent] | None = None,
    ) -> None:
        """``pages``: path -> another page to serve, such as the console's."""
        self.parts = parts = Parts(settings, keys, pages or {})
        own = parts.settings
        self.api = Api(parts, hidden=own.getlist("SERVICE_HIDDEN_ROUTES"))
        self.internal_api = Api(parts)
        connections = own.getint("SERVICE_MAX_CONNECTIONS")
        _raise_file_limit(connections + INTERNAL_CONNECTIONS + OTHER_FILES)
        self.site = EdgeSite(self.api, connections, self.api.limits, parts.service_url)
        self.internal_site = EdgeSite(
            self.internal_api, INTERNAL_CONNECTIONS, self.internal_api.limits, parts.service_url
        )
        """The site of ``SERVICE_INTERNAL_ADDRESS``: all routes, for clients in the operator's own network."""
        self._stores = metrics.StoreMetrics(keys, parts.store, parts.usage)
        self._upkeep: list[asyncio.Task[None]] = []
        self._listings: list[asyncio.Task[None]] = []

    def open(self) -> None:
        """Start the crawlers and the periodic tasks."""
        prepare_documents(self.parts.service_url)
        self.parts.crawlers.open()
        self.parts.runs.open()
        self._listings = [asyncio.ensure_future(self.parts.listings.run())]
        tend_jobs = partial(tend, self.parts.jobs.jobs, self.parts.jobs.keep_days)
        send_events = self.parts.webhooks.send_due
        periodic: tuple[tuple[Callable[[], Awaitable[object]], float, str], ...] = (
            (self._store_counts, usage.FLUSH_SECONDS, "upkeep_failed"),
            (self._stores.read_totals, metrics.TOTALS_SECONDS, "upkeep_failed"),
            (tend_jobs, UPKEEP_SECONDS, "job_upkeep_failed"),
            (send_events, webhooks.POLL_SECONDS, "webhooks_failed"),
            (partial(asyncio.to_thread, trim_heap), TRIM_SECONDS, "upkeep_failed"),
            (_collect_garbage, COLLECT_SECONDS, "upkeep_failed"),
        )
        self._upkeep = [asyncio.ensure_future(repeat(*each)) for each in periodic]

    async def drain(self, stop_listening: Callable[[], Awaitable[object]]) -> None:
        """Refuse new calls, wait until the calls in flight have a response, and close everything.

        ``stop_listening`` is called once no call is in flight. Until then, new calls get ``SHUTTING_DOWN``.

        An exception of one step is logged, and the other steps still run: the usage counts must be stored, and Twisted
        would not log the exception.
        """
        parts = self.parts
        self.site.is_closing = self.internal_site.is_closing = True
        parts.runs.stop()
        stopping = asyncio.ensure_future(parts.listings.stop())
        steps: tuple[Callable[[], Awaitable[object]], ...] = (
            parts.crawlers.drain,
            stop_listening,
            self.api.finish,
            self.internal_api.finish,
            self._end_upkeep,
            parts.jobs.close,
            lambda: asyncio.gather(stopping, *self._listings),
            parts.runs.close,
            parts.webhooks.close,
            self._store_usage,
            parts.store.close,
            parts.shared.close,
        )
        for step in steps:
            with logged("shutdown_failed"):
                await step()

    async def _end_upkeep(self) -> None:
        for task in self._upkeep:
            task.cancel()
        await asyncio.gather(*self._upkeep, return_exceptions=True)

    async def _store_usage(self) -> None:
        counts = self.parts.usage
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_FLUSH_SECONDS):
                await counts.flush()
                while counts.pending():
                    await asyncio.sleep(usage.FLUSH_SECONDS)
                    await counts.flush()
        if pending := counts.pending():
            logger.error("usage_lost", calls=pending)

    async def _store_counts(self) -> None:
        await self.parts.usage.flush(usage.FLUSH_SECONDS)
        self._stores.collect()
        metrics.collect(self.parts.crawlers, self.site.connections)


async def repeat(work: Callable[[], Awaitable[object]], seconds: float, failed: str) -> None:
    """Repeat work, with pauses of ``seconds``, until cancelled. An exception of the work does not end this.

    ``failed``: the event to log for an exception.
    """
    while True:
        with logged(failed):
            await work()
        await asyncio.sleep(seconds)


async def _collect_garbage() -> None:
    gc.collect()  # in the thread of the event loop, because destructors may be called


def prepare_documents(service_url: str) -> None:
    """Build and compress the documents, and build the validators of all records, before the first call needs them."""
    for scraper in scrapers().values():
        scraper.data.model_rebuild()
    catalogue()
    built = (documents.docs(), openapi.as_json(service_url), documents.llms(service_url))
    for document in (*built, *documents.bundled_files().values()):
        assert document.digest
        assert document.gzipped


def _raise_file_limit(number: int) -> None:
    """Raise the process's soft limit of open files to ``number``, or to the hard limit if that is lower.

    A higher soft limit is kept. The usual limit of 1,024 is too low for the connections.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    new = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < new:
        resource.setrlimit(resource.RLIMIT_NOFILE, (new, hard))


TRIM_SECONDS = 5.0
"""Interval in seconds at which a long-running process trims its heap."""


def trim_heap() -> None:
    """Return the free memory of the heap to the system. This takes at most a few milliseconds.

    The GNU C library by itself returns only the end of its heap. Platforms' pages of a megabyte leave gaps in the
    heap, which grow with each mixture of sizes: to 40 MB while a job runs. With other C libraries, this function does
    nothing.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
