"""One package for each platform, and the base classes that their models and page objects share.

A platform's ``__init__`` defines ``PLATFORM`` and imports no other module of its package. So ``PLATFORM`` can be read
without loading the platform's page objects and spider.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from crawler.platforms.platform import Platform

LIMITS = ("concurrency", "delay", "burst", "gap")
"""The limits of a budget, as in ``Platform``."""

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.settings import BaseSettings


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
