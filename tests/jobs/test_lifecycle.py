"""Jobs are created, filled, paused, cancelled, retried and removed, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import orjson
import pytest
import sqlalchemy as sa
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.settings import Settings

from crawler.errors import ServiceError, StoreUnavailable
from crawler.jobs import leases, lifecycle
from crawler.jobs import tables as sql
from crawler.jobs.crawls import JobCrawls
from crawler.jobs.job import Claim, Finished, Job, JobError, Stored
from crawler.jobs.leases import Holder, Skipped
from crawler.jobs.lifecycle import Jobs, Rules, UnfinishedRunError
from crawler.jobs.options import JobOptions
from crawler.jobs.store import Session
from crawler.jobs.tables import JobState
from crawler.platforms import platforms
from crawler.service.usage import account_settings
from crawler.targets.target import target_key
from tests.jobs.workers import SCRAPER, Process, assert_books, current, done, lines, new_job, outcomes


def unanswered(claim: Claim) -> None:
    """Give a target no outcome, so that it stays in flight."""


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "a\nb", "x" * 201])
@pytest.mark.parametrize("part", ["name", "owner"])
async def test_names_that_cannot_be_stored_are_refused(jobs: Jobs, part: str, text: str) -> None:
    with pytest.raises(JobError, match=f"The {part} of a job"):
        await jobs.begin(**{"name": "job", part: text})  # type: ignore[arg-type]
    with pytest.raises(JobError, match="must have a name"):
        await jobs.begin("")
    assert [job async for job in jobs.every()] == []


async def test_names_belong_to_owners(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.jobs.lifecycle.ROWS_PER_TRANSACTION", 1)
    made = [await jobs.begin(name, owner) for name in ("a", "b") for owner in ("x", "y")]
    assert len({job.id for job in made}) == 4
    again = await jobs.begin("b", "y", options=JobOptions(max_pages=2))
    assert again == made[3]
    assert [job.id async for job in jobs.every()] == [job.id for job in made]


async def test_processes_that_create_a_job_at_the_same_time_get_the_same_one(
    jobs: Jobs, another: Callable[[], Jobs]
) -> None:
    stores = [another() for _ in range(4)]
    made = await asyncio.gather(
        *(store.begin("job", options=JobOptions(max_pages=n + 1)) for n, store in enumerate(stores))
    )
    assert len({job.id for job in made}) == 1
    assert len([job async for job in jobs.every()]) == 1
    await jobs.open(made[0])
    made = await asyncio.gather(*(store.begin("job") for store in stores))
    assert [(job.run, job.state) for job in made] == [(2, "loading")] * 4
    made = await asyncio.gather(*(store.begin("job", rules=Rules("cancel")) for store in stores))
    runs = await jobs.runs("job")
    assert runs[0].id in {job.id for job in made}
    assert [run.state for run in runs] == ["loading", *["cancelled"] * (len(runs) - 2), "done"]


@pytest.mark.parametrize(
    ("state", "continues"),
    [("loading", True), ("open", True), ("paused", True), ("cancelled", False), ("done", False)],
)
async def test_the_newest_run_decides(jobs: Jobs, state: JobState, *, continues: bool) -> None:
    job = await jobs.begin("job", "acme", options=JobOptions(max_pages=2))
    await jobs.push(job, lines(3))
    if state != "loading":
        await jobs.open(job)
    if state == "paused":
        await Process(jobs, lambda claim: Finished(claim, "paused")).run(job)
    if state == "cancelled":
        await jobs.cancel(job)
    if state == "done":
        await Process(jobs).run(job)
    former = await current(jobs, job)
    assert former.state == state
    if continues:
        with pytest.raises(UnfinishedRunError, match=f"Run 1 of the job 'job' is {state}"):
            await jobs.begin("job", "acme", rules=Rules("refuse"))
        assert await jobs.begin("job", "acme", options=JobOptions()) == former
        new = await jobs.begin("job", "acme", options=JobOptions(), rules=Rules("cancel"))
        await assert_books(jobs, job, cancelled=3)
    else:
        new = await jobs.begin("job", "acme", options=JobOptions(), rules=Rules("refuse"))
        assert await jobs.get(job.id) == former
    assert (new.run, new.revision, new.state, new.options) == (2, 0, "loading", JobOptions())
    assert [each.run for each in await jobs.runs("job", "acme")] == [2, 1]
    assert (await jobs.begin("job")).run == 1, "the job of another owner"
    assert await jobs.find("job", "acme", 1) == await jobs.get(job.id)
    assert await jobs.find("job", "acme") == new
    assert await jobs.find("job", "acme", 3) is None


async def test_a_key_belongs_to_one_run_of_an_owner(jobs: Jobs) -> None:
    job = await jobs.begin("job", "acme", rules=Rules(key="k"))
    await jobs.open(job)
    again = await jobs.begin("other", "acme", rules=Rules("refuse", "k"))
    assert (again.id, again.state) == (job.id, "done")
    other = await jobs.begin("job", "other", rules=Rules(key="k"))
    assert (other.owner, other.run) == ("other", 1)
    new = await jobs.begin("job", "acme", rules=Rules(key="k2"))
    assert new.run == 2
    assert (await jobs.begin("job", "acme", rules=Rules(key="k"))).id == job.id
    await jobs.mark_removed(again)
    new = await jobs.begin("other", "acme", rules=Rules(key="k"))
    assert (new.name, new.run, new.key) == ("other", 1, "k")
    await jobs.remove(job)


async def test_runs_can_be_compared_with_earlier_runs_that_are_done(jobs: Jobs) -> None:
    made = []
    for sandbox in (False, True, False, False, False):
        made.append(await jobs.begin("job", options=JobOptions(sandbox=sandbox)))
        await jobs.push(made[-1], lines(2))
        await (jobs.cancel if len(made) == 3 else jobs.open)(made[-1])
        await Process(jobs).run(made[-1])
    assert [each.run for each in await jobs.earlier(made[4])] == [4, 1]
    assert [each.run for each in await jobs.earlier(made[3])] == [1]
    assert await jobs.earlier(made[1]) == await jobs.earlier(made[0]) == []
    await jobs.remove(made[0])
    assert [each.run for each in await jobs.earlier(made[4])] == [4]


def blocked(claim: Claim) -> Finished:
    return Finished(claim, "failed", "BLOCKED", {})


@pytest.mark.parametrize(
    ("states", "keep", "kept"),
    [
        ("dddd", 2, [4, 3, 2]),
        ("dddd", 0, [4]),
        ("dddd", 9, [4, 3, 2, 1]),
        ("dcdcd", 1, [5, 3]),  # cancelled runs before the newest done one are not counted, and are removed
        ("dddc", 0, [4, 3]),  # a cancelled newest run removes nothing, and stays
        ("dddo", 1, [4, 3, 2]),  # neither does an open one
        ("oddd", 0, [4, 1]),  # an earlier run that was retried, and is not done again
        ("ccc", 0, [3, 2, 1]),
        ("d", 0, [1]),
    ],
)
async def test_earlier_runs_are_removed_when_a_run_is_done(jobs: Jobs, states: str, keep: int, kept: list[int]) -> None:
    other = await new_job(jobs, 2, name="other")
    await Process(jobs).run(other)
    made = []
    for state in states:
        made.append(await jobs.begin("job", "acme", options=JobOptions(keep=keep)))
        await jobs.push(made[-1], lines(2))
        await (jobs.cancel if state == "c" else jobs.open)(made[-1])
        if state == "d" or made[-1].run < len(states):
            await Process(jobs, blocked if state == "o" else done).run(made[-1])
    if states[0] == "o":
        await jobs.retry(made[0], every=True)
    if 1 not in kept:
        await jobs.mark_removed(made[0])  # its removal was killed
    for _ in range(2):
        await jobs.remove_earlier("job", "acme")
        assert [each.run for each in await jobs.runs("job", "acme")] == kept
    for each in made:
        assert await jobs.check(each) == ([] if each.run in kept else ["The job 'job' was removed."])
        assert (await jobs.get(each.id) is None) == (each.run not in kept)
    await assert_books(jobs, other, done=2)


async def test_a_partly_loaded_run_of_other_files_is_replaced(jobs: Jobs) -> None:
    """A command was killed while it stored the targets of a file, and the file has changed since."""
    job = await jobs.begin("job", options=JobOptions(fingerprint="1"))
    await jobs.push(job, lines(2))
    assert (await jobs.begin("job", options=JobOptions(fingerprint="1"))).id == job.id
    new = await jobs.begin("job", options=JobOptions(fingerprint="2"))
    assert (new.run, new.state, new.options.fingerprint) == (2, "loading", "2")
    await assert_books(jobs, job, cancelled=2)
    await jobs.push(new, lines(1))
    await jobs.open(new)
    assert (await jobs.begin("job", options=JobOptions(fingerprint="3"))).id == new.id, "it has all its targets"


async def test_targets_are_claimed_when_their_job_is_loaded_and_more_when_it_is_done(jobs: Jobs) -> None:
    job = await jobs.begin("job")
    await jobs.push(job, lines(3))
    assert await Process(jobs).claim() == []
    await assert_books(jobs, job, waiting=3)
    await jobs.open(job)
    await Process(jobs).run(job)
    found = await current(jobs, job)
    assert (found.state, found.ended is not None) == ("done", True)
    assert await jobs.push(job, lines(3, start=3)) == 3
    found = await current(jobs, job)
    assert (found.state, found.ended) == ("open", None)
    await Process(jobs).run(job)
    await assert_books(jobs, job, done=6)


@pytest.mark.parametrize("line", [{"work": "\ud800"}, {"id": "\ud800"}, {"columns": {"own": {1}}}])
async def test_a_line_that_cannot_be_stored_is_named(jobs: Jobs, line: dict[str, Any]) -> None:
    job = await jobs.begin("job")
    made = [replace(each, **line) if each.row == 7 else each for each in lines(10)]
    with pytest.raises(JobError, match="Line 8 cannot be stored"):
        await jobs.push(job, made)


async def test_a_cancelled_job_revives_nothing(jobs: Jobs) -> None:
    """Targets that are in flight at the cancellation end, and their follow-ups do not start."""
    job = await new_job(jobs, 10)
    process = Process(jobs, unanswered)
    released = Process(jobs, unanswered)
    expired = Process(jobs, unanswered, {"lease": 1.0})
    claims = await process.claim(3)
    await released.claim(2)
    await expired.claim(1)
    await jobs.cancel(job)
    await assert_books(jobs, job, running=6, cancelled=4)
    assert await Process(jobs).claim() == []
    async with process.worker:
        for claim in claims:
            process.worker.finish(done(claim, followups=3))
    await released.worker.release()
    tending = Process(jobs, options={"lease": 1.0})
    async with asyncio.timeout(300), tending.worker:
        while await jobs.count_unfinished(job.id, "retail"):  # noqa: ASYNC110  # the lease ends later
            await asyncio.sleep(0.05)
    await assert_books(jobs, job, done=3, cancelled=16)
    assert len(process.stored) == 3
    with pytest.raises(JobError, match="is cancelled"):
        await jobs.push(job, lines(1, start=100))
    await jobs.open(job)
    await jobs.resume(job)
    assert (await current(jobs, job)).state == "cancelled"


async def test_a_limit_pauses_a_job_until_it_is_resumed(jobs: Jobs) -> None:
    job = await new_job(jobs, 20)
    first = Process(jobs, unanswered)
    async with first.worker:
        claims = await first.claim(8)
        for claim in claims:
            first.worker.finish(Finished(claim, "paused") if claim.key[0] % 2 else done(claim))
    paused = sum(claim.key[0] % 2 for claim in claims)
    assert 0 < paused < 8
    await assert_books(jobs, job, done=8 - paused, paused=paused, waiting=12)
    assert await Process(jobs).claim() == []
    assert (await current(jobs, job)).state == "paused"
    await jobs.resume(job)
    await Process(jobs).run(job)
    await assert_books(jobs, job, done=20)


@pytest.mark.parametrize("every", [False, True])
async def test_failed_targets_are_retried_in_their_run(jobs: Jobs, *, every: bool) -> None:
    """By default, only targets whose error may pass. The run is unfinished until it is done again."""
    codes = ["OK", "UPSTREAM_TIMEOUT", "TARGET_NOT_FOUND", "EXTRACTION_FAILED"]

    def answer(claim: Claim) -> Finished:
        code = codes[(claim.row or 0) % 4]
        return done(claim) if code == "OK" else Finished(claim, "failed", code, {"error": {"code": code}})

    job = await new_job(jobs, 20)
    await Process(jobs, answer).run(job)
    assert await jobs.tallies(job.id) == {("code", code): 5 for code in codes}
    retried, left = (15, {}) if every else (5, {"failed": 10})
    assert await jobs.retry(job, every=every) == retried
    await assert_books(jobs, job, done=5, waiting=retried, **left)
    again = await jobs.begin("job")
    assert (again.run, again.state, again.revision) == (1, "open", 1)
    await Process(jobs).run(job)
    await assert_books(jobs, job, done=5 + retried, **left)
    numbers = [5 + retried, 0, *([0, 0] if every else [5, 5])]
    assert await jobs.tallies(job.id) == {("code", code): n for code, n in zip(codes, numbers, strict=True)}
    stored = await outcomes(jobs, job)
    assert [line.seq for line in stored[20 - retried :]] == list(range(21, 21 + retried))
    found = await current(jobs, job)
    assert (found.state, found.revision) == ("done", 2)
    assert (await jobs.begin("job")).run == 2


async def test_a_removed_job_leaves_nothing(jobs: Jobs, location: str) -> None:
    job, other = await new_job(jobs, 1_200), await new_job(jobs, 5, "other")
    process = Process(jobs, lambda claim: done(claim, followups=1) if claim.job == job.id else None)
    late = Process(jobs, unanswered)
    claims = [claim for claim in await late.claim(40) if claim.job == job.id]
    async with process.worker:
        for _ in range(20):
            await process.claim(32)
    await jobs.remove(job)
    assert await jobs.get(job.id) is None
    async with late.worker:
        for claim in claims:
            late.worker.finish(done(claim))
    assert (len(late.lost), late.stored) == (len(claims), [])

    def left(table: str) -> list[tuple[int, int]]:
        sql = f"SELECT job, count(*) FROM {table} GROUP BY job"  # noqa: S608
        return jobs.reads.transact_sync(lambda session: [(a, b) for a, b in session.rows(sql)], write=False)

    assert [left(name) for name in ("inputs", "targets", "records", "tallies")] == [[(other.id, 5)]] * 2 + [[], []]
    await assert_books(jobs, other, waiting=5)
    if "://" not in location:
        pages = await jobs.reads.transact(lambda session: session.rows("PRAGMA freelist_count")[0][0], write=False)
        assert pages == 0
    again = await jobs.begin("job")
    assert again.id > other.id  # ids are not reused, so that a cursor of the removed job is valid for no other job
    with pytest.raises(JobError, match="was removed"):
        await jobs.push(job, lines(1))
    await jobs.remove(job)


@pytest.mark.parametrize("end", [Jobs.cancel, Jobs.remove])
async def test_a_job_is_cancelled_or_removed_while_a_worker_claims_targets_and_stores_followups(
    jobs: Jobs, another: Callable[[], Jobs], end: Callable[[Jobs, Job], Awaitable[None]]
) -> None:
    """After a cancellation, no target is waiting, and the running targets end. After a removal, nothing is left."""
    job = await new_job(jobs, 1_500)
    process = Process(another(), lambda claim: done(claim, followups=20))

    async def claim() -> None:
        while await process.claim(32):
            pass

    async with process.worker:
        claiming = asyncio.create_task(claim())
        await asyncio.sleep(0.2)
        await end(jobs, job)
        await claiming
    if end is Jobs.cancel:
        found = await current(jobs, job)
        assert (found.counts["waiting"], found.counts["running"]) == (0, 0)
        assert await jobs.check(job) == []
        assert found.counts["done"] == len(process.stored)
    else:
        for table in ("targets", "records", "inputs", "tallies", "jobs"):
            assert await rows(jobs, f"SELECT count(*) FROM {table}") == [(0,)], table  # noqa: S608


async def change(jobs: Jobs, sql: str) -> None:
    await jobs.writes.transact(lambda session: session.run(sql))


async def rows(jobs: Jobs, sql: str) -> list[Any]:
    return await jobs.reads.transact(lambda session: session.rows(sql), write=False)


async def test_a_check_finds_wrong_books(jobs: Jobs) -> None:
    job = await new_job(jobs, 4)
    await Process(jobs).run(job)
    for damage in (
        "UPDATE targets SET state = 'failed' WHERE seq = 1",
        "DELETE FROM records",
        "UPDATE targets SET seq = 7 WHERE seq = 2",
    ):
        await change(jobs, damage)
    assert await jobs.check(job) == [
        "4 targets are counted as done, but 3 are done.",
        "0 targets are counted as failed, but 1 are failed.",
        "0 records belong to 4 done targets.",
        "4 targets have an outcome, with 4 different sequence numbers up to 7.",
    ]


# Claims


async def test_owners_have_fair_shares(jobs: Jobs) -> None:
    """A client with thousands of targets does not delay another one."""
    for owner, names in {"busy": ("a", "b"), "new": ("c",), "late": ("d", "e", "f")}.items():
        for name in names:
            await new_job(jobs, 50, name, owner)
    owners = {job.id: job.owner async for job in jobs.every()}
    process = Process(jobs, unanswered)
    taken = Counter(owners[claim.job] for claim in await process.claim(9))
    assert taken == {"busy": 3, "new": 3, "late": 3}
    await new_job(jobs, 50, "g", "newest")
    owners |= {job.id: job.owner async for job in jobs.every()}
    assert Counter(owners[claim.job] for claim in await process.claim(3)) == {"newest": 3}
    assert Counter(owners[claim.job] for claim in await process.claim(8)) == dict.fromkeys((*taken, "newest"), 2)


async def test_scrapy_work_begins_with_the_owner_who_has_the_fewest_running_targets(jobs: Jobs) -> None:
    runner: Any = None  # nothing is crawled
    crawls = JobCrawls(jobs, runner, lambda _: True, lambda _: {})
    for owner, name in (("busy", "a"), ("busy", "b"), ("new", "c")):
        await new_job(jobs, 3, name, owner)
    first, _ = await crawls._next("retail")
    assert first is not None
    assert first.name == "a", "in the order of their creation"
    await Process(jobs, lambda _: None, {"job": first.id}).claim(1)
    second, _ = await crawls._next("retail")
    assert second is not None
    assert second.name == "c"
    assert await crawls._next("microblog") == (None, True)


async def test_owners_take_turns_on_each_platform_for_which_both_wait(jobs: Jobs) -> None:
    """Although only the second owner has targets of another platform, which keep running."""
    for owner, used in {"first": ("photoapp",), "second": ("photoapp", "retail")}.items():
        job = await jobs.begin("job", owner)
        for number, platform in enumerate(used):
            await jobs.push(job, lines(9, start=number * 9, platform=platform))
        await jobs.open(job)
    holder = Holder()

    def turn(session: Session) -> str:
        (claim,) = leases.claim(session, holder, "retail", 1, Skipped())
        assert claim.owner == "second"
        (claim,) = leases.claim(session, holder, "photoapp", 1, Skipped())
        leases.finish(session, holder, [Stored.of(done(claim))])
        return claim.owner

    assert [await jobs.writes.transact(turn) for _ in range(6)] == ["first", "second"] * 3


@pytest.mark.parametrize("numbers", [(2, 0, 50), (50, 0, 2)])
async def test_an_owner_gets_what_others_do_not_need(jobs: Jobs, numbers: tuple[int, ...]) -> None:
    made = {(await new_job(jobs, n, f"job {n}", f"owner {n}")).id: n for n in numbers}
    taken = Counter(made[claim.job] for claim in await Process(jobs, unanswered).claim(20))
    assert taken == {2: 2, 50: 18}


async def test_claims_are_of_one_platform_and_pass_over_owners_without_its_targets(jobs: Jobs) -> None:
    for number in range(5):
        other = await jobs.begin("job", f"owner {number}")
        await jobs.push(other, lines(3, platform="photoapp"))
        await jobs.open(other)
    await new_job(jobs, 5, owner="mine")
    process = Process(jobs, unanswered)
    assert [len(await process.claim(n, platform)) for n, platform in ((10, "retail"), (20, "photoapp"))] == [5, 15]


async def test_the_first_job_is_claimed_first(jobs: Jobs) -> None:
    first, second = await new_job(jobs, 10, "first"), await new_job(jobs, 10, "second")
    process = Process(jobs, unanswered)
    assert Counter(claim.job for claim in await process.claim(15)) == {first.id: 10, second.id: 5}
    await new_job(jobs, 2, "roots", whole_roots=True)
    assert Counter(claim.job for claim in await process.claim(5)) == {second.id: 5}, "no root beyond the number"


async def test_one_worker_takes_a_root_whole(jobs: Jobs, another: Callable[[], Jobs]) -> None:
    """In jobs with whole roots, follow-ups belong to the worker that claimed their root, until it loses the root."""
    job = await new_job(jobs, 3, whole_roots=True)
    other = another()
    first, second = Process(jobs, unanswered), Process(other, unanswered)
    async with first.worker:
        (root,) = await first.claim(1)
        first.worker.finish(done(root, followups=3, note={"page": 1}))
        while len(first.own) < 3:  # noqa: ASYNC110  # until the outcome is stored
            await asyncio.sleep(0.01)
        assert {each.root for each in first.own} == {root.key}
        assert list(first.worker.held.values()) == first.own
        claims = [claim for _ in range(5) for claim in await second.claim(8)]
        assert len(claims) == 2
        assert root.key not in {each.root for each in claims}
        first.worker.finish(done(first.own[0], note={"page": 2}))
    # The first worker has released the remaining targets of its root. A claim takes all of them, even if it asks for
    # one.
    whole = await second.claim(1)
    assert {each.key for each in whole} == {each.key for each in first.own[1:]}
    notes = await jobs.read(sql.NOTES, job=job.id, root=root.key)
    assert [(code, orjson.loads(note)) for code, note in notes] == [("OK", {"page": 1}), ("OK", {"page": 2})]
    async with second.worker:
        for claim in (*claims, *whole):
            second.worker.finish(done(claim))
    await assert_books(jobs, job, done=6)


async def test_two_workers_never_have_the_same_root(jobs: Jobs, another: Callable[[], Jobs]) -> None:
    """Three workers claim targets at the same time."""
    job = await new_job(jobs, 12, whole_roots=True)
    stores = [another() for _ in range(3)]
    holders: dict[bytes, set[int]] = {}
    processes = [Process(store, unanswered) for store in stores]

    async def work(number: int) -> None:
        process = processes[number]

        def answer(claim: Claim) -> Finished:
            assert claim.root is not None
            holders.setdefault(claim.root, set()).add(number)
            return done(claim, followups=3)

        process.answer = answer
        await process.run(job)

    await asyncio.gather(*(work(number) for number in range(3)))
    assert {len(each) for each in holders.values()} == {1}
    await assert_books(jobs, job, done=48)


def test_equal_work_has_an_equal_key() -> None:
    assert target_key("a", {"x": 1, "y": None}) == target_key("a", {"y": None, "x": 1})
    assert len({target_key("a", {}), target_key("b", {}), target_key("a", {"x": 1})}) == 3


async def test_a_repeated_line_belongs_to_the_target_of_the_first_one(jobs: Jobs) -> None:
    job = await new_job(jobs, 10)
    assert await jobs.push(job, lines(10)) == 0
    columns = {"own": 7, "text": "\x00"}
    again = [replace(each, row=each.row + 10, id=f"again {each.row}\x00", columns=columns) for each in lines(10)]
    assert await jobs.push(job, again) == 0
    await Process(jobs).run(job)
    await assert_books(jobs, job, done=10)
    for line in await outcomes(jobs, job):
        first, second = line.inputs
        assert (first.row, first.id) == (line.row, f"id-{line.row}")
        assert (second.row - 10, second.id, second.columns) == (line.row, f"again {line.row}\x00", columns)


@dataclass
class Ended:
    """The crawls of a runner: each ends at once, with the next of some reasons. An exception stands for itself."""

    reasons: list[str]
    settings: Settings = field(default_factory=Settings)
    crawls: int = 0

    def create_crawler(self, platform: str) -> Ended:
        return self

    @property
    def signals(self) -> Ended:
        return self

    def connect(self, *_: object) -> None:
        """Ignore the connection of a signal."""

    async def crawl(self, *_: object, **__: object) -> None:
        self.crawls += 1

    @property
    def stats(self) -> Ended:
        return self

    def get_stats(self) -> dict[str, str]:
        return {"finish_reason": self.reasons.pop(0)}


@pytest.mark.parametrize(
    ("reasons", "outcome_after", "crawls"),
    [
        (["closed: a"] * 3, 0, 3),
        (["closed: a", "closed: b", "closed: a", "closed: a", "closed: a"], 0, 5),
        (["closed: a"] * 5, 2, 5),  # another worker has stored an outcome meanwhile
    ],
)
async def test_a_clients_job_that_is_given_up_ends_with_an_error_a_bill_and_an_event(
    jobs: Jobs, reasons: list[str], outcome_after: int, crawls: int
) -> None:
    client = "acme"
    job = await jobs.begin("listings", client, whole_roots=True)
    work = {"scraper": SCRAPER, "id": "a", "params": {}}
    await jobs.push(job, [replace(each, work=work) for each in lines(40)])
    await jobs.open(job)
    runner: Any = Ended([*reasons])
    loop = JobCrawls(jobs, runner, lambda _: True, account_settings, drain=True, restarts=(0.0, 0.0))
    other = Process(jobs, options={"job": job.id})
    run = JobCrawls._crawl

    async def crawl(self: JobCrawls, job: Job, platform: str) -> None:
        if runner.crawls + 1 == outcome_after:
            async with other.worker:
                await other.claim(1)
        await run(self, job, platform)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JobCrawls, "_crawl", crawl)
        await loop.run()
    ended = len(other.stored)
    assert runner.crawls == crawls
    await assert_books(jobs, job, failed=40 - ended, **({"done": ended} if ended else {}))
    found = await outcomes(jobs, job)
    (error,) = {orjson.dumps(each.outcome["error"]) for each in found if each.is_failure and each.outcome}
    assert orjson.loads(error)["code"] == "INTERNAL_ERROR"
    assert orjson.loads(error)["retryable"]
    assert "closed" not in orjson.loads(error)["message"], "the cause may name what concerns the operator only"
    bills = await jobs.read(sa.text("SELECT sum(calls), sum(billable) FROM usage"))
    assert tuple(map(int, bills[0])) == (40 - ended, 0)
    assert len(await jobs.read(sa.text("SELECT id FROM outbox"))) == 1
    assert await jobs.retry(job) == 40 - ended
    retried = await current(jobs, job)
    assert retried.state == "open"


async def test_a_job_that_is_given_up_is_crawled_again_for_waiting_targets_only(jobs: Jobs) -> None:
    """Another worker holds its last target, and releases it later."""
    job = await new_job(jobs, 3)
    other = Process(jobs, unanswered)
    runner: Any = Ended(["closed: a"] * 99)
    loop = JobCrawls(jobs, runner, lambda _: True, account_settings, restarts=(0.0, 0.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crawler.jobs.crawls.POLL_SECONDS", 0.01)
        async with other.worker:
            assert len(await other.claim(1)) == 1
            working = asyncio.ensure_future(loop.run())
            await has_counts(jobs, job, running=1, failed=2)
            await asyncio.sleep(0.2)
            assert (runner.crawls, len(loop.given_up)) == (3, 1)
            await other.worker.release()
            await has_counts(jobs, job, failed=3)
        loop._stopping = True
        await working


async def test_a_store_that_is_unavailable_may_have_jobs_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.jobs.crawls.POLL_SECONDS", 0.01)
    n = len(platforms())
    read = AsyncMock(side_effect=[*[StoreUnavailable("It restarts.")] * n, *[()] * 2 * n])
    await JobCrawls(Mock(read=read), Mock(), lambda _: True, account_settings, drain=True).run()
    assert read.await_count == 3 * n


async def has_counts(jobs: Jobs, job: Job, **counts: int) -> None:
    found: dict[str, int] = {}
    for _ in range(6_000):
        stored = await jobs.get(job.id)
        assert stored is not None
        found = {state: n for state, n in stored.counts.items() if n}
        if found == counts:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(found)


@pytest.mark.parametrize("fails", ["a claim", "an outcome"])
async def test_the_end_of_a_job_that_is_given_up_does_not_delay_a_stop_in_an_outage(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    job = await new_job(jobs, 3)
    loop = JobCrawls(jobs, AsyncCrawlerRunner(), lambda _: True, account_settings)
    monkeypatch.setattr("crawler.jobs.worker.CLOSE_SECONDS", 0.0)
    asked = asyncio.Event()

    def unavailable(*_: object) -> Any:
        asked_by.call_soon_threadsafe(asked.set)
        raise StoreUnavailable("It restarts.")

    asked_by = asyncio.get_running_loop()
    monkeypatch.setattr(leases, "claim" if fails == "a claim" else "finish", unavailable)
    ending = asyncio.ensure_future(loop._end(job, "retail", ServiceError("The crawl failed.")))
    await asked.wait()
    await loop.stop()
    ended, _ = await asyncio.wait({ending}, timeout=60)
    assert ended


@pytest.mark.parametrize(
    ("seconds", "is_steady", "state"),
    [(119.0, True, "loading"), (121.0, True, "cancelled"), (121.0, False, "loading")],
)
async def test_an_interrupted_upload_blocks_its_name_for_two_minutes(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, seconds: float, state: str, *, is_steady: bool
) -> None:
    """A clock that has just jumped ends nothing. Each push of lines counts, not the beginning."""
    rules = Rules("refuse")
    job = await jobs.begin("nightly", "acme", rules=rules)
    await asyncio.sleep(0.01)
    await jobs.push(job, lines(3))
    found = await current(jobs, job)
    assert found.loaded > job.loaded
    clock: Any = SimpleNamespace(is_steady=is_steady, now=lambda: found.loaded + seconds)
    monkeypatch.setattr(lifecycle, "STORE_TIME", clock)
    if state == "loading":
        with pytest.raises(UnfinishedRunError, match="Run 1 of the job 'nightly' is loading"):
            await jobs.begin("nightly", "acme", rules=rules)
    else:
        assert (await jobs.begin("nightly", "acme", rules=rules)).run == 2
        with pytest.raises(JobError, match="is cancelled"):  # the first upload, if it runs still
            await jobs.push(job, lines(3))
    found = await current(jobs, job)
    assert found.state == state
    await assert_books(jobs, found, **{"waiting" if state == "loading" else "cancelled": 3})


async def test_the_repetition_of_an_upload_whose_name_was_given_away_does_not_get_its_part(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await jobs.begin("nightly", "acme", rules=Rules("refuse", key="k"))
    await jobs.push(job, lines(3))
    clock: Any = SimpleNamespace(is_steady=True, now=lambda: job.loaded + 600)
    monkeypatch.setattr(lifecycle, "STORE_TIME", clock)
    other = await jobs.begin("nightly", "acme", rules=Rules("refuse", key="other"))
    await jobs.open(other)
    assert [each.run for each in await jobs.newest("acme", 9)] == [2], "the first upload made no run for its client"
    again = await jobs.begin("nightly", "acme", rules=Rules("refuse", key="k"))
    assert (again.run, again.state) == (3, "loading")


async def test_an_upload_that_was_killed_is_repeated_from_its_first_line(jobs: Jobs) -> None:
    job = await jobs.begin("nightly", "acme")
    assert await jobs.next_row(job) == 0
    await jobs.push(job, lines(3))
    assert await jobs.next_row(await current(jobs, job)) == 0
    await jobs.open(job)
    assert await jobs.next_row(await current(jobs, job)) == 3
