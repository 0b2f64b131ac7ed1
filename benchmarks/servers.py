"""The servers that the benchmark of the endpoint compares, and the web server with the pages that they fetch."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from benchmarks.opponents.http import get, post
from benchmarks.stack import BIN, ROOT, Stack, free_port, stack
from crawler.sandbox.tls import loopback_pem

SEARCH = "/v1/scrapers/retail-search-v4"
ORDINARY = "scrapyrt, ordinary spider"
WITH_PAGE_OBJECT = "scrapyrt, ordinary spider with the page object"
OUR_PROJECT = "scrapyrt, this project"
ENDPOINT = "endpoint"
AGAIN = "endpoint, a second time"
BARE = "bare Twisted"
FLOOR = "asyncio floor"

SHOPS = ROOT / "benchmarks/opponents/ordinary"
CALLERS = 64
"""The largest number of callers: so many pages may be fetched at once."""


@dataclass(frozen=True)
class Server:
    """A server under test. ``request`` returns the bytes of a call with a query."""

    name: str
    port: int
    pid: int
    request: Callable[[str], bytes]


@dataclass(frozen=True)
class Pages:
    """The origins of the pages."""

    plain: str
    tls: str


@contextlib.contextmanager
def pages(certificate: Path) -> Iterator[Pages]:
    """Run the web server with the pages, with a new certificate."""
    certificate.write_bytes(loopback_pem("127.0.0.1"))
    port, tls_port = free_port(), free_port()
    with stack(PLATFORM_ORIGINS={"retail": f"http://127.0.0.1:{port}"}) as running:
        command = (sys.executable, "-m", "benchmarks.opponents.pages", str(port), str(tls_port), str(certificate))
        running.start(*command, port=port, ready="/")
        yield Pages(f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}")


class Lineup:
    """Starts servers that fetch their pages from one origin."""

    def __init__(self, running: Stack, origin: str) -> None:
        self._running = running
        self._origin = origin

    def endpoint(self, name: str, *options: str) -> Server:
        """Start the endpoint with options of ``scrapy serve``."""
        port, pid = self._running.endpoint(*options, "-s", f"STORE={self._running.folder / quote(name)}.sqlite3")
        return Server(name, port, pid, self._posting(SEARCH, self._running.headers))

    def scrapyrt(self, name: str, project: str) -> Server:
        """Start scrapyrt with an ordinary project. A call contains the page's URL, as in scrapyrt's documentation."""

        def request(query: str) -> bytes:
            url = f"{self._origin}/search?{urlencode({'q': query})}"
            return get("127.0.0.1", f"/crawl.json?{urlencode({'spider_name': 'search', 'url': url})}")

        return self._scrapyrt(name, request, "--project", project, module="scrapyrt_settings", folder=SHOPS)

    def scrapyrt_with_our_project(self, name: str) -> Server:
        """Start scrapyrt with this project. Its spiders build their requests, so a call contains their arguments."""

        def request(query: str) -> bytes:
            arguments = {"spider_name": "retail", "spider_start": "1", "crawl_args": json.dumps({"query": query})}
            return get("127.0.0.1", f"/crawl.json?{urlencode(arguments)}")

        return self._scrapyrt(name, request, module="scrapyrt_project_settings", folder=ROOT)

    def log(self, server: Server) -> str:
        """Return the log of an endpoint."""
        return (self._running.folder / f"scrapy-{server.port}.log").read_text()

    def module(self, name: str, module: str) -> Server:
        """Start a module of the opponents as a server."""
        port = free_port()
        command = (sys.executable, "-m", f"benchmarks.opponents.{module}", str(port))
        return Server(name, port, self._running.start(*command, port=port, ready="/"), self._posting("/", {}))

    def _scrapyrt(self, name: str, request: Callable[[str], bytes], *options: str, module: str, folder: Path) -> Server:
        port = free_port()
        logs = self._running.folder / quote(name)
        settings = ("-S", f"benchmarks.opponents.{module}", "-s", f"LOG_DIR={logs}")
        command = (str(BIN / "scrapyrt"), "-i", "127.0.0.1", "-p", str(port), *options, *settings)
        return Server(name, port, self._running.start(*command, port=port, ready="/", folder=folder), request)

    @staticmethod
    def _posting(path: str, headers: dict[str, str]) -> Callable[[str], bytes]:
        lines = [f"{name}: {value}" for name, value in headers.items()]
        return lambda query: post("127.0.0.1", path, json.dumps({"query": query}).encode(), *lines)


@contextlib.contextmanager
def lineup(origin: str, certificate: Path) -> Iterator[Lineup]:
    """Yield what starts servers for pages of an origin, without delays. All of them trust the certificate."""
    settings: dict[str, Any] = {
        "PLATFORM_ORIGINS": {"retail": origin},
        "PLATFORM_BUDGETS": {"retail": {"concurrency": CALLERS, "delay": 0.0}},
        "ASYNCIO_EVENT_LOOP": None,  # scrapyrt supports no other; the endpoint installs uvloop anyway
    }
    with stack(**settings) as running:
        running.env["SSL_CERT_FILE"] = str(certificate)
        yield Lineup(running, origin)


def in_turn(servers: list[Server], number: int) -> list[Server]:
    """Return the servers in the order of a round: each round begins with another one."""
    first = number % len(servers)
    return servers[first:] + servers[:first]
