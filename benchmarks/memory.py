"""Memory: a long crawl, a large job, and two workers of the endpoint.

``python -m benchmarks.memory STORE`` works a job in a process of its own, and prints the memory of the process after a
fifth of its targets and at the end.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import orjson

from benchmarks import callers
from benchmarks.crawl import Crawls
from benchmarks.endpoint import endpoint, expected_products, shop
from benchmarks.figures import Figure, Table
from benchmarks.opponents.pages import LIGHT
from benchmarks.stack import ROOT, pss_megabytes, resident_megabytes
from crawler.jobs.job import Finished, InputLine
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.worker import BATCH, Worker
from crawler.targets.target import target_key

CRAWLED, WORKED = 50_000, 200_000
MEGABYTES = "MB"
CONDITIONS = f"""\
One measurement per run. Resident memory of the process of a crawl of {CRAWLED:,} targets, as in the benchmark of
crawls, and of a process that pushes a job of {WORKED:,} targets to a store in SQLite and works them: it claims and
finishes them in batches of {BATCH}, each with a record of 6 products. Both after a fifth of the targets and at the end.
"Two workers" is the proportional set size (PSS) of all processes of `scrapy serve --workers 2` after some hundred
calls: what several processes share is divided among them."""


def crawl() -> list[float]:
    """Return the memory of a crawl after a fifth of its requests, and its last one."""
    found = [0.0, 0.0]

    def watch(pid: int, requested: int) -> None:
        if now := resident_megabytes(pid):
            found[:] = [now if requested <= CRAWLED / 5 else found[0], now]

    with shop() as (running, origin):
        Crawls(running, origin).own(CRAWLED, watch)
    return found


def workers() -> float:
    """Return the memory of an endpoint with two workers after calls."""
    with shop() as (running, _):
        server = endpoint(running, "--workers", "2")
        callers.run(server.request(LIGHT), server.port, 8, 2, expected_products(LIGHT))
        return pss_megabytes(server.pid)


def lines() -> Iterator[InputLine]:
    """Yield the lines of a job's input."""
    for row in range(WORKED):
        params = {"query": f"query {row}"}
        yield InputLine(row, str(row), target_key("retail-search-v4", params), "retail", {"params": params})


async def work(store: str) -> list[float]:
    """Push a job and work it."""
    record = orjson.loads(
        (ROOT / "tests/fixtures/crawler.platforms.retail.pages.SearchPage/search/output.json").read_bytes()
    )
    jobs = Jobs(store)
    job = await jobs.begin("worked")
    await jobs.push(job, lines())
    await jobs.open(job)
    done, idle, found = 0, asyncio.Event(), []

    def on_stored(_: Finished) -> None:
        if not worker.held:
            idle.set()

    async with Worker(jobs.writes, on_stored) as worker:
        while done < WORKED:
            claims = await worker.claim("retail", BATCH)
            for claim in claims:
                worker.finish(Finished(claim, "done", "OK", {"warnings": []}, record))
            await idle.wait()
            idle.clear()
            done += len(claims)
            if done in {WORKED // 5, WORKED}:
                found.append(resident_megabytes())
    await jobs.close()
    return found


def worked() -> list[float]:
    """Work a job in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.memory", f"{folder}/store.sqlite3"]
        return [float(each) for each in json.loads(subprocess.check_output(command, cwd=ROOT))]


def run(_rounds: int) -> list[Table]:
    """Measure all three."""
    table = Table("Memory", CONDITIONS)
    for name, (early, late) in ((f"crawl of {CRAWLED:,}", crawl()), (f"job of {WORKED:,}", worked())):
        table.figures.append(Figure(f"{name}, after a fifth", MEGABYTES, [early]))
        table.figures.append(Figure(f"{name}, at the end", MEGABYTES, [late]))
        table.figures.append(Figure(f"{name}: end to a fifth", "", [late / early], at_most=1.05))
    table.figures.append(Figure("two workers", MEGABYTES, [workers()], at_most=200))
    return [table]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(work(sys.argv[1]))))
