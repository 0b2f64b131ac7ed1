"""The result of a target's scheduled request, which is an argument of a spider's ``scrape()``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from scrapy import Request

from crawler.downloads.page_spider import PageSpider
from crawler.errors import ScrapeError
from crawler.platforms.page import P, PlatformPage


@dataclass(slots=True)
class First:
    """The result of a target's scheduled request: a page object whose item is not read yet, or the download's error."""

    spider: PageSpider
    request: Request
    """The request that led to the result. After redirects and retries, this is the last request."""
    _: KW_ONLY
    result: PlatformPage | None = None
    """The page object, whose item is not read yet. None: the download has failed."""
    error: ScrapeError | None = None
    """The error of the download, None if there is a response."""

    async def page(self, kind: type[P], *, retry: bool = True) -> P:
        """Read the item of the page object, whose class is ``kind``, and return the page object.

        ``retry``: see ``PageSpider.get``.

        Raises:
            ScrapeError: the download failed, or the page object raised an error.
        """
        if self.error is not None:
            raise self.error
        assert isinstance(self.result, kind)
        return await self.spider.read(self.result, self.request, retry=retry)
