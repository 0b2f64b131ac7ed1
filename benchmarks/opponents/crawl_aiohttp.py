"""A crawl with aiohttp by hand: some workers share one session.

Usage: python -m benchmarks.opponents.crawl_aiohttp TARGETS ORIGIN OUT
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import uvloop
from aiohttp import ClientSession, TCPConnector
from scrapy import Request

from benchmarks.opponents.listing import DOWNLOADS, line, read, requests


async def work(session: ClientSession, waiting: Iterator[Request], feed: BinaryIO) -> None:
    """Fetch requests until none is left."""
    for request in waiting:
        async with session.get(request.url) as response:
            body = await response.read()
        feed.write(line(await read(request.url, response.status, body, request.meta["page_params"])))


async def main(targets: str, origin: str, out: str) -> None:
    """Crawl all targets."""
    waiting = requests(targets, origin)
    with Path(out).open("wb") as feed:  # noqa: ASYNC230  # a file on disk
        async with ClientSession(connector=TCPConnector(limit=DOWNLOADS)) as session:
            await asyncio.gather(*(work(session, waiting, feed) for _ in range(DOWNLOADS)))


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
