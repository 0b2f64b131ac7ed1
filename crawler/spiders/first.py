"""The result of a target's scheduled request, which is an argument of a spider's ``scrape()``."""

from __future__ import annotations

from scrapy import Request

from crawler.downloads.page_spider import PageSpider
from crawler.errors import ScrapeError
from crawler.platforms.page import P, PlatformPage


class First:
    """The result of a target's scheduled request: a page object whose item is not read yet, or the download's error."""

    def __init__(
        self,
        spider: PageSpider,
        request: Request,
        *,
        page: PlatformPage | None = None,
        error: ScrapeError | None = None,
    ) -> None:
        self.request = request
        """The request that led to the result. After redirects and retries, this is the last request."""
        self._spider = spider
        self._page = page
        self.error = error
        """The error of the download, None if there is a response."""

    async def page(self, kind: type[P], *, retry: bool = True) -> P:
        """Read the item of the page object, whose class is ``kind``, and return the page object.

        ``retry``: see ``PageSpider.get``.

        Raises:
            ScrapeError: the download failed, or the page object raised an error.
        """
        if self.error is not None:
            raise self.error
        assert isinstance(self._page, kind)
        return await self._spider.read(self._page, self.request, retry=retry)
