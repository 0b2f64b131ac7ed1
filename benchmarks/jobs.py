"""The store of jobs: processor time and memory of pushing, claiming and finishing, and delays beside an upload."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import psycopg

from benchmarks.databases import postgresql
from benchmarks.figures import Figure, Ratio, Table, ratio
from benchmarks.records import records
from benchmarks.stack import ROOT, peak_megabytes
from crawler.jobs.job import Finished, InputLine, pack
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.worker import Worker
from crawler.targets.target import target_key

PUSHED = 20_000
WORKED = 10_000
SLICES = 10
"""The targets are worked in slices: the first and the last are compared."""
UPLOAD_BYTES = 4 * 1024 * 1024
LINE_BYTES = 180
"""Bytes of a line of the upload, as JSON."""
WRITES_PER_SECOND = 50
RECORD_BYTES = 8_000

SMALL_WRITE = "UPDATE jobs SET options = options WHERE id = :id"

CONDITIONS = f"""\
Processor time is that of one process with all its threads; the time of PostgreSQL's server is not in it. Pushing:
{PUSHED:,} targets, each with an input line. Working: one worker claims targets in batches of 32 and finishes them at
once, each with a record of about {RECORD_BYTES // 1_000} kB, which is serialised and compressed: {WORKED:,} targets in
{SLICES} slices. Start: the seconds until a new process has found that the job is done. Writes beside an upload: the
delay of {WRITES_PER_SECOND} small transactions a second while {UPLOAD_BYTES >> 20} MiB of targets are pushed to SQLite
by another process, or by the same one."""


def lines(n: int) -> Iterator[InputLine]:
    """Yield the lines of an input."""
    for row in range(n):
        params = {"query": f"query {row}"}
        yield InputLine(row, str(row), target_key("retail-search-v4", params), "retail", {"params": params})


def resident_megabytes() -> float:
    """Return the memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


async def pushed(location: str, n: int) -> dict[str, Any]:
    """Push targets to a new job."""
    jobs = Jobs(location)
    job = await jobs.begin("pushed")
    before, begin = resident_megabytes(), time.process_time()
    await jobs.push(job, lines(n))
    seconds = time.process_time() - begin  # the job is not opened, so that no target of it is claimed below
    await jobs.close()
    return {"seconds": seconds * PUSHED / n, "megabytes": peak_megabytes(os.getpid()), "before": before}


async def worked(location: str, n: int) -> dict[str, Any]:
    """Push and finish targets. Return the processor time of a target in each slice, in microseconds."""
    jobs = Jobs(location)
    job = await jobs.begin("worked")
    await jobs.push(job, lines(n))
    await jobs.open(job)
    datas = [orjson.loads(orjson.dumps(each)) for each in itertools.islice(sized_records(), 50)]
    endless = itertools.cycle(datas)
    idle = asyncio.Event()

    def on_stored(_: Finished) -> None:
        if not worker.held:
            idle.set()

    worker = Worker(jobs.writes, on_stored, print, print)
    times: list[float] = []
    memory: list[float] = []
    async with worker:
        for _ in range(SLICES):
            begin, wall = time.process_time(), time.perf_counter()
            done = 0
            while done < n // SLICES:
                claims = await worker.claim("retail", min(32, n // SLICES - done))
                for claim in claims:
                    worker.finish(Finished(claim, "done", "OK", {"warnings": []}, next(endless)))
                await idle.wait()
                idle.clear()
                done += len(claims)
            times.append((time.process_time() - begin) / done * 1e6)
            memory.append(resident_megabytes())
            sys.stderr.write(f"{times[-1]:.0f} us, {done / (time.perf_counter() - wall):.0f}/s, {memory[-1]:.0f} MB\n")
    await jobs.close()
    return {"times": times, "memory": memory}


def sized_records() -> Iterator[dict[str, Any]]:
    """Yield records of about ``RECORD_BYTES``."""
    for record in records(100_000):
        row = len(orjson.dumps(record["products"][0]))
        for start in range(0, len(record["products"]), max(RECORD_BYTES // row, 1)):
            yield {**record, "products": record["products"][start : start + max(RECORD_BYTES // row, 1)]}


async def started(location: str) -> dict[str, Any]:
    """Find out that a job is done."""
    begin = time.perf_counter()
    jobs = Jobs(location)
    job = await jobs.find("worked")
    worker = Worker(jobs.writes, print, print, print)
    async with worker:
        assert await worker.claim("retail", 32) == []
    assert job is not None
    assert job.state == "done"
    await jobs.close()
    return {"seconds": time.perf_counter() - begin}


async def uploaded(location: str) -> dict[str, Any]:
    """Push an upload."""
    jobs = Jobs(location)
    job = await jobs.begin("uploaded")
    await jobs.push(job, lines(UPLOAD_BYTES // LINE_BYTES))
    await jobs.close()
    return {}


async def delays(location: str, *, same_process: bool) -> dict[str, Any]:
    """Write beside an upload. Return the delays in ms."""
    jobs = Jobs(location)
    job = await jobs.begin("small")
    upload: asyncio.Future[Any]
    if same_process:
        large = await jobs.begin("uploaded")
        upload = asyncio.ensure_future(jobs.push(large, lines(UPLOAD_BYTES // LINE_BYTES)))
    else:
        upload = asyncio.ensure_future(asyncio.to_thread(measured, "uploaded", location, 0))
        while len(await jobs.page()) < 2:  # noqa: ASYNC110  # another process makes the job
            await asyncio.sleep(0.01)
    found: list[float] = []
    while not upload.done():
        begin = time.perf_counter()
        await jobs.writes.transact(lambda session: session.run(SMALL_WRITE, id=job.id))
        found.append((time.perf_counter() - begin) * 1e3)
        await asyncio.sleep(max(1 / WRITES_PER_SECOND - found[-1] / 1e3, 0))
    await upload
    await jobs.close()
    found.sort()
    return {"p99": found[int(len(found) * 0.99)], "max": found[-1], "n": len(found)}


def measured(what: str, location: str, n: int) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.jobs", what, location, str(n)]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, cwd=ROOT))
    return found


def database_figures(name: str, locations: list[str]) -> tuple[list[Figure], Figure, Figure]:
    """Measure a database, once per location. Return all figures, and those of the first and the last slice."""
    pushes = [measured("pushed", location, PUSHED) for location in locations]
    works = [measured("worked", location, WORKED) for location in locations]
    starts = [measured("started", location, 0) for location in locations]
    first, last = (
        Figure(f"{name}, a target of the {title} tenth", "µs of CPU time", [each["times"][index] for each in works])
        for title, index in (("first", 0), ("last", -1))
    )
    growth = [each["memory"][-1] - each["memory"][0] for each in works]
    found = [
        Figure(f"{name}, pushing {PUSHED:,} targets", "s of CPU time", [each["seconds"] for each in pushes]),
        Figure(f"{name}, peak memory while pushing", "MB", [each["megabytes"] for each in pushes]),
        first,
        last,
        Figure(f"{name}, memory of the last tenth less that of the first", "MB", growth),
        Figure(f"{name}, start", "s", [each["seconds"] for each in starts]),
    ]
    return found, first, last


def compression(n: int) -> float:
    """Return the processor time of serialising and compressing a record, in microseconds."""
    datas = list(itertools.islice(sized_records(), 50))
    begin = time.process_time()
    for data in itertools.islice(itertools.cycle(datas), n):
        pack(data)
    return (time.process_time() - begin) / n * 1e6


def run(rounds: int = 5) -> Table:
    """Measure the store on both databases. A database that is not installed is named in the conditions."""
    packing = Figure(
        "serialising and compressing a record", "µs of CPU time", [compression(5_000) for _ in range(rounds)]
    )
    figures: list[Figure] = [packing]
    ratios: list[Ratio] = []
    absent = ""
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        locations = {"SQLite": [str(folder / f"jobs-{number}.sqlite3") for number in range(rounds)]}
        if url := running.enter_context(postgresql()):
            locations["PostgreSQL"] = [database(url, f"jobs{number}") for number in range(rounds)]
        else:
            absent = " Not measured, because not installed: PostgreSQL."
        for name, each in locations.items():
            found, first, last = database_figures(name, each)
            figures += found
            ratios.append(ratio(f"{name}, last tenth to first tenth", last, first, at_most=1.1))
        for what, title in (("beside", "another process"), ("within", "the same process")):
            delayed = [measured(what, str(folder / f"{what}-{number}"), 0)["p99"] for number in range(rounds)]
            figures.append(Figure(f"SQLite, p99 of a small write beside an upload of {title}", "ms", delayed))
    return Table("Jobs", CONDITIONS + absent, figures, ratios)


def database(url: str, name: str) -> str:
    """Create a database of a PostgreSQL server. Return its URL."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return url.replace("/postgres?", f"/{name}?")


def main() -> None:
    """Measure one thing, and print its figures as JSON."""
    what, location, n = sys.argv[1:]
    work = {
        "pushed": lambda: pushed(location, int(n)),
        "worked": lambda: worked(location, int(n)),
        "started": lambda: started(location),
        "uploaded": lambda: uploaded(location),
        "beside": lambda: delays(location, same_process=False),
        "within": lambda: delays(location, same_process=True),
    }[what]
    print(json.dumps(asyncio.run(work())))


if __name__ == "__main__":
    main()
