"""Every command of the README and the documentation works as it is written, against the sandbox.

A code block with the language ``bash`` is run; the blocks of a page share a folder, in the order of the page. A word
after the language marks a block that is not simply run (``MARKS``). Blocks of Python, JSON and SQL are checked, too.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from tests import forks
from tests.crawls import ROOT

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))
MARKS = {
    "background": "a server, which runs until the page ends",
    "internet": "not run: it needs the internet",
    "setup": "not run: it installs the project, or runs its tests",
    "host": "not run: it needs a server or a cluster of its own",
    "duckdb": "SQL over Parquet files; without this word, over the database out.db",
}
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\s*(\S+=\S+ )*(scrapy|scripts/|curl|pip|duckdb|psql|docker|kubectl|export|cd) ?", re.MULTILINE)
BASH = "/bin/bash"
SECONDS = 120
TARGETS = [{"id": "a1", "cat_id": "976759", "sort": "price_low"}, {"id": "a2", "query": "mustard", "page": 2}]


@dataclass(frozen=True)
class Block:
    """A fenced code block of a page."""

    language: str
    mark: str
    text: str


def blocks(page: str) -> list[Block]:
    """The code blocks of a page."""
    found = []
    for info, text in BLOCK.findall((ROOT / page).read_text()):
        language, _, mark = info.partition(" ")
        found.append(Block(language, mark, text))
    return found


def free_port() -> int:
    """A port of loopback that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Shell:
    """Runs the blocks of one page in a folder of their own."""

    def __init__(self, folder: Path, redis: Callable[[], str]) -> None:
        self.folder, self.redis, self.port = folder, redis, free_port()
        self.servers: list[subprocess.Popen[bytes]] = []
        (folder / "scrapy.cfg").write_text((ROOT / "scrapy.cfg").read_text())
        (folder / ".venv").symlink_to(sys.prefix)
        (folder / "targets.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in TARGETS))
        (folder / "targets.csv").write_text("id,cat_id,query,page\na1,976759,,\na2,,mustard,2\n")
        (folder / "page.html").write_bytes(Site().page(FakeRequest("/browse/976759"))[2])
        commands = folder / "commands"
        commands.mkdir()
        (commands / "scrapy").write_text(f'#!/bin/sh\nexec {shlex.join(forks.client_command())} "$@"\n')
        (commands / "scrapy").chmod(0o755)
        path = os.pathsep.join(map(str, (commands, Path(sys.executable).parent, os.environ["PATH"])))
        self.env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "CRAWLER_SANDBOX": "1"}

    def run(self, block: Block) -> None:
        """Run a block to its end.

        Raises:
            AssertionError: one of its commands failed.
        """
        done = subprocess.run(
            [BASH, "-euo", "pipefail", "-c", self._placed(block.text)],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{block.text}\n{done.stdout[-2_000:]}\n{done.stderr[-4_000:]}"
        assert '"success":false' not in done.stdout.replace(" ", ""), f"{block.text}\n{done.stdout[-2_000:]}"

    def serve(self, block: Block) -> None:
        """Start a server, and wait until it prints its address.

        Raises:
            AssertionError: it ended instead.
        """
        process = subprocess.Popen(
            [BASH, "-c", f"exec {self._placed(block.text).strip()}"],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.servers.append(process)
        assert process.stdout is not None
        assert process.stdout.readline(), f"it ended without a line: {block.text}"

    def query(self, block: Block, database: sqlite3.Connection | duckdb.DuckDBPyConnection) -> None:
        """Run a block of SQL.

        Raises:
            AssertionError: a query returned no rows.
        """
        with contextlib.chdir(self.folder), contextlib.closing(database):
            for statement in filter(str.strip, block.text.split(";")):
                assert database.execute(statement).fetchall(), statement

    def close(self) -> None:
        """Stop the servers."""
        for process in self.servers:
            process.send_signal(signal.SIGTERM)
        for process in self.servers:
            process.wait(SECONDS)
            assert process.stdout is not None
            process.stdout.close()

    def _placed(self, text: str) -> str:
        """The block with ports that are free here."""
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}").replace("--port 8000", f"--port {self.port}")
        if "127.0.0.1:6379" in text:
            text = text.replace("redis://127.0.0.1:6379/0", self.redis())
        return text


@pytest.fixture
def shell(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    started = Shell(tmp_path, lambda: str(request.getfixturevalue("redis_server")))
    with contextlib.closing(started):
        yield started


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_marked(page: str) -> None:
    for block in blocks(page):
        assert not block.mark or (block.language in {"bash", "sql"} and block.mark in MARKS), block
        if not block.language:
            assert not COMMAND.search(block.text), f"mark the commands as bash:\n{block.text}"


@pytest.mark.parametrize("page", [page for page in PAGES if any(b.language == "bash" for b in blocks(page))])
def test_commands_run_as_written(page: str, shell: Shell) -> None:
    for block in blocks(page):
        match block:
            case Block("bash", ""):
                shell.run(block)
            case Block("bash", "background"):
                shell.serve(block)
            case Block("sql", mark):
                shell.query(block, duckdb.connect() if mark == "duckdb" else sqlite3.connect(shell.folder / "out.db"))


def test_us_21_the_sql_examples_show_prices_first() -> None:
    """Nulls, which SQLite sorts first, are not what the examples are about."""
    examples = [block for block in blocks("docs/outputs.md") if block.language == "sql"]
    ordered = [
        line for block in examples for line in block.text.splitlines() if "price" in line and "order by 2" in line
    ]
    assert len(ordered) == 2
    table = "(select 'x' as name, column1 as price_current_price, 1 as availability_in_stock from (values (null), (3)))"
    statement = next(line for line in ordered if "retail_products" in line).replace("retail_products", table)
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        assert database.execute(statement).fetchall() == [("x", 3), ("x", None)]
    assert all("order by 2 nulls last" in line for line in ordered)


@pytest.mark.parametrize("page", PAGES)
def test_other_blocks_are_well_formed(page: str) -> None:
    for block in blocks(page):
        match block.language:
            case "python":
                ast.parse(block.text)
            case "json":
                json.loads(block.text)


@pytest.mark.parametrize("page", ["CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/RESULTS.md", *PAGES])
def test_lines_are_short_enough_for_a_diff(page: str) -> None:
    lines = (ROOT / page).read_text().splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []
