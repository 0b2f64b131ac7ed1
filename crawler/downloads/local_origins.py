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
