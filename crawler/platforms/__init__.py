"""One package for each platform, and the base classes that their models and page objects share.

A platform's ``__init__`` defines ``PLATFORM`` and imports no other module of its package. So ``PLATFORM`` can be read
without loading the platform's page objects and spider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

LIMITS = ("concurrency", "delay", "burst", "gap")
"""The limits of a budget, as in ``Platform``."""


@cache
def platforms() -> dict[str, Platform]:
    """Return all platforms by name, in alphabetical order. Each subpackage of this package is a platform."""
    names = sorted(module.name for module in iter_modules(__path__) if module.ispkg)
    return {name: import_module(f"{__name__}.{name}").PLATFORM for name in names}


def budget(name: str, settings: BaseSettings) -> dict[str, Any]:
    """Return a platform's budget: its defaults, overridden by ``PLATFORM_BUDGETS``.

    It has the keys ``concurrency``, ``delay``, ``burst``, ``gap``, and ``sources``: the sources that have a budget of
    their own, each with these limits.
    """
    platform = platforms().get(name)
    defaults: dict[str, Any] = {"sources": {}}
    if platform is not None:
        defaults = {key: getattr(platform, key) for key in LIMITS} | {"sources": dict(platform.sources)}
    return overridden(defaults, value_for("PLATFORM_BUDGETS", name, settings) or {})


def overridden(budget: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a budget with the keys of another one. A ``delay`` without ``burst`` or ``gap`` has no burst and no gap.

    >>> overridden({"concurrency": 2, "delay": 4.0, "burst": 64, "gap": 1.0}, {"delay": 1.5})
    {'concurrency': 2, 'delay': 1.5, 'burst': 1, 'gap': 0.0}
    """
    return {**budget, **({"burst": 1, "gap": 0.0} if "delay" in own else {}), **own}


def value_for(setting: str, name: str, settings: BaseSettings) -> Any:
    """Return a setting's value for one platform, or None if the setting does not name this platform.

    Raises:
        ValueError: the setting names an unknown platform. If a misspelled name were ignored, the crawl would use the
            platform's real origins or its default budget.
    """
    values = settings.getdict(setting)
    unknown = values.keys() - platforms().keys() - {name}
    if unknown:
        known = ", ".join(platforms())
        raise ValueError(f"{setting}: no platform is called {', '.join(unknown)}; use {known}")
    return values.get(name)


@dataclass(frozen=True)
class Platform:
    """A platform's public origins, the budget for its requests from one IP address, and the names of its scrapers."""

    name: str
    origin: str
    """The public origin of the platform's pages."""
    concurrency: int
    """Maximum number of concurrent downloads from one IP address."""
    delay: float
    """Number of seconds per download from one IP address, in the long run."""
    scrapers: tuple[str, ...]
    """The names of the platform's scrapers, including aliases."""
    burst: int = 1
    """Maximum number of downloads from one IP address that start at once after a rest."""
    gap: float = 0.0
    """Minimum number of seconds between the starts of two downloads from one IP address."""
    other_origins: frozenset[str] = frozenset()
    """Further public origins of the platform: those of an API, and those that the site may redirect to."""
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Maps a source to the limits of its own budget, which applies in addition to the platform's."""

    downloads: int = 1
    """Maximum number of downloads for one target with the default settings, if no download fails."""
    seconds: float = 1.0
    """Usual duration of a download in seconds, from which ``scrapy targets check`` estimates the targets per hour."""
    image_hosts: tuple[str, ...] = ()
    """Hosts of the images in recorded pages; ``*.`` means all subdomains. The console loads images of no other host."""

    @property
    def origins(self) -> frozenset[str]:
        """All public origins of the platform."""
        return self.other_origins | {self.origin}

    @property
    def domain(self) -> str:
        """The host of the platform's pages, without a leading ``www.``."""
        return urlsplit(self.origin).netloc.removeprefix("www.")
