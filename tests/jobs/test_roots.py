"""Jobs whose spiders keep state between targets: ``exhaustive`` and ``since=``, with workers that are killed."""

from __future__ import annotations

import asyncio
import csv
import json
import random
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scrapy.settings import Settings

from crawler.jobs.job import InputLine
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.options import JobOptions
from crawler.jobs.outcomes import Shape, in_order
from crawler.jobs.output import Layout, Output
from crawler.outputs.columns import column_type_of_models, find_row_path
from crawler.sandbox.retail.site import Site as Shop
from crawler.targets.parser import TargetParser
from crawler.targets.target import Target
from tests import forks
from tests.crawls import ROOT, lines
from tests.hanging_platform import HangingPlatform, hanging_platform
from tests.jobs.test_collect import Commands, in_shop, kill_after, write
from tests.targets.test_incremental import Site, pages, site
from tests.tiers import FAST_ON_POSTGRESQL, FAST_ON_SQLITE
from tests.timeline.spider import ORIGIN, TimelineSpider

__all__ = ["site"]

CATEGORIES = {"a": "4171_29198", "b": "4171_29199"}


@pytest.fixture
def shop() -> Iterator[HangingPlatform]:
    """A simulated shop whose pages have all their products."""
    with hanging_platform(light=False) as running:
        yield running


def categories(folder: Path) -> Path:
    rows = [{"id": name, "scraper": "retail-category-v4", "cat_id": cat_id} for name, cat_id in CATEGORIES.items()]
    return write(folder / "categories.jsonl", rows)


def assert_all_products(out: Path) -> None:
    """Assert that each product of the categories is in the output exactly once."""
    found = lines(out)
    assert {line["root"] for line in found} == set(CATEGORIES)
    for name, cat_id in CATEGORIES.items():
        priced, unpriced = Shop().products_of(cat_id)
        ids = [each["item_id"] for line in found if line["root"] == name for each in line["data"]["products"]]
        assert len(ids) == len(set(ids))
        assert set(ids) == priced | unpriced


@FAST_ON_POSTGRESQL
@pytest.mark.parametrize("kills", [2, pytest.param(12, marks=pytest.mark.soak)], ids=["short", "long"])
def test_an_exhaustive_job_whose_workers_are_killed_has_each_product_once(
    tmp_path: Path, location: str, shop: HangingPlatform, kills: int
) -> None:
    commands = in_shop(tmp_path, location, shop)
    file, out = categories(tmp_path), tmp_path / "out.jsonl"
    collect = ("collect", file, "-O", out, "--job", "all", "-a", "exhaustive=true")
    chance = random.Random(kills)  # noqa: S311  # no secret
    done = 0
    for number in range(kills):
        done += chance.randint(2, max(3, 30 // kills))
        kill_after(commands, shop, "all", done, *(collect if number % 2 == 0 else ("crawl", "retail", "-a", "job=all")))
    run = commands.run(*collect)
    assert run.returncode == 0, run.stderr
    assert_all_products(out)
    assert commands.run("jobs", "check", "all").stdout == "no differences\n"


@FAST_ON_SQLITE
def test_a_limit_pauses_an_exhaustive_job_and_a_higher_one_continues_it(
    tmp_path: Path, location: str, shop: HangingPlatform
) -> None:
    commands = in_shop(tmp_path, location, shop)
    file, out = categories(tmp_path), tmp_path / "out.jsonl"
    pages: list[int] = []
    for limit in (2, 2, 4):
        run = commands.run("collect", file, "-O", out, "-a", "exhaustive=true", "-a", f"max_requests={limit}")
        assert run.returncode == 4, run.stderr
        assert "a limit was reached: run the same command again with a higher limit" in run.stderr
        pages.append(len(lines(out)))
    assert pages == [4, 4, 8], "each category has as many pages as the limit"
    run = commands.run("collect", file, "-O", out, "-a", "exhaustive=true")
    assert run.returncode == 0, run.stderr
    assert_all_products(out)
    name = json.loads(commands.run("jobs", "list", "--json").stdout)["name"]
    table = tmp_path / "out.csv"
    assert commands.run("jobs", "export", name, "-O", table, "--explode", "products").returncode == 0
    expected = [(line["id"], line["root"]) for line in lines(out) for _ in line["data"]["products"]]
    with table.open(newline="") as file_of_rows:
        assert [(row["target_id"], row["root"]) for row in csv.DictReader(file_of_rows)] == expected


# since=


def new_job(location: str, name: str, users: list[str], since: str = "last") -> None:
    """Create and open a job with the timelines of the users."""

    async def push() -> None:
        jobs = Jobs(location)
        options = JobOptions(since=since, max_pages=50, sandbox=False)
        job = await jobs.begin(name, options=options, whole_roots=since == "last")
        for row, user in enumerate(users):
            target = TargetParser(TimelineSpider.scrapers).parse({"id": user, "user": user})
            assert isinstance(target, Target)
            await jobs.push(job, [InputLine(row, user, target.key, "timeline", target.dump())])
        await jobs.open(job)
        await jobs.close()

    asyncio.run(push())


def timeline_worker(tmp_path: Path, location: str, site: Site, job: str) -> list[str]:
    settings = {
        "SPIDER_MODULES": "tests.timeline",
        "PLATFORM_ORIGINS": json.dumps({ORIGIN: site.origin}),
        "PLATFORM_BUDGETS": json.dumps({"timeline": {"concurrency": 4, "delay": 0.05}}),
        "STORE": location,
        "JOB_LEASE": 3,
        "FAILURES_FEED": tmp_path / "failures.jsonl",
    }
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    return [sys.executable, "-m", "scrapy", "crawl", "timeline", "-a", f"job={job}", *given]


def work(tmp_path: Path, location: str, site: Site, job: str) -> dict[str, list[list[int]]]:
    """Run a worker of a job to its end. Return the posts of each page, by user."""
    start = timeline_worker(tmp_path, location, site, job)
    run = forks.run(start)
    assert run.returncode in {0, 4}, run.stderr
    return asyncio.run(pages_of(location, job))


async def pages_of(location: str, name: str) -> dict[str, list[list[int]]]:
    jobs = Jobs(location)
    try:
        job = await jobs.find(name)
        assert job is not None
        assert await jobs.check(job) == []
        found: dict[str, list[list[int]]] = {}
        records = [line async for line in in_order(jobs, job.id) if line.record is not None]
        for line in sorted(records, key=lambda line: int(line.work["params"].get("cursor") or 0)):
            posts = [int(post["post_id"]) for post in line.record["posts"]["main"]]
            found.setdefault(line.work["params"]["user"], []).append(posts)
        return found
    finally:
        await jobs.close()


@FAST_ON_SQLITE
def test_the_second_job_reads_only_down_to_what_the_first_has_seen(tmp_path: Path, location: str, site: Site) -> None:
    site.posts = list(range(10, 0, -1))
    new_job(location, "monday", ["ann", "bob"])
    whole = [[10, 9, 8], [7, 6, 5], [4, 3, 2], [1]]
    assert work(tmp_path, location, site, "monday") == {"ann": whole, "bob": whole}
    site.posts = list(range(14, 0, -1))
    new_job(location, "tuesday", ["ann", "eve"])
    every = [[14, 13, 12], [11, 10, 9], [8, 7, 6], [5, 4, 3], [2, 1]]
    assert work(tmp_path, location, site, "tuesday") == {"ann": every[:2], "eve": every}
    site.posts = list(range(16, 0, -1))
    new = [[16, 15, 14]]
    assert pages(tmp_path, site, store=location, user="ann") == new, "a crawl without a job shares what jobs have seen"
    new_job(location, "wednesday", ["ann"])
    assert work(tmp_path, location, site, "wednesday") == {"ann": new}
    site.posts, site.broken = list(range(26, 0, -1)), {"6"}
    new_job(location, "thursday", ["ann"])
    assert work(tmp_path, location, site, "thursday") == {"ann": [[26, 25, 24], [23, 22, 21]]}
    site.broken = set()
    new_job(location, "friday", ["ann"])
    whole = [[26, 25, 24], [23, 22, 21], [20, 19, 18], [17, 16, 15]]
    assert work(tmp_path, location, site, "friday") == {"ann": whole}, "an incompletely read listing is read again"


@FAST_ON_POSTGRESQL
def test_a_listing_that_another_worker_continues_is_seen_as_a_whole(tmp_path: Path, location: str, site: Site) -> None:
    site.posts = list(range(60, 0, -1))
    new_job(location, "monday", ["ann"])
    process = forks.Popen(timeline_worker(tmp_path, location, site, "monday"), cwd=ROOT)
    commands = Commands(tmp_path, location)
    while commands.show("monday")["targets"]["done"] < 3:
        time.sleep(0.02)
    process.kill()
    process.wait()
    pages = work(tmp_path, location, site, "monday")["ann"]
    assert [post for page in pages for post in page] == site.posts
    new_job(location, "tuesday", ["ann"])
    assert work(tmp_path, location, site, "tuesday") == {"ann": [[60, 59, 58]]}
    site.posts = site.posts[3:]  # the newest posts are deleted, but the posts on the first worker's pages are known
    new_job(location, "wednesday", ["ann"])
    assert work(tmp_path, location, site, "wednesday") == {"ann": [[57, 56, 55]]}


@FAST_ON_SQLITE
@pytest.mark.parametrize("since", ["last", "2026-11-01"])
def test_only_new_entries_are_rows(tmp_path: Path, location: str, site: Site, since: str) -> None:
    site.posts = list(range(4, 0, -1))
    site.times = {post: 1_793_491_200 + (post - 5) * 86_400 for post in range(10)}  # 5: 2026-11-01
    if since == "last":
        new_job(location, "monday", ["ann"])
        work(tmp_path, location, site, "monday")
    site.posts = list(range(9, 0, -1))
    new_job(location, "tuesday", ["ann"], since)
    assert work(tmp_path, location, site, "tuesday") == {"ann": [[9, 8, 7], [6, 5, 4]]}
    assert asyncio.run(exported(location, "tuesday", Layout(f"{tmp_path}/rows.jsonl"))) == [9, 8, 7, 6, 5]


async def exported(location: str, name: str, layout: Layout) -> list[int]:
    """Write a job to JSON Lines. Return the ids of the posts, one for each line."""
    scraper = TimelineSpider.scrapers[0]
    path = find_row_path(column_type_of_models([scraper.data]), "posts.main")
    output = Output(layout, {scraper.name: Shape(scraper, row_path=path)}, Settings(), datetime.now(UTC))
    jobs = Jobs(location)
    try:
        job = await jobs.find(name)
        assert job is not None
        async for line in in_order(jobs, job.id):
            output.write(line)
        output.close()
    finally:
        await jobs.close()
    return [int(row["post_id"]) for row in lines(Path(layout.path))]
