"""``-s SANDBOX=1``: start the simulated platforms in the crawl's process, and send the spider's requests there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from scrapy import signals
from scrapy.exceptions import NotConfigured

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawler.sandbox.server import Sandbox


class _SpiderWithOrigins(Protocol):
    platform: str

    def use_origins(self, origins: str | dict[str, str]) -> None: ...


class SandboxExtension:
    """Starts the sandbox when the spider opens, before its first request, and stops it when the spider closes."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SandboxExtension:
        if not crawler.settings.getbool("SANDBOX"):
            raise NotConfigured
        from crawler.sandbox.server import Sandbox  # noqa: PLC0415  # most crawls do not use it

        extension = cls(Sandbox(renames=crawler.settings.getdict("SANDBOX_RENAMES")))
        crawler.signals.connect(extension.spider_opened, signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signals.spider_closed)
        return extension

    def spider_opened(self, spider: _SpiderWithOrigins) -> None:
        """Start all simulated platforms, and direct the spider's requests to the simulation of its platform."""
        spider.use_origins(self.sandbox.start()[spider.platform])

    async def spider_closed(self) -> None:
        """Stop the sandbox and close its ports."""
        await self.sandbox.stop()
