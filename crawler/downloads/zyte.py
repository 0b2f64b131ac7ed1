"""Support for ``ZYTE_API_KEY``: Zyte API downloads the pages, so that platforms do not see this machine's address.

The transfers of its download handlers end when the crawler closes. Needs the extra ``zyte``.
"""

from __future__ import annotations

from typing import Any, Self, cast

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy_zyte_api.handler import ScrapyZyteAPIHTTPDownloadHandler, ScrapyZyteAPIHTTPSDownloadHandler
from zyte_api import RequestError

from crawler.errors import (
    BlockedByPolicy,
    ScrapeError,
    ServiceError,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)
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


class Refusals:
    """Downloader middleware that converts error responses of Zyte API to typed errors.

    The client of Zyte API has already retried the requests for which this is useful.
    """

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Raise the typed error for an error response of Zyte API. Ignore other exceptions."""
        if isinstance(exception, RequestError):
            raise refusal(exception.status) from exception


def refusal(status: int) -> ScrapeError:
    """Return the typed error for an HTTP status of Zyte API itself (not of the platform).

    >>> refusal(520).code, refusal(429).code, refusal(401).code
    ('UPSTREAM_BLOCKED', 'UPSTREAM_RATE_LIMITED', 'INTERNAL_ERROR')
    """
    match status:
        case 520:
            return UpstreamBlocked("Zyte API could not download the page: the platform blocks it.", reason="zyte_ban")
        case 429 | 503:
            return UpstreamRateLimited("Zyte API's rate limit is exceeded.", reason="zyte_rate_limit")
        case 451:
            return BlockedByPolicy("Zyte API does not download from this platform.", reason="zyte_forbidden")
        case 401 | 402 | 403:
            return ServiceError("Zyte API does not accept ZYTE_API_KEY or its account.", reason="zyte_account")
        case _:
            return UpstreamError(f"Zyte API responded with status {status}.", reason="zyte")
