"""``-s SANDBOX=1``: starts the simulated platforms in the crawl's own process, and points the spider to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from scrapy import signals
from scrapy.exceptions import NotConfigured

from crawler.sandbox.server import Sandbox

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class _SpiderWithOrigins(Protocol):
    name: str

    def use_origins(self, origins: str | dict[str, str]) -> None: ...


class SandboxExtension:
    """Serves the sandbox from before the first request until the spider is closed."""

    def __init__(self) -> None:
        self.sandbox = Sandbox()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SandboxExtension:
        if not crawler.settings.getbool("SANDBOX"):
            raise NotConfigured
        extension = cls()
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        return extension

    def spider_opened(self, spider: _SpiderWithOrigins) -> None:
        """Point the spider to its simulated platform."""
        spider.use_origins(self.sandbox.start()[spider.name])

    async def spider_closed(self) -> None:
        """Close the ports."""
        await self.sandbox.stop()
