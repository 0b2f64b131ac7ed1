"""Sends requests to servers on this machine instead of the platforms: the sandbox, or those in ``PLATFORM_ORIGINS``.

The download handlers replace the origin of a request just before the network, and restore it in the response. All other
code (spiders, middlewares, page objects, records) sees public URLs only.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.settings import BaseSettings

from crawler.errors import BlockedByPolicy
from crawler.platforms import platforms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawler.sandbox.server import Sandbox

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class LocalOrigins:
    """The local origins of a download handler. With ``SANDBOX``, the first request starts the simulated platforms."""

    def __init__(self, settings: BaseSettings) -> None:
        self.is_sandbox = settings.getbool("SANDBOX")
        """Whether no request may leave this machine."""
        self._given = settings.getdict("PLATFORM_ORIGINS")
        self._renames = settings.getdict("SANDBOX_RENAMES")
        self._sandbox: Sandbox | None = None

    @cached_property
    def _origins(self) -> dict[str, str]:
        """Public origin -> local origin."""
        found = self._given
        if self.is_sandbox:
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
        """Return a copy of the request that goes to a local server, without a proxy; the same request if it has none.

        Raises:
            BlockedByPolicy: with ``SANDBOX``, the URL has no local server.
        """
        origin = origin_of(request.url)
        local = self._origins.get(origin)
        if local is None:
            if self.is_sandbox and urlsplit(request.url).hostname not in LOOPBACK:
                raise BlockedByPolicy(f"SANDBOX is set, and {origin} is not simulated.")
            return request
        meta = {**request.meta, "proxy": None}
        if self.is_sandbox:
            meta.pop("egress", None)
        headers = request.headers.copy()
        headers.pop("Proxy-Authorization", None)
        return request.replace(url=local + request.url[len(origin) :], meta=meta, headers=headers)

    async def close(self) -> None:
        """Stop the simulated platforms."""
        if self._sandbox:
            await self._sandbox.stop()


def origin_of(url: str) -> str:
    """Return the scheme, host and port of a URL.

    >>> origin_of("http://127.0.0.1:8903/browse/976759?page=2")
    'http://127.0.0.1:8903'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def moved(url: str, origin: str) -> str:
    """Return the URL with another origin.

    >>> moved("https://shop.example/browse/976759", "http://127.0.0.1:8903")
    'http://127.0.0.1:8903/browse/976759'
    """
    return origin + url[len(origin_of(url)) :]
