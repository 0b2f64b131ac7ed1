"""The project's settings: only what differs from Scrapy's defaults, each with its reason.

Environment variables ``CRAWLER_<SETTING>`` win over this file: JSON where it parses as JSON, else text.
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
SPIDER_LOADER_CLASS = "crawler.registry.SpiderLoader"  # Scrapy's imports all platforms, whichever one is crawled
COMMANDS_MODULE = "crawler.commands"
ADDONS = {"scrapy_poet.Addon": 300, "crawler.downloads.zyte.Addon": 500}
ASYNCIO_EVENT_LOOP = "uvloop.Loop"  # default None: asyncio's own loop, which serves about a fifth fewer calls

# Where the platforms are and how they are asked

PLATFORM_ORIGINS: dict[str, Any] = {}
"""Platform -> origin, or role (page, api, feed, image, script) -> origin, other than those of ``platforms.py``."""

PLATFORM_BUDGETS: dict[str, dict[str, float]] = {}
"""Platform -> ``concurrency`` (downloads at once) and ``delay`` (seconds between their starts) other than there."""
SANDBOX = False
"""Start the simulated platforms in this process and crawl those, without delays."""

PROCESSES = 1
"""How many processes ask the same platforms and serve the same keys: without Redis each takes its part of a budget or
limit. ``scrapy serve --workers N`` multiplies it by N."""
REDIS_URL: str | None = None
"""``redis://...``: where processes share budgets and limits. Needs the extra ``redis``."""
ZYTE_API_KEY: str | None = None
"""Download through Zyte API (extra ``zyte``) with this key; None: from this machine's own address."""

BREAKER_THRESHOLD = 5
"""Walls in a row after which a platform is left alone; a wall that is known to last does it alone. 0: never."""
BREAKER_COOLDOWN = 60.0
"""Seconds for which it is left alone at first; doubled for each further wall."""

# A browser's ordinary navigation headers: the language decides how numbers and dates are written in the pages.
DEFAULT_REQUEST_HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.9",
}
USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
ROBOTSTXT_OBEY = False  # also Scrapy's default, stated: a user asks for single pages, this is no wandering crawler
COOKIES_ENABLED = False  # default True: targets share one crawler, and must not share a session

# Targets and outcomes

TARGETS_IN_FLIGHT = 32
"""How many targets are out at once in a crawl."""
QUEUE_IDLE = 60.0
"""Seconds without a sign of life after which a worker of a queue is taken for dead, and others do its targets."""
QUEUE_TRIES = 5
"""Workers that may die with a target before it is given up as a dead letter. It need not be the target's fault: a
worker takes along all that it has out."""
TARGET_TIMEOUT = 0.0
"""Seconds after which a target of a crawl is given up; 0: only its downloads have a limit (DOWNLOAD_TIMEOUT)."""
SOURCE_TIMEOUT = 10.0
"""Seconds for one download of a platform that has other sources: the next one must still have its turn."""
GUEST_TOKEN_LIFETIME = 3_600.0
"""Seconds for which a token that a platform hands to every visitor is used; it may be refused earlier."""
GUEST_TOKEN_PAUSE = 60.0
"""Seconds for which a platform that hands out none is not asked again."""
SEEN_FILE: str | None = None
"""Where ``since=last`` keeps what was seen; None: ``seen.sqlite`` in the project's ``.scrapy`` folder."""
LISTING_CEILING = 400
"""Reported results up to which a listing is paged through; beyond it an exhaustive crawl slices it. The platform
serves about 500 rows; some of them repeat a product."""
VIDEOSITE_ENRICH_MAX = 15
"""Requests at most, for one page of a channel's items, for what its list does not tell: exact dates, views, likes."""
PHOTOAPP_PLAY_COUNTS = False
"""Ask for how often a reel was played: a second page for each, and only the account's newest reels are on it."""

# Downloads

CLOSE_GRACE = 10.0
"""Seconds that the downloads in progress have when a crawl closes. Targets that still wait for one give up at once."""
DOWNLOAD_TIMEOUT = 60  # default 180: no platform's page takes a minute
DOWNLOAD_MAXSIZE = 32 * 1024 * 1024  # default 1 GiB: the largest page seen is 1.3 MB
DOWNLOAD_WARNSIZE = 8 * 1024 * 1024  # default 32 MiB
DOWNLOAD_VERIFY_CERTIFICATES = True  # default False
DOWNLOAD_HANDLERS = {
    "http": "crawler.downloads.handlers.HttpHandler",  # Scrapy's, which CLOSE_GRACE bounds
    "https": "crawler.downloads.handlers.HttpHandler",
    **dict.fromkeys(("file", "data", "s3", "ftp")),  # default: all on; a URL is user input
}
DOWNLOAD_DELAY = 0  # the platforms' budgets (PLATFORM_BUDGETS) decide, across crawlers
CONCURRENT_REQUESTS = 256  # default 16: likewise
CONCURRENT_REQUESTS_PER_DOMAIN = 256  # default 8: likewise
CONCURRENT_ITEMS = 4  # default 100: that many tasks would be made for each callback, which yields one item
SCRAPER_SLOT_MAX_ACTIVE_SIZE = 64 * 1024 * 1024  # default 5 MB: seven pages of 0.7 MB
RETRY_TIMES = 2
RETRY_HTTP_CODES = [
    500,
    502,
    503,
    504,
    522,
    524,
]  # default also 408 and 429: a platform that says "slow down" is left alone
RETRY_PRIORITY_ADJUST = 0  # default -1: a retry has waited already, and its target may have a deadline
RETRY_GIVE_UP_LOG_LEVEL = "DEBUG"  # default ERROR: the target's outcome is logged
RETRY_BACKOFF_BASE = 0.5
"""Seconds within which the first retry comes, at random; doubled for each further one."""
RETRY_BACKOFF_MAX = 30.0
"""The longest wait before a retry, in seconds; a longer ``Retry-After`` is not waited for."""

DOWNLOADER_MIDDLEWARES: dict[str, int | None] = {
    "crawler.downloads.log_context.BindTarget": 10,  # before all others: what they log carries the target's id
    "crawler.middlewares.AllowedOrigins": 20,  # before all others: redirects come in here again
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,  # AllowedOrigins does it, with a typed error
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,  # parses every page; no platform uses it
    "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
    "crawler.middlewares.Redirect": 600,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
    "crawler.middlewares.Retry": 550,
    "scrapy_poet.InjectionMiddleware": None,
    "crawler.downloads.injection.PlannedInjection": 543,  # the same, planning once for a callback
    "crawler.middlewares.ThrottleMiddleware": 990,  # next to the network: what the cache answers needs no turn
}
SPIDER_MIDDLEWARES: dict[str, int | None] = {
    "crawler.downloads.log_context.BindTarget": 10,  # before all others
    "crawler.targets.tracker.TargetTracker": 5,  # nearest to the engine: it sees whether any other dropped the item
    # Each of these looks at every response and at what its callback yields, for links that no spider here follows.
    "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,  # the page objects say what a status means
    "scrapy.spidermiddlewares.referer.RefererMiddleware": None,  # a target's page is not reached from the one before
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
}
ITEM_PIPELINES = {
    "crawler.pipelines.ValidationPipeline": 300,
    "crawler.outputs.sql.pipeline.SqlPipeline": 800,  # after those that change the data: it writes what the feeds get
    "crawler.pipelines.BatchLinePipeline": 900,  # last: the others see the data alone
}
EXTENSIONS: dict[str, int | None] = {
    "crawler.targets.closing.AnnounceClosing": 0,
    "scrapy.extensions.feedexport.FeedExporter": None,
    "crawler.outputs.feeds.Feeds": 0,  # in its place: it knows when a target is stored
    "crawler.monitoring.monitors.Monitors": 500,
    "crawler.targets.checkpoint.Resume": 400,
    "crawler.targets.redis_queue.extension.Queue": 400,
    "crawler.monitoring.progress.Progress": 600,
    "scrapy.extensions.logstats.LogStats": None,  # Progress says it by targets
    "crawler.sandbox.extension.SandboxExtension": 100,
}

# The browser: only the crawlers of spiders that need it carry its download handler

BROWSER_FALLBACK: list[str] = []
"""Platforms whose plain requests are repeated in the browser where they are refused."""
BROWSER_PAGES = 4
"""Pages that are open at once, shared out among ``PROCESSES``; further targets wait. One takes 100 to 200 MB."""
BROWSER_QUIET = 9.0
"""Seconds without anything new after which a page is left."""
BROWSER_SCROLL_PAUSE = 1.0
"""Seconds from an answer to the next scrolling: about as fast as a visitor. The sandbox sets it to 0."""
BROWSER_BLOCKED_TYPES = ["image", "media", "font"]
"""Kinds of requests that pages do without. Scripts and styles are none: pages need them to ask for their data."""
BROWSER_TRACKERS = [
    # Hosts that measure visitors and serve no page, with their subdomains. No other host is refused anything.
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
"""Playwright's options of a start: ``executable_path``, ``args``, ``proxy``, ``chromium_sandbox`` and so on."""

# Feeds

FEED_URI_PARAMS = "crawler.outputs.feeds.uri_params"
FEED_EXPORT_ENCODING = "utf-8"  # default None: JSON with all but ASCII escaped
FAILURES_FEED: str | None = "failures-%(name)s-%(job)s.jsonl"
"""Feed URI for one line a failed target; no file where none failed. None: no such feed. It becomes one more entry of
``FEEDS``, whose ``item_classes`` are ``crawler.outputs.failures.Failure``."""
FEED_EXPORTERS = {
    "jsonlines": "crawler.outputs.exporters.JsonLinesExporter",
    "jsonl": "crawler.outputs.exporters.JsonLinesExporter",
    "jl": "crawler.outputs.exporters.JsonLinesExporter",
    "gz": "crawler.outputs.exporters.JsonLinesExporter",  # out.jsonl.gz: the last suffix is what Scrapy looks at
    "parquet": "crawler.outputs.parquet.ParquetExporter",
    "csv": "crawler.outputs.exporters.CsvExporter",
}

SQL_SINK: str | None = None
"""Where crawled data is kept as tables: an SQLite file, or the URL of a PostgreSQL database. None: nowhere."""

# Monitors of batch runs

MONITORS = False
"""Compare each run's fields and outcomes with the last runs, and write a report."""
MONITORS_DIR: str | None = None
"""Where the runs and their reports are kept; None: ``monitors`` in the project's ``.scrapy`` folder."""
MONITORS_RUNS = 10
"""How many of the last runs, taken together, a run is compared with."""
MONITORS_MAX_FAILED = 0.1
"""Share of the targets that may fail by the platform's or our own fault; beyond it a run is reported anyway."""
MONITORS_SUITE = "crawler.monitoring.suite.Suite"
"""Spidermon's suite: derive from it to add actions (mail, chat) or monitors."""

# The endpoint

SERVICE_RECYCLE_TARGETS = 10_000
"""Targets after which an open crawler is renewed; 0: never."""
SERVICE_RECYCLE_MINUTES = 60.0
"""Minutes after which it is."""
SERVICE_MAX_WAITING = 1_000
"""Calls that may wait for a crawler to take them, per platform. It takes twice as many as may download at once."""
SERVICE_MAX_CALLS = 2_000
"""Calls in flight of all platforms together; a platform's fair part of them is never taken by the others."""
KEY_RATE: str | None = None
"""Calls that a key may make, as ``600/minute``; None: no limit. A key may have its own (``scrapy keys create``)."""
KEY_CONCURRENCY = 0
"""Calls that a key may have in flight; 0: no limit. Likewise."""
SERVICE_MAX_CONNECTIONS = 4_000
"""Clients' connections that may be open at once, per process; beyond it they are told so and closed."""
SERVICE_STORE: str | None = None
"""Where usage and kept answers are: an SQLite file, or a ``postgresql://`` URL for several hosts; None: a file in the
project's ``.scrapy`` folder."""
IDEMPOTENCY_HOURS = 24.0
"""Hours for which the answer of a call with an ``Idempotency-Key`` is kept."""
RESPONSE_CACHE: dict[str, float] = {}
"""Scraper -> seconds for which its answers are served again. A scraper that is not there is not cached."""
RESPONSE_CACHE_MB = 64
"""Memory for them, per process."""
KEYS_FILE: str | None = None
"""Where the API keys are; None: ``keys.sqlite`` in the project's ``.scrapy`` folder."""

# Operation

LOG_LEVEL = "INFO"  # default DEBUG: it prints every item
TELNETCONSOLE_ENABLED = False  # default True: a port per crawl
REMOTE_CONTROL_ENABLED = False  # default True: a port per crawl that runs any code it is sent

for _name, _value in os.environ.items():
    if _name.startswith("CRAWLER_"):
        try:
            globals()[_name.removeprefix("CRAWLER_")] = orjson.loads(_value)
        except orjson.JSONDecodeError:
            globals()[_name.removeprefix("CRAWLER_")] = _value
