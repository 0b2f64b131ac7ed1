"""The download handler, which connects through egresses and ends its transfers when the crawler closes.

A transfer ends ``CLOSE_GRACE`` seconds after the crawler begins to close. Cancelling ``engine.download_async()``
instead would leave the connection open, and other requests that wait for the same download (robots.txt) would never get
a response.

Requests to servers on this machine instead of the platforms (the sandbox, or those in ``PLATFORM_ORIGINS``) get another
origin just before the network, and their responses get the public one. All other code (spiders, middlewares, page
objects, records) sees public URLs only.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from contextlib import suppress
from functools import cache, cached_property
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import structlog
from scrapy import Request
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler, TunnelError
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
)
from scrapy.http import Response
from scrapy.settings import BaseSettings
from twisted.internet.error import ConnectError, ConnectionLost
from twisted.internet.interfaces import IStreamClientEndpoint

from crawler.downloads.connections import LimitedEndpoint, ProxyError, problem_of
from crawler.downloads.egress_setting import Egress, egresses
from crawler.downloads.lane import egress_failed
from crawler.errors import BlockedByPolicy, EgressFailed
from crawler.platforms import platforms
from crawler.targets.shutdown import Closing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twisted.internet.defer import Deferred
    from twisted.web._newclient import HTTP11ClientProtocol

    from crawler.sandbox.server import Sandbox
    from crawler.spiders.base import PlatformSpider


logger = structlog.get_logger(__name__)

UNREACHABLE = (CannotResolveHostError, ConnectError, DownloadConnectionRefusedError, ProxyError, TunnelError)
"""Errors of a connection that could not be opened. If the egress has a proxy, they count as failures of the proxy."""
UNCLEAR = (ConnectionLost, DownloadFailedError, DownloadTimeoutError, *UNREACHABLE)
"""Errors that the egress or the platform may have caused. A test connection through the egress shows which,
except for ``UNREACHABLE`` errors of an egress with a proxy."""
TUNNEL_STATUS = re.compile(r"'status': (\d{3})")


class HttpHandler(HTTP11DownloadHandler):
    """Scrapy's HTTP handler, extended: it connects through the egress of each target.

    It also ends its transfers when the crawler closes, and limits the size of response headers and the time to connect.
    It makes the TLS settings of each host once. Scrapy's handler makes them for each request, even if the request uses
    an open connection, and reads the system's certificates for each new connection.

    In callbacks and middlewares, a request contains only the name of its egress. The handler adds the proxy's URL and
    credentials to a copy of the request.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        settings = crawler.settings
        self.closing = Closing(crawler, settings.getfloat("CLOSE_GRACE"))
        self.local_origins = LocalOrigins(settings)
        self.egresses = {egress.name: egress for egress in egresses(settings)}
        self.connect_seconds = settings.getfloat("CONNECT_TIMEOUT")
        self.verify_certificates = settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES")
        policy = self._contextFactory
        policy.creatorForNetloc = cache(policy.creatorForNetloc)  # type: ignore[method-assign]
        connect = self._pool.getConnection

        def limited(key: Hashable, endpoint: IStreamClientEndpoint) -> Deferred[HTTP11ClientProtocol]:
            return connect(key, LimitedEndpoint(endpoint, self.connect_seconds))

        self._pool.getConnection = limited  # type: ignore[method-assign]

    async def download_request(self, request: Request) -> Response:
        """Download a request from a local server (``LocalOrigins``), or else from the platform.

        It is sent through the egress that ``meta["egress"]`` names, or else directly. Exceptions of Scrapy's handler
        are raised, too.

        Raises:
            BlockedByPolicy: as for ``LocalOrigins.request``.
            EgressFailed: the egress failed before the platform responded.
            ShuttingDown: the crawler is closing, and ``CLOSE_GRACE`` seconds have passed.
        """
        async with self.closing.limit():
            sent = self.local_origins.request(request)
            is_direct = "egress" not in sent.meta or "page_session" in sent.meta  # browser pages use FilteringProxy
            egress = None if is_direct else self.egresses[sent.meta["egress"]]
            copy = _through(egress, sent) if egress else sent
            try:
                response = await super().download_request(copy)
            except UNCLEAR as error:
                problem = await self._problem(egress, sent, error) if egress and egress.proxy else ""
                if egress is None or not problem:
                    raise
                logger.warning("egress_failed", egress=egress.name, url=sent.url, reason=problem)
                await self.count(sent, egress_failed(egress.name, problem))
                # Without a cause: the message of a library's error might contain the proxy's URL.
                raise egress_failed(egress.name, problem) from None
            if "download_latency" in copy.meta:  # Scrapy's AutoThrottle reads it from the spider's request
                request.meta["download_latency"] = copy.meta["download_latency"]
            if sent is not request:
                response = response.replace(url=request.url)
                if location := response.headers.get("Location"):
                    with suppress(ValueError):  # it is no URL
                        public = restored(location.decode("latin-1"), sent, request)
                        response.headers["Location"] = public.encode("latin-1")
            return response

    async def close(self) -> None:
        """Close the connections, and stop the simulated platforms."""
        await super().close()
        await self.local_origins.close()

    async def count(self, request: Request, failure: EgressFailed) -> None:
        """Count a failure of an egress, before the request's slot is released and another request uses the egress."""
        target = request.meta.get("target")
        if target is not None:
            lanes = cast("PlatformSpider", self.crawler.spider).lanes
            await lanes.count(target, request.meta.get("source", ""), failure)

    async def _problem(self, egress: Egress, request: Request, error: Exception) -> str:
        """Return why the egress caused the failure. Empty: the platform may be the cause."""
        if egress.proxy and isinstance(error, UNREACHABLE):
            status = TUNNEL_STATUS.search(str(error)) if isinstance(error, TunnelError) else None
            why = f"the proxy answered with status {status[1]}" if status else "cannot connect to the proxy"
            return str(error) if isinstance(error, ProxyError) else why
        origin = origin_of(request.url)
        return await problem_of(egress, origin, verify=self.verify_certificates, seconds=self.connect_seconds)


def _through(egress: Egress, request: Request) -> Request:
    """Return a copy of the request with the egress's proxy, and credentials, as Scrapy expects them."""
    meta = {**request.meta, "proxy": egress.proxy.url if egress.proxy else None}
    headers = request.headers.copy()
    headers.pop("Proxy-Authorization", None)
    if egress.proxy and egress.proxy.authorization:
        headers["Proxy-Authorization"] = egress.proxy.authorization
    return request.replace(meta=meta, headers=headers)


LOOPBACK = ("127.0.0.1", "localhost", "::1")
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class LocalOrigins:
    """The local origins of a download handler. With ``SANDBOX``, the first request starts the simulated platforms."""

    def __init__(self, settings: BaseSettings) -> None:
        self.is_sandbox = settings.getbool("SANDBOX")
        """Whether no request may leave this machine."""
        self._given = {
            name if name in platforms() else origin_of(name): origin_of(local)
            for name, local in settings.getdict("PLATFORM_ORIGINS").items()
        }
        self._renames = settings.getdict("SANDBOX_RENAMES")
        self._sandbox: Sandbox | None = None

    @cached_property
    def _origins(self) -> dict[str, str]:
        """Public origin -> local origin.

        Raises:
            BlockedByPolicy: with ``SANDBOX``, a server in ``PLATFORM_ORIGINS`` is not on this machine.
        """
        found = self._given
        if self.is_sandbox:
            for local in found.values():
                if urlsplit(local).hostname not in LOOPBACK:
                    raise BlockedByPolicy(f"SANDBOX is set, and {local} in PLATFORM_ORIGINS is not on this machine.")
            from crawler.sandbox.server import Sandbox  # noqa: PLC0415  # most crawls do not use it

            self._sandbox = Sandbox(renames=self._renames)
            found = self._sandbox.start() | found
        of_platforms = {
            public: found[name]
            for name, platform in platforms().items()
            if name in found
            for public in platform.origins
        }
        return of_platforms | found

    def of(self, origins: Iterable[str]) -> frozenset[str]:
        """Return the local origins of public origins."""
        return frozenset(self._origins[origin] for origin in origins if origin in self._origins)

    def request(self, request: Request) -> Request:
        """Return a copy of the request that goes to a local server, without a proxy of the environment.

        With ``SANDBOX``, it has no egress, either. A request that goes to no local server is returned itself.

        Raises:
            BlockedByPolicy: with ``SANDBOX``, the URL has no local server, or as for a server that is not on this
                machine.
        """
        origin = origin_of(request.url)
        local = self._origins.get(origin)
        if local is None:
            if not self.is_sandbox:
                return request
            if urlsplit(request.url).hostname not in LOOPBACK:
                raise BlockedByPolicy(f"SANDBOX is set, and {origin} is not simulated.")
        meta = {**request.meta, "proxy": None}
        if self.is_sandbox:
            meta.pop("egress", None)
        headers = request.headers.copy()
        headers.pop("Proxy-Authorization", None)
        return request.replace(url=moved(request.url, local or origin), meta=meta, headers=headers)

    async def close(self) -> None:
        """Stop the simulated platforms."""
        if self._sandbox:
            await self._sandbox.stop()


def origin_of(url: str) -> str:
    """Return the scheme, host and port of a URL, without the default port of the scheme.

    >>> origin_of("http://127.0.0.1:8903/browse/976759?page=2"), origin_of("https://Shop.example:443/")
    ('http://127.0.0.1:8903', 'https://shop.example')
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower().removesuffix(DEFAULT_PORTS.get(parts.scheme, ':'))}"


def moved(url: str, origin: str) -> str:
    """Return the URL with another origin.

    >>> moved("https://shop.example:443/browse/976759", "http://127.0.0.1:8903")
    'http://127.0.0.1:8903/browse/976759'
    """
    parts = urlsplit(url)
    return origin + url[len(f"{parts.scheme}://{parts.netloc}") :]


def restored(url: str, sent: Request, request: Request) -> str:
    """Return a URL in the response to ``sent``, a copy of ``request`` for a local server, with its public origin.

    URLs of other servers are returned unchanged.
    """
    return moved(url, origin_of(request.url)) if origin_of(url) == origin_of(sent.url) else url
