"""Calls of tools with the official client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp import Client
from mcp.types import CallToolResult, TextContent, TextResourceContents, Tool

from crawler.mcp.endpoint import EndpointClient
from crawler.mcp.server import Scrapers
from crawler.registry import scrapers

T = TypeVar("T")
TIMEOUT = 120
SCRAPERS = {scraper.name: scraper for scraper in scrapers().values()}
ENTRY = {"name": "a-scraper", "summary": "A shop.", "params_schema": {"type": "object"}, "example": {}}
"""A scraper in the catalogue of another endpoint."""
MAX_BYTES = 20_000
"""The size of a result if the call does not state ``max_kb``."""


def with_client(url: str, use: Callable[[Client], Awaitable[T]], *, key: str = "sandbox", mode: str = "auto") -> T:
    """Run ``use`` with the official client of an MCP server in this process, which calls the endpoint at ``url``."""

    async def run() -> T:
        async with EndpointClient(url, key) as endpoint, Client(Scrapers(endpoint).server(), mode=mode) as client:
            return await use(client)

    return asyncio.run(run())


def call(url: str, tool: str, arguments: dict[str, Any], *, key: str = "sandbox") -> CallToolResult:
    """Return the result of one call of a tool. The client validates the result against the tool's schema."""
    return with_client(url, lambda client: client.call_tool(tool, arguments), key=key)


def text_of(answer: CallToolResult) -> str:
    (block,) = answer.content
    assert isinstance(block, TextContent)
    return block.text


def tools_of(url: str) -> dict[str, Tool]:
    async def listed(client: Client) -> dict[str, Tool]:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    return with_client(url, listed)


def schemas_of(url: str) -> dict[str, Any]:
    """Return the schemas of the records, by the names of their scrapers, from the resources of a server."""

    async def read(client: Client) -> dict[str, Any]:
        found = {}
        for each in (await client.list_resources()).resources:
            (contents,) = (await client.read_resource(each.uri)).contents
            assert isinstance(contents, TextResourceContents)
            found[each.name] = json.loads(contents.text)
        return found

    return with_client(url, read)
