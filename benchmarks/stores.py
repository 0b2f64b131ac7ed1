"""The rates and the memory of outputs and stores: databases, JSON lines, usage counts and targets files."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.databases import postgresql
from benchmarks.figures import Figure, Table, ratio
from benchmarks.records import SCRAPER, records
from benchmarks.stack import ROOT
from crawler.jobs.store import Store
from crawler.outputs.sql_feed import open_database, split_password
from crawler.service.usage import Usage
from crawler.targets.files.source import FileSource
from crawler.targets.parser import TargetParser
from crawler.targets.target import Target

SQL_ROWS = 100_000
"""Rows that all rounds write together."""
ROWS_PER_WRITE = 1_000
FILE_LINES = 20_000
EXPORTED_ROWS = 20_000
USAGE_CALLS = 10_000
CLIENTS = 20
"""Clients of the usage counts. Each calls all of ``SCRAPERS``, with all of ``CODES``."""
SCRAPERS = 10
CODES = ("OK", "TARGET_NOT_FOUND", "UPSTREAM_TIMEOUT")
CALLS_PER_FLUSH = 250

CONDITIONS = f"""\
Each line is the work of one process without a crawl. SQL: rows of products from records of a search, converted from
the records and written, {ROWS_PER_WRITE:,} in a transaction. All rounds together write {SQL_ROWS:,} different rows into
one database, each round its share, so the spread contains the growth of the table. "Replaced rows" are a quarter of
the first round's, written once more in each round. A commit of PostgreSQL waits for the disk, one of SQLite does not.
JSON lines: the peak of a process that writes {EXPORTED_ROWS:,} rows of products, and
of a process that makes the rows and writes nothing. Usage: the bytes by which the store of the usage counts grows for
{USAGE_CALLS:,} calls of {CLIENTS} clients to {SCRAPERS} scrapers with {len(CODES)} codes, on a new day and later on the
same day. Targets file: {FILE_LINES:,} JSON lines per round, read and validated. Rates are by the clock."""


def write_sql(url: str, rounds: int) -> tuple[list[float], list[float]]:
    """Write all rows. Return the rows per second of each round: of new rows, and of replaced rows."""
    database = open_database(*split_password(url))
    database.prepare([SCRAPER])
    share = SQL_ROWS // rounds

    def rows_per_second(rows: int, first: int = 0) -> float:
        found = [{**each.provenance(), "data": each.data} for each in records(rows, first)]
        batches = [found[start : start + per_write] for start in range(0, len(found), per_write)]
        begin = time.perf_counter()
        for batch in batches:
            database.write(batch)
        return rows / (time.perf_counter() - begin)

    per_write = max(ROWS_PER_WRITE // len(next(records(ROWS_PER_WRITE))["products"]), 1)
    new = [rows_per_second(share, number * share) for number in range(rounds)]
    replaced = [rows_per_second(share // 4) for _ in range(rounds)]
    database.close()
    return new, replaced


def sql_figures(name: str, url: str, rounds: int) -> list[Figure]:
    """Measure the tables of a database."""
    new, replaced = write_sql(url, rounds)
    return [Figure(f"{name}, new rows", "rows/s", new), Figure(f"{name}, replaced rows", "rows/s", replaced)]


def exported(kind: str, folder: Path) -> float:
    """Export rows in a process of its own. Return the peak of its memory in MB."""
    command = [sys.executable, "-m", "benchmarks.exports", kind, str(EXPORTED_ROWS), str(folder / kind)]
    return float(subprocess.check_output(command, cwd=ROOT, text=True).split()[0])


async def usage_growth(folder: Path) -> tuple[float, float]:
    """Count calls in a new store. Return the bytes by which it grows on a new day, and later on the same day."""
    sizes: list[int] = []
    for _ in range(3):
        store = Store(str(folder / "usage.sqlite3"))
        usage = Usage(store)
        await store.transact(lambda session: session.rows("SELECT * FROM usage"))
        for number in range(USAGE_CALLS if sizes else 0):
            scraper, code = f"scraper-{number % SCRAPERS}", CODES[number // SCRAPERS % len(CODES)]
            usage.count(f"client-{number // (SCRAPERS * len(CODES)) % CLIENTS}", scraper, code, billable=True)
            if number % CALLS_PER_FLUSH == 0:
                await usage.flush()
        await usage.flush()
        await store.close()
        sizes.append(size_of(folder))
    empty, first, second = sizes
    return first - empty, second - first


def size_of(folder: Path) -> int:
    """Return the size of all files in a folder."""
    return sum(file.stat().st_size for file in folder.iterdir())


async def read_targets(file: Path) -> float:
    """Read a targets file. Return the targets per second.

    Raises:
        SystemExit: a line is not a target.
    """
    source = FileSource(TargetParser((SCRAPER,)), str(file))
    await source.open()
    begin = time.perf_counter()
    read = [each async for each in source]
    seconds = time.perf_counter() - begin
    if sum(isinstance(each, Target) for each in read) != FILE_LINES:
        raise SystemExit("A line of the targets file is not a target.")
    return FILE_LINES / seconds


def memory_figures(rounds: int, folder: Path) -> list[Figure]:
    """Measure the exports in turn."""
    names = {"nothing": "making the rows", "jsonlines": "JSON lines"}
    values = {kind: [0.0] * rounds for kind in names}
    for number in range(rounds):
        for kind in names:
            values[kind][number] = exported(kind, folder)
    return [Figure(f"{name}, peak memory", "MB", values[kind]) for kind, name in names.items()]


def usage_figures(rounds: int, folder: Path) -> list[Figure]:
    """Measure the growth of the usage counts."""
    found = []
    for number in range(rounds):
        own = folder / f"usage-{number}"
        own.mkdir()
        found.append(asyncio.run(usage_growth(own)))
    names = ("on a new day", "later on the same day")
    unit = f"bytes per {USAGE_CALLS:,} calls"
    return [
        Figure(f"usage, {name}", unit, values) for name, values in zip(names, zip(*found, strict=True), strict=True)
    ]


def run(rounds: int = 5) -> Table:
    """Measure all stores. Databases that are not installed are named in the conditions, and have no figures."""
    figures: list[Figure] = []
    missing: list[str] = []
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        figures += sql_figures("SQLite", f"sqlite:///{folder}/out.db", rounds)
        measures: dict[str, tuple[str | None, Callable[[str], list[Figure]]]] = {
            "PostgreSQL": (running.enter_context(postgresql()), lambda url: sql_figures("PostgreSQL", url, rounds)),
        }
        for name, (url, measure) in measures.items():
            if url is None:
                missing.append(name)
            else:
                figures += measure(url)
        file = folder / "targets.jsonl"
        file.write_text("".join(json.dumps({"id": str(n), "query": "mustard"}) + "\n" for n in range(FILE_LINES)))
        reading = [asyncio.run(read_targets(file)) for _ in range(rounds)]
        figures.append(Figure("targets file", "targets/s", reading))
        made, lines = memory = memory_figures(rounds, folder)
        figures += memory + usage_figures(rounds, folder)
    absent = f" Not measured, because not installed: {', '.join(missing)}." if missing else ""
    table = Table("Stores", CONDITIONS + absent, figures)
    table.ratios.append(ratio("JSON lines to making the rows, peak memory", lines, made))
    return table
