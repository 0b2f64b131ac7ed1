"""Every command in the README and the documentation works when it is pasted, with the sandbox as the platforms.

Code blocks with the language ``bash`` are run. The blocks of a page run in order, in one shell and one folder. The test
prepares nothing: the files and variables that a command needs must come from earlier blocks. A word after the language
marks a block that is handled differently (``MARKS``); its commands and options are parsed. Blocks of Python, JSON and
SQL are checked, too.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import json
import os
import random
import re
import shlex
import shutil
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

from tests import forks
from tests.crawls import ROOT
from tests.doc_commands import check_block

pytestmark = pytest.mark.meta

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))
WITH_COMMANDS = ["CONTRIBUTING.md", *PAGES]
MARKS = {
    "background": "a server, which runs until the page ends",
    "internet": "parsed, not run: it needs the internet",
    "setup": "parsed, not run: it installs the project, or runs its tests",
    "host": "parsed, not run: it needs a server or a cluster of its own",
    "duckdb": "SQL over JSON Lines; without this word, over the database out.db",
    "dlt": "needs dlt, which the extra dev installs",
}
PARSED = ("internet", "setup", "host")
IN_A_COPY = "docs/extending.md"
"""The page whose blocks change the project, so that they run in a copy of it: ``test_extending.py``."""
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\s*(\S+=\S+ )*(scrapy|scripts/|curl|pip|duckdb|psql|docker|kubectl|export|cd) ?", re.MULTILINE)
BASH = "/bin/bash"
SECONDS = 300
PORT = re.compile(r"(127\.0\.0\.1:|--port |http\.server )(8\d{3})\b")
PORTS = {80: 2, 89: 6}
"""First two digits of a documented port -> number of ports needed: the sandbox uses one per platform."""
REAL_PLATFORMS = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
"""Environment variables that make requests to real platforms fail."""


@dataclass(frozen=True)
class Block:
    """A fenced code block of a documentation page."""

    language: str
    mark: str
    text: str


def blocks(page: str) -> list[Block]:
    """Return the code blocks of a page."""
    found = []
    for info, text in BLOCK.findall((ROOT / page).read_text()):
        language, _, mark = info.partition(" ")
        found.append(Block(language, mark, text))
    return found


def free_ports(number: int) -> int:
    """Return the first of ``number`` consecutive free ports on loopback, which no program is given by chance."""
    while True:
        first = random.randrange(20_000, 32_000)  # noqa: S311  # below the ports of connections, on Linux and macOS
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + number):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first


class Shell:
    """Runs the blocks of a page in one shell, in a folder that looks like the project folder after the demo was run."""

    def __init__(self, folder: Path, project: Path = ROOT) -> None:
        """``project``: the folder from which the package is imported."""
        self.folder, self.project = folder, project
        self.ports = {digits: free_ports(number) for digits, number in PORTS.items()}
        self.servers: list[subprocess.Popen[bytes]] = []
        if not (folder / "scrapy.cfg").exists():
            shutil.copy(ROOT / "scrapy.cfg", folder)
        self._make_environment(folder / ".venv" / "bin")
        path = f"{folder}/.venv/bin{os.pathsep}{os.environ['PATH']}"
        unset = {name for name in os.environ if name.startswith("CRAWLER_")}
        inherited = {name: value for name, value in os.environ.items() if name not in unset}
        self.env = {**inherited, **REAL_PLATFORMS, "PATH": path, "PYTHONPATH": str(project)}
        self.bash = subprocess.Popen(
            [BASH], cwd=folder, env=self.env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._blocks = itertools.count(1)

    def _make_environment(self, programs: Path) -> None:
        """Make a virtual environment of links to the real one. Its ``scrapy`` runs in a fork, so it starts fast.

        A fork has this project's modules, so the commands of another project do not run in one.
        """
        command = forks.client_command() if self.project == ROOT else [sys.executable, "-m", "scrapy"]
        programs.mkdir(parents=True)
        shutil.copy(Path(sys.prefix, "pyvenv.cfg"), programs.parent)
        (programs.parent / "lib").symlink_to(Path(sys.prefix, "lib"))
        for each in Path(sys.executable).parent.iterdir():
            (programs / each.name).symlink_to(each)
        for name, text in {
            "scrapy": f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n',
            "activate": f'export PATH="{programs}:$PATH"\n',
        }.items():
            (programs / name).unlink()
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)

    def run(self, block: Block) -> None:
        """Run a block to its end.

        Raises:
            AssertionError: one of its commands failed, or printed a response without success.
        """
        number = next(self._blocks)
        script, end = self.folder / f".block-{number}.sh", f"-- end of block {number} --"
        script.write_text(f"set -euo pipefail\n{self._placed(block.text)}\nset +u\nprintf '\\n%s\\n' '{end}'\n")
        assert self.bash.stdin is not None
        assert self.bash.stdout is not None
        self.bash.stdin.write(f". {shlex.quote(str(script))} </dev/null\n")
        self.bash.stdin.flush()
        printed = list(itertools.takewhile(lambda line: line.rstrip("\n") != end, self.bash.stdout))
        text = "".join(printed)
        assert self.bash.poll() is None, f"{block.text}\n{text[-4_000:]}"
        assert '"success":false' not in text.replace(" ", ""), f"{block.text}\n{text[-2_000:]}"

    def serve(self, block: Block) -> None:
        """Run a block that starts a server, and wait until the server prints its first line, which is its address.

        Raises:
            AssertionError: the server ended without a line.
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
        """Stop the shell and the servers."""
        self.bash.communicate("exit\n" if self.bash.poll() is None else None, timeout=SECONDS)
        for process in self.servers:
            process.send_signal(signal.SIGTERM)
        for process in self.servers:
            process.wait(SECONDS)
            assert process.stdout is not None
            process.stdout.close()

    def _placed(self, text: str) -> str:
        """Replace the ports in a block by free ones."""
        return PORT.sub(lambda found: f"{found[1]}{self.ports[int(found[2][:2])] + int(found[2][2:])}", text)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    started = Shell(tmp_path)
    with contextlib.closing(started):
        yield started


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_blocks_are_marked(page: str) -> None:
    for block in blocks(page):
        assert not block.mark or (block.language in {"bash", "sql"} and block.mark in MARKS), block
        if not block.language:
            assert not COMMAND.search(block.text), f"mark the commands as bash:\n{block.text}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != IN_A_COPY and any(b.language == "bash" for b in blocks(page))]
)
def test_commands_run_as_pasted(page: str, shell: Shell) -> None:
    follow(page, shell)


def follow(page: str, shell: Shell) -> None:
    """Run the blocks of a page in their order."""
    for block in blocks(page):
        match block:
            case Block("bash", ""):
                shell.run(block)
            case Block("bash", "background"):
                shell.serve(block)
            case Block("bash", "dlt"):
                pytest.importorskip("dlt", reason="needs dlt: pip install -e '.[dev]'")
                shell.run(block)
            case Block("sql", mark):
                shell.query(block, duckdb.connect() if mark == "duckdb" else sqlite3.connect(shell.folder / "out.db"))


@pytest.mark.parametrize("page", [page for page in WITH_COMMANDS if any(b.mark in PARSED for b in blocks(page))])
def test_commands_that_cannot_run_here_have_valid_options(
    page: str, record_property: Callable[[str, object], None]
) -> None:
    """At the end of the test output, ``tests/conftest.py`` lists the commands that were only parsed, not run."""
    for block in blocks(page):
        if block.mark in PARSED:
            for command in check_block(block.text):
                record_property("parsed", f"{page} ({block.mark}): {command}")


def test_the_sql_examples_show_prices_first() -> None:
    """SQLite sorts nulls first, so the examples must exclude them."""
    examples = [block for page in PAGES for block in blocks(page) if block.language == "sql"]
    ordered = [
        line for block in examples for line in block.text.splitlines() if "price" in line and "order by 2" in line
    ]
    assert len(ordered) == 2
    table = "(select 'x' as name, column1 as price_current_price, 1 as availability_in_stock from (values (null), (3)))"
    products = "retail_category_v4_products"
    statement = next(line for line in ordered if products in line).replace(products, table)
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
