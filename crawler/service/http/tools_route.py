"""The route ``/mcp``: the scrapers as tools for language models."""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import structlog

from crawler.errors import ScraperNotFound, ShuttingDown
from crawler.service.calls.envelope import Answer, Call, raw_response
from crawler.service.http.body import require_method

if TYPE_CHECKING:
    from twisted.web.server import Request

    from crawler.mcp.http import HttpTools

logger = structlog.get_logger(__name__)

PATH = "/mcp"
PASSED = ("Accept", "Content-Type", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id")
"""The request headers that are passed to the MCP server."""


def api_key(call: Call) -> str | None:
    """Return the API key of a request of an MCP client, most of which send it as ``Authorization: Bearer``."""
    scheme, _, token = call.request_headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else call.request_headers.get("x-api-key")


class ToolsRoute:
    """Answers MCP clients.

    The library is imported for the first client, in a thread, because the import takes a second.
    """

    def __init__(self, address: str) -> None:
        """``address``: the URL at which the tools call this endpoint. "": the endpoint has no tools."""
        self._address = address
        self._tools: asyncio.Task[HttpTools] | None = None
        self._is_closing = False

    async def answer(self, request: Request, call: Call, key: str) -> Answer:
        """Respond to an authenticated request.

        Raises:
            MethodNotAllowed: the request is not a POST. Without sessions, there are no streams of notifications.
            ScraperNotFound: the endpoint has no tools.
            ShuttingDown: the service is shutting down.
        """
        if not self._address or find_spec("mcp") is None:
            raise ScraperNotFound("This endpoint has no MCP: it needs the extra 'mcp'.")
        require_method(request, "POST")
        if self._is_closing:
            raise ShuttingDown("The service is shutting down; retry the call.", retry_after=5)
        call.is_counted = False
        if self._tools is None or (self._tools.done() and self._tools.exception()):
            self._tools = asyncio.ensure_future(self._load())
        tools = await asyncio.shield(self._tools)
        assert request.content is not None
        sent = {name: call.request_headers[name.lower()] for name in PASSED if name.lower() in call.request_headers}
        status, headers, body = await tools.answer(request.content.read(), sent, key)
        return raw_response(call, headers.get("content-type", "application/json"), body, status=status)

    async def close(self) -> None:
        """End the calls of tools in progress. Tools call this endpoint, so its shutdown would wait for the tools."""
        self._is_closing = True
        if self._tools is not None:
            try:
                await (await self._tools).close()
            except Exception:
                logger.exception("tools_failed")  # the service must still store its usage

    async def _load(self) -> HttpTools:
        module = await asyncio.to_thread(import_module, "crawler.mcp.http")
        tools: HttpTools = module.HttpTools(self._address)
        await tools.opened()
        return tools
