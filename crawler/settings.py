"""The project's settings: its own, and those that differ from Scrapy's defaults.

``Settings`` has the type, the default and the meaning of each setting. The project's commands check the values of all
these settings when they start (``configuration/command.py``). docs/settings.md lists
them.

An environment variable ``CRAWLER_<SETTING>`` overrides a setting. The value of the variable is decoded as JSON, or
used as text if it is not valid JSON.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

import orjson
import scrapy.core.downloader.contextfactory  # noqa: F401  # this import inspects the call stack, which is short here
from scrapy.settings import default_settings

from crawler import logs
from crawler.configuration import setting_types
from crawler.configuration.names import Described
from crawler.configuration.setting_types import (
    Count,
    Database,
    Items,
    Optional,
    Positive,
    PositiveSeconds,
    Seconds,
    Switch,
)
from crawler.runtime import refuse_hidden_package, spare_modules

refuse_hidden_package()
spare_modules()
logs.configure()


class Settings(Described):
    """All settings of the project, and those of Scrapy whose default differs here or whose values are checked."""

    only_for_spiders: ClassVar = frozenset(
        {"CONCURRENT_ITEMS", "CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN", "COOKIES_ENABLED"}
    )
    """Scrapy's settings that the add-on changes for this project's spiders only. If this module set them, they would
    also be changed for other spiders in the project."""

    # The platforms: origins, rate limits, circuit breakers

    PLATFORM_ORIGINS: setting_types.Object[Any] = {}
    """Platform, or public origin -> the origin of a local server that gets its requests, such as
    ``http://127.0.0.1:8903`` of ``scrapy sandbox``. Records and logs keep the public URLs. The environment's proxies
    are not used for these requests, but proxies in ``EGRESSES`` are."""
    PLATFORM_BUDGETS: setting_types.Object[setting_types.Budget] = {}
    """Platform -> ``concurrency``, ``delay``, ``burst``, ``gap`` and ``sources`` of its budget for each egress
    (docs/settings.md#budgets). Platforms and keys that are not listed keep the defaults in
    ``crawler/platforms/*/__init__.py``, but a ``delay`` without ``burst`` means a burst of 1."""
    EGRESSES: setting_types.Egresses = []
    """Connections to the internet through which requests are sent: a list of objects, or the path of a JSON file with
    it (docs/egress.md). Empty: only this machine's own connection."""
    CONNECT_TIMEOUT: PositiveSeconds = 5.0
    """Maximum seconds for opening a connection, including a proxy's response to ``CONNECT``."""
    PLATFORM_IDS: setting_types.Object[Any] = {}
    """Platform -> path of a JSON file that replaces its ``crawler/platforms/<platform>/ids.json``: the query ids, flags
    and client versions that the platform changes at will."""
    UNREAD_KEEP: Count = 20
    """Maximum number of responses of each source that are kept in ``.scrapy/unread``, because a part of them was unread
    or their extraction failed (docs/contracts.md#kept-responses). 0, and on Scrapy Cloud: none."""
    SANDBOX: Switch = False
    """Whether to crawl simulated platforms in this process instead of the real ones (docs/sandbox.md). Requests are not
    delayed, and none leaves this machine. Servers in ``PLATFORM_ORIGINS`` are used instead of simulated platforms:
    their hosts must be ``127.0.0.1``, ``[::1]`` or ``localhost``."""
    SANDBOX_RENAMES: setting_types.Object[dict[str, str]] = {}
    """Simulated platform -> key -> the name that replaces it in payloads after the first ten pages (docs/sandbox.md). A
    name with a leading dot is a CSS class, such as ``.skills``."""
    PROCESSES: Positive = 1
    """Number of processes that crawl the same platforms and serve the same API keys. If the processes do not share
    limits, and while ``STORE`` is unavailable, each process gets an equal share of every limit. ``scrapy serve
    --workers N`` multiplies it by N."""
    SHARED_LIMITS: Switch = False
    """Whether processes with the same ``STORE`` share budgets, circuit breakers and limits of API keys. Some always do
    (docs/many-machines.md#how-many-workers)."""
    ZYTE_API_KEY: Optional[setting_types.Text] = None
    """API key for downloads through Zyte API (extra ``zyte``). None: pages are downloaded directly."""
    BREAKER_THRESHOLD: Count = 5
    """Number of consecutive blocks or rate limits after which the circuit breaker of a source opens. With
    ``Retry-After``, one is enough, or one server error. 0 disables the circuit breakers, but failures of an egress
    still suspend it."""
    BREAKER_COOLDOWN: Seconds = 60.0
    """Seconds until an open circuit breaker lets a trial request through. The time doubles with each further block, up
    to 15 minutes, and is at least the platform's ``Retry-After``."""
    BREAKER_GIVE_UP: Seconds = 7_200.0
    """If a circuit breaker stays open for this many seconds, a crawl that waits for it ends with exit code 1. 0: never.
    The default is longer than ``RETRY_AFTER_MAX``."""
    RETRY_AFTER_MAX: Seconds = 3_600.0
    """Maximum seconds for which a platform's ``Retry-After`` is obeyed."""
    USER_AGENT: setting_types.Text = (
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
    )
    """A plain browser's. Update its version from time to time: platforms may refuse old ones."""
    ROBOTSTXT_OBEY: Switch = False
    """False, because users request single pages, and the spiders follow no links. With True, targets whose pages
    robots.txt disallows fail with ``BLOCKED_BY_POLICY``."""
    COOKIES_ENABLED: Switch = False
    """False, because the targets of a crawler must not share a session."""

    # Targets and outcomes

    TARGETS_IN_FLIGHT: Positive = 32
    """Maximum number of targets in flight in a crawl."""
    STORE: Optional[Database] = None
    """Database of jobs, usage, and what crawls with ``since=last`` have seen: an SQLite file, or for several machines a
    ``postgresql://`` URL (extra ``postgresql``). None: ``store.sqlite3`` in the project's ``.scrapy`` folder, and with
    ``scrapy serve --sandbox`` in its folder ``sandbox``."""
    JOB_LEASE: PositiveSeconds = 60.0
    """If a worker of a job does not renew its leases for this many seconds, other workers take over its targets."""
    JOB_EXITS: Positive = 5
    """If more than this many workers have exited while a target was in flight, the target is given up."""
    TARGET_TIMEOUT: Seconds = 0.0
    """Timeout in seconds for each target of a crawl. 0: none, but for its downloads (``DOWNLOAD_TIMEOUT``)."""
    SOURCE_TIMEOUT: PositiveSeconds = 10.0
    """Timeout in seconds for each download of a ``microblog`` target, so that time is left for its next source."""
    GUEST_TOKEN_LIFETIME: Seconds = 3_600.0
    """Seconds after which an egress's guest token is replaced, unless the platform rejects it earlier."""
    GUEST_TOKEN_PAUSE: Seconds = 60.0
    """Minimum seconds until the next request for a guest token after the platform has refused one."""
    LISTING_CEILING: Positive = 400
    """An exhaustive crawl slices a listing that reports more results than this. The platform serves only about 500 rows
    per listing, and some rows repeat a product."""
    VIDEOSITE_ENRICH_MAX: Count = 100
    """Upper bound of the param ``details``: for how many items of a page exact dates, views and likes are requested."""
    PHOTOAPP_PLAY_COUNTS: Switch = False
    """Default of the param ``include_play_counts``: play counts need a second page per reel, which lists only the
    account's newest reels."""

    # Downloads

    CLOSE_GRACE: Seconds = 10.0
    """When a crawl closes early (SIGTERM, ``CLOSESPIDER_*``), downloads in progress may continue for this many seconds.
    Targets that wait for a download slot end immediately, with ``SHUTTING_DOWN``."""
    RETRY_BACKOFF_BASE: Seconds = 0.5
    """Maximum seconds of the random wait before the first retry. The maximum doubles with each further retry."""
    RETRY_BACKOFF_MAX: Seconds = 30.0
    """Maximum seconds of a wait before a retry. A request is not retried if ``Retry-After`` is longer."""
    DOWNLOAD_TIMEOUT: PositiveSeconds = 60
    """Maximum seconds of one download. No platform takes a minute for a page."""
    DOWNLOAD_MAXSIZE: Count = 32 * 1024 * 1024
    """Maximum bytes of a response. The largest page seen has 1.7 MB."""
    DOWNLOAD_WARNSIZE: Count = 8 * 1024 * 1024
    """Bytes of a response above which Scrapy logs a warning."""
    DOWNLOAD_VERIFY_CERTIFICATES: Switch = True
    """True, because the data is only as authentic as the server that sent it."""
    DOWNLOAD_DELAY: Seconds = 0
    """0, because ``ThrottleMiddleware`` delays the downloads of all crawlers instead."""
    CONCURRENT_REQUESTS: Positive = 256
    """A limit so high that it has no effect: ``ThrottleMiddleware`` limits the downloads."""
    CONCURRENT_REQUESTS_PER_DOMAIN: Positive = 256
    """As for ``CONCURRENT_REQUESTS``."""
    CONCURRENT_ITEMS: Positive = 1
    """1, because the spiders' callbacks yield one item."""
    SCRAPER_SLOT_MAX_ACTIVE_SIZE: Positive = 64 * 1024 * 1024
    """Bytes of responses in processing from which Scrapy pauses downloads. Scrapy's default of 5 MB is seven pages of
    0.7 MB."""
    REDIRECT_MAX_TIMES: Count = 5
    """Maximum number of redirects of a download. Scrapy's default of 20 sends 21 requests for each target that a
    platform redirects in circles."""
    RETRY_TIMES: Count = 2
    """Maximum number of retries of a download, also after a crash of the browser. Blocks are not retried, except
    once in the browser (``BROWSER_FALLBACK``)."""
    RETRY_HTTP_CODES: Items[Positive] = [500, 502, 503, 504, 522, 524]
    """Scrapy's default without 408 and 429, because rate limits are not retried."""
    RETRY_PRIORITY_ADJUST: setting_types.Integer = 0
    """0, because a retry has already waited and may have a deadline."""
    RETRY_GIVE_UP_LOG_LEVEL: setting_types.LogLevel = "DEBUG"
    """``DEBUG``, because the target's outcome already reports the failure."""

    # The browser. Only crawlers whose spiders may use the browser have its download handler.

    BROWSER_FALLBACK: Items[str] = []
    """Platforms whose pages are loaded in the browser if the plain request is blocked. Tested for ``retail`` and
    ``photoapp``; not possible for ``professional``."""
    BROWSER_PAGES: Positive = 4
    """Maximum number of open browser pages, divided among ``PROCESSES``. Further targets wait. A page takes 100 to 200
    MB of memory."""
    BROWSER_QUIET: PositiveSeconds = 9.0
    """Seconds without a new captured response after which the session on a browser page ends. Before the first captured
    response, the session waits three times as long."""
    BROWSER_SCROLL_PAUSE: Seconds = 1.0
    """Seconds from a response to the next scroll of a browser page, about as a visitor would wait. 0 in the sandbox."""
    BROWSER_BLOCKED_TYPES: Items[str] = ["image", "media", "font"]
    """Resource types that the browser does not load. Pages need scripts and styles to request their data."""
    BROWSER_TRACKERS: Items[str] = [
        *("google-analytics.com", "googletagmanager.com", "doubleclick.net", "googlesyndication.com"),
        *("connect.facebook.net", "analytics.tiktok.com", "mcs.tiktokw.us", "mon.tiktokv.com", "bat.bing.com"),
        *("clarity.ms", "scorecardresearch.com", "hotjar.com", "branch.io", "appsflyer.com"),
    ]
    """Hosts of trackers. The browser's requests to these hosts and to their subdomains are aborted."""
    PLAYWRIGHT_LAUNCH_OPTIONS: setting_types.Object[Any] = {}
    """Playwright's options for launching Chromium: ``executable_path``, ``args``, ``chromium_sandbox``
    (docs/architecture.md#chromiums-sandbox) etc."""

    # Feeds

    FAILURES_FEED: Optional[setting_types.Text] = "auto"
    """URI of the feed with one line of JSON for each failed target, if there are any. ``auto``:
    ``failures/%(name)s-%(job)s.jsonl``, but no file for a single target, whose error is printed or logged. ``%(job)s``
    is the job's id on Scrapyd, and the start time elsewhere. None: no feed."""
    CSV_BOM: Switch = False
    """Whether new CSV files start with a byte order mark (docs/outputs.md#csv)."""
    CSV_ESCAPE_FORMULAS: Switch = True
    """Whether an apostrophe is put before text in CSV files that a spreadsheet would evaluate as a formula
    (docs/outputs.md#csv)."""

    # The endpoint

    SERVICE_RECYCLE_TARGETS: Count = 10_000
    """Number of targets after which the endpoint replaces the crawler of a platform by a new one. 0: no limit."""
    SERVICE_RECYCLE_MINUTES: PositiveSeconds = 60.0
    """Minutes after which the endpoint replaces the crawler of a platform by a new one."""
    SERVICE_MAX_WAITING: Count = 1_000
    """Maximum number of calls that wait for a platform's crawler. Further calls get ``OVERLOADED``."""
    SERVICE_MAX_CALLS: Positive = 2_000
    """Maximum number of calls in flight. Further ones get ``OVERLOADED``, except for platforms with less than an equal
    share of them."""
    KEY_RATE: Optional[setting_types.Rate] = None
    """Rate limit of each API key without its own, such as ``600/minute``. None: no limit."""
    KEY_CONCURRENCY: Count = 0
    """Maximum number of calls in flight of each API key without its own limit. 0: no limit."""
    SERVICE_MAX_CONNECTIONS: Positive = 4_000
    """Maximum number of open client connections per process. Further connections get ``OVERLOADED`` and are closed."""
    SERVICE_HIDDEN_ROUTES: Items[setting_types.Route] = []
    """Routes that the service serves only at ``SERVICE_INTERNAL_ADDRESS``, not on its main port."""
    SERVICE_URL: Optional[setting_types.ServiceUrl] = None
    """URL under which clients reach the service, such as ``https://data.example.com``. Links in errors, in
    ``/openapi.json`` and in ``/llms.txt`` begin with it. None: links are paths."""
    SERVICE_INTERNAL_ADDRESS: Optional[setting_types.Address] = None
    """A second address (``host:port``) that serves all routes, also the hidden ones. None: no second port."""
    CONSOLE: setting_types.Automatic = "auto"
    """Whether ``/`` is the console, and not a redirect to ``/docs`` (docs/console.md). ``auto``: True only if the
    service listens on a loopback address and ``SERVICE_URL`` is not set."""
    SERVICE_MAX_JOB_BYTES: Positive = 32 * 1024 * 1024
    """Maximum bytes of the upload of a job (docs/service.md#jobs)."""
    JOBS_MAX: Positive = 20
    """Maximum number of jobs of a client that are not done."""
    JOBS_KEEP: PositiveSeconds = 30.0
    """Days after which a client's finished job and its records are deleted."""
    WEBHOOK_SECRET: Optional[setting_types.Text] = None
    """Secret with which ``scrapy webhook listen`` verifies events (docs/webhooks.md). Set it in the environment."""
    API_KEYS: setting_types.Object[Any] = {}
    """The hashes of the valid API keys, as ``scrapy keys export`` prints them, in place of ``KEYS_FILE``
    (docs/endpoint.md#api-keys)."""
    KEYS_FILE: Optional[setting_types.Text] = None
    """SQLite file with the hashes of the API keys. None: ``keys.sqlite`` in the project's ``.scrapy`` folder."""
    MCP_API_KEY: Optional[setting_types.Text] = None
    """API key that ``scrapy mcp`` sends to the endpoint (docs/mcp.md); with ``--http``, callers send their own. Set it
    in the environment."""

    # Operation

    LOG_LEVEL: setting_types.LogLevel = "INFO"
    """``INFO``, because with Scrapy's default, ``DEBUG``, every item is logged."""
    LOGSTATS_INTERVAL: Seconds = 60.0
    """Seconds between progress lines. 0 disables them and the progress bar."""
    TELNETCONSOLE_ENABLED: Switch = False
    """False, because each crawl would open a port."""
    REMOTE_CONTROL_ENABLED: Switch = False
    """False, because each crawl would open a port and execute any code that is sent to it."""


BOT_NAME = "crawler"
SPIDER_MODULES = ["crawler.spiders"]
SPIDER_LOADER_CLASS = "crawler.registry.SpiderLoader"  # Scrapy's loader would import all platforms for each crawl
COMMANDS_MODULE = "crawler.commands"
ADDONS = {
    "scrapy_poet.Addon": 300,
    "crawler.Addon": 500,  # the components and further settings of this project's spiders (components.py, addon.py)
}
ASYNCIO_EVENT_LOOP = "crawler.service.workers.Loop"  # default None: asyncio's loop, slower by a fifth
DEFAULT_REQUEST_HEADERS = {  # a browser's headers; platforms format numbers and dates for the language
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.9",
}
RETRY_EXCEPTIONS = [*default_settings.RETRY_EXCEPTIONS, "crawler.errors.BrowserFailed"]  # a new browser may succeed
EXTENSIONS_BASE = {  # without the remote control, which executes any code, and is slow to import
    name: order
    for name, order in default_settings.EXTENSIONS_BASE.items()
    if name != "scrapy.extensions.remote_control.RemoteControl"
}
FEED_URI_PARAMS = "crawler.outputs.feeds.uri_params"
FEED_EXPORT_ENCODING = "utf-8"  # default None: all non-ASCII characters in JSON are escaped


def _from_environment() -> dict[str, Any]:
    """Return the settings in environment variables."""
    found: dict[str, Any] = {}
    for name, value in os.environ.items():
        if name.startswith("CRAWLER_") and name.isupper():
            try:
                found[name.removeprefix("CRAWLER_")] = orjson.loads(value)
            except orjson.JSONDecodeError:
                found[name.removeprefix("CRAWLER_")] = value
    return found


globals().update(  # Scrapy reads the settings from the variables of this module
    {name: field.default for name, field in Settings.model_fields.items() if name not in Settings.only_for_spiders}
    | _from_environment()
)
