"""The static description of a platform, available before any of its code is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Platform:
    """Where a platform is, how many requests one address may send it, and which scrapers read it."""

    name: str
    origins: Mapping[str, str]
    """Role (``page``, ``api``, ``embed`` ...) -> public origin. ``page`` is always present."""
    concurrency: int
    """Concurrent downloads for one address without a proxy, from the platform's notes."""
    delay: float
    """Seconds between the starts of two downloads, from the platform's notes."""
    scrapers: tuple[str, ...]
    """The names of its scrapers, aliases included."""
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Source (of a page class) -> ``concurrency`` and ``delay`` of a budget of its own, within the platform's."""

    @property
    def origin(self) -> str:
        """The public origin of its pages."""
        return self.origins["page"]

    @property
    def domain(self) -> str:
        """The host of its pages without ``www.``."""
        return urlsplit(self.origin).netloc.removeprefix("www.")
