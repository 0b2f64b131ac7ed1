"""The floor of a call: protocols of asyncio on uvloop as server and as client, the same page object and validation.

Usage: python -m benchmarks.opponents.floor PORT
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import zlib
from urllib.parse import urlsplit

import orjson
import uvloop

from benchmarks.opponents.http import Client, Messages, get, ok
from benchmarks.opponents.scrape import page_request, platform_origin, read

GZIP = 16 + zlib.MAX_WBITS


class Platform:
    """The connections to the platform."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.url = urlsplit(origin)
        self.tls = ssl.create_default_context() if self.url.scheme == "https" else None
        self.idle: list[Client] = []

    async def get(self, path: str) -> bytes:
        """Return the body of a page."""
        connection = self.idle.pop() if self.idle else await self._connect()
        head, body = await connection.send(get(self.url.netloc, path, "Accept-Encoding: gzip"))
        self.idle.append(connection)
        return zlib.decompress(body, GZIP) if b"Content-Encoding: gzip" in head else body

    async def _connect(self) -> Client:
        host, port = self.url.hostname or "", self.url.port or 0
        return (await asyncio.get_running_loop().create_connection(Client, host, port, ssl=self.tls))[1]


class Search(Messages):
    """``POST`` with the params of a search returns its data."""

    def __init__(self, platform: Platform) -> None:
        super().__init__()
        self.platform = platform

    def message_received(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"POST"):
            self.task = asyncio.ensure_future(self._respond(body))
        else:
            self.transport.write(ok(b"ready"))

    async def _respond(self, params: bytes) -> None:
        request = page_request(self.platform.origin, params)
        body = await self.platform.get(request.url.removeprefix(self.platform.origin))
        data = await read(request.url, 200, body, request.meta["page_params"])
        self.transport.write(ok(orjson.dumps({"data": data}), "Content-Type: application/json"))


async def main() -> None:
    """Serve until the process is terminated."""
    platform = Platform(platform_origin())
    server = await asyncio.get_running_loop().create_server(lambda: Search(platform), "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
