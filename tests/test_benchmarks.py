"""The parts of the benchmarks that need no measurement: ratios, goals, tables, the report of several runs, its plot."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import ClassVar

import pytest

from benchmarks import __main__ as command
from benchmarks.callers import Job, Result, products
from benchmarks.callers import run as call
from benchmarks.crawl import TARGETS, write_targets
from benchmarks.endpoint import percentile
from benchmarks.figures import Figure, Ratio, Table, ratio
from benchmarks.opponents.http import Messages, get, ok, post
from benchmarks.opponents.listing import requests
from benchmarks.opponents.pages import LIMIT, category_pages
from benchmarks.report import goals, goals_grid, results
from benchmarks.runs import Run
from benchmarks.workers import shares

ENDPOINT = Figure("endpoint", "calls/s", [600.0, 300.0, 500.0])
OTHER = Figure("scrapyrt", "calls/s", [100.0, 50.0, 125.0])


def table(*ratios: Ratio, title: str = "A call") -> Table:
    return Table(title, "Conditions.", [ENDPOINT, OTHER], list(ratios))


def run(*tables: Table, day: str = "2026-11-22") -> Run:
    return Run("Python 3.11, 2 cores", day, 3, list(tables))


def rows(text: str) -> list[list[str]]:
    """Return the cells of all rows of the Markdown tables in a text."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def test_sp_7_a_ratio_is_taken_in_each_round() -> None:
    found = ratio("calls/s", ENDPOINT, OTHER, at_least=6)
    assert list(found.values) == [6.0, 6.0, 4.0]
    assert (found.median, found.spread) == (6.0, (4.0, 6.0))


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ({}, None),
        ({"at_least": 6.0}, True),
        ({"at_least": 6.1}, False),
        ({"at_most": 6.0}, True),
        ({"at_most": 5.9}, False),
    ],
)
def test_a_goal_is_compared_with_the_median(goal: dict[str, float], expected: object) -> None:
    assert Ratio("calls/s", "", [6.0, 6.0, 4.0], **goal).is_reached is expected


def three_runs() -> list[Run]:
    """Three runs with the medians 4, 5 and 7. The second lacks a ratio, and only the last has a second table."""
    values = [[3.0, 4.0, 9.0], [5.0, 5.0, 5.0], [7.0, 2.0, 8.0]]
    first, second, third = (Ratio("endpoint / scrapyrt", "", each, at_least=6) for each in values)
    noise = Ratio("twice", "", [1.0, 1.1, 0.9])
    return [
        run(table(first, noise)),
        run(table(second)),
        run(table(third, noise), table(Ratio("page", "", [1.0], at_most=2), title="Reading"), day="2026-11-23"),
    ]


def test_a_report_has_three_runs_side_by_side() -> None:
    found = results(three_runs(), "## What is left, and why\n\nScrapy.\n")
    assert ["endpoint / scrapyrt", "≥ 6", "4.00", "5.00", "7.00", "2.00 to 9.00", "no"] in rows(found)
    assert ["twice", "", "1.00", "–", "1.00", "0.900 to 1.10", ""] in rows(found)
    assert ["page", "≤ 2", "–", "–", "1.00", "1.00 to 1.00", "yes"] in rows(found)
    assert re.findall("^#+ .*", found, re.MULTILINE) == [
        "# Benchmark results",
        "## Goals",
        "## A call",
        "## Reading",
        "## What is left, and why",
    ]
    assert found.endswith("\n\nScrapy.\n")
    assert "- run 3, 2026-11-23: Python 3.11, 2 cores\n" in found


def test_the_command_writes_the_file_and_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Module:
        @staticmethod
        def run(rounds: int) -> Table:
            return Table("A call", f"{rounds} rounds", [], [Ratio("a / b", "", [1.0] * rounds, at_least=1)])

    monkeypatch.setattr(command, "import_module", lambda _: Module)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    for folder in ("benchmarks", "docs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "benchmarks/notes.md").write_text("## Notes\n")
    command.main(["endpoint", "--rounds", "2", "--json", str(tmp_path / "run.json")])
    command.main(["report", *[str(tmp_path / "run.json")] * 3])
    assert ["a / b", "≥ 1", "1.00", "1.00", "1.00", "1.00 to 1.00", "yes"] in rows(
        (tmp_path / "benchmarks/RESULTS.md").read_text()
    )
    assert "| A call | a / b | ≥ 1 | 1.00 | yes |" in (tmp_path / "benchmarks/RESULTS.md").read_text()
    assert "1.00 × (goal 1)" in (tmp_path / "docs/benchmarks.svg").read_text()


def test_the_goals_have_the_medians_of_the_runs() -> None:
    assert rows(goals_grid(goals(three_runs()))) == [
        ["benchmark", "ratio", "goal", "median of the runs", "reached"],
        ["---"] * 5,
        ["A call", "endpoint / scrapyrt", "≥ 6", "5.00", "no"],
        ["Reading", "page", "≤ 2", "1.00", "yes"],
    ]


@pytest.mark.parametrize(("share", "expected"), [(50, 2.0), (75, 3.0), (76, 4.0), (95, 4.0), (99, 4.0)])
def test_sp_10_percentiles_are_measured_values(share: int, expected: float) -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], share) == expected


@pytest.mark.parametrize(
    "body",
    [
        b'{"data": {"products": [{"item_id": "1", "name": "Tea", "price": {}}]}}',
        b'{"items": [{"products": [{"item_id": "1", "name": "Tea"}]}]}',
        b'{"items": [{"item_id": "1", "name": "Tea", "rating": 3}]}',
    ],
    ids=["endpoint", "scrapyrt_with_records", "scrapyrt_with_items"],
)
def test_products_are_found_in_the_responses_of_all_servers(body: bytes) -> None:
    assert products(body) == [("1", "Tea")]


def test_workers_are_counted_in_the_log() -> None:
    log = "event=call code=OK worker=0\nevent=call worker=1\nevent=other worker=1\nevent=call worker=1\n"
    assert shares(log) == [2 / 3, 1 / 3]


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


class Patient(Messages):
    """A server that responds to none of its requests until ten have arrived."""

    waiting: ClassVar[list[Patient]] = []

    def message_received(self, head: bytes, body: bytes) -> None:
        self.waiting.append(self)
        if len(self.waiting) == 10:
            for each in self.waiting:
                each.transport.write(ok(b'{"items": []}'))


def test_calls_at_a_fixed_rate_do_not_wait_for_the_responses_of_earlier_ones() -> None:
    async def calling() -> Result:
        server = await asyncio.get_running_loop().create_server(Patient, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            return await call(Job(port, get("127.0.0.1", "/").decode(), 1, 0.05, [], rate=200))

    assert len(asyncio.run(calling()).latencies) == 10


def test_every_target_of_the_crawls_is_another_one_with_a_ready_page(tmp_path: Path) -> None:
    write_targets(tmp_path / "targets.jsonl")
    urls = [each.url for each in requests(str(tmp_path / "targets.jsonl"), "http://shop")]
    assert len(set(urls)) == TARGETS
    paths = {url.removeprefix("http://shop").encode().partition(LIMIT)[0] for url in urls}
    assert paths == category_pages().keys()
