"""Serves the simulated platforms on loopback, each at an origin of its own."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import parse_qs

import orjson
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet import reactor as _reactor
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

import crawler.sandbox
from crawler.sandbox.faults import Answer, Ask, Hits, later, play

if TYPE_CHECKING:
    from collections.abc import Callable

PLATFORMS = tuple(sorted(module.name for module in iter_modules(crawler.sandbox.__path__) if module.ispkg))
"""The platforms that are simulated: each has a package."""

LOOPBACK = "127.0.0.1"


class World(Protocol):
    """A simulated platform: pages for people and spiders, the truth for tests."""

    def fault(self, ask: Ask) -> str | None:
        """The fault that a request's target stands for, None for an honest page."""

    def page(self, ask: Ask) -> Answer:
        """Status, headers and body of an honest answer."""

    def damaged(self, name: str, ask: Ask) -> Answer:
        """Status, headers and body of a fault of the platform's own."""

    def truth(self, params: dict[str, Any]) -> dict[str, Any]:
        """The exact record of a target."""

    def catalogue(self) -> dict[str, Any]:
        """What there is to ask for."""


class _Platform(Resource):
    """One platform's whole site."""

    isLeaf = True

    def __init__(self, world: World, latency: float) -> None:
        super().__init__()
        self.world = world
        self.latency = latency
        self.hits = Hits()

    def render(self, request: Request) -> bytes | int:
        """Answers every method: some platforms are asked by POST."""
        ask = _ask(request)
        if ask.path == "/__truth__":
            return self._json(request, lambda: self.world.truth(dict(ask.args)))
        if ask.path == "/__world__":
            return self._json(request, self.world.catalogue)
        if self.latency:
            later(request, self.latency, lambda: play(request, self.world, ask, self.hits))
        else:
            play(request, self.world, ask, self.hits)
        return NOT_DONE_YET

    @staticmethod
    def _json(request: Request, answer: Callable[[], dict[str, Any]]) -> bytes:
        request.setHeader("Content-Type", "application/json")
        try:
            return orjson.dumps(answer())
        except (KeyError, ValueError) as error:
            request.setResponseCode(400)
            return orjson.dumps({"error": f"no such target: {error}"})


def _ask(request: Request) -> Ask:
    query = parse_qs(request.uri.partition(b"?")[2].decode("latin-1"), keep_blank_values=True)
    return Ask(
        path=request.path.decode("latin-1"),
        args={name: values[-1] for name, values in query.items()},
        method=request.method.decode("latin-1"),
        headers={
            name.decode("latin-1").lower(): values[-1].decode("latin-1")
            for name, values in request.requestHeaders.getAllRawHeaders()
        },
        body=request.content.read() if request.content else b"",
    )


class Sandbox:
    """All simulated platforms in this process. ``light`` serves small pages, for measuring what is around them."""

    def __init__(self, seed: int = 1, *, latency: float = 0.0, light: bool = False) -> None:
        self.seed = seed
        self.latency = latency
        self.light = light
        self._ports: dict[str, Any] = {}

    def start(self, port: int = 0) -> dict[str, str]:
        """Listens, and returns the origin of each platform. ``port`` 0 takes any that is free, else it is the first."""
        reactor = cast("Any", _reactor)
        for number, name in enumerate(PLATFORMS):
            world = import_module(f"crawler.sandbox.{name}.site").World(self.seed, light=self.light)
            site = Site(_Platform(world, self.latency))
            site.noisy = False
            self._ports[name] = reactor.listenTCP(port + number if port else 0, site, interface=LOOPBACK)
        return {name: f"http://{LOOPBACK}:{listening.getHost().port}" for name, listening in self._ports.items()}

    async def stop(self) -> None:
        """Closes the ports."""
        for listening in self._ports.values():
            await maybe_deferred_to_future(listening.stopListening())
        self._ports.clear()
