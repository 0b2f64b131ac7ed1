"""``scrapy mcp``, with the official client: tools, results, errors, progress, cancelling, large records."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import AsyncMock, Mock

import anyio
import anyio.to_thread
import jsonschema
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolRequestParams, CallToolResult, TextContent, Tool
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from structlog.testing import capture_logs

from crawler.commands.mcp import Command
from crawler.mcp.endpoint import EndpointClient, Reply
from crawler.mcp.results import RESULT_SCHEMA, Part, View, part_of, result
from crawler.mcp.server import Scrapers
from crawler.mcp.shorten import MIN_SHARE, Shortener, size
from crawler.mcp.tools import READ_RECORD, THIRD_PARTY
from crawler.mcp.tools import tools as scraper_tools
from crawler.registry import scrapers
from crawler.sandbox.photoapp.site import Site as PhotoApp
from crawler.service.clients.keys import KeyStore
from tests.crawls import ROOT
from tests.hanging_platform import hanging_platform
from tests.service.client import call as http_call
from tests.service.conftest import Service, running

T = TypeVar("T")
SCRAPERS = {scraper.name: scraper for scraper in scrapers().values()}
MAX_BYTES = 20_000
TIMEOUT = 120
COMMAND = (sys.executable, "-m", "scrapy", "mcp")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("mcp") / "log", "DOWNLOAD_TIMEOUT=60") as started:
        yield started


def with_client(url: str, use: Callable[[Client], Awaitable[T]], *, key: str = "sandbox", mode: str = "auto") -> T:
    """Return what ``use`` returns for the official client of a server in this process, which calls ``url``."""

    async def run() -> T:
        async with EndpointClient(url, key) as endpoint, Client(Scrapers(endpoint).server(), mode=mode) as client:
            return await use(client)

    return asyncio.run(run())


def call(url: str, tool: str, arguments: dict[str, Any], *, key: str = "sandbox") -> CallToolResult:
    """Return the result of one call. The client validates it against the tool's schema."""
    return with_client(url, lambda client: client.call_tool(tool, arguments), key=key)


def text_of(answer: CallToolResult) -> str:
    (block,) = answer.content
    assert isinstance(block, TextContent)
    return block.text


def tools_of(url: str) -> dict[str, Tool]:
    async def listed(client: Client) -> dict[str, Tool]:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    return with_client(url, listed)


@pytest.fixture(scope="module")
def tools(service: Service) -> dict[str, Tool]:
    return tools_of(service.url)


# Tools


def test_every_scraper_is_a_tool_with_its_schemas(tools: dict[str, Tool]) -> None:
    assert tools.keys() == {*SCRAPERS, READ_RECORD}
    for name, scraper in SCRAPERS.items():
        tool = tools[name]
        assert tool.output_schema is not None
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        assert tool.input_schema["properties"].keys() == {*scraper.params.model_fields, *View.model_fields}
        jsonschema.validate({**scraper.example, "limit": 3, "fields": ["x"]}, tool.input_schema)
        assert THIRD_PARTY in (tool.description or "")
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint


def test_a_scraper_that_the_document_lacks_is_a_tool_for_any_record() -> None:
    older: dict[str, Any] = {"paths": {}, "components": {"schemas": {}}}
    described = scraper_tools([ENTRY], older)
    assert [tool.name for tool in described] == [ENTRY["name"], READ_RECORD]
    assert described[0].output_schema == RESULT_SCHEMA


def test_no_scraper_has_a_param_with_the_name_of_an_argument_of_all_tools() -> None:
    for scraper in SCRAPERS.values():
        assert View.model_fields.keys().isdisjoint(scraper.params.model_fields)
    assert READ_RECORD not in SCRAPERS


@pytest.mark.parametrize("name", sorted(SCRAPERS))
def test_each_tool_returns_a_record_that_fits_its_schema(service: Service, tools: dict[str, Tool], name: str) -> None:
    """The client raises for a result that does not fit; the record is also compared with the schema here."""
    answer = call(service.url, name, {**SCRAPERS[name].example})
    content = answer.structured_content
    assert not answer.is_error, content
    assert content["status"]["code"] == "OK"
    assert content["data"]
    assert json.loads(text_of(answer)) == content
    assert len(text_of(answer).encode()) <= MAX_BYTES
    jsonschema.validate(content, tools[name].output_schema or {})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content | {"data": {"nonsense": 1}}, tools[name].output_schema or {})


# Errors and partial records


@pytest.mark.parametrize(
    ("arguments", "code", "retryable"),
    [
        ({"query": "challenge"}, "UPSTREAM_BLOCKED", True),
        ({"query": "mustard", "page": "two"}, "INVALID_REQUEST", False),
        ({}, "INVALID_REQUEST", False),
    ],
)
def test_errors_are_typed_results(service: Service, arguments: dict[str, Any], code: str, *, retryable: bool) -> None:
    answer = call(service.url, "retail-search-v4", arguments)
    content = answer.structured_content
    assert answer.is_error
    assert (content["status"]["code"], content["status"]["retryable"]) == (code, retryable)
    assert content["status"]["message"]
    assert content["error"]["code"] == code
    assert content["request_id"].startswith("req_")
    assert content["data"] is None
    assert content["request_id"] in service.logged()


def test_an_invalid_param_is_named(service: Service) -> None:
    error = call(service.url, "retail-search-v4", {"query": "mustard", "pages": 2}).structured_content["error"]
    assert error["details"][0]["loc"] == ["pages"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"limit": 0}, "limit"),
        ({"max_kb": "20"}, "max_kb"),
        ({"fields": "name"}, "fields"),
        ({"fields": [""]}, "fields.0"),
    ],
)
def test_an_invalid_argument_is_named_without_a_call(arguments: dict[str, Any], named: str) -> None:
    answer = call("http://127.0.0.1:9", "retail-search-v4", {"query": "mustard", **arguments})
    assert answer.is_error
    assert answer.structured_content["status"]["code"] == "INVALID_REQUEST"
    assert answer.structured_content["status"]["message"].startswith(f"{named}: ")


def test_wrong_keys_and_names_are_typed_results(service: Service) -> None:
    wrong_key = call(service.url, "retail-search-v4", {"query": "mustard"}, key="nonsense")
    assert wrong_key.structured_content["status"]["code"] == "INVALID_API_KEY"
    for name in ("nothing", "../usage", "retail-search-v4?x", ""):
        unknown = call(service.url, name, {"query": "mustard"})
        assert unknown.is_error
        assert unknown.structured_content["status"]["code"] in {"SCRAPER_NOT_FOUND", "METHOD_NOT_ALLOWED"}


def test_an_endpoint_that_cannot_be_reached_is_reported() -> None:
    answer = call("http://127.0.0.1:9", "retail-search-v4", {"query": "mustard"})
    assert answer.is_error
    assert answer.structured_content["status"]["code"] == "ENDPOINT_UNAVAILABLE"
    assert answer.structured_content["status"]["retryable"] is True
    assert "http://127.0.0.1:9" in answer.structured_content["status"]["message"]

    async def list_tools(client: Client) -> None:
        with pytest.raises(MCPError, match="Check that it runs"):
            await client.list_tools()

    with_client("http://127.0.0.1:9", list_tools)


def test_the_warning_of_a_partial_record_is_in_the_result(service: Service) -> None:
    content = call(
        service.url, "photoapp-post-v4", {"url": PhotoApp().url_of_fault("embed-forbidden")}
    ).structured_content
    assert content["success"] is True
    assert content["status"]["message"].startswith("Completed without: ")
    assert content["status"]["message"].removeprefix("Completed without: ").rstrip(".") in content["partial"]
    assert "code=" in content["partial"]
    whole = call(service.url, "photoapp-post-v4", SCRAPERS["photoapp-post-v4"].example).structured_content
    assert whole["partial"] is None


# The size of results


def test_limit_and_fields_choose_a_part_of_the_record(service: Service) -> None:
    fields = ["products.name", "products.price.current_price", "cat_id", "nonsense"]
    content = call(
        service.url, "retail-category-v4", {"cat_id": "976759", "fields": fields, "limit": 2}
    ).structured_content
    assert content["data"].keys() == {"products", "cat_id"}
    assert [list(product) for product in content["data"]["products"]] == [["name", "price"]] * 2
    assert [list(product["price"]) for product in content["data"]["products"]] == [["current_price"]] * 2
    assert content["cut"]["missing_fields"] == ["nonsense"]
    (part,) = content["cut"]["parts"]
    assert part == {"path": "products", "offset": 0, "kept": 2, "total": part["total"], "unit": "entries"}


def test_a_record_is_read_to_its_end_without_another_call(service: Service) -> None:
    async def read_all(client: Client) -> None:
        first = (await client.call_tool("retail-category-v4", {"cat_id": "976759"})).structured_content
        read, cut = list(first["data"]["products"]), first["cut"]
        assert cut is not None
        while cut is not None:
            (part,) = cut["parts"]
            arguments = {"request_id": first["request_id"], "path": "products", "offset": part["offset"] + part["kept"]}
            more = await client.call_tool(READ_RECORD, arguments)
            assert len(text_of(more).encode()) <= MAX_BYTES
            read += more.structured_content["data"]
            cut = more.structured_content["cut"]
        whole = await client.call_tool(READ_RECORD, {"request_id": first["request_id"], "max_kb": 1_000})
        assert whole.structured_content["cut"] is None
        assert read == whole.structured_content["data"]["products"]

    made = "method=POST path=/v1/scrapers/retail-category-v4"
    before = service.logged().count(made)
    with_client(service.url, read_all)
    assert service.logged().count(made) == before + 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"request_id": "req_unknown"}, "No record"),
        ({"path": "products.99.name"}, "data.products has no '99': it is a list"),
        ({"path": "nonsense"}, "data has no 'nonsense': it is an object with the keys "),
        ({"offset": -1}, "offset: "),
        ({"nonsense": 1}, "nonsense: "),
        ({"path": f"products.{'9' * 5_000}"}, "path: "),
    ],
)
def test_the_error_for_a_missing_part_names_it(service: Service, arguments: dict[str, Any], message: str) -> None:
    async def read(client: Client) -> CallToolResult:
        first = await client.call_tool("retail-category-v4", {"cat_id": "976759", "limit": 1})
        return await client.call_tool(READ_RECORD, {"request_id": first.structured_content["request_id"], **arguments})

    answer = with_client(service.url, read)
    assert answer.is_error
    assert answer.structured_content["status"]["message"].startswith(message)


LARGE: dict[str, Any] = {
    "name": "a shop",
    "rows": [{"number": number, "text": f'"ä{number}\n' * 20} for number in range(4_000)],
    "text": "long \u0001 \U0001f600 text " * 20_000,
    "wide": {f"key{number}": {"a": [1, 2, 3]} for number in range(3_000)},
}


def reply_with(data: Any) -> Reply:
    status = {"code": "OK", "message": "The scrape is complete.", "retryable": False}
    return Reply(
        {
            "request_id": "req_1",
            "success": True,
            "status": status,
            "data": data,
            "error": None,
            "meta": {"billable": True},
        }
    )


def test_a_record_of_a_megabyte_is_shortened_and_described_in_cut() -> None:
    assert size(LARGE) > 1_000_000
    answer = result(reply_with(LARGE), View())
    content = answer.structured_content
    assert len(text_of(answer).encode()) <= MAX_BYTES
    assert not answer.is_error
    assert content["cut"]["bytes"] == size(LARGE)
    assert "read_record" in content["cut"]["message"]
    assert "req_1" in content["cut"]["message"]
    parts = {part["path"]: part for part in content["cut"]["parts"]}
    rows = content["data"]["rows"]
    assert rows == LARGE["rows"][: len(rows)]  # whole entries
    assert parts["rows"] == {"path": "rows", "offset": 0, "kept": len(rows), "total": 4_000, "unit": "entries"}
    assert parts["text"]["unit"] == "characters"
    assert content["data"]["text"] == f"{LARGE['text'][: parts['text']['kept']]}…"
    assert parts["wide"]["unit"] == "keys"
    assert content["data"]["name"] == "a shop"


def test_the_text_of_a_record_is_read_to_its_end() -> None:
    read = ""
    while True:
        part = Part(request_id="req_1", path="text", offset=len(read))
        content = result(reply_with(part_of(LARGE, part)), part).structured_content
        if content["cut"] is None:
            break
        read += content["data"].removesuffix("…")
        (noted,) = content["cut"]["parts"]
        assert (noted["offset"] + noted["kept"], noted["total"]) == (len(read), len(LARGE["text"]))
    assert read + content["data"] == LARGE["text"]


@pytest.mark.parametrize("max_kb", [5, 6, 20, 100, 500])
def test_results_are_never_larger_than_max_kb(max_kb: int) -> None:
    for view in (View(max_kb=max_kb), View(max_kb=max_kb, limit=100), View(max_kb=max_kb, fields=["rows", "x" * 100])):
        answer = result(reply_with(LARGE), view)
        assert len(text_of(answer).encode()) <= max_kb * 1_000
        assert answer.structured_content["cut"]


@pytest.mark.parametrize(
    "error",
    [
        {"code": "INVALID_REQUEST", "message": "x" * 50_000, "details": [], "retry_after": None},
        {
            "code": "INVALID_REQUEST",
            "message": "x",
            "details": [{"loc": [f"key {number}"], "msg": "extra", "type": "extra"} for number in range(2_000)],
            "retry_after": None,
        },
    ],
    ids=["message", "details"],
)
def test_long_errors_are_shortened_and_say_so(error: dict[str, Any]) -> None:
    status = {"code": error["code"], "message": error["message"], "retryable": False}
    envelope = {"request_id": "req_1", "success": False, "status": status, "data": None, "error": error, "meta": None}
    content = result(Reply(envelope), View()).structured_content
    assert content is not None
    assert size(content) <= MAX_BYTES
    jsonschema.validate(content, RESULT_SCHEMA)
    assert (content["status"]["code"], content["error"]["code"]) == ("INVALID_REQUEST", "INVALID_REQUEST")
    assert content["cut"]["message"].startswith("`error` is shortened.")
    assert {part["path"].partition(".")[0] for part in content["cut"]["parts"]} <= {"status", "error"}


def test_long_keys_of_a_record_do_not_make_the_result_larger() -> None:
    record = {f"{number}{'k' * 900}": "x" * 5_000 for number in range(20)}
    content = result(reply_with(record), View()).structured_content
    assert content is not None
    assert size(content) <= MAX_BYTES
    assert content["cut"]["more_parts"] + len(content["cut"]["parts"]) > 1


@pytest.mark.parametrize("room", [MIN_SHARE, 30, 50, 80, 130, 300, 1_000, 5_000])
@pytest.mark.parametrize(
    "value",
    [
        LARGE,
        {"a": "x" * 200, "b": [1] * 200, "c": {"d": {"e": ["y" * 300]}}, "f": None, "g": 1.5},
        ["\u0000" * 500, "z" * 500],
        [[[["deep" * 100]]]],
        {"k" * 400: 1, "short": 2},
        [12_345_678_901_234] * 50,
        "😀" * 400,
    ],
    ids=["large", "mixed", "escapes", "deep", "long-key", "numbers", "emoji"],
)
def test_a_value_fits_any_room(value: Any, room: int) -> None:
    shortener = Shortener()
    assert size(shortener.fit(value, room)) <= room
    assert bool(shortener.parts) == (size(value) > room)


@pytest.mark.parametrize("name", sorted(set(SCRAPERS) - {"shortvideo-photo-search-v4"}))
def test_shortened_records_fit_the_schema(service: Service, tools: dict[str, Tool], name: str) -> None:
    async def views(client: Client) -> None:
        first = (await client.call_tool(name, {**SCRAPERS[name].example, "max_kb": 1_000})).structured_content
        fits = jsonschema.Draft202012Validator(tools[name].output_schema or {}).validate
        for room in (MIN_SHARE, 100, 300, 1_000, 3_000, 9_000):
            fits(first | {"data": Shortener().fit(first["data"], room)})
        fits(first | {"data": Shortener().limit(first["data"], 1)})

    with_client(service.url, views)


# Waiting and cancelling

REQUEST_ID = "req_01ARZ3NDEKTSV4RRFFQ69G5FAV"
ENTRY = {"name": "a-scraper", "summary": "A shop.", "params_schema": {"type": "object"}, "example": {}}


@dataclass
class Endpoint:
    """An endpoint whose calls are completed by the test: asynchronous as in docs/service.md, or only synchronous."""

    is_synchronous: bool = False
    completed: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and ``Prefer`` of each request."""
    waiting: threading.Event = field(default_factory=threading.Event)
    """Set when a client waits for a response."""
    restarts: int = 0
    """How many of the next requests for an asynchronous call fail: alternately without and with a response."""
    disconnected: threading.Event = field(default_factory=threading.Event)
    """Set when the client of a synchronous call has closed its connection."""
    deleted: threading.Event = field(default_factory=threading.Event)

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        """Respond to a request."""
        if request.path == "/openapi.json":
            self.send(request, 404, b"{}", {})
        elif request.path == "/v1/scrapers":
            self.send(request, 200, json.dumps({"scrapers": [ENTRY]}).encode(), {})
        else:
            self.respond(request, request.headers["Prefer"])

    def respond(self, request: BaseHTTPRequestHandler, prefer: str | None) -> None:
        self.requests.append((request.command, request.path, prefer))
        if self.is_synchronous or request.command == "GET":
            self.waiting.set()
        if request.command == "DELETE":
            self.deleted.set()
            self.send(request, 204, b"", {})
        elif request.command == "GET" and self.restarts:
            self.restarts -= 1
            if self.restarts % 2:
                request.connection.shutdown(socket.SHUT_RDWR)
            else:
                self.send(request, 503, self.envelope("SHUTTING_DOWN", None, "req_of_this_request"), {})
        elif self.is_synchronous:
            # The client sends nothing more: its connection becomes readable when it is closed.
            while not self.completed.is_set() and not select.select([request.connection], [], [], 0.02)[0]:
                pass
            if self.completed.is_set():
                self.send(request, 200, self.envelope("OK", {"name": "a shop"}), {})
            else:
                self.disconnected.set()
        elif request.command == "GET" and self.completed.wait(0.05 if prefer else 0):
            self.send(request, 200, self.envelope("OK", {"name": "a shop"}), {"X-Partial": "rows; reason=timeout"})
        else:
            self.send(request, 202, self.envelope("ACCEPTED", None), {"Location": f"/v1/calls/{REQUEST_ID}"})

    @staticmethod
    def envelope(code: str, data: Any, request_id: str = REQUEST_ID) -> bytes:
        status = {"code": code, "message": f"{code}: position 7 in the queue.", "retryable": False}
        success = {"request_id": request_id, "success": data is not None, "data": data, "status": status}
        return json.dumps(success | {"error": None, "meta": {"billable": True}}).encode()

    @staticmethod
    def send(request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        if status != 204:
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

        do_GET = do_POST = do_DELETE = do  # noqa: N815  # the standard library's names

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


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_asynchronous_call_is_polled_until_it_is_complete(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.mcp.server.PROGRESS_SECONDS", 0.02)
    endpoint, messages = Endpoint(), []

    def on_progress(message: str | None) -> None:
        messages.append(message)
        if message == "ACCEPTED: position 7 in the queue.":
            endpoint.completed.set()

    with serving(endpoint) as url:
        answer = with_client(url, lambda client: scrape(client, on_progress), mode=mode)
    assert answer.structured_content["data"] == {"name": "a shop"}
    assert answer.structured_content["partial"] == "rows; reason=timeout"
    assert messages[0] == "The call was sent to the endpoint."
    assert endpoint.requests[0] == ("POST", "/v1/scrapers/a-scraper", "respond-async")
    assert set(endpoint.requests[1:]) == {("GET", f"/v1/calls/{REQUEST_ID}", "wait=10")}


def test_an_asynchronous_call_survives_a_restart_of_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.mcp.endpoint.RETRY_PAUSES", (0.01,) * 5)
    endpoint = Endpoint(restarts=4)
    endpoint.completed.set()
    with serving(endpoint) as url:
        answer = with_client(url, lambda client: scrape(client, lambda _: None))
    assert answer.structured_content["data"] == {"name": "a shop"}
    assert [method for method, _, _ in endpoint.requests] == ["POST", *["GET"] * 5]


def test_an_asynchronous_call_without_an_endpoint_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.mcp.endpoint.RETRY_PAUSES", (0.01,) * 5)
    endpoint = Endpoint(restarts=6)
    with serving(endpoint) as url:
        answer = with_client(url, lambda client: scrape(client, lambda _: None))
    assert answer.structured_content["status"]["code"] == "SHUTTING_DOWN"


def test_a_call_that_cannot_be_cancelled_is_logged() -> None:
    """The cancellation must go on, although the endpoint does not respond."""

    async def work() -> None:
        async with EndpointClient("http://127.0.0.1:9", "x", trust_env=False) as client:
            await client._cancel(REQUEST_ID)

    with capture_logs() as logs:
        anyio.run(work)
    assert logs == [{"event": "call_not_cancelled", "request_id": REQUEST_ID, "status": None, "log_level": "warning"}]


@pytest.mark.parametrize("value", [float("nan"), "\ud800"], ids=["nan", "surrogate"])
def test_params_that_are_not_json_are_a_typed_result(value: object) -> None:
    async def work() -> CallToolResult:
        async with EndpointClient("http://127.0.0.1:9", "x", trust_env=False) as client:
            params = CallToolRequestParams(name="a-scraper", arguments={"query": value})
            return await Scrapers(client).call_tool(Mock(session=Mock(report_progress=AsyncMock())), params)

    answer = anyio.run(work).structured_content
    assert answer is not None
    assert answer["status"]["code"] == "INVALID_REQUEST"
    assert answer["error"]["message"].startswith("The params cannot be written as JSON")


def test_an_endpoint_without_asynchronous_calls_is_called_synchronously() -> None:
    endpoint = Endpoint(is_synchronous=True)
    with serving(endpoint) as url:
        answer = with_client(url, lambda client: scrape(client, lambda _: endpoint.completed.set()))
    assert answer.structured_content["data"] == {"name": "a shop"}
    assert [method for method, _, _ in endpoint.requests] == ["POST"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("is_synchronous", [False, True], ids=["asynchronous", "synchronous"])
def test_cancelling_a_tool_cancels_its_call(mode: str, *, is_synchronous: bool) -> None:
    endpoint = Endpoint(is_synchronous=is_synchronous)

    async def cancel(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(scrape, client, lambda _: None)
            assert await anyio.to_thread.run_sync(endpoint.waiting.wait, TIMEOUT)
            group.cancel_scope.cancel()
        # The connection to the server is still open: only the call has ended.
        cancelled = endpoint.disconnected if is_synchronous else endpoint.deleted
        assert await anyio.to_thread.run_sync(cancelled.wait, TIMEOUT)

    with serving(endpoint) as url:
        with_client(url, cancel, mode=mode)
    if not is_synchronous:
        assert endpoint.requests[-1] == ("DELETE", f"/v1/calls/{REQUEST_ID}", None)


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
    monkeypatch.setattr(endpoint, "envelope", lambda *_: body)
    with serving(endpoint) as url:
        content = call(url, "a-scraper", {}).structured_content
    assert content["status"] == {"code": "ENDPOINT_ERROR", "message": content["status"]["message"], "retryable": False}
    assert "Check that the URL is that of an endpoint" in content["status"]["message"]


# The command


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **variables}


def message(number: int, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def test_standard_output_has_only_json_rpc_with_the_sandbox(tmp_path: Path) -> None:
    """Even with ``LOG_LEVEL=DEBUG``. The process ends when its input ends, and leaves no processes behind."""
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with (tmp_path / "log").open("w") as stderr:
        process = subprocess.Popen(
            [*COMMAND, "--sandbox", "-L", "DEBUG", "-s", f"SERVICE_STORE={tmp_path / 'service.sqlite3'}"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=environment(PYTHONWARNINGS="default"),
        )
    assert process.stdin
    assert process.stdout
    lines = []
    for sent in (
        message(1, "initialize", **info),
        message(2, "tools/list"),
        message(3, "tools/call", name="retail-category-v4", arguments={"cat_id": "976759"}),
    ):
        process.stdin.write(sent)
        process.stdin.flush()
        lines.append(process.stdout.readline())
    rest, _ = process.communicate(timeout=TIMEOUT)
    received = [json.loads(line) for line in [*lines, *rest.splitlines()]]
    assert [(each["jsonrpc"], each["id"]) for each in received] == [("2.0", 1), ("2.0", 2), ("2.0", 3)]
    assert received[2]["result"]["structuredContent"]["status"]["code"] == "OK"
    assert process.returncode == 0
    log = (tmp_path / "log").read_text()
    assert "event=tool_call tool=retail-category-v4 code=OK" in log
    assert "level=debug" in log
    assert "Traceback" not in log


def test_the_official_client_starts_the_command_for_a_running_endpoint(service: Service) -> None:
    parameters = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], "--url", f"{service.url}/"],
        cwd=ROOT,
        env=environment(CRAWLER_MCP_API_KEY="sandbox"),
    )

    async def run() -> tuple[set[str], CallToolResult]:
        async with Client(parameters) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            return names, await client.call_tool("retail-search-v4", {"query": "mustard", "limit": 1})

    names, answer = asyncio.run(run())
    assert names == {*SCRAPERS, READ_RECORD}
    assert len(answer.structured_content["data"]["products"]) == 1
    assert answer.structured_content["meta"]["client_id"] == "sandbox"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "one of the arguments --url --sandbox is required"),
        (["--url", "http://127.0.0.1:9", "--sandbox"], "argument --sandbox: not allowed with argument --url"),
        (["--url", "localhost:8000"], "expected a URL such as http://127.0.0.1:8000, not 'localhost:8000'"),
        (
            ["--url", "http://127.0.0.1:9"],
            "Set the environment variable CRAWLER_MCP_API_KEY to an API key of the endpoint",
        ),
        (["--sandbox", "x"], "Unexpected arguments: x."),
        (["--url", "https://me:secret@127.0.0.1:9"], "expected a URL without user name, password, query and fragment"),
        (["--url", "https://127.0.0.1:9/?key=secret"], "expected a URL without user name, password"),
    ],
)
def test_wrong_options_are_reported_in_one_sentence(
    options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command()
    command.settings = Settings()
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    with pytest.raises((SystemExit, UsageError)) as raised:
        command.run([each for each in options if each == "x"], parser.parse_args([o for o in options if o != "x"]))
    assert sentence in f"{capsys.readouterr().err}{raised.value}"


@pytest.mark.parametrize("key", ["secret\n", "secret key", "schl\u00fcssel-secret"])
def test_a_key_that_is_no_header_value_is_refused_without_quoting_it(key: str) -> None:
    command = Command()
    command.settings = Settings({"MCP_API_KEY": key})
    with pytest.raises(UsageError, match="CRAWLER_MCP_API_KEY is not an API key") as raised:
        command.run([], argparse.Namespace(url="http://127.0.0.1:9", sandbox=False))
    assert "secret" not in str(raised.value)


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    command = Command()
    command.settings = Settings({"MCP_API_KEY": "x"})
    monkeypatch.setattr("crawler.commands.mcp.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="install the extra 'mcp'"):
        command.run([], argparse.Namespace(url="http://127.0.0.1:9", sandbox=False))
