"""The parts of the benchmarks that need no measurement: rounds, ratios, goals, the report of several runs."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import report
from benchmarks.callers import products, repeat
from benchmarks.crawl import Crawls
from benchmarks.figures import Figure, Table, in_turn, ratio
from benchmarks.opponents.http import Messages, get, ok, post
from benchmarks.opponents.pages import LIMIT
from benchmarks.opponents.work import requests
from benchmarks.reading import block_of
from benchmarks.report import Run
from benchmarks.stack import Stack

pytestmark = pytest.mark.meta

ENDPOINT = Figure("endpoint", "calls/s", [600.0, 300.0, 500.0])
BLOCK = b'{"a": [{"b": "x"}]}'
OTHER = Figure("scrapyrt", "calls/s", [100.0, 50.0, 125.0])


def run(*figures: Figure, title: str = "A call", day: str = "2026-11-22") -> Run:
    return Run("Python 3.11, 2 cores", day, [Table(title, "Conditions.", [*figures])])


def rows(text: str) -> list[list[str]]:
    """Return the cells of all rows of the Markdown tables in a text."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def test_each_round_begins_with_another_opponent() -> None:
    ran: list[str] = []

    def measure(name: str) -> dict[str, float]:
        ran.append(name)
        return {"s": float(len(ran)), "MB": 1.0}

    found = in_turn({name: partial(measure, name) for name in "abc"}, 2, warm_up=1)
    assert "".join(ran) == "cababcbca"
    assert [(each.name, each.unit, each.values) for each in found.values()] == [
        ("a", "s", [4.0, 9.0]),
        ("a", "MB", [1.0, 1.0]),
        ("b", "s", [5.0, 7.0]),
        ("b", "MB", [1.0, 1.0]),
        ("c", "s", [6.0, 8.0]),
        ("c", "MB", [1.0, 1.0]),
    ]


def test_a_ratio_is_taken_in_each_round() -> None:
    found = ratio("calls/s", ENDPOINT, OTHER, at_least=6)
    assert (found.values, found.median) == ([6.0, 6.0, 4.0], 6.0)


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ({}, ("", "")),
        ({"at_least": 6.0}, ("≥ 6", "yes")),
        ({"at_least": 6.1}, ("≥ 6.1", "no")),
        ({"at_most": 6.0}, ("≤ 6", "yes")),
        ({"at_most": 5.9}, ("≤ 5.9", "no")),
    ],
)
def test_a_goal_is_compared_with_the_median(goal: dict[str, float], expected: tuple[str, str]) -> None:
    figure = Figure("calls/s", "", [6.0, 6.0, 4.0], **goal)
    assert (figure.goal, figure.reached) == expected


def three_runs() -> list[Run]:
    """Three runs with the medians 4, 5 and 7. The second lacks a figure, and only the last has calls in a row."""
    values = [[3.0, 4.0, 9.0], [5.0, 5.0, 5.0], [7.0, 2.0, 8.0]]
    first, second, third = (Figure("endpoint / scrapyrt", "", each, at_least=6) for each in values)
    noise = Figure("twice", "", [1.0, 1.1, 0.9])
    last = run(third, noise, day="2026-11-23")
    calls = [Figure("retail, call 1", "s", [0.71], at_most=3), Figure("retail, call 2", "s until a retry", [52.0])]
    last.tables += run(*calls, title=report.AT_REST).tables
    return [run(first, noise), run(second), last]


def test_a_report_has_three_runs_side_by_side(tmp_path: Path) -> None:
    for folder in ("benchmarks", "docs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "benchmarks/notes.md").write_text("## What is left, and why\n\nScrapy.\n")
    page = tmp_path / "docs/speed.md"
    parts = ("goals", "calls in a row")
    page.write_text("# Speed\n\n" + "\n".join(f"<!-- {each} -->\nold\n<!-- end of {each} -->\n" for each in parts))
    report.write(three_runs(), tmp_path)
    found = (tmp_path / "benchmarks/RESULTS.md").read_text()
    assert ["endpoint / scrapyrt", "", "≥ 6", "4.00", "5.00", "7.00", "2.00 to 9.00", "no"] in rows(found)
    assert ["twice", "", "", "1.00", "–", "1.00", "0.900 to 1.10", ""] in rows(found)
    assert re.findall("^#+ .*", found, re.MULTILINE) == [
        "# Benchmark results",
        "## Goals",
        "## A call",
        f"## {report.AT_REST}",
        "## What is left, and why",
    ]
    assert found.endswith("\n\nScrapy.\n")
    assert ["3", "2026-11-23", "Python 3.11, 2 cores"] in rows(found)
    assert rows(page.read_text()) == [
        ["benchmark", "figure", "goal", "median of the runs", "reached"],
        ["---"] * 5,
        ["A call", "endpoint / scrapyrt", "≥ 6", "5.00", "no"],
        ["scraper", "calls 1, 2"],
        ["---"] * 2,
        ["`retail`", "0.7, refused"],
    ]
    assert "old" not in page.read_text()


def test_the_command_writes_the_file_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Module:
        @staticmethod
        def run(rounds: int) -> list[Table]:
            return [Table("A call", f"{rounds} rounds", [Figure("a / b", "", [1.0] * rounds, at_least=1)])]

    monkeypatch.setattr(command, "import_module", lambda _: Module)
    command.main(["endpoint", "--rounds", "2", "--json", str(tmp_path / "run.json")])
    assert Run.read(tmp_path / "run.json").tables == Module.run(2)


@pytest.mark.parametrize(
    "body",
    [
        b'{"data": {"products": [{"item_id": "1", "name": "Tea", "price": {}}]}}',
        b'{"items": [{"item_id": "1", "name": "Tea", "rating": 3}]}',
    ],
    ids=["endpoint", "scrapyrt"],
)
def test_products_are_found_in_the_responses_of_all_servers(body: bytes) -> None:
    assert products(body) == [("1", "Tea")]


class Collected(Messages):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[bytes, bytes]] = []

    def message_received(self, head: bytes, body: bytes) -> None:
        self.found.append((head, body))


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_messages_are_split_wherever_their_bytes_are(size: int) -> None:
    sent = get("host", "/a") + post("host", "/b", b"12345") + ok(b"", "Content-Type: text/html")
    connection = Collected()
    for start in range(0, len(sent), size):
        connection.data_received(sent[start : start + size])
    assert [(head.split(b"\r\n")[0], body) for head, body in connection.found] == [
        (b"GET /a HTTP/1.1", b""),
        (b"POST /b HTTP/1.1", b"12345"),
        (b"HTTP/1.1 200 OK", b""),
    ]


class Echo(Messages):
    def message_received(self, head: bytes, body: bytes) -> None:
        self.transport.write(ok(body))


def test_callers_repeat_their_request() -> None:
    async def calling() -> tuple[float, list[bytes]]:
        server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
        async with server:
            found = await repeat(post("127.0.0.1", "/", b"x"), server.sockets[0].getsockname()[1], 3, 0.05)
            await asyncio.sleep(0.05)  # until the server's connections are closed
        return found

    seconds, bodies = asyncio.run(calling())
    assert set(bodies) == {b"x"}
    assert len(bodies) >= 3
    assert seconds >= 0.05


def test_every_target_of_the_crawls_is_another_one_with_a_ready_page(tmp_path: Path) -> None:
    running = Stack.__new__(Stack)
    running.folder = tmp_path
    targets = Crawls(running, "http://shop").targets(20)
    assert len({json.dumps(json.loads(line)) for line in Path(targets).read_text().splitlines()}) == 20
    urls = [each.url for each in requests(targets, "http://shop")]
    assert len(set(urls)) == 20
    assert {url.encode().partition(LIMIT)[0] for url in urls} == {b"http://shop/search?q=honey"}


@pytest.mark.parametrize(
    ("page", "mark"),
    [
        pytest.param(b'<script>1</script><script id="DATA">%b</script>', "DATA", id="in a script with an id"),
        pytest.param(b"<script>var data = %b;</script>", "var data", id="assigned to a variable"),
        pytest.param(b"<p>{<script>{}</script><script>%b</script>}", '"b"', id="beside another block"),
        pytest.param(b"<script>data({})</script><script>data = %b</script>", "data", id="the longest script"),
    ],
)
def test_the_plain_parse_of_a_block_is_that_of_its_json_alone(page: bytes, mark: str) -> None:
    assert block_of(page % BLOCK, mark) == BLOCK
