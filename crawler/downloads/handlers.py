"""Download handlers whose transfers end within ``CLOSE_GRACE`` seconds after their crawler has begun to close.

A transfer is ended here, and never by cancelling ``engine.download_async()``: that would leave the connection open, and
would leave other requests that wait for the same download (robots.txt) without an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler

from crawler.targets.closing import Closing

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class BoundedTransfers:
    """Mixin of download handlers that close their connection when ``download_request()`` is cancelled."""

    closing: Closing

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        handler: Any = super().from_crawler(crawler)  # type: ignore[misc]  # the handler's
        handler.closing = Closing(crawler, crawler.settings.getfloat("CLOSE_GRACE"))
        return cast("Self", handler)

    async def download_request(self, request: Request) -> Response:
        """Download a request.

        Raises:
            ShuttingDown: the crawler closes, and the grace is over.
        """
        async with self.closing.limit():
            return cast("Response", await super().download_request(request))  # type: ignore[misc]  # the handler's


class HttpHandler(BoundedTransfers, HTTP11DownloadHandler):
    """Scrapy's own handler, bounded."""
