"""The tools: their definitions, errors, waiting and cancellation, and the size of their results."""

from __future__ import annotations

import json
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.types import CallToolResult

from crawler.sandbox.photoapp.site import Site as PhotoApp
from crawler.service.mcp import JOB_TOOLS, Selection, bounded, size, tools
from tests.http_server import Handler, served
from tests.mcp.clients import MAX_BYTES, SCRAPERS, TIMEOUT, call, in_process, text_of
from tests.service.conftest import Service

SEARCH = "retail-search-v4"

# Definitions


@pytest.mark.parametrize("name", sorted(SCRAPERS))
def test_every_scraper_is_a_tool_whose_example_is_valid(name: str) -> None:
    scraper, tool = SCRAPERS[name], tools()[name]
    jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    assert tool.input_schema["properties"].keys() == {*scraper.params.model_fields, *Selection.model_fields}
    jsonschema.validate({**scraper.example, "max_kb": 30, "fields": ["x"]}, tool.input_schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**scraper.example, "nonsense": 1}, tool.input_schema)
    assert tool.annotations is not None
    assert tool.annotations.read_only_hint


def test_no_scraper_has_a_param_with_the_name_of_an_argument_of_all_tools() -> None:
    for scraper in SCRAPERS.values():
        assert Selection.model_fields.keys().isdisjoint(scraper.params.model_fields)
    assert JOB_TOOLS.keys().isdisjoint(SCRAPERS)


def test_only_the_tool_that_makes_jobs_may_change_something() -> None:
    assert tools().keys() == {*SCRAPERS, *JOB_TOOLS}, "each scraper under one of its names"
    hints = {name: each.annotations for name, each in tools().items() if name in JOB_TOOLS}
    assert {name: each.read_only_hint for name, each in hints.items() if each} == {"collect": False, "records": True}


def test_all_chosen_fields_reach_the_endpoint() -> None:
    assert Selection(fields=["page", "products.name"]).query == {"fields": "page,products.name"}


@pytest.mark.parametrize(
    "name", [name if name == SEARCH else pytest.param(name, marks=pytest.mark.soak) for name in sorted(SCRAPERS)]
)
def test_each_tool_returns_a_whole_or_a_bounded_record(service: Service, name: str) -> None:
    whole = call(service.url, name, {**SCRAPERS[name].example, "max_kb": 1_000})
    content = whole.structured_content
    assert not whole.is_error, content
    assert content.keys() == {"data", "message", "partial", "request_id"}
    assert json.loads(text_of(whole)) == content
    SCRAPERS[name].data.model_validate_json(json.dumps(content["data"]))
    assert len(text_of(call(service.url, name, SCRAPERS[name].example)).encode()) <= MAX_BYTES


# Errors and partial records


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "retryable", "message"),
    [
        (SEARCH, {"query": "challenge"}, "UPSTREAM_BLOCKED", True, ""),
        (SEARCH, {"query": "mustard", "page": "two"}, "INVALID_REQUEST", False, f"{SEARCH}: page: "),
        (SEARCH, {"query": {"$gt": ""}}, "INVALID_REQUEST", False, f"{SEARCH}: query: "),
        (SEARCH, {}, "INVALID_REQUEST", False, f"{SEARCH}: params: give exactly one of query and url"),
        (SEARCH, {"query": "x", "fields": ["products.nam"]}, "INVALID_REQUEST", False, "fields: "),
        ("collect", {"targets": ["nothing that can be scraped"]}, "INVALID_REQUEST", False, "The upload has no valid"),
        ("records", {"job_id": "99"}, "JOB_NOT_FOUND", False, "This client has no job with this id"),
        ("records", {"job_id": "99", "after": "x"}, "JOB_NOT_FOUND", False, "This client has no job with this id"),
    ],
)
def test_an_error_of_the_endpoint_is_a_typed_result(  # noqa: PLR0913  # a fixture and a case
    service: Service, tool: str, arguments: dict[str, Any], code: str, *, retryable: bool, message: str
) -> None:
    answer = call(service.url, tool, arguments)
    content = answer.structured_content
    assert answer.is_error
    assert (content["code"], content["retryable"]) == (code, retryable)
    assert content["message"].startswith(message)
    assert isinstance(content["details"], list)
    assert content["request_id"] in service.logged()


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        (SEARCH, {"query": "mustard", "pages": 2}, f"{SEARCH} has no argument 'pages' (did you mean 'page'?)."),
        (SEARCH, {"query": "x", "maxkb": 5}, f"{SEARCH} has no argument 'maxkb' (did you mean 'max_kb'?)."),
        (
            "collect",
            {"urls": [], "target": ["x"]},
            "collect has no argument 'urls', 'target' (did you mean 'targets'?).",
        ),
        ("records", {"job": "1"}, "records has no argument 'job' (did you mean 'job_id'?)."),
        ("retail-serch-v4", {}, "There is no tool 'retail-serch-v4' (did you mean 'retail-search-v4'?)."),
        ("../usage", {}, "There is no tool '../usage'."),
        (SEARCH, {"query": "x", "max_kb": "20"}, "max_kb: "),
        (SEARCH, {"query": "x", "max_kb": 1}, "max_kb: "),
        (SEARCH, {"query": "x", "fields": "name"}, "fields: "),
        (SEARCH, {"query": "x", "fields": [""]}, "fields.0: "),
        ("collect", {"targets": []}, "targets: "),
        ("collect", {"targets": ["a\nb"]}, "targets.0: "),
        ("collect", {"targets": ["https://x.com/a"] * 501}, "targets: "),
        ("collect", {"targets": "https://x.com/a"}, "targets: "),
        ("records", {"job_id": "../usage"}, "job_id: "),
        ("records", {}, "job_id: "),
    ],
)
def test_wrong_arguments_are_named_without_a_call(tool: str, arguments: dict[str, Any], message: str) -> None:
    answer = call("http://127.0.0.1:9", tool, arguments)
    content = answer.structured_content
    assert answer.is_error
    assert (content["code"], content["retryable"]) == (
        "SCRAPER_NOT_FOUND" if message.startswith("There is no tool") else "INVALID_REQUEST",
        False,
    )
    assert content["message"].startswith(message)


def test_the_details_have_each_unknown_argument() -> None:
    content = call("http://127.0.0.1:9", SEARCH, {"querry": "x"}).structured_content
    assert content["details"] == [{"loc": ["querry"], "msg": "unknown argument", "type": "extra_forbidden"}]


def test_an_endpoint_that_cannot_be_reached_is_an_error() -> None:
    content = call("http://127.0.0.1:9", SEARCH, {"query": "mustard"}).structured_content
    assert (content["code"], content["retryable"]) == ("ENDPOINT_UNAVAILABLE", True)
    assert "http://127.0.0.1:9" in content["message"]


def test_the_missing_parts_of_a_record_are_in_the_result(service: Service) -> None:
    arguments = {"url": PhotoApp().url_of_fault("embed-forbidden")}
    content = call(service.url, "photoapp-post-v4", arguments).structured_content
    assert content["message"].removeprefix("Completed without: ").rstrip(".") in content["partial"]
    assert "code=" in content["partial"]
    whole = call(service.url, "photoapp-post-v4", SCRAPERS["photoapp-post-v4"].example).structured_content
    assert whole["partial"] is None


def test_the_options_of_a_job_reach_the_endpoint(service: Service) -> None:
    arguments = {"targets": ["https://x.com/quiet_harbor"], "max_pages": 2, "since": "2020-01-01"}
    made = call(service.url, "collect", arguments).structured_content
    job = made["job"]["job_id"]
    read = call(service.url, "records", {"job_id": job, "max_kb": 1_000, "wait": 60}).structured_content
    assert read["job"]["arguments"] == {"max_pages": 2, "since": "2020-01-01"}


# Waiting and cancelling


@dataclass
class Endpoint:
    """A stub of the endpoint. The test completes its calls."""

    body: bytes = b""
    """The response. b"": an envelope."""
    completed: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path and ``Prefer`` of each request."""
    waiting: threading.Event = field(default_factory=threading.Event)
    """Set when a client waits for a response."""
    disconnected: threading.Event = field(default_factory=threading.Event)
    """Set when the client of a call has closed its connection."""

    def respond(self, request: Handler) -> None:
        self.requests.append((request.command, request.path, request.headers["Prefer"]))
        self.waiting.set()
        # The client sends nothing more: its connection becomes readable when it is closed.
        while not self.completed.is_set() and not select.select([request.connection], [], [], 0.02)[0]:
            pass
        if not self.completed.is_set():
            self.disconnected.set()
            return
        envelope = {"request_id": "req_1", "data": {"name": "a shop"}, "status": {"message": "Complete."}}
        body = self.body or json.dumps(envelope).encode()
        request.answer(body, headers={} if self.body else {"X-Request-Id": "req_1"})


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[str]:
    """Serve the endpoint in a thread, and yield its URL."""

    class Own(Handler):
        def do_POST(self) -> None:  # noqa: N802  # the name of http.server
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            endpoint.respond(self)

    with served(Own) as url:
        yield url
        endpoint.completed.set()


async def scrape(client: Client, on_progress: Callable[[str | None], None]) -> CallToolResult:
    async def report(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001  # by keyword
        on_progress(message)

    return await client.call_tool(SEARCH, {"query": "x"}, progress_callback=report)


def test_a_call_waits_for_the_longest_timeout_and_reports_progress() -> None:
    endpoint = Endpoint()
    with serving(endpoint) as url:
        answer = in_process(url, lambda client: scrape(client, lambda _: endpoint.completed.set()))
    assert answer.structured_content["data"] == {"name": "a shop"}
    assert endpoint.requests == [("POST", f"/v1/scrapers/{SEARCH}", "wait=120")]


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
        in_process(url, cancel, mode=mode)


@pytest.mark.parametrize(("rows", "waits"), [(b'{"id": "a"}\n', [None]), (b"", [None, "wait=30"])])
def test_records_wait_for_the_end_of_a_job_only_if_nothing_is_new(rows: bytes, waits: list[str | None]) -> None:
    asked: list[str | None] = []

    class Running(Handler):
        def do_GET(self) -> None:  # noqa: N802  # the name of http.server
            is_rows = self.path.startswith("/v1/jobs/7/records?")
            asked.extend([] if is_rows else [self.headers["Prefer"]])
            body = rows if is_rows else b'{"ended_at": null}'
            self.answer(body, headers={"X-Request-Id": "req_1", "X-Next-Cursor": "7.1"})

    with served(Running) as url:
        content = call(url, "records", {"job_id": "7"}).structured_content
    assert (content["next"], asked) == ("7.1", waits)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"status": "ok"}', b"{}"])
def test_a_response_of_another_service_is_an_error(body: bytes) -> None:
    endpoint = Endpoint(body)
    endpoint.completed.set()
    with serving(endpoint) as url:
        content = call(url, SEARCH, {"query": "x"}).structured_content
    assert (content["code"], content["retryable"]) == ("ENDPOINT_ERROR", False)
    assert "is not an endpoint" in content["message"]


# The size of results

ROWS = [{"number": number, "text": f'"ä{number}\n' * 20} for number in range(4_000)]
LARGE: dict[str, Any] = {"data": {"name": "a shop", "rows": ROWS, "text": "long \u0001 \U0001f600 " * 20_000}}


def test_a_large_result_keeps_whole_entries_and_says_what_was_cut() -> None:
    content = bounded(LARGE, MAX_BYTES)
    rows = content["data"]["rows"]
    assert MAX_BYTES * 0.9 < size(content) <= MAX_BYTES
    assert rows == ROWS[: len(rows)]
    assert content["data"]["name"] == "a shop"
    assert content["data"]["text"].endswith("…")
    assert (content["cut"]["bytes"], content["cut"]["lists"]) == (size(LARGE), {"data.rows": 4_000})
    assert "Call the tool again with `fields`" in content["cut"]["message"]
    row = dict.fromkeys(map(str, range(100)), "x" * 20)
    assert bounded({"one": [1], "rows": [row] * 9}, 5_000)["cut"]["lists"] == {"rows": 9}, "not the list that is whole"


@pytest.mark.parametrize(
    "more",
    [
        {"message": "x" * 50_000},
        {"details": [{"loc": [f"key {number}"], "msg": "extra"} for number in range(2_000)]},
        {"details": {f"{number}{'k' * 900}": "x" * 5_000 for number in range(200)}},
    ],
)
def test_a_long_error_keeps_its_code(more: dict[str, Any]) -> None:
    error = {"code": "INVALID_REQUEST", "message": "x", "retryable": False, "details": []} | more
    content = bounded(error, 5_000)
    assert size(content) <= 5_000
    assert (content["code"], content["retryable"]) == ("INVALID_REQUEST", False)
    assert content["cut"]["bytes"] == size(error)


LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=300)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=60) | st.dictionaries(st.text(max_size=9), inner))


@given(st.dictionaries(st.sampled_from("abc"), VALUES), st.integers(1_500, 20_000))
def test_any_content_fits(content: dict[str, Any], room: int) -> None:
    found = bounded(content, room)
    assert size(found) <= room
    assert (found == content) == (size(content) <= room)
