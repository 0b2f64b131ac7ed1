"""One package per platform, and the base classes of their models and page objects.

The ``__init__`` of a package defines ``PLATFORM`` and imports no other module of it: spiders are loaded on demand.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from crawler.platforms.platform import Platform

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


@cache
def platforms() -> dict[str, Platform]:
    """All platforms by name, in alphabetical order. Each subpackage is a platform."""
    names = sorted(module.name for module in iter_modules(__path__) if module.ispkg)
    return {name: import_module(f"{__name__}.{name}").PLATFORM for name in names}


def origins(name: str, settings: BaseSettings) -> str | dict[str, str]:
    """The origins of a platform: from ``PLATFORM_ORIGINS``, else the public ones."""
    configured: str | dict[str, str] | None = _configured("PLATFORM_ORIGINS", name, settings)
    return configured or dict(platforms()[name].origins)


def budget(name: str, settings: BaseSettings) -> dict[str, Any]:
    """The ``concurrency``, ``delay`` and ``sources`` of a platform: its defaults, overridden by ``PLATFORM_BUDGETS``.

    ``sources`` are the sources that have a budget of their own, each with its ``concurrency`` and ``delay``.
    """
    platform = platforms().get(name)
    defaults: dict[str, Any] = {"sources": {}}
    if platform is not None:
        defaults = {"concurrency": platform.concurrency, "delay": platform.delay, "sources": dict(platform.sources)}
    return defaults | (_configured("PLATFORM_BUDGETS", name, settings) or {})


def _configured(setting: str, name: str, settings: BaseSettings) -> Any:
    """The value of a setting for a platform, None if the setting does not name the platform.

    Raises:
        ValueError: the setting names an unknown platform. A typo would crawl the real platform, and at full speed.
    """
    values = settings.getdict(setting)
    unknown = values.keys() - platforms().keys() - {name}
    if unknown:
        known = ", ".join(platforms())
        raise ValueError(f"{setting}: no platform is called {', '.join(unknown)}; use {known}")
    return values.get(name)
