"""The download handlers of scrapy-zyte-api, whose transfers end when the crawler closes. Needs the extra ``zyte``."""

from __future__ import annotations

from typing import Any, Self, cast

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy_zyte_api.handler import ScrapyZyteAPIHTTPDownloadHandler, ScrapyZyteAPIHTTPSDownloadHandler

from crawler.targets.shutdown import Closing


class BoundedTransfers:
    """A mixin for download handlers: their transfers end ``CLOSE_GRACE`` seconds after the crawler begins to close."""

    closing: Closing

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        handler: Any = super().from_crawler(crawler)  # type: ignore[misc]  # defined by the handler
        handler.closing = Closing(crawler, crawler.settings.getfloat("CLOSE_GRACE"))
        return cast("Self", handler)

    async def download_request(self, request: Request) -> Response:
        """Download a request.

        Raises:
            ShuttingDown: the crawler is closing, and ``CLOSE_GRACE`` seconds have passed.
        """
        async with self.closing.limit():
            return cast("Response", await super().download_request(request))  # type: ignore[misc]  # the handler's


class HttpHandler(BoundedTransfers, ScrapyZyteAPIHTTPDownloadHandler):  # type: ignore[misc]  # the type of its response includes None
    """Downloads ``http`` URLs through Zyte API."""


class HttpsHandler(BoundedTransfers, ScrapyZyteAPIHTTPSDownloadHandler):  # type: ignore[misc]  # the type of its response includes None
    """Downloads ``https`` URLs through Zyte API."""
