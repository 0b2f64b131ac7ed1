"""The changes of 50,000 products, in many targets or in one listing: all of them, in little memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.jobs.changes import Comparison
from crawler.jobs.job import Claim, Finished, Followup, InputLine
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.options import JobOptions
from tests.crawls import ROOT
from tests.jobs.workers import Process
from tests.soak.products import OF_PAGE, SCRAPER, pages, peak_megabytes

NUMBER = 50_000
CHANGED = 10
"""Every tenth product has another price in the second run."""
NAMES = ("targets", "one listing")
OUTCOME = {"warnings": [], "contract": "1", "fetched_at": "2026-11-26T00:00:00+00:00"}
MAX_MEGABYTES = 100


async def fill(store: Path, name: str) -> None:
    """Make two runs of a job that are done."""
    jobs, number, is_listing = Jobs(str(store)), NUMBER // OF_PAGE, name == NAMES[1]

    def work(page: int) -> dict[str, object]:
        return {"id": str(page), "scraper": SCRAPER.name, "params": {}, "hop": page}

    def lines() -> Iterator[InputLine]:
        for page in range(1 if is_listing else number):
            yield InputLine(page, str(page), str(page).encode(), SCRAPER.platform, work(page))

    for is_later in (False, True):
        datas = list(pages(NUMBER))
        for page, data in enumerate(datas if is_later else ()):
            for product in data["products"][::CHANGED]:
                product["price"] = {**product["price"], "current_price": page + 0.5}

        def answer(claim: Claim, datas: list[dict[str, object]] = datas) -> Finished:
            page = int(claim.work["hop"])
            following = Followup(str(page + 1).encode(), SCRAPER.platform, work(page + 1))
            found = (following,) if is_listing and page + 1 < number else ()
            return Finished(claim, "done", "OK", OUTCOME, datas[page], found)

        options = JobOptions(exhaustive=True) if is_listing else JobOptions()
        job = await jobs.begin(name, options=options, whole_roots=is_listing)
        await jobs.push(job, lines())
        await jobs.open(job)
        await Process(jobs, answer).run(job, seconds=600)
    await jobs.close()


async def compare(store: str, name: str) -> None:
    """Compare the last run with the first one. Print the counts, and the MB above the memory of the idle process."""
    jobs = Jobs(store)
    job = await jobs.find(name)
    assert job is not None
    comparison = Comparison(job, await jobs.earlier(job))
    idle = peak_megabytes()
    async for _ in comparison.pages(jobs):
        pass
    sys.stdout.write(json.dumps([comparison.counts, peak_megabytes() - idle]))
    await jobs.close()


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_the_changes_of_many_products_need_little_memory(tmp_path: Path, name: str) -> None:
    store = tmp_path / "store.sqlite3"
    asyncio.run(fill(store, name))
    command = [sys.executable, "-m", "tests.soak.test_large_changes", str(store), name]
    counts, megabytes = json.loads(subprocess.check_output(command, cwd=ROOT))
    targets = 1 if name == NAMES[1] else NUMBER // OF_PAGE
    assert counts == {"compared": targets, "changed": NUMBER // CHANGED}
    assert megabytes <= MAX_MEGABYTES


if __name__ == "__main__":
    asyncio.run(compare(*sys.argv[1:]))
