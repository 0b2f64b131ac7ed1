"""Serves the simulated platforms over HTTP on loopback, each on its own port."""

from __future__ import annotations

import time
from functools import cached_property, partial
from importlib import import_module
from math import ceil
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs

import orjson
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

import crawler.sandbox
from crawler.sandbox.faults import RequestCounts, respond, respond_after
from crawler.sandbox.limits import Windows
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.renames import Renames
from crawler.sandbox.transport import send

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from crawler.sandbox.protocol import FakeResponse, FakeSite

PLATFORMS = tuple(sorted(module.name for module in iter_modules(crawler.sandbox.__path__) if module.ispkg))
"""The names of the simulated platforms. Each name is also the name of a package in this folder."""

LOOPBACK = "127.0.0.1"


class _Platform(Resource):
    """The resource that responds to requests for all paths of one platform."""

    isLeaf = True

    def __init__(self, name: str, sandbox: Sandbox) -> None:
        super().__init__()
        self.name = name
        self.sandbox = sandbox
        self.windows = Windows(*sandbox.limit) if sandbox.limit else None
        self.renames = Renames(sandbox.renames.get(name, {}))
        self.request_counts = RequestCounts()

    @cached_property
    def site(self) -> FakeSite:
        """The simulated platform's site. It is built at the first request, because most runs use one platform only."""
        site: FakeSite = import_module(f"crawler.sandbox.{self.name}.site").Site(
            self.sandbox.seed, light=self.sandbox.light
        )
        return site

    def render(self, http_request: Request) -> bytes | int:
        """Respond to a request with any HTTP method, because some platforms use POST."""
        request = _fake_request(http_request)
        if request.path == "/__truth__":
            return self._json(http_request, lambda: self.site.expected_record(dict(request.args)))
        if request.path == "/__world__":
            return self._json(http_request, self.site.catalogue)
        limited = self._limited(http_request, request)
        if self.sandbox.log:
            self.sandbox.log.write(self.name, http_request, limited=limited is not None)
        answer = partial(respond, http_request, self.site, request, self.request_counts, self.renames)
        if limited:
            answer = partial(send, http_request, limited)
        if self.sandbox.latency:
            respond_after(http_request, self.sandbox.latency, answer)
        else:
            answer()
        return NOT_DONE_YET

    def _limited(self, http_request: Request, request: FakeRequest) -> FakeResponse | None:
        """Count a request of a client (an address and a token). Build the response if it is above the limit."""
        if self.windows is None:
            return None
        wait = self.windows.count(f"{http_request.getClientAddress().host} {request.headers.get('x-guest-token')}")
        return self.site.limited(request, ceil(wait)) if wait else None

    @staticmethod
    def _json(request: Request, payload: Callable[[], dict[str, Any]]) -> bytes:
        request.setHeader("Content-Type", "application/json")
        try:
            return orjson.dumps(payload())
        except (KeyError, ValueError) as error:
            request.setResponseCode(400)
            return orjson.dumps({"error": f"unknown target: {error}"})


def _fake_request(request: Request) -> FakeRequest:
    query = parse_qs(request.uri.partition(b"?")[2].decode("latin-1"), keep_blank_values=True)
    return FakeRequest(
        path=request.path.decode("latin-1"),
        args={name: values[-1] for name, values in query.items()},
        method=request.method.decode("latin-1"),
        headers={
            name.decode("latin-1").lower(): values[-1].decode("latin-1")
            for name, values in request.requestHeaders.getAllRawHeaders()
        },
        body=request.content.read() if request.content else b"",
        scheme="https" if request.isSecure() else "http",
    )


class RequestLog:
    """Writes a line of JSON for each request: time, platform, client, URL, token, and whether the rate is exceeded."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")

    def write(self, platform: str, request: Request, *, limited: bool) -> None:
        """Write the line of a request."""
        line = {
            "time": time.time(),
            "platform": platform,
            "client": request.getClientAddress().host,
            "uri": request.uri.decode("latin-1"),
            "token": request.getHeader("x-guest-token"),
            "limited": limited,
        }
        self._file.write(orjson.dumps(line).decode() + "\n")
        self._file.flush()


class Sandbox:
    """Serves all simulated platforms in this process.

    ``latency``: seconds before each response. ``light``: serve small pages, so that a benchmark does not measure page
    generation. ``tls``: serve ``https``, with a certificate that the sandbox signs itself. ``log``: the file of a
    ``RequestLog``. ``limit``: how many requests a client may send in how many seconds. ``renames``: platform -> key ->
    its other name (``renames.py``).
    """

    def __init__(  # noqa: PLR0913  # the options of the command
        self,
        seed: int = 1,
        *,
        latency: float = 0.0,
        light: bool = False,
        tls: bool = False,
        log: Path | None = None,
        limit: Sequence[float] = (),
        renames: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> None:
        self.seed = seed
        self.latency = latency
        self.light = light
        self.tls = tls
        self.log = RequestLog(log) if log else None
        self.limit = limit
        self.renames = renames
        self._ports: dict[str, Any] = {}

    def start(self, port: int = 0) -> dict[str, str]:
        """Start listening, and return each platform's origin.

        The platforms get consecutive ports that begin with ``port``. If ``port`` is 0, each gets any free port.
        """
        from twisted.internet import reactor  # noqa: PLC0415  # the import installs a reactor if there is none

        listening = cast("Any", reactor)
        scheme, listen = "http", listening.listenTCP
        if self.tls:
            from crawler.sandbox.tls import loopback_certificate  # noqa: PLC0415  # slow to import, and rarely used

            scheme, listen = "https", partial(listening.listenSSL, contextFactory=loopback_certificate(LOOPBACK))
        for number, name in enumerate(PLATFORMS):
            factory = Site(_Platform(name, self))
            factory.noisy = False
            self._ports[name] = listen(port + number if port else 0, factory, interface=LOOPBACK)
        return {name: f"{scheme}://{LOOPBACK}:{listening.getHost().port}" for name, listening in self._ports.items()}

    async def stop(self) -> None:
        """Stop listening, and close the ports."""
        for listening in self._ports.values():
            await maybe_deferred_to_future(listening.stopListening())
        self._ports.clear()
