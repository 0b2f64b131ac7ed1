"""``scrapy mcp`` waits for calls, and cancels the calls of cancelled tools."""

from __future__ import annotations

import json
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import anyio
import anyio.to_thread
import pytest
from mcp import Client
from mcp.types import CallToolRequestParams, CallToolResult

from crawler.mcp.endpoint import EndpointClient
from crawler.mcp.server import Scrapers
from crawler.service.clients.key_store import KeyStore
from tests.hanging_platform import hanging_platform
from tests.mcp.clients import ENTRY, TIMEOUT, call, with_client
from tests.service.client import call as http_call
from tests.service.conftest import running

REQUEST_ID = "req_01ARZ3NDEKTSV4RRFFQ69G5FAV"


@dataclass
class Endpoint:
    """A stub of the endpoint. The test completes its calls."""

    completed: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and ``Prefer`` of each request."""
    waiting: threading.Event = field(default_factory=threading.Event)
    """Set when a client waits for a response."""
    disconnected: threading.Event = field(default_factory=threading.Event)
    """Set when the client of a call has closed its connection."""

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        """Respond to a request."""
        if request.path == "/openapi.json":
            self.send(request, 404, b"{}", {})
        elif request.path == "/v1/scrapers":
            self.send(request, 200, json.dumps({"scrapers": [ENTRY]}).encode(), {})
        else:
            self.respond(request)

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        self.requests.append((request.command, request.path, request.headers["Prefer"]))
        self.waiting.set()
        # The client sends nothing more: its connection becomes readable when it is closed.
        while not self.completed.is_set() and not select.select([request.connection], [], [], 0.02)[0]:
            pass
        if self.completed.is_set():
            self.send(request, 200, self.envelope("OK", {"name": "a shop"}), {"X-Partial": "rows; reason=timeout"})
        else:
            self.disconnected.set()

    @staticmethod
    def envelope(code: str, data: Any) -> bytes:
        status = {"code": code, "message": f"{code}: position 7 in the queue.", "retryable": False}
        success = {"request_id": REQUEST_ID, "success": data is not None, "data": data, "status": status}
        return json.dumps(success | {"error": None, "meta": {"billable": True}}).encode()

    @staticmethod
    def send(request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[str]:
    """Serve the endpoint in a thread, and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            endpoint.handle(self)

        do_GET = do_POST = do  # noqa: N815  # the standard library's names

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            endpoint.completed.set()
            server.shutdown()
            thread.join()


async def scrape(client: Client, on_progress: Callable[[str | None], None]) -> CallToolResult:
    async def report(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001  # by keyword
        on_progress(message)

    return await client.call_tool("a-scraper", {"query": "x"}, progress_callback=report)


@pytest.mark.parametrize("value", [float("nan"), "\ud800"], ids=["nan", "surrogate"])
def test_params_that_are_not_json_are_a_typed_result(value: object) -> None:
    async def work() -> CallToolResult:
        async with EndpointClient("http://127.0.0.1:9", "x", trust_env=False) as client:
            params = CallToolRequestParams(name="a-scraper", arguments={"query": value})
            context = Mock(session=Mock(report_progress=AsyncMock()), request=None)
            return await Scrapers(client).call_tool(context, params)

    answer = anyio.run(work).structured_content
    assert answer is not None
    assert answer["status"]["code"] == "INVALID_REQUEST"
    assert answer["error"]["message"].startswith("The arguments cannot be written as JSON")


def test_a_call_waits_for_the_longest_timeout() -> None:
    endpoint = Endpoint()
    with serving(endpoint) as url:
        answer = with_client(url, lambda client: scrape(client, lambda _: endpoint.completed.set()))
    assert answer.structured_content["data"] == {"name": "a shop"}
    assert answer.structured_content["partial"] == "rows; reason=timeout"
    assert endpoint.requests == [("POST", "/v1/scrapers/a-scraper", "wait=120")]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_cancelling_a_tool_cancels_its_call(mode: str) -> None:
    endpoint = Endpoint()

    async def cancel(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(scrape, client, lambda _: None)
            assert await anyio.to_thread.run_sync(endpoint.waiting.wait, TIMEOUT)
            group.cancel_scope.cancel()
        # The connection to the server is still open: only the call has ended.
        assert await anyio.to_thread.run_sync(endpoint.disconnected.wait, TIMEOUT)

    with serving(endpoint) as url:
        with_client(url, cancel, mode=mode)


def test_cancelling_a_tool_cancels_its_call_of_a_real_endpoint(tmp_path: Path) -> None:
    """The tool is cancelled while the platform does not respond. The endpoint counts the call as ``CLIENT_GONE``."""
    key = KeyStore(tmp_path / "keys.sqlite3").create("acme")
    headers = {"X-API-Key": key}

    async def cancel(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "retail-search-v4", {"query": "hang"})
            await anyio.to_thread.run_sync(platform.wait_until, lambda seen: seen.unanswered == 1)
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(becomes, lambda: client_gone() == 1)

    def client_gone() -> int:
        usage = http_call(service.url, "/v1/usage", method="GET", headers=headers).body["usage"]
        return sum(entry["outcomes"].get("CLIENT_GONE", 0) for entry in usage)

    with hanging_platform() as platform:
        own = (f"KEYS_FILE={tmp_path / 'keys.sqlite3'}", f"PLATFORM_ORIGINS={json.dumps({'retail': platform.origin})}")
        with running(tmp_path / "log", *own, "DOWNLOAD_TIMEOUT=60", sandbox=False) as service:
            with_client(service.url, cancel, key=key)


def becomes(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"status": "ok"}', b"{}"])
def test_a_response_of_another_service_is_reported(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint()
    endpoint.completed.set()
    monkeypatch.setattr(endpoint, "envelope", lambda *_: body)
    with serving(endpoint) as url:
        content = call(url, "a-scraper", {}).structured_content
    assert content["status"] == {"code": "ENDPOINT_ERROR", "message": content["status"]["message"], "retryable": False}
    assert "Check that the URL is that of an endpoint" in content["status"]["message"]
