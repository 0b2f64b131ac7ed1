"""A Scrapy project that scrapes targets. Each target has exactly one outcome: data or a typed error.

With ``ADDONS = {"crawler.Addon": 500}``, this project's spiders also run in other projects (``docs/embedding.md``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crawler.addon import Addon

__all__ = ["Addon"]


def __getattr__(name: str) -> Any:
    if name == "Addon":
        from crawler.addon import Addon  # noqa: PLC0415  # imports the spiders, which few users need

        return Addon
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
