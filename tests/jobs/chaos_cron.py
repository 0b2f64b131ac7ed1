"""What ``scrapy collect --job chaos`` does with the store: ``python -m tests.jobs.chaos_cron STORE SEED TARGETS``.

It begins or continues a run, stores the targets, waits until the run is done, and removes the runs that are no longer
kept. It prints the run's number. The exit code is 0 if the run is done, and 1 if the store is unavailable or the run
was cancelled. The responses to some commits are lost.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator
from dataclasses import replace

from crawler.errors import StoreUnavailable
from crawler.jobs.job import InputLine, JobError
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.options import JobOptions
from tests.jobs.chaos_worker import lose_answers
from tests.jobs.workers import SCRAPER, lines

NAME, OWNER, KEEP = "chaos", "acme", 1


def scraped_lines(n: int) -> Iterator[InputLine]:
    """``n`` input lines whose targets name their scraper, for the bills."""
    return (replace(each, work={**each.work, "scraper": SCRAPER}) for each in lines(n))


async def collect(location: str, n: int) -> int:
    """Return the exit code."""
    jobs = Jobs(location)
    try:
        job = await jobs.begin(NAME, OWNER, options=JobOptions(fingerprint="file", keep=KEEP))
        if job.state == "loading":
            await jobs.push(job, scraped_lines(n))
            await jobs.open(job)
        sys.stdout.write(f"run {job.run}\n")
        sys.stdout.flush()
        while (found := await jobs.get(job.id)) is not None and found.state == "open":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        if found is None or found.state != "done":
            return 1
        await jobs.remove_earlier(NAME, OWNER)
    except (StoreUnavailable, JobError):
        return 1
    finally:
        await jobs.close()
    return 0


if __name__ == "__main__":
    lose_answers(random.Random(sys.argv[2]))  # noqa: S311  # no secret
    raise SystemExit(asyncio.run(collect(sys.argv[1], int(sys.argv[3]))))
