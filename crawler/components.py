"""The components of this project's spiders, and the check that the essential ones are enabled.

``crawler.Addon`` adds the components to Scrapy's ``*_BASE`` settings, so that a user's ``EXTENSIONS``,
``ITEM_PIPELINES`` and so on do not replace them. The value ``None`` in such a setting of the user disables a component.
If the component is essential, the spider then does not start.
"""

from __future__ import annotations

import asyncio
import math
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scrapy.downloadermiddlewares import cookies
from scrapy.exceptions import UsageError
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from crawler.outputs.formats import FORMATS, NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings

HANDLER = "crawler.downloads.handlers.HttpHandler"
BROWSER_HANDLER = "crawler.browser.handler.BrowserHandler"

COMPONENTS: dict[str, dict[str, Any]] = {
    "DOWNLOAD_HANDLERS": {
        **dict.fromkeys(("http", "https"), HANDLER),
        **dict.fromkeys(("file", "data", "s3", "ftp")),  # disabled, because URLs are user input
    },
    "DOWNLOADER_MIDDLEWARES": {
        "crawler.middlewares.BindTarget": 10,  # first, so that all log lines have the target's id
        "crawler.middlewares.AllowedOrigins": 20,  # early, so that a refused request has no other effects
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,  # AllowedOrigins replaces it
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
        "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,  # parses every page; no platform needs it
        "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
        "crawler.middlewares.Decompression": 590,
        "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
        "crawler.middlewares.Redirect": 600,
        "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
        "crawler.middlewares.Retry": 550,
        "crawler.middlewares.PlannedInjection": 543,  # scrapy-poet's middleware, with one plan per callback
        "crawler.middlewares.ThrottleMiddleware": 990,  # nearest to the network: cached responses need no slot
    },
    "SPIDER_MIDDLEWARES": {
        "crawler.targets.tracker.TargetTracker": 5,  # nearest to the engine: other spider middlewares may drop items
        # The next six would process every response, every result of a callback or every start request, without any use.
        "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,  # the page objects interpret statuses
        "scrapy.spidermiddlewares.referer.RefererMiddleware": None,  # pages of different targets are unrelated
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
        "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
        "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware": None,
        "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,  # adds meta that nothing reads
    },
    "ITEM_PIPELINES": {
        "crawler.pipelines.ValidationPipeline": 300,
        "crawler.pipelines.BatchLinePipeline": 900,  # last: other pipelines need the data, not a line
    },
    "EXTENSIONS": {
        "crawler.targets.shutdown.AnnounceClosing": 0,
        "scrapy.extensions.feedexport.FeedExporter": None,
        "crawler.outputs.feeds.Feeds": 0,  # replaces FeedExporter: a line is written for each outcome
        "crawler.jobs.extension.JobWorker": 400,
        "crawler.monitoring.progress.Progress": 600,
        "crawler.monitoring.summary.Summary": 600,
        "scrapy.extensions.logstats.LogStats": None,  # Progress logs targets instead of pages
    },
    "FEED_EXPORTERS": {name: each.exporter for name, each in NAMES.items()},
    "FEED_STORAGES": dict.fromkeys(FORMATS["sql"].schemes, "crawler.outputs.feed_files.SqlStorage"),
}
"""Setting -> its components: class and order, or the name of a feed format or URL scheme and its class."""

ESSENTIAL: dict[str, dict[str, str]] = {
    "DOWNLOADER_MIDDLEWARES": {
        "crawler.middlewares.AllowedOrigins": "requests could be sent to hosts other than the platform's",
        "crawler.middlewares.ThrottleMiddleware": "requests would ignore the platform's budget and circuit breakers",
    },
    "SPIDER_MIDDLEWARES": {"crawler.targets.tracker.TargetTracker": "targets would have no outcomes"},
    "ITEM_PIPELINES": {"crawler.pipelines.ValidationPipeline": "records would not be validated"},
    "EXTENSIONS": {
        "crawler.outputs.feeds.Feeds": "records would not be written to the feeds",
    },
}
"""Setting -> its essential components, each with the effect of disabling it. Without them, the spiders do not start."""

ABOVE_COMMAND_LINE = 50
"""Priority of settings that the option ``-s`` must not override. Scrapy applies ``-s`` again after they are set."""

ADDON = "crawler.Addon"
"""The add-on's path for users."""
ADDON_PATHS = frozenset({ADDON, "crawler.addon.Addon"})


def install(settings: BaseSettings) -> None:
    """Add the components to the ``*_BASE`` settings, in place. A second call changes nothing.

    ``settings.set()`` with an add-on's priority would not change ``*_BASE`` settings that a settings module sets.
    """
    for name, components in COMPONENTS.items():
        base = settings[f"{name}_BASE"]
        for component, value in components.items():
            base.pop(component, None)  # its priority may be higher than "default"
            base.set(component, value, priority="default")


def stay_local(settings: BaseSettings) -> None:
    """Change any spider's settings so that the handlers of this project download its requests, and no other handlers.

    Scrapy's cache of responses gets a folder of its own, because the URLs of the responses are public ones. With
    ``SANDBOX``, also disable the handlers of other schemes that leave this machine, and the request of Scrapy's cookies
    for the list of public suffixes: the package ``tldextract`` contains one.
    """
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    handler = BROWSER_HANDLER if handlers.get("https") == BROWSER_HANDLER else HANDLER
    local: dict[str, str | None] = {"http": handler, "https": handler}
    if settings.getbool("SANDBOX"):
        local |= dict.fromkeys(("s3", "ftp"))
        # Scrapy has no setting for it, and imports tldextract before this, which then reads its environment variable.
        cookies._split_domain.suffix_list_urls = ()  # noqa: SLF001
    settings.set("DOWNLOAD_HANDLERS", {**settings.getdict("DOWNLOAD_HANDLERS"), **local}, priority=ABOVE_COMMAND_LINE)
    settings.set("HTTPCACHE_DIR", f"{settings['HTTPCACHE_DIR']}-local", priority=ABOVE_COMMAND_LINE)


def load_components(settings: BaseSettings) -> None:
    """Import the components of a spider's settings that belong to this project or to Scrapy.

    A user's own components are not imported before a crawler needs them: they may import the reactor.
    """
    settings = settings.copy()
    install(settings)
    for name in COMPONENTS:
        base = settings.getwithbase(name)
        for component in (*base, *base.values()):  # either the keys or the values are components
            if isinstance(component, str) and component.startswith(("crawler.", "scrapy.")):
                load_object(component)


def require(settings: BaseSettings) -> None:
    """Check the settings of a spider before add-ons are applied.

    Set the defaults of the project's own settings, and add ``Check``, which runs after all other add-ons.

    Raises:
        UsageError: ``ADDONS`` lacks the add-on, the settings disable an essential component, or Twisted's reactor will
            not run the crawl. Scrapy's commands print the message, which is one sentence, and end with exit code 2.
    """
    _require_reactor(settings)
    addons = settings["ADDONS"]
    if ADDON_PATHS.isdisjoint(_enabled(addons)):
        raise UsageError(
            f'ADDONS lacks {ADDON}, which the spiders of social-retail-crawler need: add "{ADDON}": 500 to ADDONS'
        )
    for name in ESSENTIAL:
        _require(name, COMPONENTS[name], settings[name])
    load_object(ADDON).update_pre_crawler_settings(settings)  # Scrapy calls it only when it makes a runner
    # The value is replaced, with a priority of its own, because Scrapy may set the process's settings once more.
    settings.set("ADDONS", {**addons, f"{__name__}.{Check.__name__}": math.inf}, priority=ABOVE_COMMAND_LINE)


def _require_reactor(settings: BaseSettings) -> None:
    """Check that Twisted's reactor will run the crawl. Without it, no download would end.

    Raises:
        UsageError: the reactor is disabled, or another program's event loop is running, such as a notebook's.
    """
    if not settings.getbool("TWISTED_REACTOR_ENABLED"):
        raise UsageError("TWISTED_REACTOR_ENABLED: the spiders of social-retail-crawler need Twisted's reactor")
    reactor = sys.modules.get("twisted.internet.reactor")
    with suppress(RuntimeError):  # no event loop is running
        asyncio.get_running_loop()
        if reactor is None or not reactor.running:
            raise UsageError(
                "Twisted's reactor does not run, but another event loop does, such as a notebook's: "
                "start scrapy crawl in a process of its own"
            )


class Check:
    """The last add-on of each spider: checks the settings after the other add-ons have changed them.

    The spiders add this add-on themselves, so that a user's ``ADDONS`` cannot remove it.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Check that the essential components are enabled.

        Raises:
            UsageError: the settings disable an essential component.
        """
        for name in ESSENTIAL:
            _require(name, settings[f"{name}_BASE"], settings[name])


def _require(name: str, *parts: Mapping[Any, Any]) -> None:
    """Check the essential components of a setting. ``parts``: component -> order; later parts override earlier ones.

    Raises:
        UsageError: an essential component is disabled, and no subclass of it is enabled.
    """
    enabled = _enabled(*parts)
    for path, consequence in ESSENTIAL[name].items():
        if path not in enabled and not _has_subclass(path, enabled):
            raise UsageError(
                f"{name} disables {path}: {consequence}. Remove the entry, or also enable a subclass of this component"
            )


def _enabled(*parts: Mapping[Any, Any]) -> set[str]:
    """Return the paths of the enabled components. The components themselves are not imported."""
    orders = {
        key if isinstance(key, str) else global_object_name(key): order for part in parts for key, order in part.items()
    }
    return {path for path, order in orders.items() if order is not None}


def _has_subclass(path: str, enabled: set[str]) -> bool:
    essential = load_object(path)
    loaded = [load_object(each) for each in sorted(enabled)]
    return any(isinstance(each, type) and issubclass(each, essential) for each in loaded)
