"""``scrapy jobs retry --unread`` makes a job of the targets with unread parts, on SQLite and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crawler.jobs.export import Cursor, by_outcome
from crawler.jobs.job import Claim, Finished, JobError
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.options import JobOptions
from crawler.jobs.reruns import rerun_unread
from crawler.reading.unread import Unread
from crawler.targets.warning import OutcomeWarning
from tests.jobs.workers import Process, assert_books, done, lines, new_job
from tests.tiers import FAST_ON_SQLITE

UNREAD = OutcomeWarning.of_unread("search", Unread("rows[].rating", "missing", 3, 40)).as_dict()
OTHER = {"source": "feed", "code": "UPSTREAM_ERROR", "reason": "no_feed"}


def warned(claim: Claim) -> Finished:
    """Every third line has an unread part, every second line another warning. Row 4 has an unread second page."""
    is_page = claim.work.get("id") == "page-2"
    row = -1 if claim.row is None or is_page else claim.row
    warnings = [UNREAD] * (row % 3 == 0) + [OTHER] * (row % 2 == 0)
    made = done(claim, followups=row == 4)
    followups = tuple(replace(each, work={"id": "page-2"}) for each in made.followups)
    return replace(made, outcome={"warnings": [UNREAD] if is_page else warnings}, followups=followups)


async def ids(jobs: Jobs, job: Any) -> list[tuple[str, Any, int | None]]:
    return sorted([(i.id, i.columns, i.line) async for each in by_outcome(jobs, Cursor(job.id)) for i in each.inputs])


async def test_the_targets_with_unread_parts_become_a_job(jobs: Jobs) -> None:
    job = await jobs.create("job", "acme", options=JobOptions(sandbox=True))
    inputs = [replace(each, columns={"shop": each.row}, line=each.row + 1) for each in lines(10)]
    inputs.append(replace(inputs[3], row=10, id="again", line=11))
    await jobs.push(job, inputs)
    await jobs.describe(job, ["retail-search-v4"], ["shop"])
    await jobs.open(job)
    await Process(jobs, warned).run(job)
    before = await jobs.get(job.id)
    made = await rerun_unread(jobs, job)
    assert made is not None
    new, number = made
    assert (new.name, new.owner, new.options, number) == ("job-unread-1", "acme", JobOptions(sandbox=True), 6)
    assert await jobs.described(new) == (["retail-search-v4"], ("shop",))
    await Process(jobs).run(new)
    await assert_books(jobs, new, done=5)
    rows = [("id-0", 0), ("id-3", 3), ("again", 3), ("id-6", 6), ("id-9", 9)]
    page = await ids(jobs, new)
    assert [each for each in page if each[0] in dict(rows)] == sorted(
        (name, {"shop": row}, 11 if name == "again" else row + 1) for name, row in rows
    )
    assert len(page) == 6, "and the second page of the fifth line"
    assert await jobs.get(job.id) == before, "a done target is never opened again"
    assert await rerun_unread(jobs, new) is None
    again = await rerun_unread(jobs, job)
    assert again is not None
    assert again[0].name == "job-unread-2"


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
    assert made is not None
    assert (made[0].name, made[1]) == ("job-unread-1", 1_700)
    await assert_books(jobs, made[0], waiting=1_700)


async def test_in_a_job_of_whole_roots_the_root_is_repeated(jobs: Jobs) -> None:
    job = await new_job(jobs, 6, whole_roots=True)
    await Process(jobs, warned).run(job)
    made = await rerun_unread(jobs, job)
    assert made is not None
    assert made[1] == 3
    await Process(jobs).run(made[0])
    assert [each[0] for each in await ids(jobs, made[0])] == ["id-0", "id-3", "id-4"]


async def test_new_entries_only_are_refused(jobs: Jobs) -> None:
    job = await new_job(jobs, 1, options=JobOptions(since="last"))
    with pytest.raises(JobError, match="count as seen"):
        await rerun_unread(jobs, job)
