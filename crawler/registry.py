"""The scrapers by name, collected from the spiders: a platform is added by adding its spider."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import crawler.spiders
from crawler.spiders.base import PlatformSpider
from crawler.targets.target import Scraper


@cache
def spiders() -> dict[str, type[PlatformSpider]]:
    """The spider of each platform, by the platform's name."""
    found: dict[str, type[PlatformSpider]] = {}
    for module in iter_modules(crawler.spiders.__path__, "crawler.spiders."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, PlatformSpider) and "name" in vars(value):
                found[value.name] = value
    return dict(sorted(found.items()))


@cache
def scrapers() -> dict[str, Scraper]:
    """Every scraper by its name and by each of its aliases."""
    return {
        name: scraper
        for spider in spiders().values()
        for scraper in spider.scrapers
        for name in (scraper.name, *scraper.aliases)
    }


def spider_for(scraper: Scraper) -> type[PlatformSpider]:
    """The spider that serves a scraper."""
    return spiders()[scraper.platform]
