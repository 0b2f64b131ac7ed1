"""``/mcp``: the tools over Streamable HTTP, in a process of the endpoint.

The server has no sessions, and each request contains an API key. So any process can handle any request of a client.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import INTERNAL_ERROR
from pydantic_core import from_json

from crawler.mcp.endpoint import EndpointClient
from crawler.mcp.server import Scrapers, error_of, refusal_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Message

JSON = {"content-type": "application/json"}
ENDED = "The service is shutting down, and has ended the tool; retry the call."


class HttpTools:
    """Answers requests of MCP clients. The tools call the endpoint at ``url`` with the API key of the request."""

    def __init__(self, url: str) -> None:
        for library in ("mcp", "httpx2"):  # they log several lines for each request
            logging.getLogger(library).setLevel(logging.WARNING)
        self._client = EndpointClient(url, "", trust_env=False)
        server = Scrapers(self._client).server()
        self._manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        self._closing = asyncio.Event()
        self._is_open = asyncio.Event()
        self._main = asyncio.ensure_future(self._run())

    async def opened(self) -> None:
        """Wait until requests can be answered. If the start failed, raise its exception."""
        await self._is_open.wait()
        if self._main.done():
            await self._main

    async def answer(self, body: bytes, headers: Mapping[str, str], api_key: str) -> tuple[int, dict[str, str], bytes]:
        """Answer a POST request with this body. Return the status, the headers and the body of the response.

        If the task is cancelled, the tool in progress is cancelled, too.
        """
        if refused := _refused(body):
            return 400, JSON, refused
        sent = {**{name.lower(): value for name, value in headers.items()}, "x-api-key": api_key}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()],
        }
        answered: list[Any] = []
        received: list[Message] = [{"type": "http.request", "body": body}]

        async def receive() -> Message:
            if not received:
                await asyncio.Future()  # a client that disconnects cancels the task
            return received.pop()

        async def send(message: Message) -> None:
            answered.append(message)

        await self._manager.handle_request(scope, receive, send)
        if not answered or (self._closing.is_set() and answered[0]["status"] >= HTTPStatus.BAD_REQUEST):
            error = error_of(body, INTERNAL_ERROR, ENDED)  # the library's own error lacks the id of the request
            return 503, JSON, b"" if error is None else error.model_dump_json(by_alias=True).encode()
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in answered[0]["headers"]}
        return answered[0]["status"], named, b"".join(message.get("body", b"") for message in answered[1:])

    async def close(self) -> None:
        """End the tools in progress, and close the connections."""
        self._closing.set()
        await self._main

    async def _run(self) -> None:
        try:
            async with self._client, self._manager.run():  # both must be entered and left in the same task
                self._is_open.set()
                await self._closing.wait()
        finally:
            self._is_open.set()  # so that opened() raises the error


def _refused(body: bytes) -> bytes | None:
    """Return the error response to a body that is not valid JSON, with the request's id, which the library's lacks.

    None: the body is valid, or its id cannot be read.
    """
    try:
        from_json(body)
    except ValueError as error:
        refusal = refusal_of(body, f"Invalid JSON: {error}")
        return None if refusal is None else refusal.model_dump_json(by_alias=True).encode()
    return None
