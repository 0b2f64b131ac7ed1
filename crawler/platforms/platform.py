"""The static description of a platform, which is available before the platform's page objects and spider are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


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
