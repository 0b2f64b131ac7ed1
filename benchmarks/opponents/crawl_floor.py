"""A crawl with protocols of asyncio on uvloop, and no more HTTP than this needs.

Usage: python -m benchmarks.opponents.crawl_floor TARGETS ORIGIN OUT
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import uvloop
from scrapy import Request

from benchmarks.opponents.floor import Platform
from benchmarks.opponents.listing import DOWNLOADS, line, read, requests


async def work(platform: Platform, waiting: Iterator[Request], feed: BinaryIO) -> None:
    """Fetch requests until none is left."""
    for request in waiting:
        body = await platform.get(request.url.removeprefix(platform.origin))
        feed.write(line(await read(request.url, 200, body, request.meta["page_params"])))


async def main(targets: str, origin: str, out: str) -> None:
    """Crawl all targets."""
    platform, waiting = Platform(origin), requests(targets, origin)
    with Path(out).open("wb") as feed:  # noqa: ASYNC230  # a file on disk
        await asyncio.gather(*(work(platform, waiting, feed) for _ in range(DOWNLOADS)))


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
