"""Download handlers that end their transfers at most ``CLOSE_GRACE`` seconds after the crawler has started to close.

Cancelling ``engine.download_async()`` instead would leave the connection open, and other requests that wait for the
same download (robots.txt) would never get a response.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Self, cast

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler

from crawler.downloads.connect_limits import LimitedEndpoint
from crawler.downloads.egress_handler import ThroughEgress
from crawler.targets.shutdown import Closing

if TYPE_CHECKING:
    from collections.abc import Hashable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IStreamClientEndpoint
    from twisted.web._newclient import HTTP11ClientProtocol


class BoundedTransfers:
    """A mixin for download handlers that ends their transfers when the crawler closes.

    The handler must close its connection when ``download_request()`` is cancelled.
    """

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


class HttpHandler(BoundedTransfers, ThroughEgress, HTTP11DownloadHandler):
    """Scrapy's HTTP handler, extended: it connects through the egress of each target.

    It also ends its transfers when the crawler closes, and limits the size of response headers and the time to connect.
    It makes the TLS settings of each host once. Scrapy's handler makes them for each request, also if its connection is
    kept, and reads the system's certificates for each new connection.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        policy = self._contextFactory
        policy.creatorForNetloc = cache(policy.creatorForNetloc)  # type: ignore[method-assign]
        connect, seconds = self._pool.getConnection, crawler.settings.getfloat("CONNECT_TIMEOUT")

        def limited(key: Hashable, endpoint: IStreamClientEndpoint) -> Deferred[HTTP11ClientProtocol]:
            return connect(key, LimitedEndpoint(endpoint, seconds))

        self._pool.getConnection = limited  # type: ignore[method-assign]
