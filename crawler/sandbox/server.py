"""Serves the simulated platforms over HTTP on loopback, each on its own port."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from importlib import import_module
from math import ceil
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qs

import orjson
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

import crawler.sandbox
from crawler.sandbox.faults import RequestCounts, respond, respond_after
from crawler.sandbox.limits import Windows
from crawler.sandbox.protocol import FakeRequest, as_json
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
        module = import_module(f"crawler.sandbox.{self.name}.site")
        return cast("FakeSite", module.Site(self.sandbox.seed, light=self.sandbox.light))

    def render(self, http_request: Request) -> int:
        """Respond to a request with any HTTP method, because some platforms use POST."""
        request = _fake_request(http_request)
        truth = partial(self.site.expected_record, dict(request.args))
        described: dict[str, Callable[[], dict[str, Any]]] = {"/__truth__": truth, "/__world__": self.site.catalogue}
        if request.path in described:
            send(http_request, _described(described[request.path]))
            return NOT_DONE_YET
        limited = self._limited(http_request, request)
        self._log(http_request, limited=limited is not None)
        answer = partial(respond, http_request, self.site, request, self.request_counts, self.renames)
        if limited:
            answer = partial(send, http_request, limited)
        respond_after(http_request, self.sandbox.latency, answer)
        return NOT_DONE_YET

    def _limited(self, http_request: Request, request: FakeRequest) -> FakeResponse | None:
        """Count a request of a client (an address and a token). Build the response if it is above the limit."""
        client = f"{http_request.getClientAddress().host} {request.headers.get('x-guest-token')}"
        wait = self.windows.count(client) if self.windows else 0
        return self.site.limited(request, ceil(wait)) if wait else None

    def _log(self, request: Request, *, limited: bool) -> None:
        line = {
            "time": time.time(),
            "platform": self.name,
            "client": request.getClientAddress().host,
            "uri": request.uri.decode("latin-1"),
            "token": request.getHeader("x-guest-token"),
            "limited": limited,
        }
        if self.sandbox.log:
            with self.sandbox.log.open("ab") as file:
                file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def _described(payload: Callable[[], dict[str, Any]]) -> FakeResponse:
    try:
        return as_json(payload())
    except (KeyError, ValueError) as error:
        return as_json({"error": f"unknown target: {error}"}, 400)


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
    )


@dataclass
class Sandbox:
    """Serves all simulated platforms in this process."""

    seed: int = 1
    _: KW_ONLY
    latency: float = 0.0
    """Seconds before each response."""
    light: bool = False
    """Whether to serve small pages, so that a benchmark does not measure page generation."""
    tls: bool = False
    """Whether to serve ``https``, with a certificate that the sandbox signs itself."""
    log: Path | None = None
    """A file that gets a line of JSON for each request."""
    limit: Sequence[float] = ()
    """How many requests a client may send in how many seconds. Empty: any number."""
    renames: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Platform -> key -> its other name (``renames.py``)."""
    _ports: dict[str, Any] = field(default_factory=dict, init=False)

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
