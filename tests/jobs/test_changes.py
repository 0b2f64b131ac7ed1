"""What changed between runs is what the world's script has changed: nothing is missed, and nothing is invented."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from crawler.jobs.changes import Change, Comparison
from crawler.jobs.job import Job
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.options import JobOptions
from tests.jobs.moving_world import Place, World
from tests.jobs.workers import Process

KEPT = 2
KINDS = {"added", "removed", "not_compared", "target_gone", "target_back", "appeared", "gone", "changed"}


async def changes(jobs: Jobs, job: Job) -> tuple[list[Change], Counter[str]]:
    comparison = Comparison(job, await jobs.earlier(job))
    return [each async for page in comparison.pages(jobs) for each in page], comparison.counts


async def collect(jobs: Jobs, world: World, places: list[Place], day: int) -> Job:
    """Collect the targets of a day in a new run, and remove the runs that are not kept."""
    options = JobOptions(exhaustive=True) if places is world.categories else JobOptions()
    name = "categories" if places is world.categories else "mixed"
    job = await jobs.begin(name, options=options, whole_roots=options.needs_whole_roots)
    await jobs.push(job, world.lines(places, day))
    await jobs.open(job)
    process = Process(jobs, world.answer(places, day))
    async with asyncio.timeout(60), process.worker:
        while (found := await jobs.find(name)) is not None and found.state == "open":
            for platform in {each.platform for each in places}:
                await process.claim(platform=platform)
            await asyncio.sleep(0.01)
    assert found is not None
    assert (found.run, found.state) == (day + 1, "done")
    for each in (await jobs.earlier(found))[KEPT:]:
        await jobs.remove(each)
    return found


def reported(found: list[Change]) -> list[tuple[Any, ...]]:
    """Return the changes in the form of the script's books: days are runs that start with 0."""
    lines: list[tuple[Any, ...]] = []
    for each in found:
        baseline = None if each.baseline_run is None else each.baseline_run - 1
        values = (each.old, each.new) if each.change == "changed" else (None, None)
        path = each.code if each.change == "not_compared" else each.path
        lines.append((each.change, each.target["id"], baseline, each.key, path, *values))
    return lines


async def follow(jobs: Jobs, seed: int, days: int) -> Counter[str]:
    """Let a world move, compare each day, and return the sum of all counts."""
    world, total = World(seed), Counter[str]()
    for day in range(days):
        world.move(day)
        for places in (world.categories, world.mixed):
            job = await collect(jobs, world, places, day)
            found, counts = await changes(jobs, job)
            if day:
                kept = list(range(day - 1, max(-1, day - 1 - KEPT), -1))
                of_code, of_script = Counter(reported(found)), Counter(world.expected(places, day, kept))
                invented, missed = of_code - of_script, of_script - of_code
                assert (list(invented), list(missed)) == ([], []), (seed, day)
            total += counts
    return total


async def test_changes_are_those_of_the_script(jobs: Jobs) -> None:
    counts = await follow(jobs, seed=4, days=8)
    assert counts.keys() >= KINDS | {"compared", "unread", "gone_unknown", "appeared_unknown"}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
async def test_changes_of_a_month(jobs: Jobs, seed: int) -> None:
    counts = await follow(jobs, seed, days=30)
    assert counts.keys() >= KINDS | {"compared", "unread", "gone_unknown", "appeared_unknown"}
