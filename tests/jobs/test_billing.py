"""Records of a client's job are billed in the transaction that stores them."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings

from crawler.errors import InvalidRequest
from crawler.jobs import leases, lifecycle
from crawler.jobs.job import Claim, Finished, InputLine, Job
from crawler.jobs.leases import Holder, Skipped
from crawler.jobs.lifecycle import LOADING_SECONDS, Jobs
from crawler.jobs.store import STORE_TIME, store_time
from crawler.service import usage
from crawler.service.jobs import client_jobs, records
from crawler.service.limits import Turns
from crawler.targets.target import target_key
from tests.jobs.workers import SCRAPER, Process, current, lines

OUTCOME = {"warnings": [], "fetched_at": "2026-11-25T20:00:00+00:00"}


async def owned_job(jobs: Jobs, owner: str, n: int, start: int = 0) -> Job:
    job = await jobs.begin(f"job {start}", owner)
    keys = [target_key(SCRAPER, {"query": str(row)}) for row in range(start, start + n)]
    work = {"scraper": SCRAPER}
    lines = [InputLine(row, str(row), key, "retail", work) for row, key in enumerate(keys)]
    lines += [
        InputLine(n + row, "again", key, "retail", work) for row, key in enumerate(keys)
    ]  # lines of known targets
    invalid = InputLine(2 * n, "invalid", target_key("", {"job": start}), "", {"scraper": None})
    lines.append(replace(invalid, error={"code": "INVALID_REQUEST"}))
    await jobs.push(job, lines)
    await jobs.open(job)
    return await current(jobs, job)


def end(claim: Claim) -> Finished:
    """The first row fails, the second has no new data, the third has warnings."""
    if claim.row == 0:
        return Finished(claim, "failed", "TARGET_NOT_FOUND", {})
    warnings = [{"source": "listing"}] if claim.row == 2 else []
    return Finished(claim, "done", "OK", {"warnings": warnings}, None if claim.row == 1 else {"row": claim.row})


async def work(jobs: Jobs, n: int = 32) -> None:
    process = Process(jobs, end, {"also_store": usage.store_bills})
    async with process.worker:
        await process.claim(n)


@pytest.mark.parametrize("owner", ["acme", ""])
async def test_each_record_is_billed_once(jobs: Jobs, owner: str) -> None:
    await owned_job(jobs, owner, 8)
    await work(jobs)
    used = await jobs.reads.transact(lambda s: usage.report(s, owner), write=False)
    assert (used["calls"], used["billable"], used["partial"]) == ((8, 6, 1) if owner else (0, 0, 0))
    totals = await jobs.reads.transact(usage.totals, write=False)
    expected = {(SCRAPER, "OK", 7, 6), (SCRAPER, "TARGET_NOT_FOUND", 1, 0)}
    assert set(map(tuple, totals)) == (expected if owner else set())


async def test_a_target_whose_workers_exited_is_counted_as_a_failed_call(jobs: Jobs) -> None:
    job = await owned_job(jobs, "acme", 1)
    holder = Holder("exited", lease=-1, exits=0, owned_only=True, also_store=usage.store_bills)
    await jobs.writes.transact(lambda s: leases.claim(s, holder, "retail", 1, Skipped()))
    await jobs.writes.transact(lambda s: leases.expire(s, holder, lambda _: True))
    assert (await current(jobs, job)).counts["dead"] == 1
    used = await jobs.reads.transact(lambda s: usage.report(s, "acme"), write=False)
    assert (used["billable"], used["usage"][0]["outcomes"]) == (0, {"INTERNAL_ERROR": 1})


async def test_ended_jobs_of_clients_are_deleted_unless_the_clock_has_just_jumped(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, own = await owned_job(jobs, "acme", 3), await owned_job(jobs, "", 2, start=50)
    unfinished = await owned_job(jobs, "acme", 2, start=100)
    for job in (ended, own):
        await jobs.cancel(job)
    later = store_time() + 43_200
    monkeypatch.setattr(client_jobs, "store_time", lambda: later)
    for is_steady, keep_days, is_left in ((False, -1, True), (True, 1, True), (True, 0.4, False)):
        monkeypatch.setattr(STORE_TIME, "is_steady", is_steady)
        monkeypatch.setattr(STORE_TIME, "observe", lambda _: None)
        await client_jobs.tend(jobs, keep_days=keep_days)
        assert (await jobs.get(ended.id) is not None) == is_left
    assert (await current(jobs, own)).state == "cancelled"
    assert (await current(jobs, unfinished)).state == "open"


async def test_a_job_whose_upkeep_fails_does_not_stop_that_of_the_next(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing, ended = await owned_job(jobs, "acme", 1), await owned_job(jobs, "acme", 1, start=50)
    await asyncio.gather(jobs.cancel(failing), jobs.cancel(ended))
    remove = jobs.remove

    async def fail(job: Job) -> None:
        if job.id == failing.id:
            raise ZeroDivisionError
        await remove(job)

    monkeypatch.setattr(jobs, "remove", fail)
    monkeypatch.setattr(STORE_TIME, "is_steady", True)  # in a new process, it is not known yet
    monkeypatch.setattr(STORE_TIME, "observe", lambda _: None)
    await client_jobs.tend(jobs, keep_days=-1)
    assert await jobs.get(ended.id) is None


@pytest.mark.parametrize(("keep_days", "state", "after"), [(30, "loading", "open"), (-1, "done", "open")])
async def test_a_job_that_changes_while_others_are_removed_stays(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, keep_days: float, state: str, after: str
) -> None:
    """The removal of a large job may take longer than an upload may pause. Then an upload is complete, or retried."""
    removed, job = await jobs.begin("removed", "acme"), await jobs.begin("nightly", "acme")
    await jobs.mark_removed(removed)
    await jobs.push(job, lines(3))
    if state == "done":
        await jobs.open(job)
        await Process(jobs, lambda claim: Finished(claim, "failed", "TIMEOUT", {})).run(job)
    found = await current(jobs, job)
    assert found.state == state
    remove = jobs.remove

    async def slow(each: Job) -> None:
        if each.id == removed.id:
            await (jobs.open(job) if state == "loading" else jobs.retry(job, every=True))
        await remove(each)

    monkeypatch.setattr(jobs, "remove", slow)
    clock: Any = SimpleNamespace(is_steady=True, now=lambda: found.loaded + LOADING_SECONDS + 1)
    monkeypatch.setattr(client_jobs, "STORE_TIME", clock)
    monkeypatch.setattr(lifecycle, "STORE_TIME", clock)
    await client_jobs.tend(jobs, keep_days=keep_days)
    assert await jobs.get(removed.id) is None
    assert (await current(jobs, job)).state == after


async def test_a_job_that_is_loading_is_not_listed_and_only_its_own_upload_removes_it(jobs: Jobs) -> None:
    job = await jobs.begin("key", "acme")
    await jobs.push(job, lines(3))
    assert await jobs.newest("acme", 9) == []
    await jobs.open(job)
    assert not await jobs.mark_removed(job, of=("loading",)), "an upload with the same key; its client disconnected"
    assert [each.id for each in await jobs.newest("acme", 9)] == [job.id]


async def test_a_file_that_becomes_too_large_is_refused_and_leaves_nothing(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_FILE_BYTES", 2_000)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    job = await jobs.begin("large", "acme")
    await jobs.push(job, [replace(each, work={"scraper": SCRAPER, "id": each.id, "params": {}}) for each in lines(200)])
    await jobs.open(job)
    await jobs.describe(job, [SCRAPER], ())
    process = Process(jobs, lambda claim: Finished(claim, "done", "OK", OUTCOME, {"query": claim.key.hex() * 9}))
    await process.run(job)
    job = await current(jobs, job)
    selected = records.Selected("xlsx", until=job.seq)
    rows = await records.shapes(jobs, job, selected)
    of: Any = SimpleNamespace(jobs=jobs, settings=Settings(), writing=Turns(1, of_client=1))
    with pytest.raises(InvalidRequest, match="use a limit"):
        await records.records(of, job, selected, rows)
    assert os.listdir(folder) == []  # noqa: PTH208  # without a thread


async def test_the_rate_and_the_end_of_an_open_job_are_by_the_clock_of_the_store(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the endpoint's host may differ from it by minutes."""
    job = await owned_job(jobs, "acme", 20)
    await work(jobs, 8)
    job = await current(jobs, job)
    counts = job.counts | {"waiting": 9, "running": 3}
    monkeypatch.setattr(client_jobs, "store_time", lambda: 1_790_000_120.0)
    assert (job.seq, job.counts["waiting"]) == (9, 12), "with the invalid line"
    job = replace(job, created=1_790_000_000.0, counts=counts)
    described = client_jobs.describe(job, 30)
    assert described["targets_per_minute"] == 4.5
    assert described["estimated_end"] == "2026-09-21T14:18:00Z"
    ended = replace(job, state="cancelled", ended=1_790_000_000.0)
    assert client_jobs.describe(ended, 30)["expires_at"] is None, "three of its targets are running"
    ended = replace(ended, counts=dict.fromkeys(counts, 0))
    assert client_jobs.describe(ended, 30)["expires_at"] == "2026-10-21T14:13:20Z"
