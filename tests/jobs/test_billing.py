"""Records of a client's job are billed in the transaction that stores them."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from scrapy.settings import Settings

from crawler.errors import InvalidRequest
from crawler.jobs import leases
from crawler.jobs.clock import STORE_TIME
from crawler.jobs.job import Claim, Finished, InputLine, Job
from crawler.jobs.leases import Holder, Skipped
from crawler.jobs.lifecycle import Jobs
from crawler.service.clients import keys as api_keys
from crawler.service.clients import quotas, usage
from crawler.service.jobs import billing, records, upkeep
from crawler.targets.target import target_key
from tests.jobs.workers import SCRAPER, Process, done, lines

OUTCOME = {"warnings": [], "fetched_at": "2026-11-25T20:00:00+00:00"}


async def owned_job(jobs: Jobs, owner: str, n: int, quota: int = 1_000, start: int = 0) -> Job:
    job = await jobs.create(f"job {start}", owner)
    keys = [target_key(SCRAPER, {"query": str(row)}) for row in range(start, start + n)]
    work = {"scraper": SCRAPER}
    lines = [InputLine(row, str(row), key, "retail", work) for row, key in enumerate(keys)]
    lines += [
        InputLine(n + row, "again", key, "retail", work) for row, key in enumerate(keys)
    ]  # lines of known targets
    lines.append(InputLine(2 * n, "invalid", target_key("", {"job": start}), "", {"scraper": None}))
    await jobs.push(job, lines, room=partial(quotas.room, client=owner, quota=quota) if owner else None)
    await jobs.open(job)
    return await current(jobs, job)


async def current(jobs: Jobs, job: Job) -> Job:
    found = await jobs.get(job.id)
    assert found is not None
    return found


async def report(jobs: Jobs, quota: int = 10) -> tuple[int, int]:
    """The billed and the reserved records of the client."""
    state = await jobs.reads.transact(lambda s: quotas.report(s, "acme", quota), write=False)
    return state["used"], state["reserved"]


def end(claim: Claim) -> Finished:
    """The first row fails, the second has no new data, the third has warnings."""
    if claim.row == 0:
        return Finished(claim, "failed", "TARGET_NOT_FOUND", {})
    warnings = [{"source": "listing"}] if claim.row == 2 else []
    return Finished(claim, "done", "OK", {"warnings": warnings}, None if claim.row == 1 else {"row": claim.row})


async def work(jobs: Jobs, n: int = 32) -> None:
    process = Process(jobs, end, {"also_store": billing.store_bills})
    async with process.worker:
        await process.claim(n)


@pytest.mark.parametrize("owner", ["acme", ""])
async def test_each_record_is_billed_once_and_nothing_stays_reserved(jobs: Jobs, owner: str) -> None:
    await owned_job(jobs, owner, 8)
    assert await report(jobs) == (0, 8 if owner else 0)
    await work(jobs)
    used = await jobs.reads.transact(lambda s: usage.report(s, owner), write=False)
    assert (used["calls"], used["billable"], used["partial"]) == ((8, 6, 1) if owner else (0, 0, 0))
    assert await report(jobs) == ((6, 0) if owner else (0, 0))


async def test_a_target_whose_workers_exited_is_counted_as_a_failed_call(jobs: Jobs) -> None:
    job = await owned_job(jobs, "acme", 1)
    holder = Holder("exited", lease=-1, exits=0, owned_only=True, also_store=billing.store_bills)
    await jobs.writes.transact(lambda s: leases.claim(s, holder, "retail", 1, Skipped()))
    await jobs.writes.transact(lambda s: leases.expire(s, holder, lambda _: True))
    assert (await current(jobs, job)).counts["dead"] == 1
    used = await jobs.reads.transact(lambda s: usage.report(s, "acme"), write=False)
    assert (used["billable"], used["usage"][0]["outcomes"]) == (0, {"INTERNAL_ERROR": 1})


async def test_targets_beyond_the_quota_are_paused_until_there_is_room(jobs: Jobs) -> None:
    other = await owned_job(jobs, "acme", 3, quota=10)
    job = await owned_job(jobs, "acme", 12, quota=10, start=100)
    assert (job.counts["waiting"], job.counts["paused"]) == (7 + 1, 5)
    assert await report(jobs) == (0, 10)
    await jobs.cancel(other)
    assert await report(jobs) == (0, 7)
    await jobs.resume(job, partial(quotas.room, client="acme", quota=10))
    assert (await current(jobs, job)).counts["paused"] == 2
    assert await report(jobs) == (0, 10)
    await work(jobs)  # row 0 fails, row 1 has no record
    assert await report(jobs) == (8, 0)
    for _ in range(2):
        assert await jobs.retry(job, partial(quotas.room, client="acme", quota=9)) in {0, 1}
    assert await report(jobs) == (8, 1)
    assert await jobs.check(await current(jobs, job)) == []


async def test_concurrent_uploads_reserve_no_more_than_the_quota(jobs: Jobs, location: str) -> None:
    stores = [Jobs(location) for _ in range(3)]
    made = await asyncio.gather(*(owned_job(each, "acme", 8, 10, 100 * n) for n, each in enumerate(stores)))
    assert sum(job.counts["paused"] for job in made) == 14
    assert await report(jobs) == (0, 10)
    await asyncio.gather(*(each.close() for each in stores))


class Keyring(api_keys.FixedKeys):
    """Keys of one client, whose quota changes."""

    quota: int | None = 3

    async def find(self, client: str) -> api_keys.Holder | None:
        return api_keys.Holder(client, "key", quota=self.quota) if client == "acme" else None


async def test_paused_targets_continue_when_there_is_quota_again(jobs: Jobs) -> None:
    keys = Keyring({})
    job = await owned_job(jobs, "acme", 8, quota=3)
    other = await owned_job(jobs, "without key", 2, quota=0, start=50)
    assert (await current(jobs, job)).counts["paused"] == 5
    await work(jobs)  # row 0 fails, row 1 has no record
    assert await report(jobs) == (1, 0)
    for quota, paused in ((1, 5), (3, 3), (None, 0)):
        keys.quota = quota
        await upkeep.tend(jobs, keys, keep_days=30)
        assert (await current(jobs, job)).counts["paused"] == paused
    assert (await current(jobs, other)).counts["paused"] == 2
    await work(jobs)
    assert await report(jobs) == (6, 0)


async def test_at_10_ended_jobs_of_clients_are_deleted_unless_the_clock_has_just_jumped(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, own = await owned_job(jobs, "acme", 3), await owned_job(jobs, "", 2, start=50)
    unfinished = await owned_job(jobs, "acme", 2, start=100)
    for job in (ended, own):
        await jobs.cancel(job)
    for is_steady, keep_days, is_left in ((False, -1, True), (True, 1, True), (True, -1, False)):
        monkeypatch.setattr(STORE_TIME, "is_steady", is_steady)
        monkeypatch.setattr(STORE_TIME, "observe", lambda _: None)
        await upkeep.tend(jobs, Keyring({}), keep_days=keep_days)
        assert (await jobs.get(ended.id) is not None) == is_left
    assert (await current(jobs, own)).state == "cancelled"
    assert (await current(jobs, unfinished)).state == "open"


async def test_the_upkeep_ends_a_removal_that_was_killed(jobs: Jobs) -> None:
    job = await owned_job(jobs, "acme", 3)
    assert await jobs.mark_removed(job)
    assert await jobs.newest("acme", 9) == []
    await upkeep.tend(jobs, Keyring({}), keep_days=30)
    assert await jobs.get(job.id) is None


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
    await upkeep.tend(jobs, Keyring({}), keep_days=-1)
    assert await jobs.get(ended.id) is None


async def test_a_job_that_is_loading_is_not_listed_and_only_its_own_upload_removes_it(jobs: Jobs) -> None:
    job = await jobs.create("key", "acme")
    await jobs.push(job, lines(3))
    assert await jobs.newest("acme", 9) == []
    await jobs.open(job)
    assert not await jobs.mark_removed(job, of=("loading",)), "an upload with the same key; its client disconnected"
    assert [each.id for each in await jobs.newest("acme", 9)] == [job.id]


@pytest.mark.parametrize("kind", ["xlsx", "parquet"])
async def test_a_file_that_becomes_too_large_is_refused_and_leaves_nothing(
    jobs: Jobs, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_FILE_BYTES", 2_000)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    job = await jobs.create("large", "acme")
    await jobs.push(job, [replace(each, work={"scraper": SCRAPER, "id": each.id, "params": {}}) for each in lines(200)])
    await jobs.open(job)
    await jobs.describe(job, [SCRAPER], ())
    process = Process(jobs, lambda claim: Finished(claim, "done", "OK", OUTCOME, {"query": claim.key.hex() * 9}))
    await process.run(job)
    job = await current(jobs, job)
    selected = records.Selected(kind, until=job.seq)
    rows = await records.shapes(jobs, job, selected)
    with pytest.raises(InvalidRequest, match="use a limit"):
        await records.records(jobs, job, selected, rows, Settings())
    assert os.listdir(folder) == []  # noqa: PTH208  # without a thread


async def test_the_follow_ups_of_a_listing_are_reserved_page_by_page(jobs: Jobs) -> None:
    """The quota is three records. Of the six pages of a listing, three are billed, however many are in flight."""
    keys = Keyring({})
    job = await jobs.create("listing", "acme", options={"quota": 3}, whole_roots=True)
    line = replace(next(lines(1)), work={"scraper": SCRAPER})
    await jobs.push(job, [line], room=partial(quotas.room, client="acme", quota=3))
    await jobs.open(job)

    def paged(claim: Claim) -> Finished:
        found = done(claim, followups=5)
        return replace(
            found, followups=tuple(replace(each, work=each.work | {"scraper": SCRAPER}) for each in found.followups)
        )

    async def scraped() -> None:
        process = Process(jobs, paged, {"also_store": billing.store_bills, "room": billing.room, "job": job.id})
        async with process.worker:
            await process.claim()
            while process.worker.held:  # noqa: ASYNC110  # its follow-ups arrive later
                await asyncio.sleep(0.02)

    await scraped()
    found = await current(jobs, job)
    assert (found.state, found.counts["done"], found.counts["paused"]) == ("paused", 3, 3)
    assert await report(jobs, 3) == (3, 0)
    for quota, used, state in ((3, 3, "paused"), (4, 4, "paused"), (None, 6, "done")):
        keys.quota = quota
        await upkeep.tend(jobs, keys, keep_days=30)
        await scraped()
        assert (await report(jobs, 9), (await current(jobs, job)).state) == ((used, 0), state)
    assert await jobs.check(await current(jobs, job)) == []
