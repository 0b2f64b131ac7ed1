"""One process of the endpoint: creates its components, opens it and shuts it down."""

from __future__ import annotations

import asyncio
import resource
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog

from crawler.downloads.shared_state import SharedState, platform_facts
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.location import store_location
from crawler.jobs.store import Store
from crawler.jobs.tables import SCHEMA
from crawler.platforms.names import PayloadNames
from crawler.service import metrics
from crawler.service.calls.asynchronous import AsyncCalls, CallSettings
from crawler.service.calls.cache import Cache
from crawler.service.calls.once import Once
from crawler.service.calls.open_crawlers import OpenCrawlers
from crawler.service.clients import usage
from crawler.service.clients.limits import KeyLimits
from crawler.service.clients.quotas import Quotas
from crawler.service.clients.usage import Usage
from crawler.service.description import catalogue, llms, openapi, viewer
from crawler.service.http.addresses import Addresses
from crawler.service.http.edge import EdgeSite, Uploads
from crawler.service.http.job_routes import JobRoutes
from crawler.service.http.resources import MAX_WAIT_SECONDS, Api
from crawler.service.http.tools_route import ToolsRoute
from crawler.service.http.webhook_routes import WebhookRoutes
from crawler.service.jobs.listings import Listings
from crawler.service.jobs.runs import Runs
from crawler.service.jobs.upkeep import UPKEEP_SECONDS, tend
from crawler.service.periodic import repeat
from crawler.service.status import Status
from crawler.service.webhooks.dispatcher import Dispatcher

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from scrapy.settings import Settings

    from crawler.service.clients.keys import Keys
    from crawler.service.http.static import StaticContent

logger = structlog.get_logger(__name__)

PURGE_SECONDS = 600.0
"""Interval in seconds at which expired ``Idempotency-Key`` entries are deleted."""

LAST_FLUSH_SECONDS = 5.0
"""Maximum seconds for storing the usage counts when the service shuts down."""

INTERNAL_CONNECTIONS = 100
"""Maximum number of open connections to ``SERVICE_INTERNAL_ADDRESS``."""

OTHER_FILES = 512
"""File descriptors reserved for everything except the connections of clients."""


class Endpoint:
    """One process of the endpoint: the HTTP sites, the open crawlers, and the store of usage and responses."""

    def __init__(
        self,
        settings: Settings,
        keys: Keys,
        pages: Mapping[str, StaticContent] | None = None,
        *,
        address: str = "",
    ) -> None:
        """``pages``: path -> a further page to serve, such as those of the console.

        ``address``: the URL at which this process can call itself. "": ``/mcp`` has no tools.
        """
        self.settings = settings.copy()
        extensions = self.settings.getdict("EXTENSIONS") | metrics.prepare()
        self.settings.set("EXTENSIONS", extensions, priority="cmdline")
        self.store = Store(store_location(self.settings), SCHEMA)
        self.keys = keys
        self.pages = pages or {}
        self.usage = Usage(self.store)
        self.quotas = Quotas(self.store)
        call_settings = CallSettings.read(self.settings)
        self.once = Once(self.store, call_settings.idempotency_seconds)
        self.shared = SharedState()
        self.names = self.shared.get(PayloadNames, "", lambda: PayloadNames(self.settings))
        self.crawlers = OpenCrawlers(self.settings, self.shared)
        self.status = Status(self.crawlers, self.settings, self.store)
        self.cache = Cache(
            self.crawlers.call,
            ttls={name: float(ttl) for name, ttl in self.settings.getdict("RESPONSE_CACHE").items()},
            max_bytes=self.settings.getint("RESPONSE_CACHE_MB") * 1024 * 1024,
            max_wait=MAX_WAIT_SECONDS,
        )
        self.limits = KeyLimits(self.settings, platform_facts(self.shared, self.settings))
        self.addresses = Addresses.from_settings(self.settings)
        self.service_url = url = (self.settings["SERVICE_URL"] or "").rstrip("/")
        """The setting ``SERVICE_URL``. "": links are paths."""
        self.calls = AsyncCalls(self.store, self.crawlers, self.cache, self.limits, call_settings)
        jobs = Jobs(store_location(self.settings))
        lease, exits = self.settings.getfloat("JOB_LEASE"), self.settings.getint("JOB_EXITS")
        self.runs = Runs(jobs, self.crawlers, self.calls, lease, exits)
        self.listings = Listings(jobs, self.settings, self.shared)
        self.job_routes = JobRoutes(jobs, self.runs, self.settings)
        private = self.settings.getbool("WEBHOOK_PRIVATE")
        self.webhook_routes = WebhookRoutes(self.store, private)
        self.dispatcher = Dispatcher(self.store, private=private)
        self.tools = ToolsRoute(address)
        self.api = Api(
            self,
            hidden=self.settings.getlist("SERVICE_HIDDEN_ROUTES"),
            cors_origins=self.settings.getlist("SERVICE_CORS_ORIGINS"),
        )
        self.internal_api = Api(self)
        connections = self.settings.getint("SERVICE_MAX_CONNECTIONS")
        _raise_file_limit(connections + INTERNAL_CONNECTIONS + OTHER_FILES)
        largest = self.settings.getint("SERVICE_MAX_JOB_BYTES")
        self.site = EdgeSite(self.api, connections, self.addresses, url, Uploads(largest, self.api.admit))
        self.internal_site = EdgeSite(
            self.internal_api, INTERNAL_CONNECTIONS, Addresses(), url, Uploads(largest, self.internal_api.admit)
        )
        """The site of ``SERVICE_INTERNAL_ADDRESS``: all routes, for clients in the operator's own network."""
        self._stores = metrics.StoreMetrics(keys, self.store, self.usage)
        self._upkeep: list[asyncio.Task[None]] = []

    def open(self) -> None:
        """Start the crawlers and the periodic tasks."""
        prepare_documents(self.service_url)
        self.crawlers.open()
        self.calls.open()
        self.runs.open()
        self.dispatcher.open()
        self.listings.open()
        tend_jobs = partial(tend, self.job_routes.jobs, self.keys, self.job_routes.keep_days)
        periodic: tuple[tuple[Callable[[], Awaitable[object]], float, str], ...] = (
            (self._store_counts, usage.FLUSH_SECONDS, "upkeep_failed"),
            (self.once.purge, PURGE_SECONDS, "upkeep_failed"),
            (tend_jobs, UPKEEP_SECONDS, "job_upkeep_failed"),
        )
        self._upkeep = [asyncio.ensure_future(repeat(*each)) for each in periodic]

    async def drain(self) -> None:
        """Wait until the calls in flight have a response. Store the usage counts even if another step fails."""
        try:
            await self._end_work()
        finally:
            await self.usage.flush(LAST_FLUSH_SECONDS)
            if self.usage.pending:
                logger.error("usage_lost", calls=self.usage.pending)
            await self.status.close(LAST_FLUSH_SECONDS)
            await self.store.close()
            await self.shared.close()

    async def _end_work(self) -> None:
        await self.tools.close()
        self.calls.stop()
        self.runs.stop()
        self.listings.stop()
        await self.crawlers.drain()
        await self.api.finish()
        await self.internal_api.finish()
        for task in self._upkeep:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self.job_routes.close()
        await self.listings.close()
        await self.runs.close()
        await self.dispatcher.close()
        await self.calls.close()

    async def _store_counts(self) -> None:
        await self.usage.flush(usage.FLUSH_SECONDS)
        await self.status.flush(usage.FLUSH_SECONDS)
        self._stores.collect()
        metrics.collect(self.crawlers, self.settings, self.site.connections)


def prepare_documents(service_url: str) -> None:
    """Build and compress the documents before the first call needs them."""
    catalogue.as_json()
    documents = (viewer.page(), openapi.as_json(service_url), llms.as_text(service_url))
    for document in (*documents, *viewer.bundled_files().values()):
        assert document.digest
        assert document.gzipped


def _raise_file_limit(number: int) -> None:
    """Raise the process's limit of open files to ``number``, or to the hard limit if that is lower.

    The usual limit of 1,024 is too low for the connections.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    new = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < new:
        resource.setrlimit(resource.RLIMIT_NOFILE, (new, hard))
