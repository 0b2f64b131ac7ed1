"""The project's settings: only deviations from Scrapy's defaults, each with its reason.

Environment variables ``CRAWLER_<SETTING>`` override this file. Values that parse as JSON are JSON, others are text.
"""

from __future__ import annotations

import os
from typing import Any

import orjson

from crawler import logs

logs.configure()

# The project

BOT_NAME = "crawler"
SPIDER_MODULES = ["crawler.spiders"]
SPIDER_LOADER_CLASS = "crawler.registry.SpiderLoader"  # Scrapy's own imports all platforms for any crawl
COMMANDS_MODULE = "crawler.commands"
ADDONS = {"scrapy_poet.Addon": 300, "crawler.downloads.zyte.Addon": 500}
ASYNCIO_EVENT_LOOP = "uvloop.Loop"  # default None: asyncio's own loop, which serves about a fifth fewer calls

# The platforms: origins, rate limits, circuit breakers

PLATFORM_ORIGINS: dict[str, Any] = {}
"""Platform -> origin, or role (page, api, feed, image, script) -> origin, instead of those in ``crawler/platforms``."""

PLATFORM_BUDGETS: dict[str, dict[str, Any]] = {}
"""Platform -> ``concurrency`` (downloads at once) and ``delay`` (seconds between their starts), likewise. ``sources``
maps sources to the same, for those with a budget of their own within the platform's."""
SANDBOX = False
"""Start the simulated platforms in this process and crawl them, without delays."""

PROCESSES = 1
"""Number of processes that crawl the same platforms and serve the same API keys. Without Redis, each process uses its
share of every limit. ``scrapy serve --workers N`` multiplies it by N."""
REDIS_URL: str | None = None
"""``redis://...``: the server through which processes share limits. Needs the extra ``redis``."""
ZYTE_API_KEY: str | None = None
"""Download through Zyte API (extra ``zyte``) with this key; None: download from this machine's own address."""

BREAKER_THRESHOLD = 5
"""Consecutive blocks or rate limits of a source of a platform that open its circuit breaker. One with ``Retry-After``
opens it at once. 0 disables it."""
BREAKER_COOLDOWN = 60.0
"""Seconds for which a circuit breaker stays open at first; doubled for each further block."""
BREAKER_GIVE_UP = 7_200.0
"""Seconds after which a crawl that waits for an open circuit breaker ends, with exit code 1; 0: never. Longer than
``RETRY_AFTER_MAX``, so that the platform is tried again before."""
RETRY_AFTER_MAX = 3_600.0
"""Maximum seconds for which a platform's ``Retry-After`` is obeyed."""

# A browser's ordinary navigation headers. The pages' number and date formats depend on the language.
DEFAULT_REQUEST_HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.9",
}
USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
ROBOTSTXT_OBEY = False  # also Scrapy's default: users request single pages, and no links are followed
COOKIES_ENABLED = False  # default True: targets share one crawler, and must not share a session

# Targets and outcomes

TARGETS_IN_FLIGHT = 32
"""Maximum number of targets in flight in a crawl."""
QUEUE_IDLE = 60.0
"""Seconds without a heartbeat after which other workers take over the targets of a queue's worker."""
QUEUE_TRIES = 5
"""Workers that may crash with a target in flight before it becomes a dead letter. The target need not be the cause: a
crash affects all targets that the worker has in flight."""
TARGET_TIMEOUT = 0.0
"""Timeout of a crawl's targets in seconds; 0: only their downloads have one (DOWNLOAD_TIMEOUT)."""
SOURCE_TIMEOUT = 10.0
"""Timeout in seconds for one download of a platform with several sources, so that the next source can be tried."""
GUEST_TOKEN_LIFETIME = 3_600.0
"""Seconds for which a guest token is reused; the platform may reject it earlier."""
GUEST_TOKEN_PAUSE = 60.0
"""Seconds to wait before the next request for a guest token after a failed one."""
SEEN_FILE: str | None = None
"""SQLite file of the entries seen with ``since=last``; None: ``seen.sqlite`` in the project's ``.scrapy`` folder."""
LISTING_CEILING = 400
"""Reported results up to which an exhaustive crawl pages through a listing; larger ones are sliced. The platform serves
about 500 rows per listing; some rows repeat a product."""
VIDEOSITE_ENRICH_MAX = 15
"""Maximum number of requests per page of a channel's items for exact dates, views and likes, which lists lack."""
PHOTOAPP_PLAY_COUNTS = False
"""Fetch play counts of reels: a second page per reel, which contains only the account's newest reels."""

# Downloads

CLOSE_GRACE = 10.0
"""Seconds until downloads in progress are ended when a crawl closes. Targets that wait for a download end at once."""
DOWNLOAD_TIMEOUT = 60  # default 180: no platform's page takes a minute
DOWNLOAD_MAXSIZE = 32 * 1024 * 1024  # default 1 GiB: the largest page seen is 1.3 MB
DOWNLOAD_WARNSIZE = 8 * 1024 * 1024  # default 32 MiB
DOWNLOAD_VERIFY_CERTIFICATES = True  # default False
DOWNLOAD_HANDLERS = {
    "http": "crawler.downloads.handlers.HttpHandler",  # Scrapy's handler, limited by CLOSE_GRACE
    "https": "crawler.downloads.handlers.HttpHandler",
    **dict.fromkeys(("file", "data", "s3", "ftp")),  # default: all enabled; URLs are user input
}
DOWNLOAD_DELAY = 0  # ThrottleMiddleware limits downloads, across crawlers
CONCURRENT_REQUESTS = 256  # default 16: likewise
CONCURRENT_REQUESTS_PER_DOMAIN = 256  # default 8: likewise
CONCURRENT_ITEMS = 4  # default 100: creates that many tasks per callback, which yields one item
SCRAPER_SLOT_MAX_ACTIVE_SIZE = 64 * 1024 * 1024  # default 5 MB: seven pages of 0.7 MB
RETRY_TIMES = 2
RETRY_HTTP_CODES = [500, 502, 503, 504, 522, 524]  # default also 408 and 429: a rate limit is not retried
RETRY_PRIORITY_ADJUST = 0  # default -1: a retry has waited already, and its target may have a deadline
RETRY_GIVE_UP_LOG_LEVEL = "DEBUG"  # default ERROR: the outcome of the target is logged
RETRY_BACKOFF_BASE = 0.5
"""Upper limit of the random wait before the first retry, in seconds; doubled for each further retry."""
RETRY_BACKOFF_MAX = 30.0
"""Maximum wait before a retry, in seconds. A request with a longer ``Retry-After`` is not retried."""

DOWNLOADER_MIDDLEWARES: dict[str, int | None] = {
    "crawler.downloads.log_context.BindTarget": 10,  # first: the log lines of the others have the target's id
    "crawler.middlewares.AllowedOrigins": 20,  # before all others: redirected requests pass through it again
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,  # AllowedOrigins replaces it, with a typed error
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,  # parses every page; no platform uses it
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
    "crawler.middlewares.Redirect": 600,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
    "crawler.middlewares.Retry": 550,
    "scrapy_poet.InjectionMiddleware": None,
    "crawler.downloads.injection.PlannedInjection": 543,  # the same, with one plan per callback
    "crawler.middlewares.ThrottleMiddleware": 990,  # nearest to the network: cached responses need no slot
}
SPIDER_MIDDLEWARES: dict[str, int | None] = {
    "crawler.downloads.log_context.BindTarget": 10,  # before all others
    "crawler.targets.tracker.TargetTracker": 5,  # nearest to the engine: it must see items that the others dropped
    # These process every response and callback result, for links that no spider here follows.
    "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,  # the page objects interpret statuses
    "scrapy.spidermiddlewares.referer.RefererMiddleware": None,  # pages of different targets are unrelated
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
}
ITEM_PIPELINES = {
    "crawler.pipelines.ValidationPipeline": 300,
    "crawler.outputs.sql.pipeline.SqlPipeline": 800,  # after pipelines that change the data: SQL and feeds get the same
    "crawler.pipelines.BatchLinePipeline": 900,  # last: the others get the data without the target's line
}
EXTENSIONS: dict[str, int | None] = {
    "crawler.targets.closing.AnnounceClosing": 0,
    "scrapy.extensions.feedexport.FeedExporter": None,
    "crawler.outputs.feeds.Feeds": 0,  # replaces FeedExporter, and signals when a target is stored
    "crawler.monitoring.monitors.Monitors": 500,
    "crawler.targets.checkpoint.Resume": 400,
    "crawler.targets.redis_queue.extension.Queue": 400,
    "crawler.monitoring.progress.Progress": 600,
    "scrapy.extensions.logstats.LogStats": None,  # Progress logs targets instead of pages
    "crawler.sandbox.extension.SandboxExtension": 100,
}

# The browser: only crawlers whose spiders need it have its download handler

BROWSER_FALLBACK: list[str] = []
"""Platforms whose blocked requests are repeated in the browser."""
BROWSER_PAGES = 4
"""Maximum number of open pages, divided among ``PROCESSES``; further targets wait. A page takes 100 to 200 MB."""
BROWSER_QUIET = 9.0
"""Seconds without anything new after which a page's session ends."""
BROWSER_SCROLL_PAUSE = 1.0
"""Seconds from a response to the next scroll, about as fast as a visitor. 0 in the sandbox."""
BROWSER_BLOCKED_TYPES = ["image", "media", "font"]
"""Resource types that are not loaded. Pages need scripts and styles to request their data."""
BROWSER_TRACKERS = [
    # Hosts of trackers, with their subdomains. Requests to other hosts are not aborted.
    "google-analytics.com",
    "googletagmanager.com",
    "doubleclick.net",
    "googlesyndication.com",
    "connect.facebook.net",
    "analytics.tiktok.com",
    "mcs.tiktokw.us",
    "mon.tiktokv.com",
    "bat.bing.com",
    "clarity.ms",
    "scorecardresearch.com",
    "hotjar.com",
    "branch.io",
    "appsflyer.com",
]
PLAYWRIGHT_LAUNCH_OPTIONS: dict[str, Any] = {}
"""Playwright's launch options: ``executable_path``, ``args``, ``proxy``, ``chromium_sandbox`` and so on."""

# Feeds

FEED_URI_PARAMS = "crawler.outputs.feeds.uri_params"
FEED_EXPORT_ENCODING = "utf-8"  # default None: JSON with all but ASCII escaped
FAILURES_FEED: str | None = "failures-%(name)s-%(job)s.jsonl"
"""URI of the feed with one line per failed target; no file if no target failed. None disables it. It is added to
``FEEDS``, with ``crawler.outputs.failures.Failure`` as its ``item_classes``."""
FEED_EXPORTERS = {
    "jsonlines": "crawler.outputs.exporters.JsonLinesExporter",
    "jsonl": "crawler.outputs.exporters.JsonLinesExporter",
    "jl": "crawler.outputs.exporters.JsonLinesExporter",
    "gz": "crawler.outputs.exporters.JsonLinesExporter",  # out.jsonl.gz: Scrapy uses the last suffix
    "parquet": "crawler.outputs.parquet.ParquetExporter",
    "csv": "crawler.outputs.exporters.CsvExporter",
}

SQL_SINK: str | None = None
"""Database for crawled data: an SQLite file, or the URL of a PostgreSQL database. None disables it."""

# Monitors of batch runs

MONITORS = False
"""Compare each run's fields and outcomes with the last runs, and write a report."""
MONITORS_DIR: str | None = None
"""Folder of runs and reports; None: ``monitors`` in the project's ``.scrapy`` folder."""
MONITORS_RUNS = 10
"""Number of previous runs that a run is compared with."""
MONITORS_MAX_FAILED = 0.1
"""Share of targets that may fail with an upstream or internal error; more are always reported."""
MONITORS_SUITE = "crawler.monitoring.suite.Suite"
"""Spidermon suite: derive from it to add actions (mail, chat) or monitors."""

# The endpoint

SERVICE_RECYCLE_TARGETS = 10_000
"""Targets after which an open crawler is replaced; 0: never."""
SERVICE_RECYCLE_MINUTES = 60.0
"""Minutes after which an open crawler is replaced."""
SERVICE_MAX_WAITING = 1_000
"""Calls that may wait for a platform's crawler. The crawler takes twice as many targets as may download at once."""
SERVICE_MAX_CALLS = 2_000
"""Calls in flight over all platforms. Each platform's fair share of them is reserved."""
KEY_RATE: str | None = None
"""Rate limit of a key, as ``600/minute``; None: no limit. A key may have its own (``scrapy keys create``)."""
KEY_CONCURRENCY = 0
"""Maximum number of a key's calls in flight; 0: no limit. A key may have its own."""
SERVICE_MAX_CONNECTIONS = 4_000
"""Maximum number of open client connections per process. Further ones get ``OVERLOADED`` and are closed."""
SERVICE_STORE: str | None = None
"""Database of usage and stored responses: an SQLite file, or a ``postgresql://`` URL for several hosts; None: a file in
the project's ``.scrapy`` folder."""
IDEMPOTENCY_HOURS = 24.0
"""Hours for which the response to a call with an ``Idempotency-Key`` is stored."""
RESPONSE_CACHE: dict[str, float] = {}
"""Scraper -> seconds for which its responses are cached. Other scrapers are not cached."""
RESPONSE_CACHE_MB = 64
"""Memory for cached responses, per process."""
KEYS_FILE: str | None = None
"""SQLite file of the API keys; None: ``keys.sqlite`` in the project's ``.scrapy`` folder."""

# Operation

LOG_LEVEL = "INFO"  # default DEBUG: it prints every item
TELNETCONSOLE_ENABLED = False  # default True: a port per crawl
REMOTE_CONTROL_ENABLED = False  # default True: a port per crawl that executes any code sent to it

for _name, _value in os.environ.items():
    if _name.startswith("CRAWLER_"):
        try:
            globals()[_name.removeprefix("CRAWLER_")] = orjson.loads(_value)
        except orjson.JSONDecodeError:
            globals()[_name.removeprefix("CRAWLER_")] = _value
