"""``scrapy jobs retry --unread`` makes a job of the targets with unread parts, on SQLite and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from crawler.jobs import tables as sql
from crawler.jobs.intake import push, rerun, unread
from crawler.jobs.job import Claim, Finished, Job, JobError
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.options import JobOptions
from crawler.jobs.outcomes import Cursor, by_outcome, in_order, record_line
from crawler.reading.contract import Unread
from crawler.registry import spiders
from crawler.targets.files.source import FileSource
from crawler.targets.parser import TargetParser
from crawler.targets.warning import OutcomeWarning
from tests.jobs.workers import Process, assert_books, done, lines, new_job
from tests.tiers import FAST_ON_SQLITE


async def rerun_unread(jobs: Jobs, job: Job) -> Job:
    return await rerun(jobs, job, "job-unread", await unread(jobs, job))


UNREAD = OutcomeWarning.of_unread("search", Unread("rows[].rating", "missing", 3, 40)).as_dict()
OTHER = {"source": "feed", "code": "UPSTREAM_ERROR", "reason": "no_feed"}


def warned(claim: Claim) -> Finished:
    """Every third line has an unread part, every second line another warning. Row 4 has an unread second page."""
    is_page = claim.work.get("id") == "page-2"
    row = -1 if claim.row is None or is_page else claim.row
    warnings = [UNREAD] * (row % 3 == 0) + [OTHER] * (row % 2 == 0)
    made = done(claim, followups=row == 4)
    followups = tuple(replace(each, work={"id": "page-2", "line": 5, "note": "Less."}) for each in made.followups)
    return replace(made, outcome={"warnings": [UNREAD] if is_page else warnings}, followups=followups)


async def ids(jobs: Jobs, job: Any) -> list[tuple[str, Any, int | None]]:
    return sorted([(i.id, i.columns, i.line) async for each in by_outcome(jobs, Cursor(job.id)) for i in each.inputs])


async def rows(jobs: Jobs, job: Job) -> list[tuple[int, str, Any, int | None]]:
    """The input lines of a job: row, id, columns and line."""
    found = await jobs.read(sql.LINES, job=job.id, after=-1, limit=5_000)
    return [(each.row, each.id.decode(), orjson.loads(each.columns), each.line) for each in found]


async def test_the_targets_with_unread_parts_become_a_job(jobs: Jobs) -> None:
    job = await jobs.begin("job", "acme", options=JobOptions(sandbox=True))
    inputs = [replace(each, columns={"shop": each.row}, line=each.row + 1) for each in lines(10)]
    inputs.append(replace(inputs[3], row=10, id="again", line=11))
    await jobs.push(job, inputs)
    await jobs.describe(job, ["retail-search-v4"], ["shop"])
    await jobs.open(job)
    await Process(jobs, warned).run(job)
    before = await jobs.get(job.id)
    new = await rerun_unread(jobs, job)
    assert (new.name, new.owner, new.run, new.options) == (
        *("job-unread", "acme", 1),
        JobOptions(sandbox=True, fingerprint=f"run {job.id}"),
    )
    assert await rerun_unread(jobs, job) == new, "it is not finished"
    assert await jobs.described(new) == (["retail-search-v4"], ("shop",))
    await Process(jobs).run(new)
    await assert_books(jobs, new, done=5)
    found = await jobs.read(sql.LINES, job=new.id, after=-1, limit=9)
    assert [(each.line, each.note) for each in found if each.id == b"page-2"] == [(5, b"Less.")]
    rows = [("id-0", 0), ("id-3", 3), ("again", 3), ("id-6", 6), ("id-9", 9)]
    page = await ids(jobs, new)
    assert [each for each in page if each[0] in dict(rows)] == sorted(
        (name, {"shop": row}, 11 if name == "again" else row + 1) for name, row in rows
    )
    assert len(page) == 6, "and the second page of the fifth line"
    assert await jobs.get(job.id) == before, "a done target is never opened again"
    assert await unread(jobs, new) == set()
    again = await rerun_unread(jobs, job)
    assert (again.name, again.run) == ("job-unread", 2)


@FAST_ON_SQLITE
async def test_a_rerun_that_was_killed_is_continued(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await new_job(jobs, 1_700)
    await Process(jobs, lambda claim: replace(done(claim), outcome={"warnings": [UNREAD]})).run(job)
    describe = Jobs.describe

    async def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Jobs, "describe", killed)
    with pytest.raises(KeyboardInterrupt):
        await rerun_unread(jobs, job)
    monkeypatch.setattr(Jobs, "describe", describe)
    made = await rerun_unread(jobs, job)
    assert (made.name, made.run) == ("job-unread", 1)
    await assert_books(jobs, made, waiting=1_700)


async def test_in_a_job_of_whole_roots_the_root_is_repeated(jobs: Jobs) -> None:
    job = await new_job(jobs, 6, whole_roots=True)
    await Process(jobs, warned).run(job)
    made = await rerun_unread(jobs, job)
    assert made.counts["waiting"] == 3
    await Process(jobs).run(made)
    assert [each[0] for each in await ids(jobs, made)] == ["id-0", "id-3", "id-4"]


async def test_new_entries_only_are_refused(jobs: Jobs) -> None:
    job = await new_job(jobs, 1, options=JobOptions(since="last"))
    with pytest.raises(JobError, match="count as seen"):
        await unread(jobs, job)


@FAST_ON_SQLITE
async def test_all_lines_of_a_run_are_repeated_in_their_order(jobs: Jobs) -> None:
    job = await jobs.begin("job", "acme", options=JobOptions(max_pages=2), whole_roots=True)
    inputs = [replace(each, columns={"shop": each.row}, line=each.row + 1) for each in lines(1_203)]
    inputs.append(replace(inputs[3], row=1_203, id="again", line=1_204))
    await jobs.push(job, inputs)
    await jobs.describe(job, ["retail-search-v4"], ["shop"])
    await jobs.open(job)
    await Process(jobs, warned).run(job)
    new = await rerun(jobs, job, job.name)
    assert (new.run, new.options, new.whole_roots, new.counts["waiting"]) == (
        *(2, job.options.model_copy(update={"fingerprint": f"run {job.id}"})),
        *(True, 1_203),
    )
    assert await jobs.described(new) == (["retail-search-v4"], ("shop",))
    await Process(jobs, warned).run(new)
    assert await rows(jobs, new) == await rows(jobs, job)
    assert (await rows(jobs, new))[-1] == (1_203, "again", {"shop": 3}, 1_204)
    assert await jobs.check(new) == []


REDUCED = "count=30 was used instead of {}: it is the limit."


def with_time(claim: Claim) -> Finished:
    return replace(done(claim), outcome={"warnings": [], "fetched_at": "2026-11-01T00:00:00+00:00"})


async def test_each_line_of_one_target_keeps_its_own_note_in_all_runs(jobs: Jobs, tmp_path: Path) -> None:
    file = tmp_path / "targets.csv"
    file.write_text("id,keywords,count\na,whales,99\nb,whales,30\nc,whales,50\n")
    job = await jobs.begin("job")
    await push(jobs, job, [FileSource(TargetParser(spiders()["shortvideo"].scrapers), str(file))])
    await jobs.open(job)
    for _ in range(2):
        process = Process(jobs, with_time)
        async with process.worker:
            await process.claim(platform="shortvideo")
        await assert_books(jobs, job, done=1)
        for read in (by_outcome(jobs, Cursor(job.id)), in_order(jobs, job.id)):
            notes = {found["id"]: found["note"] for found in [record_line(each) async for each in read]}
            assert notes == {"a": REDUCED.format(99), "b": "", "c": REDUCED.format(50)}
        job = await rerun(jobs, job, "job")
