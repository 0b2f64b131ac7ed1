"""``POST /mcp`` with the official client: the tools of ``scrapy mcp``, with the API key of the request."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import PARSE_ERROR

from crawler.mcp.http import HttpTools
from crawler.mcp.tools import COLLECT, RECORDS
from crawler.service.clients.key_store import KeyStore
from tests.crawls import ROOT
from tests.hanging_platform import hanging_platform
from tests.mcp.clients import MAX_BYTES, SCRAPERS, TIMEOUT, text_of
from tests.mcp.test_command import COMMAND, environment
from tests.mcp.test_waiting import becomes
from tests.service.client import call as http_call
from tests.service.conftest import Service, running

T = TypeVar("T")
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LINKS = [
    "https://x.com/quiet_harbor",
    "https://www.linkedin.com/in/mara-lindqvist",
    *(f"https://www.walmart.com/search?q=mustard+{number}" for number in range(16)),
    "https://x.com/nobody_here",
    "nothing that can be scraped",
]
FAILED = 2
"""Number of links that fail: the last two."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("mcp") / "log", "RETRY_TIMES=0", workers=2) as started:
        yield started


def over_http(
    url: str, use: Callable[[Client], Awaitable[T]], *, headers: dict[str, str] | None = None, mode: str = "auto"
) -> T:
    """Run ``use`` with the official client of ``/mcp``."""

    async def run() -> T:
        sent = headers or {"Authorization": "Bearer sandbox"}
        async with (
            httpx2.AsyncClient(headers=sent, timeout=TIMEOUT, trust_env=False) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
        ):
            return await use(client)

    return asyncio.run(run())


@pytest.mark.parametrize("headers", [{"X-API-Key": "sandbox"}, {"Authorization": "bearer sandbox"}])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_of_the_command_are_listed_and_called(service: Service, headers: dict[str, str], mode: str) -> None:
    async def use(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {*SCRAPERS, COLLECT, RECORDS}
        arguments = {"cat_id": "976759", "fields": ["products.name"], "limit": 2}
        first = (await client.call_tool("retail-category-v4", arguments)).structured_content
        assert [list(product) for product in first["data"]["products"]] == [["name"]] * 2

    over_http(service.url, use, headers=headers, mode=mode)


async def collected(client: Client) -> tuple[list[Any], list[Any]]:
    """Collect the links, and read the job to its end."""
    made = (await client.call_tool(COLLECT, {"targets": LINKS})).structured_content["data"]
    assert (made["valid"], [line["line"] for line in made["invalid_lines"]]) == (len(LINKS) - 1, [len(LINKS)])
    read: dict[str, list[Any]] = {"records": [], "failures": []}
    for kind, rows in read.items():
        after = ""
        while True:
            answer = await client.call_tool(
                RECORDS, {"job_id": made["job"]["job_id"], "kind": kind, "after": after, "targets": 7}
            )
            assert len(text_of(answer).encode()) <= MAX_BYTES
            content = answer.structured_content
            assert not answer.is_error, content
            rows.extend(content["data"][kind])
            if content["data"]["job"]["state"] == "done" and content["data"]["next"] == after:
                break
            after = content["data"]["next"]
    return read["records"], read["failures"]


def over_stdio(url: str, use: Callable[[Client], Awaitable[T]]) -> T:
    """Run ``use`` with the official client, which starts ``scrapy mcp``."""
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--url", url], cwd=ROOT, env=environment(CRAWLER_MCP_API_KEY="sandbox")
    )

    async def run() -> T:
        async with Client(parameters) as client:
            return await use(client)

    return asyncio.run(run())


@pytest.mark.parametrize("over", [over_http, pytest.param(over_stdio, marks=pytest.mark.soak)])
def test_twenty_links_are_collected_and_read(service: Service, over: Callable[..., Any]) -> None:
    """The test runs over HTTP and over standard input and output. Large results come in parts, which lose no record."""
    records, failures = over(service.url, collected)
    queries = [each["params"]["query"] for each in records if each["scraper"] == "retail-search-v4"]
    assert sorted(queries) == sorted(f"mustard {number}" for number in range(16))
    assert len(records) == len(LINKS) - FAILED
    assert sorted(each["code"] for each in failures) == ["INVALID_REQUEST", "TARGET_NOT_FOUND"]


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        (COLLECT, {"targets": []}, "targets"),
        (COLLECT, {"targets": ["a\nb"]}, "targets.0"),
        (COLLECT, {"targets": ["https://x.com/a"] * 501}, "targets"),
        (COLLECT, {"targets": "https://x.com/a"}, "targets"),
        (COLLECT, {"targets": ["nothing that can be scraped"]}, "The upload has no valid target"),
        (RECORDS, {"job_id": "../usage"}, "job_id"),
        (RECORDS, {"job_id": "99"}, "This client has no job with this id"),
        (RECORDS, {"job_id": "99", "after": "x"}, "This client has no job with this id"),
        (RECORDS, {}, "job_id"),
        ("../usage", {}, "Unknown route"),
        ("retail-search-v4", {"query": {"$gt": ""}}, "query"),
    ],
)
def test_hostile_arguments_are_typed_errors(service: Service, tool: str, arguments: dict[str, Any], named: str) -> None:
    async def use(client: Client) -> Any:
        return await client.call_tool(tool, arguments)

    answer = over_http(service.url, use)
    assert answer.is_error
    assert answer.structured_content["error"]["code"] == answer.structured_content["status"]["code"]
    assert named in answer.structured_content["status"]["message"]


def test_at_7_a_lone_surrogate_is_answered_with_the_id_of_its_request(service: Service) -> None:
    body = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "\\ud800", "arguments": {}}}'
    answer = http_call(service.url, "/mcp", body, headers={**JSON, "X-API-Key": "sandbox"})
    assert (answer.status, answer.body["id"], answer.body["error"]["code"]) == (400, 7, PARSE_ERROR)


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", JSON, 401),
        ("POST", {**JSON, "Authorization": "Bearer nonsense"}, 401),
        ("GET", {**JSON, "X-API-Key": "sandbox"}, 405),
        ("DELETE", {**JSON, "X-API-Key": "sandbox"}, 405),
    ],
)
def test_other_requests_are_refused_with_an_envelope(
    service: Service, method: str, headers: dict[str, str], status: int
) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode() if method == "POST" else None
    answer = http_call(service.url, "/mcp", body, method=method, headers=headers)
    assert answer.status == status
    assert answer.body["error"]["code"] == answer.code


def test_a_client_that_disconnects_cancels_its_tool(tmp_path: Path) -> None:
    """The endpoint also shuts down in order while another tool call waits."""
    key = KeyStore(tmp_path / "keys.sqlite3").create("acme")

    async def use(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "retail-search-v4", {"query": "hang"})
            await anyio.to_thread.run_sync(platform.wait_until, lambda seen: seen.unanswered == 1)
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(becomes, lambda: outcomes().get("CLIENT_GONE") == 1)
        service.process.send_signal(signal.SIGTERM)

    def outcomes() -> dict[str, int]:
        usage = http_call(service.url, "/v1/usage", method="GET", headers={"X-API-Key": key}).body["usage"]
        return {code: number for entry in usage for code, number in entry["outcomes"].items()}

    with hanging_platform() as platform:
        own = (f"KEYS_FILE={tmp_path / 'keys.sqlite3'}", f"PLATFORM_ORIGINS={json.dumps({'retail': platform.origin})}")
        with running(tmp_path / "log", *own, "DOWNLOAD_TIMEOUT=60", sandbox=False) as service:
            over_http(service.url, use, headers={"X-API-Key": key})
            service.process.communicate(timeout=TIMEOUT)
    assert service.process.returncode == 0
    logged = service.logged()
    assert "event=crawler_cancelled spider=retail" in logged
    assert "Traceback" not in logged


LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}


def test_a_tool_that_the_end_of_the_endpoint_ends_is_answered_with_the_id_of_its_request(tmp_path: Path) -> None:
    key = KeyStore(tmp_path / "keys.sqlite3").create("acme")
    params = {"name": "retail-search-v4", "arguments": {"query": "hang"}}
    with hanging_platform() as platform:
        own = (f"KEYS_FILE={tmp_path / 'keys.sqlite3'}", f"PLATFORM_ORIGINS={json.dumps({'retail': platform.origin})}")
        with (
            running(tmp_path / "log", *own, "DOWNLOAD_TIMEOUT=60", sandbox=False) as service,
            ThreadPoolExecutor() as threads,
        ):
            body = {**LIST, "method": "tools/call", "params": params}
            waiting = threads.submit(http_call, service.url, "/mcp", body, headers={**JSON, "X-API-Key": key})
            platform.wait_until(lambda seen: seen.unanswered == 1)
            service.process.send_signal(signal.SIGTERM)
            answer = waiting.result()
    assert (answer.status, answer.body["id"]) == (503, 7)
    assert "shutting down" in answer.body["error"]["message"]


FAILS_ONCE = {
    "import": """
from crawler.service.http import tools_route
load = tools_route.import_module
def fail(name):
    tools_route.import_module = load
    raise ImportError(name)
tools_route.import_module = fail
""",
    "start": """
from crawler.mcp.endpoint import EndpointClient
enter = EndpointClient.__aenter__
async def fail(self):
    EndpointClient.__aenter__ = enter
    raise OSError("no sockets left")
EndpointClient.__aenter__ = fail
""",
}


@pytest.mark.parametrize("before", FAILS_ONCE.values(), ids=FAILS_ONCE)
def test_tools_that_could_not_be_loaded_are_loaded_again(tmp_path: Path, before: str) -> None:
    with running(tmp_path / "log", before=before) as service:
        headers = {**JSON, "X-API-Key": "sandbox"}
        assert http_call(service.url, "/mcp", LIST, headers=headers).code == "INTERNAL_ERROR"
        assert http_call(service.url, "/mcp", LIST, headers=headers).body["result"]["tools"]
        service.process.send_signal(signal.SIGTERM)
        service.process.communicate(timeout=TIMEOUT)
    assert service.process.returncode == 0


def test_a_request_that_the_library_leaves_unanswered_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer_nothing(*_: object) -> None:
        pass

    async def scenario() -> tuple[int, dict[str, str], bytes]:
        tools = HttpTools("http://127.0.0.1:1")
        await tools.opened()
        monkeypatch.setattr(tools._manager, "handle_request", answer_nothing)
        answer = await tools.answer(json.dumps(LIST).encode(), {}, "key")
        await tools.close()
        return answer

    status, _, body = asyncio.run(scenario())
    assert (status, json.loads(body)["id"]) == (503, 7)
