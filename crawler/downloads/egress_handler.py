"""Sends requests through the egress in ``meta["egress"]``, and determines whether the egress caused a failure."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import structlog
from scrapy.core.downloader.handlers.http11 import TunnelError
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
)
from twisted.internet.error import ConnectError, ConnectionLost

from crawler.downloads.egress_setting import Egress, egresses
from crawler.downloads.lane import egress_failed
from crawler.downloads.tunnel import ProxyError, check

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawler.downloads.page_spider import PageSpider
    from crawler.errors import EgressFailed

logger = structlog.get_logger(__name__)

Download = Callable[["Request"], Awaitable["Response"]]

UNREACHABLE = (CannotResolveHostError, ConnectError, DownloadConnectionRefusedError, ProxyError, TunnelError)
"""Errors of a connection that could not be opened. If the egress has a proxy, they count as failures of the proxy."""
UNCLEAR = (ConnectionLost, DownloadFailedError, DownloadTimeoutError, *UNREACHABLE)
"""Errors that the egress or the platform may have caused. A test connection through the egress shows which."""
TUNNEL_STATUS = re.compile(r"'status': (\d{3})")


class ThroughEgress:
    """A mixin for download handlers, which makes them connect through the egress of each request.

    In callbacks and middlewares, requests contain only the name of the egress. The handler adds the credentials.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)  # type: ignore[call-arg]  # the handler's
        self.egresses = {egress.name: egress for egress in egresses(crawler.settings)}
        self.lanes = lambda: cast("PageSpider", crawler.spider).lanes
        self.connect_seconds = crawler.settings.getfloat("CONNECT_TIMEOUT")
        self.verify_certificates = crawler.settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES")

    def download_request(self, request: Request) -> Awaitable[Response]:
        """Download a request.

        Raises:
            EgressFailed: the egress failed before the platform responded.
        """
        download: Download = super().download_request  # type: ignore[misc]  # the handler's
        if "egress" not in request.meta or "page_session" in request.meta:  # browser pages use FilteringProxy
            return download(request)
        return self._download(request, self.egresses[request.meta["egress"]], download)

    async def _download(self, request: Request, egress: Egress, download: Download) -> Response:
        try:
            return await download(_through(egress, request))
        except UNCLEAR as error:
            failure = await self._failure(egress, request, error) if egress.can_fail else None
            if failure is None:
                raise
            logger.warning("egress_failed", egress=egress.name, url=request.url, reason=failure.message)
            await self.count(request, failure)
            raise failure from None  # the message of a library's error might contain the proxy's URL

    async def count(self, request: Request, failure: EgressFailed) -> None:
        """Count a failure of an egress, before the request releases its slot and a waiting request uses the egress."""
        target = request.meta.get("target")
        if target is not None:
            await self.lanes().count(target, request.meta.get("source", ""), failure)

    async def _failure(self, egress: Egress, request: Request, error: Exception) -> EgressFailed | None:
        """Return the error to raise if the egress caused the failure. None: the platform may be the cause."""
        if egress.proxy and isinstance(error, UNREACHABLE):
            status = TUNNEL_STATUS.search(str(error)) if isinstance(error, TunnelError) else None
            why = f"the proxy answered with status {status[1]}" if status else "cannot connect to the proxy"
            if isinstance(error, ProxyError):
                why = str(error)
            return egress_failed(egress.name, why)
        url = urlsplit(request.url)
        origin = f"{url.scheme}://{url.netloc}"
        result = await check(egress, origin, verify=self.verify_certificates, seconds=self.connect_seconds)
        return egress_failed(egress.name, result.problem) if result.problem else None


def _through(egress: Egress, request: Request) -> Request:
    """Return a copy of the request with the egress's proxy, credentials and local address, as Scrapy expects them."""
    meta = {**request.meta, "proxy": egress.proxy.url if egress.proxy else None}
    if egress.bind:
        meta["bindaddress"] = str(egress.bind)
    headers = request.headers.copy()
    headers.pop("Proxy-Authorization", None)
    if egress.proxy and egress.proxy.authorization:
        headers["Proxy-Authorization"] = egress.proxy.authorization
    return request.replace(meta=meta, headers=headers)
