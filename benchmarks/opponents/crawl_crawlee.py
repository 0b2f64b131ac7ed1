"""A crawl with crawlee-python, as its documentation shows it, with storages in memory.

Usage: python -m benchmarks.opponents.crawl_crawlee TARGETS ORIGIN OUT
"""

from __future__ import annotations

import sys
from pathlib import Path

import uvloop
from crawlee import ConcurrencySettings, Request
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

from benchmarks.opponents.work import DOWNLOADS, line, read, requests

FIXED = ConcurrencySettings(min_concurrency=DOWNLOADS, max_concurrency=DOWNLOADS, desired_concurrency=DOWNLOADS)


async def main(targets: str, origin: str, out: str) -> None:
    """Crawl all targets.

    Raises:
        SystemExit: a request failed.
    """
    crawler = HttpCrawler(
        storage_client=MemoryStorageClient(), concurrency_settings=FIXED, configure_logging=False, max_request_retries=0
    )

    async def handle(context: HttpCrawlingContext) -> None:
        response, page_params = context.http_response, dict(context.request.user_data)
        page_params.pop("__crawlee", None)
        await context.push_data(
            await read(context.request.url, response.status_code, await response.read(), page_params)
        )

    crawler.router.default_handler(handle)
    found = await crawler.run(
        [
            Request.from_url(each.url, always_enqueue=True, user_data=each.meta["page_params"])
            for each in requests(targets, origin)
        ]
    )
    if found.requests_failed:
        raise SystemExit(f"{found.requests_failed} requests failed")
    with Path(out).open("wb") as feed:  # noqa: ASYNC230  # a file on disk
        async for record in (await crawler.get_dataset()).iterate_items():
            feed.write(line(dict(record)))


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
