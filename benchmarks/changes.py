"""Comparing two runs of 50,000 products: as many targets as pages, or one listing with all pages.

``python -m benchmarks.changes STORE NAME`` compares the runs of a job in a store, and prints the counts, the processor
seconds of the comparison, and the peak of the process's memory in MB above its memory before.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, Table
from benchmarks.records import PRODUCTS, SCRAPER, records
from benchmarks.stack import ROOT, peak_megabytes
from crawler.jobs.changes import Comparison
from crawler.jobs.job import Claim, Finished, Followup, InputLine
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.options import JobOptions
from crawler.jobs.worker import BATCH, Worker

NUMBER, OF_PAGE = 50_000, 40
CHANGED = 10
"""Every tenth product has another price in the second run."""
PAGES = NUMBER // OF_PAGE
NAMES = ("targets", "one listing")
OUTCOME = {"warnings": [], "contract": "1", "fetched_at": "2026-11-26T00:00:00+00:00"}


def data_of(page: int, *, is_later: bool) -> dict[str, Any]:
    """Return the data of a page of products."""
    data = dict(next(records(OF_PAGE)))
    products = zip(range(page * OF_PAGE, (page + 1) * OF_PAGE), cycle(data[PRODUCTS]))
    data[PRODUCTS] = [{**product, "item_id": str(number), "is_sponsored": False} for number, product in products]
    for product in data[PRODUCTS][::CHANGED] if is_later else ():
        product["price"] = {**product["price"], "current_price": page + 0.5}
    return data


async def fill(store: Path, name: str) -> None:
    """Make two runs of a job that are done."""
    jobs, platform = Jobs(str(store)), SCRAPER.platform
    options = JobOptions(exhaustive=True) if name != NAMES[0] else JobOptions()

    def work(page: int) -> dict[str, Any]:
        return {"id": str(page), "scraper": SCRAPER.name, "params": {}, "hop": page}

    def lines() -> Iterator[InputLine]:
        for page in range(1 if options.exhaustive else PAGES):
            yield InputLine(page, str(page), str(page).encode(), platform, work(page))

    for is_later in (False, True):
        job = await jobs.begin(name, options=options, whole_roots=options.exhaustive)
        await jobs.push(job, lines())
        await jobs.open(job)

        def finish(claims: list[Claim], *, is_later: bool = is_later) -> None:
            for claim in claims:
                page = claim.work["hop"] + 1
                further = (Followup(str(page).encode(), platform, work(page)),) if options.exhaustive else ()
                data, found = data_of(page - 1, is_later=is_later), further if page < PAGES else ()
                worker.finish(Finished(claim, "done", "OK", OUTCOME, data, found))

        async with Worker(jobs.writes, on_claimed=finish) as worker:
            while (await jobs.get(job.id) or job).state == "open":
                finish(await worker.claim(platform, BATCH))
                await asyncio.sleep(0.01)
    await jobs.close()


async def compare(store: Path, name: str) -> dict[str, Any]:
    """Compare the last run with the first one."""
    jobs = Jobs(str(store))
    job = await jobs.find(name)
    assert job is not None
    comparison = Comparison(job, await jobs.earlier(job))
    idle, begin = peak_megabytes(os.getpid()) or 0.0, time.process_time()
    async for _ in comparison.pages(jobs):
        pass
    seconds, peak = time.process_time() - begin, peak_megabytes(os.getpid()) or 0.0
    await jobs.close()
    return {"counts": comparison.counts, "seconds": seconds, "megabytes": peak - idle}


def compared(store: Path, name: str) -> dict[str, Any]:
    """Compare the runs in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.changes", str(store), name]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, cwd=ROOT))
    return found


def run(rounds: int = 5) -> Table:
    """Measure the comparisons of both jobs."""
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.sqlite3"
        for name in NAMES:
            asyncio.run(fill(store, name))
            found = [compared(store, name) for _ in range(rounds)]
            for key, unit in (("seconds", "s of CPU time"), ("megabytes", "MB above the idle process")):
                figures.append(Figure(f"{NUMBER:,} products, {name}", unit, [each[key] for each in found]))
    conditions = f"Changes of a job between two runs, with {PAGES:,} pages. Every tenth product has another price."
    return Table("Changes", conditions, figures)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(compare(Path(sys.argv[1]), sys.argv[2]))))
