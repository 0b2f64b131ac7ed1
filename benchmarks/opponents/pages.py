"""A web server with ready pages, so that the servers under test wait for no rendering.

The pages are those of the sandbox's shop: search results, a light page (57 kB) and one of real size (0.66 MB), and the
light pages of a category, which are the same for each upper limit of the price, so that many targets have them. One
port serves them over HTTP, uncompressed; the other one over TLS, with gzip.

Usage: python -m benchmarks.opponents.pages PORT TLS_PORT CERTIFICATE
"""

from __future__ import annotations

import asyncio
import gzip
import ssl
import sys
from functools import partial
from typing import ClassVar
from urllib.parse import quote

import uvloop

from benchmarks.opponents.http import Messages, ok
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site

LIGHT, LARGE = "honey", "gluten-free"
"""The queries of the pages. The sandbox lays out the prices of both as the platform does since July 2026."""
CATEGORY, CATEGORY_PAGES = "976759", 9
LIMIT = b"max_price="
COUNT = b"/requests"
"""The path whose response is the number of requests for pages so far."""
HTML = "Content-Type: text/html; charset=utf-8"


def page(query: str) -> bytes:
    """Render the page of search results for a query."""
    return Site(light=query == LIGHT).page(FakeRequest("/search", {"q": query}))[2]


def category_pages() -> dict[bytes, bytes]:
    """Render the pages of the category. The keys are their paths, up to the limit of the price."""
    site = Site(light=True)
    found = {}
    for number in range(1, CATEGORY_PAGES + 1):
        path, query = f"/browse/{CATEGORY}", {} if number == 1 else {"page": str(number)}
        found[f"{path}?{'' if number == 1 else f'page={number}&'}".encode()] = site.page(FakeRequest(path, query))[2]
    return found


class Pages(Messages):
    """Responds to each request with its page."""

    requests: ClassVar = 0

    def __init__(self, responses: dict[bytes, bytes]) -> None:
        super().__init__()
        self.responses = responses

    def message_received(self, head: bytes, body: bytes) -> None:
        path = head.split(b" ", 2)[1].partition(LIMIT)[0]
        if path == COUNT:
            self.transport.write(ok(str(Pages.requests).encode()))
            return
        Pages.requests += 1
        self.transport.write(self.responses[path])


async def main(port: int, tls_port: int, certificate: str) -> None:
    """Serve until the process is terminated."""
    pages = {f"/search?q={quote(query)}".encode(): page(query) for query in (LIGHT, LARGE)}
    pages |= category_pages()
    plain = {path: ok(body, HTML) for path, body in pages.items()} | {b"/": ok(b"ready")}
    packed = {path: ok(gzip.compress(body), HTML, "Content-Encoding: gzip") for path, body in pages.items()}
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()
    await loop.create_server(partial(Pages, plain), "127.0.0.1", port)
    server = await loop.create_server(partial(Pages, packed), "127.0.0.1", tls_port, ssl=tls)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
