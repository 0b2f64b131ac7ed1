"""The official client of MCP: over standard input and output, over HTTP, and in this process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from crawler.registry import scrapers
from crawler.service.mcp import Tools, connection
from tests import forks
from tests.crawls import ROOT
from tests.service.conftest import Service

T = TypeVar("T")
Use = Callable[[Client], Awaitable[T]]

TIMEOUT = 120
COMMAND = (sys.executable, "-m", "scrapy", "mcp")
SCRAPERS = {scraper.name: scraper for scraper in scrapers().values()}
MAX_BYTES = 20_000
"""The size of a result if the call does not state ``max_kb``."""


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **variables}


@contextmanager
def http_server(service: Service, **variables: str) -> Iterator[str]:
    """Yield the URL of a ``scrapy mcp --http`` for an endpoint. It is terminated at the end."""
    command = [*COMMAND, "--url", service.url, "--http", "127.0.0.1:0"]
    with forks.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables}) as process:
        assert process.stdout
        yield process.stdout.readline().removeprefix("listening on ").strip()
        process.terminate()
        assert process.wait() == 0


def over_stdio(url: str, use: Use[T], *, key: str = "sandbox") -> T:
    """Run ``use`` with the client of a ``scrapy mcp`` that it starts for the endpoint at ``url``."""
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--url", f"{url}/"], cwd=ROOT, env=environment(CRAWLER_MCP_API_KEY=key)
    )

    async def run() -> T:
        async with Client(parameters) as client:
            return await use(client)

    return asyncio.run(run())


def over_http(url: str, use: Use[T], *, headers: dict[str, str], mode: str = "auto") -> T:
    """Run ``use`` with the client of a ``scrapy mcp --http`` at ``url``."""

    async def run() -> T:
        async with (
            httpx2.AsyncClient(
                headers=httpx2.Headers(headers, encoding="latin-1"), timeout=TIMEOUT, trust_env=False
            ) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            return await use(client)

    return asyncio.run(run())


def in_process(url: str, use: Use[T], *, mode: str = "auto") -> T:
    """Run ``use`` with the client of a server in this process, which calls the endpoint at ``url``."""

    async def run() -> T:
        async with connection(url) as endpoint, Client(Tools(endpoint, "sandbox").server(), mode=mode) as client:
            return await use(client)

    return asyncio.run(run())


def call(url: str, tool: str, arguments: dict[str, Any]) -> CallToolResult:
    """Return the result of one call of a tool of a server in this process."""
    return in_process(url, lambda client: client.call_tool(tool, arguments))


def text_of(answer: CallToolResult) -> str:
    (block,) = answer.content
    assert isinstance(block, TextContent)
    return block.text
