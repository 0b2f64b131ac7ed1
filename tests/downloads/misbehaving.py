"""A server on loopback whose responses break HTTP, and the ``scrapy`` process that downloads them.

``python -m tests.downloads.misbehaving`` reads ``Case.as_dict()`` of each case from its input, downloads them with the
project's download handler, and prints the outcomes as its last line. Scrapy's retries are disabled, so each outcome is
that of a single download.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from OpenSSL import SSL
from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, Crawler
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from crawler.components import COMPONENTS
from crawler.downloads.shared_state import SharedState
from crawler.sandbox.tls import loopback_pem
from crawler.targets.tracker import as_scrape_error
from tests.http_server import free_port, in_thread

ROOT = Path(__file__).parents[2]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
MAX_BODY = 100_000
SETTINGS = {
    "CONNECT_TIMEOUT": 90,
    "DOWNLOAD_TIMEOUT": 120,
    "DOWNLOAD_MAXSIZE": MAX_BODY,
    "CLOSE_GRACE": 0,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "COOKIES_ENABLED": False,
    "DEFAULT_REQUEST_HEADERS": {},
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "WARNING",
}
EGRESS = "misbehaving"


@dataclass
class Case:
    """A case: consecutive downloads from a server that serves nothing else."""

    serve: Serve
    """Serves one request. The connection is then closed, unless the function raises ``Kept``."""
    downloads: int = 1
    tls: bool = False
    """Whether the server uses TLS, with a self-signed certificate for another name."""
    as_proxy: bool = False
    """Whether the server is the proxy of an egress, through which another host is requested."""
    listens: bool = True
    """Whether the server accepts connections."""
    path: str = "/"
    request: dict[str, Any] = field(default_factory=dict)
    """Arguments of the ``scrapy.Request`` in addition to the URL."""
    settings: dict[str, Any] = field(default_factory=dict)
    port: int = 0
    heads: list[str] = field(default_factory=list)
    """The request lines and headers of the received requests."""
    connections: int = 0

    @asynccontextmanager
    async def listening(self, context: ssl.SSLContext) -> AsyncIterator[None]:
        """Listen on a free port, or only reserve it: a port without a listener refuses connections."""
        if not self.listens:
            self.port = free_port()
            yield
            return
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # TLS handshakes that the client ends
        tls = context if self.tls else None
        server = await asyncio.start_server(self.accept, "127.0.0.1", 0, ssl=tls, limit=2**20)
        self.port = server.sockets[0].getsockname()[1]
        yield
        server.close()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                self.heads.append(head)
                if "content-length: " in head.lower():
                    await reader.readexactly(int(head.lower().partition("content-length: ")[2].split()[0]))
                try:
                    await self.serve(reader, writer)
                except Kept:
                    continue
                break

    def as_dict(self) -> dict[str, Any]:
        """The part of the case that the downloading process needs."""
        scheme = "https" if self.tls else "http"
        settings = SETTINGS | self.settings
        url = f"{scheme}://127.0.0.1:{self.port}{self.path}"
        request = {"meta": {}, **self.request}
        if self.as_proxy:
            url = "https://platform.example/"
            request["meta"] = request["meta"] | {"egress": EGRESS}
            proxy = f"http://operator:secret@127.0.0.1:{self.port}"
            settings |= {"EGRESSES": [{"name": EGRESS, "proxy": proxy}]}
        return {"url": url, "request": request, "downloads": self.downloads, "settings": settings}


class Kept(Exception):
    """Raised by a server to serve the next request of the same connection."""


@contextmanager
def serving(cases: list[Case], certificate: Path) -> Iterator[None]:
    """Serve the cases in a thread."""
    certificate.write_bytes(loopback_pem("127.0.0.2"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    with in_thread(*(case.listening(context) for case in cases)):
        yield


def outcomes(cases: list[Case], loop: str | None) -> tuple[list[list[str]], int, str]:
    """Download the cases at the same time.

    Return their outcomes, the number of TLS connections with the context of an earlier one, and what is logged.
    """
    command = [sys.executable, "-X", "dev", "-m", __name__, loop or ""]
    given = json.dumps([case.as_dict() for case in cases])
    run = subprocess.run(command, input=given, capture_output=True, text=True, cwd=ROOT, check=True, timeout=300)
    found, with_context = json.loads(run.stdout.splitlines()[-1])
    return found, with_context, run.stderr


class Downloading(Spider):
    """Downloads one case."""

    name = "downloading"
    shared = SharedState()  # as PlatformSpider has it
    case: dict[str, Any]
    found: list[str]

    async def start(self) -> Any:
        for _ in range(self.case["downloads"]):
            self.found.append(await self._outcome(Request(self.case["url"], **self.case["request"])))
        return
        yield

    async def _outcome(self, request: Request) -> str:
        assert self.crawler.engine is not None
        try:
            response = await self.crawler.engine.download_async(request)
        except Exception as error:  # noqa: BLE001  # the outcome of the download
            typed = as_scrape_error(error)
            retried = isinstance(error, tuple(map(load_object, self.settings.getlist("RETRY_EXCEPTIONS"))))
            return f"{typed.reason}: {typed.message}{' Retried.' if retried else ''}"
        latency = 0 < request.meta["download_latency"] < 300
        flags = "".join(f", {flag}" for flag in response.flags)
        headers = b", ".join(
            name + b": " + (b" | ".join(values) if len(values) < 10 else b"%d values" % len(values))
            for name, values in response.headers.items()
        )
        return f"{response.status} {headers!r} {response.body[:20]!r}{flags}{'' if latency else ', no latency'}"


def main(loop: str) -> None:
    """Download the cases, and print their outcomes and the number of TLS connections with a used context."""
    contexts: list[SSL.Context] = []
    connect = SSL.Connection.__init__

    def counted(connection: SSL.Connection, context: SSL.Context, socket: Any = None) -> None:
        contexts.append(context)
        connect(connection, context, socket)

    SSL.Connection.__init__ = counted  # type: ignore[assignment,method-assign]
    process = AsyncCrawlerProcess(Settings({"ASYNCIO_EVENT_LOOP": loop or None, "LOG_LEVEL": "WARNING"}))
    cases = json.load(sys.stdin)
    found: list[list[str]] = [[] for _ in cases]
    for case, own in zip(cases, found, strict=True):
        handlers = {scheme: COMPONENTS["DOWNLOAD_HANDLERS"][scheme] for scheme in ("http", "https")}
        settings = Settings({"ASYNCIO_EVENT_LOOP": loop or None, "DOWNLOAD_HANDLERS": handlers, **case["settings"]})
        process.crawl(Crawler(Downloading, settings), case=case, found=own)
    process.start()
    sys.stdout.write(json.dumps([found, len(contexts) - len(set(contexts))]))


if __name__ == "__main__":
    main(sys.argv[1])
