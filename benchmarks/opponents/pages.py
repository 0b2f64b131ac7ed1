"""A web server with ready pages, so that the processes under test wait for no rendering.

The pages are search results of the sandbox's shop: a light one (57 kB) and one of real size (0.66 MB). They are the
same for each upper limit of the price, so that many targets have them.

Usage: python -m benchmarks.opponents.pages PORT
"""

from __future__ import annotations

import asyncio
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
LIMIT = b"&max_price="
COUNT = b"/requests"
"""The path whose response is the number of requests for pages so far."""
HTML = "Content-Type: text/html; charset=utf-8"


def page(query: str) -> bytes:
    """Render the page of search results for a query."""
    return Site(light=query == LIGHT).page(FakeRequest("/search", {"q": query}))[2]


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


async def main(port: int) -> None:
    """Serve until the process is terminated."""
    pages = {f"/search?q={quote(query)}".encode(): ok(page(query), HTML) for query in (LIGHT, LARGE)}
    responses = pages | {b"/": ok(b"ready")}
    server = await asyncio.get_running_loop().create_server(partial(Pages, responses), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
