"""Exports read every outcome once, while workers store others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest

from crawler.errors import StoreUnavailable
from crawler.jobs.job import Finished, InputLine
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.outcomes import Cursor, Line, by_seq, in_order
from crawler.jobs.output import Layout
from crawler.jobs.store import Session
from tests.jobs.store_faults import faults, unavailable
from tests.jobs.workers import Process, assert_books, done, lines, new_job, outcomes


async def test_three_workers_share_a_job_and_a_follower_sees_every_row(jobs: Jobs, another: Callable[[], Jobs]) -> None:
    job = await new_job(jobs, 600)
    processes = [Process(another(), lambda claim: done(claim, followups=1)) for _ in range(3)]
    for process in processes:  # each worker gets targets before one of them can take all
        assert len(await process.claim(10)) == 10
    seen: list[Line] = []

    async def follow() -> None:
        cursor = Cursor(job.id)
        while True:
            found = await jobs.get(job.id)
            page = await by_seq(jobs, cursor, limit=7)
            seen.extend(page)
            if page:
                cursor = Cursor.parse(str(Cursor(job.id, page[-1].seq or 0)))
            elif found is not None and found.state == "done":
                return

    await asyncio.gather(follow(), *(process.run(job) for process in processes))
    await assert_books(jobs, job, done=1_200)
    assert all(process.stored for process in processes)
    assert len({each.claim.target for process in processes for each in process.stored}) == 1_200
    assert sum(len(process.stored) for process in processes) == 1_200
    assert [line.seq for line in seen] == list(range(1, 1_201))
    assert seen == await outcomes(jobs, job)


async def test_an_outage_before_an_export_is_no_wrong_use(jobs: Jobs, location: str) -> None:
    """``StoreUnavailable`` derives from ``ValueError``, like the errors of a wrong layout."""
    job = await new_job(jobs, 1)
    fault = partial(unavailable, location)
    with faults(1, fault), faults(1, fault), faults(1, fault), pytest.raises(StoreUnavailable):  # a read is repeated
        await Layout("out.csv").shapes(jobs, job)


@pytest.mark.parametrize("text", ["", "7", "7.", ".7", "a.b", "7.-1", "7.1.1", "٧.١", "1." + "9" * 50])
def test_wrong_cursors_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a cursor"):
        Cursor.parse(text)


async def test_lines_in_the_order_of_the_input(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The export has a line for each input line, even for repeated targets. Follow-ups come after their target."""
    monkeypatch.setattr("crawler.jobs.outcomes.LINES_PER_PAGE", 50)
    job = await jobs.begin("job")
    first = list(lines(70))  # on two pages, and the follow-ups of the first page, too
    again = [InputLine(70 + each.row, f"again {each.row}", each.key, each.platform, each.work) for each in first[:3]]
    await jobs.push(job, [*first, *again])
    await jobs.open(job)
    await Process(jobs, lambda claim: done(claim, followups=claim.key[0] % 4)).run(job)
    found = [line async for line in in_order(jobs, job.id)]
    expected: list[tuple[int, str | None]] = []
    for each in first:
        expected.append((each.row, each.id))
        expected += [(each.row, None)] * (each.key[0] % 4)
    expected += [(each.row - 70, each.id) for each in again]
    assert [(line.row, line.inputs[0].id if line.inputs else None) for line in found] == expected
    assert all(line.record for line in found)
    assert len({line.key for line in found}) == len(found) - 3


async def test_a_target_that_is_not_finished_has_a_line_without_an_outcome(jobs: Jobs) -> None:
    job = await new_job(jobs, 3)
    (line, *_) = [line async for line in in_order(jobs, job.id)]
    assert (line.state, line.outcome, line.record, line.seq) == ("waiting", None, None, None)


async def test_a_target_without_new_data_has_no_record(jobs: Jobs) -> None:
    job = await new_job(jobs, 2)
    await Process(jobs, lambda claim: Finished(claim, "done", "OK", {"warnings": []})).run(job)
    assert [(line.state, line.record) for line in await outcomes(jobs, job)] == [("done", None)] * 2
    assert await jobs.check(job) == []


async def test_a_page_is_read_while_another_process_writes(jobs: Jobs, another: Callable[[], Jobs]) -> None:
    """On SQLite, a transaction that writes holds a lock. Readers do not wait for it."""
    job = await new_job(jobs, 5)
    await Process(jobs).run(job)
    other = another()
    has_written, is_read = threading.Event(), threading.Event()

    def write_slowly(session: Session) -> None:
        session.run("UPDATE jobs SET seq = seq")
        has_written.set()
        is_read.wait()

    writing = asyncio.create_task(other.writes.transact(write_slowly))
    await asyncio.to_thread(has_written.wait)
    try:
        assert len(await by_seq(jobs, Cursor(job.id))) == 5
    finally:
        is_read.set()
    await writing
