"""Finds scrapers and spiders by name. The spider of a platform is imported when it is first needed."""

from __future__ import annotations

import builtins
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Self, cast

from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader as ScrapySpiderLoader
from scrapy.utils.spider import iter_spider_classes

from crawler.platforms import platforms
from crawler.targets.target import Scraper

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.settings import BaseSettings

    from crawler.spiders.base import PlatformSpider

SPIDERS = "crawler.spiders"
"""The package with a module for the spider of each platform."""


@cache
def spider(platform: str) -> type[PlatformSpider]:
    """Return the spider class of a platform.

    Raises:
        KeyError: the platform does not exist.
    """
    (found,) = iter_spider_classes(import_module(f"{SPIDERS}.{platforms()[platform].name}"))
    return cast("type[PlatformSpider]", found)


def spiders() -> dict[str, type[PlatformSpider]]:
    """Import all platforms, and return their spider classes by the names of the platforms."""
    return {name: spider(name) for name in platforms()}


def scraper_names() -> list[str]:
    """Return the names and aliases of all scrapers, sorted."""
    return sorted(name for platform in platforms().values() for name in platform.scrapers)


@cache
def find_scraper(name: str) -> Scraper:
    """Return the scraper with this name or alias.

    Raises:
        KeyError: the scraper does not exist.
    """
    for platform in platforms().values():
        if name in platform.scrapers:
            return next(s for s in spider(platform.name).scrapers if name in {s.name, *s.aliases})
    raise KeyError(name)


@cache
def scrapers() -> dict[str, Scraper]:
    """Import all platforms, and return all scrapers by name and by alias."""
    return {name: find_scraper(name) for name in scraper_names()}


def spider_for(scraper: Scraper) -> type[PlatformSpider]:
    """Return the spider class for a scraper."""
    return spider(scraper.platform)


class SpiderLoader:
    """Imports the spider of a platform only when it is needed. Scrapy's loader loads all other spiders.

    Scrapy's loader alone would import the spiders of all platforms, with their schemas and page objects, for every
    command.
    """

    def __init__(self, settings: BaseSettings) -> None:
        modules = [name for name in settings.getlist("SPIDER_MODULES") if name != SPIDERS]
        beside = (module.name for module in iter_modules(import_module(SPIDERS).__path__))
        modules += [f"{SPIDERS}.{name}" for name in beside if name not in {"base", *platforms()}]
        warn_only = settings.getbool("SPIDER_LOADER_WARN_ONLY")
        self._others = ScrapySpiderLoader(Settings({"SPIDER_MODULES": modules, "SPIDER_LOADER_WARN_ONLY": warn_only}))

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return cls(settings)

    def load(self, spider_name: str) -> type[Spider]:
        """Return the spider class with this name.

        Raises:
            KeyError: the spider does not exist.
        """
        return spider(spider_name) if spider_name in platforms() else self._others.load(spider_name)

    def list(self) -> list[str]:
        """Return the names of all spiders."""
        return [*platforms(), *self._others.list()]

    def find_by_request(self, request: Request) -> builtins.list[str]:
        """Return the names of the spiders that handle the request's domain."""
        own = [name for name, found in spiders().items() if found.handles_request(request)]
        return own + self._others.find_by_request(request)
