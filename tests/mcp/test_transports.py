"""``scrapy mcp`` over standard input and output, and over HTTP, with the official client and a real endpoint."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from crawler.commands.mcp import Command
from crawler.service.keys import KeyStore
from tests import forks
from tests.crawls import ROOT
from tests.mcp.clients import (
    COMMAND,
    MAX_BYTES,
    SCRAPERS,
    TIMEOUT,
    environment,
    http_server,
    over_http,
    over_stdio,
    text_of,
)
from tests.service.client import call as http_call
from tests.service.conftest import Service, running

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

Over = Callable[..., Any]


@pytest.fixture(params=["http", pytest.param("stdio", marks=pytest.mark.soak)])
def over(request: pytest.FixtureRequest, service: Service) -> Over:
    """A function that runs a coroutine with a client."""
    if request.param == "stdio":
        return lambda use: over_stdio(service.url, use)
    url = request.getfixturevalue("http_url")
    return lambda use: over_http(url, use, headers={"Authorization": "Bearer sandbox"})


async def collected(client: Client) -> tuple[list[Any], list[Any]]:
    """Collect the links, and read the job to its end."""
    made = (await client.call_tool("collect", {"targets": LINKS})).structured_content
    assert (made["valid"], [line["line"] for line in made["invalid_lines"]]) == (len(LINKS) - 1, [len(LINKS)])
    read: dict[str, list[Any]] = {"records": [], "failures": []}
    for kind, rows in read.items():
        after = ""
        while True:
            arguments = {"job_id": made["job"]["job_id"], "kind": kind, "after": after, "targets": 7}
            answer = await client.call_tool("records", arguments)
            assert len(text_of(answer).encode()) <= MAX_BYTES
            content = answer.structured_content
            assert not answer.is_error, content
            rows.extend(content[kind])
            if content["job"]["state"] == "done" and content["next"] == after:
                break
            after = content["next"]
    return read["records"], read["failures"]


def test_the_tools_are_listed_called_and_collect_many_links(over: Over) -> None:
    """The list is short, results are bounded, and large jobs lose no record."""

    async def use(client: Client) -> tuple[list[Any], list[Any]]:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == {*SCRAPERS, "collect", "records"}
        assert sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in tools) < 15_000
        arguments = {"cat_id": "976759", "fields": ["products.name"]}
        found = await client.call_tool("retail-category-v4", arguments)
        assert not found.is_error
        assert {tuple(product) for product in found.structured_content["data"]["products"]} == {("name",)}
        whole = await client.call_tool("retail-category-v4", {"cat_id": "976759"})
        assert len(text_of(whole).encode()) <= MAX_BYTES < whole.structured_content["cut"]["bytes"]
        return await collected(client)

    records, failures = over(use)
    queries = [each["params"]["query"] for each in records if each["scraper"] == "retail-search-v4"]
    assert sorted(queries) == sorted(f"mustard {number}" for number in range(16))
    assert len(records) == len(LINKS) - FAILED
    assert sorted(each["code"] for each in failures) == ["INVALID_REQUEST", "TARGET_NOT_FOUND"]


# HTTP


@pytest.mark.parametrize(
    ("name", "prefix", "mode"),
    [("X-API-Key", "", "auto"), ("Authorization", "Bearer ", "legacy"), ("Authorization", "bearer ", "auto")],
)
def test_the_key_of_the_caller_is_passed_on(
    name: str, prefix: str, mode: str, clients: tuple[str, dict[str, str]]
) -> None:
    """Each caller is billed for its own calls, and sees its own jobs only."""
    url, keys = clients

    async def collect(client: Client) -> str:
        return str((await client.call_tool("collect", {"targets": LINKS[:1]})).structured_content["job"]["job_id"])

    async def read(client: Client) -> CallToolResult:
        return await client.call_tool("records", {"job_id": job, "wait": 0})

    job = over_http(url, collect, headers={name: prefix + keys["acme"]}, mode=mode)
    own = over_http(url, read, headers={name: prefix + keys["acme"]}, mode=mode)
    other = over_http(url, read, headers={name: prefix + keys["other"]}, mode=mode)
    assert own.structured_content["job"]["job_id"] == job
    assert other.structured_content["code"] == "JOB_NOT_FOUND"


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The URL of ``scrapy mcp --http`` for an endpoint with two clients, and their keys."""
    folder = tmp_path_factory.mktemp("clients")
    store = KeyStore(folder / "keys.sqlite3")
    keys = {name: store.create(name) for name in ("acme", "other")}
    with (
        running(folder / "log", f"KEYS_FILE={store.path}", "SANDBOX=1", sandbox=False) as service,
        http_server(service, CRAWLER_MCP_API_KEY=keys["other"]) as url,
    ):
        yield url, keys


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "MISSING_API_KEY"),
        ({"Authorization": "Bearer nonsense"}, "INVALID_API_KEY"),
        ({"Authorization": "Bearer schl\u00fcssel"}, "INVALID_API_KEY"),
        ({"Authorization": "Bearer one", "X-API-Key": "another"}, "INVALID_API_KEY"),
    ],
)
def test_a_call_without_a_valid_key_is_an_error(
    clients: tuple[str, dict[str, str]], headers: dict[str, str], code: str
) -> None:
    """Also if the command has a key in its environment."""
    answer = over_http(clients[0], lambda client: client.call_tool("retail-search-v4", {"query": "x"}), headers=headers)
    assert (answer.is_error, answer.structured_content["code"]) == (True, code)


def test_a_proxy_may_pass_on_the_name_of_the_service(http_url: str) -> None:
    """And a request that is not JSON is refused."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    assert http_call(http_url, "/mcp", body, headers={**JSON, "Host": "tools.example.com"}).status == 200
    assert http_call(http_url, "/mcp", b'{"id": 7, "method": "\\ud800"}', headers=JSON).status == 400
    assert http_call(http_url, "/other", body, headers=JSON).status == 404


def test_an_address_in_use_is_named(http_url: str) -> None:
    address = http_url.removeprefix("http://").removesuffix("/mcp")
    command = [*COMMAND, "--url", "http://127.0.0.1:9", "--http", address]
    done = forks.run(command)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"Cannot listen on {address}: Address already in use" in done.stderr


# Standard input and output


def message(number: int | str, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def test_standard_output_has_only_json_rpc(service: Service, tmp_path: Path) -> None:
    """Logs, even debug messages, go to standard error. The process exits when its input ends.

    Lines that are not JSON in UTF-8 have no response: the SDK logs them.
    """
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with (tmp_path / "log").open("w") as stderr:
        process = subprocess.Popen(
            [*COMMAND, "--url", service.url, "-L", "DEBUG"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=environment(PYTHONWARNINGS="default", CRAWLER_MCP_API_KEY="sandbox"),
        )
    assert process.stdin
    assert process.stdout
    lines = []
    process.stdin.write(message("\ud800", "tools/list"))  # cannot be answered, because no text can contain this id
    process.stdin.write("no JSON\n")
    for sent in (
        message(1, "initialize", **info),
        message(2, "tools/list"),
        message(3, "tools/call", name="retail-category-v4", arguments={"cat_id": "976759"}),
        message(4, "tools/call", name="retail-search-v4", arguments={"query": float("nan")}),
    ):
        process.stdin.write(sent)
        process.stdin.flush()
        lines.append(process.stdout.readline())
    rest, _ = process.communicate(timeout=TIMEOUT)
    received = [json.loads(line) for line in [*lines, *rest.splitlines()]]
    assert [(each["jsonrpc"], each["id"]) for each in received] == [("2.0", number) for number in range(1, 5)]
    assert received[2]["result"]["structuredContent"]["message"] == "The scrape is complete."
    assert received[3]["result"]["structuredContent"]["code"] == "INVALID_REQUEST"
    assert process.returncode == 0
    log = (tmp_path / "log").read_text()
    assert "event=tool_call tool=retail-category-v4 code=OK" in log
    assert "level=debug" in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "the following arguments are required: --url"),
        (["--url", "localhost:8000"], "expected a URL such as http://127.0.0.1:8000, not 'localhost:8000'"),
        (
            ["--url", "http://127.0.0.1:9"],
            "Set the environment variable CRAWLER_MCP_API_KEY to an API key of the endpoint",
        ),
        (["--url", "http://127.0.0.1:9", "x"], "Unexpected arguments: x."),
        (["--url", "https://me:secret@127.0.0.1:9"], "expected a URL without user name, password, query and fragment"),
        (["--url", "https://127.0.0.1:9/?key=secret"], "expected a URL without user name, password"),
        (["--url", "http://127.0.0.1:9", "--http", "9000"], "expected host:port, not '9000'"),
    ],
)
def test_wrong_options_are_reported_in_one_sentence(
    options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = Command()
    command.settings = get_project_settings()
    parser = argparse.ArgumentParser()
    command.add_options(parser)

    def run() -> None:
        opts, args = parser.parse_known_args(options)
        command.process_options(args, opts)
        command.run(args, opts)

    with pytest.raises((SystemExit, UsageError)) as raised:
        run()
    assert sentence in f"{capsys.readouterr().err}{raised.value}"


def run(**settings: str) -> None:
    """Run the command with these settings and valid options."""
    command = Command()
    command.settings = Settings(settings)
    command.run([], argparse.Namespace(url="http://127.0.0.1:9", http=None))


@pytest.mark.parametrize("key", ["secret\n", "secret key", "schl\u00fcssel-secret"])
def test_a_key_that_is_no_header_value_is_refused_without_quoting_it(key: str) -> None:
    with pytest.raises(UsageError, match="CRAWLER_MCP_API_KEY is not an API key") as raised:
        run(MCP_API_KEY=key)
    assert "secret" not in str(raised.value)


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.commands.mcp.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="install the extra 'mcp'"):
        run(MCP_API_KEY="x")
