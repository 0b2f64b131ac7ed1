"""``scrapy mcp`` as a process: its protocol on standard output, its options and its errors."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import PARSE_ERROR, CallToolResult
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from crawler.commands.mcp import Command
from crawler.mcp.tools import COLLECT, RECORDS
from tests.crawls import ROOT
from tests.mcp.clients import SCRAPERS, TIMEOUT
from tests.service.conftest import Service

COMMAND = (sys.executable, "-m", "scrapy", "mcp")


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **variables}


def message(number: int | str, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"


def test_standard_output_has_only_json_rpc_with_the_sandbox(tmp_path: Path) -> None:
    """Logs, even debug messages, go to standard error. The process exits when its input ends, with all its children."""
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with (tmp_path / "log").open("w") as stderr:
        process = subprocess.Popen(
            [*COMMAND, "--sandbox", "-L", "DEBUG", "-s", f"STORE={tmp_path / 'service.sqlite3'}"],
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
    process.stdin.write(message("\ud800", "tools/list"))  # cannot be answered, because no text can contain this id
    for sent in (
        message(1, "initialize", **info),
        message(2, "tools/list"),
        message(3, "tools/call", name="retail-category-v4", arguments={"cat_id": "976759"}),
        message(4, "tools/call", name="retail-search-v4", arguments={"query": "\ud800"}),
    ):
        process.stdin.write(sent)
        process.stdin.flush()
        lines.append(process.stdout.readline())
    rest, _ = process.communicate(timeout=TIMEOUT)
    received = [json.loads(line) for line in [*lines, *rest.splitlines()]]
    assert [(each["jsonrpc"], each["id"]) for each in received] == [("2.0", 1), ("2.0", 2), ("2.0", 3), ("2.0", 4)]
    assert received[2]["result"]["structuredContent"]["status"]["code"] == "OK"
    assert received[3]["error"]["code"] == PARSE_ERROR, "AT-7: a lone surrogate got no answer"
    assert "surrogate" in received[3]["error"]["message"]
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
    assert names == {*SCRAPERS, COLLECT, RECORDS}
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
