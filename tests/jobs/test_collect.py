"""``scrapy collect``, ``scrapy jobs``, ``scrapy work`` and ``-a job=``: real crawls of the simulated platforms."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crawler.commands import collect
from crawler.commands.jobs import as_dict
from crawler.jobs.intake import job_name
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.outcomes import _stats as stats_of
from crawler.sandbox.retail.site import Site
from tests import forks
from tests.crawls import ROOT, comparable, lines
from tests.hanging_platform import CONDITION_TIMEOUT_SECONDS, HangingPlatform

SEARCH = "retail-search-v4"
TRUTH = Site(light=True)


@dataclass
class Commands:
    """Runs commands with a store, and finds their files."""

    folder: Path
    location: str
    settings: dict[str, Any] = field(default_factory=lambda: {"SANDBOX": 1})

    def command(self, *arguments: object) -> list[str]:
        settings = {"STORE": self.location, "FAILURES_FEED": self.failures, "JOB_LEASE": 3, **self.settings}
        given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        return [sys.executable, "-m", "scrapy", *map(str, arguments), *given]

    @property
    def failures(self) -> Path:
        return self.folder / "failures.jsonl"

    def run(self, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        given: dict[str, Any] = {"check": False, "capture_output": True, "text": True, "cwd": ROOT, "timeout": 120}
        return forks.run(self.command(*arguments), **given, **options)

    def start(self, *arguments: object, before: str = "") -> forks.Popen:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return forks.Popen(self.command(*arguments), text=True, cwd=ROOT, before=before, **pipes)

    def show(self, job: str, run: int | None = None) -> dict[str, Any]:
        """What ``jobs list --json`` prints of a run, by default of the newest one. {}: there is none."""

        async def read() -> dict[str, Any]:
            jobs = Jobs(self.location)
            found = await jobs.find(job, "", run)
            await jobs.close()
            return {} if found is None else as_dict(found)

        return asyncio.run(read())


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    return Commands(tmp_path, str(tmp_path / "jobs.sqlite3"))


def searches(n: int) -> list[dict[str, Any]]:
    return [{"id": f"t{number}", "scraper": SEARCH, "query": f"mustard {number}"} for number in range(n)]


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("night/links.csv", "links"),
        ("night/a*.csv", "a"),
        ("https://shop.example/links.csv?password=/secret.csv", "links"),
        ("*", "targets"),
        (f"{'x' * 99}.csv", "x" * 80),
    ],
)
def test_the_name_of_a_job_has_that_of_its_first_file_and_no_secret(path: str, name: str) -> None:
    found = job_name([path, "other.csv"], {"since": "last"})
    assert re.fullmatch(rf"{re.escape(name)}-[0-9a-f]{{12}}", found)
    assert found not in {job_name([path], {"since": "last"}), job_name([path, "other.csv"], {})}


@pytest.mark.parametrize(
    ("state", "counts", "tally", "code"),
    [
        ("done", {"done": 2}, "unread", 0),
        ("done", {"done": 2}, "unread rows", 4),
        ("done", {"done": 2}, "missing rows", 4),
        ("done", {"done": 1, "failed": 1}, "code", 4),
        ("done", {"done": 1, "dead": 1}, "code", 4),
        ("done", {"done": 0}, "code", 1),
        ("open", {"done": 2}, "code", 1),
        ("cancelled", {"done": 2}, "code", 1),
        ("paused", {"done": 2}, "code", 4),
    ],
)
def test_the_exit_code_of_a_job_by_its_state_and_outcomes(
    state: str, counts: dict[str, int], tally: str, code: int
) -> None:
    job: Any = SimpleNamespace(state=state, counts={"failed": 0, "dead": 0, **counts})
    assert collect.exit_code(job, {(tally, "search/items"): 1}) == code


def test_the_summary_has_the_time_of_a_job_and_no_code_whose_failures_were_retried() -> None:
    job: Any = SimpleNamespace(state="done", created=1_000.0, ended=1_075.0)
    stats = {"targets/OK": 2, "elapsed_time_seconds": 75, "finish_reason": "finished"}
    assert stats_of(job, {("code", "OK"): 2, ("code", "UPSTREAM_BLOCKED"): 0}) == stats


def test_the_summary_has_failures_with_examples_repeats_and_what_to_do_next(commands: Commands) -> None:
    failing = [
        {"id": "b", "scraper": SEARCH, "query": "challenge"},
        {"scraper": "microblog-profile", "username": "x_y_z"},
    ]
    partial = {"scraper": "microblog-profile", "username": "cut_short"}
    rows = [*searches(1), {**searches(1)[0], "id": "again"}, *failing, partial, "rubbish"]
    targets, out = write(commands.folder / "targets.jsonl", rows), commands.folder / "out.jsonl"
    run = commands.run("collect", targets, "-O", out, "--job", "mine", "-a", "max_pages=9")
    assert run.returncode == 4
    first, *rest = run.stderr[run.stderr.index("job mine:") :].splitlines()
    assert (
        re.sub(r"\d+:\d\d", "0:00", first)
        == f"job mine: {len(lines(out)) + 2} targets, {len(lines(out)) - 1} with data, in 0:00"
    )
    reason = "Expecting value at character 1."
    assert rest == [
        f"  failed:     1 INVALID_REQUEST: Line 6 of {targets.name} is not valid JSON: {reason} (line 6, rubbish)",
        "  failed:     1 TARGET_NOT_FOUND: The profile does not exist. (line 4, username=x_y_z)",
        "  failed:     1 UPSTREAM_BLOCKED: The platform returned a CAPTCHA challenge. (line 3, query=challenge)",
        "  repeated:   1 row has the target of an earlier row, which was fetched once",
        "  partial:    1 with data lacks a part of it, as its warnings say",
        "  incomplete: listings that lack rows: 1 (45 rows of 60 collected)",
        f"  data:       {out} ({len(lines(out))} lines)",
        f"  failures:   {commands.failures} (3 lines)",
        "  next:       scrapy jobs retry mine, then run the same command again",
    ]
    shown = commands.run("jobs", "show", "mine").stdout.splitlines()
    assert shown[-1] == "  next:       scrapy jobs retry mine, then scrapy work"
    assert shown[-len(rest) + 2 : -1] == rest[:-3], "the same summary without files"


def test_the_same_command_collects_again_on_the_next_day(commands: Commands) -> None:
    """Without ``--job``, the paths name the job: the edited file, and the same file from another folder."""
    targets, out = write(commands.folder / "to day.jsonl", searches(2)), commands.folder / "out.jsonl"
    run = commands.run("collect", targets, "-O", out)
    assert run.returncode == 0, run.stderr
    (listed,) = commands.run("jobs", "list", "--json").stdout.splitlines()
    name = json.loads(listed)["name"]
    assert f"job {name}, run 1: new.\n" in run.stderr
    write(targets, searches(3)[1:])
    run = commands.run("collect", os.path.relpath(targets, ROOT), "-O", out)
    assert run.returncode == 0, run.stderr
    assert [line["id"] for line in lines(out)] == ["t1", "t2"]
    said = run.stderr[: run.stderr.index("Spider opened")]
    assert f"job {name}, run 2: new.\nRun 1 was done at 20" in said
    command = next(line for line in said.splitlines() if line.startswith("Run 1")).partition("its records: ")[2]
    former = commands.folder / "former.jsonl"
    given = shlex.split(command.replace("FILE", shlex.quote(str(former))))
    assert commands.run(*given[1:]).returncode == 0, command
    assert [line["id"] for line in lines(former)] == ["t0", "t1"]
    assert [commands.show(name, number)["targets"]["done"] for number in (1, 2)] == [2, 2]
    assert commands.run("jobs", "check", name, "--run", 3).returncode == 2


def test_runs_beyond_the_kept_ones_are_removed_when_a_run_is_done(commands: Commands) -> None:
    targets = write(commands.folder / "targets.jsonl", searches(1))

    def runs() -> list[int]:
        return [number for number in range(1, 9) if commands.show("prices", number)]

    for expected in ([1], [1, 2], [2, 3]):
        assert commands.run("collect", targets, "--job", "prices", "--keep", 1).returncode == 0
        assert runs() == expected
    assert commands.run("jobs", "rm", "prices", "--run", 2).returncode == 0
    assert runs() == [3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["collect"], "Expected a file with targets"),
        (["collect", "nothing.csv"], "no such targets file: nothing.csv"),
        (["collect", "TARGETS", "-O", "out.xls"], "no format is called 'xls'"),
        (["collect", "TARGETS", "-O", "out.xlsx.gz"], "already compressed"),
        (["collect", "TARGETS", "-o", "out.jsonl"], "use -O"),
        (["collect", "TARGETS", "-a", "max_pages=0"], "max_pages=0"),
        (["collect", "TARGETS", "-a", "depth=1"], "A job has no argument depth"),
        (["collect", "TARGETS", "--job", "a\tb"], "must have printable characters"),
        (["collect", "TARGETS", "--scraper", "unknown"], "Unknown scraper 'unknown'"),
        (["collect", "TARGETS", "-O", "out.csv", "--fields", "item_idd"], "no field is called 'item_idd'"),
        (["collect", "TARGETS", "-O", "out.csv", "--explode", "x"], "explode=x: the data has no such list"),
        (["collect", "TARGETS", "--fields", "item_id"], "--explode and --fields need the file to write"),
        (["collect", "TARGETS", "-O", "%(scraper)s.xlsx"], "a workbook has a sheet for each scraper"),
        (["collect", "TARGETS", "-O", "nothing://out.jsonl"], "cannot be written"),
        (["collect", "TARGETS", "-O", "TARGETS/out.jsonl"], "Not a directory"),
        (["collect", "TARGETS", "-a", "exhaustive=true", "-a", "max_pages=2"], "an exhaustive crawl reads all pages"),
        (["collect", "TARGETS", "-a", "since=yesterday"], "'yesterday' is not a day"),
        (["collect", "TARGETS", "-a", "since=last"], "since requires a listing that is sorted by newest first"),
        (["jobs", "push", "x", "PROFILES", "-a", "exhaustive=true"], "microblog-profile has no option exhaustive"),
        (["jobs"], "Usage: scrapy jobs list"),
        (["jobs", "show", "nothing"], "No job is called 'nothing'"),
        (["jobs", "export", "nothing"], "No job is called 'nothing'"),
        (["work", "retail"], "Unexpected arguments: retail."),
        (["crawl", "retail", "-a", "job=x", "-a", "targets=TARGETS"], "a job has its own targets"),
        (["crawl", "retail", "-a", "job=x", "-a", "exhaustive=true"], "remove exhaustive=, or remove job="),
    ],
)
def test_wrong_use_is_refused(commands: Commands, arguments: list[str], message: str) -> None:
    targets = str(write(commands.folder / "targets.jsonl", searches(1)))
    profiles = str(write(commands.folder / "profiles.txt", ["https://x.com/quiet_harbor"]))
    run = commands.run(*(each.replace("TARGETS", targets).replace("PROFILES", profiles) for each in arguments))
    assert run.returncode == 2, run.stderr
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert "Spider opened" not in run.stderr
    assert "out.csv" in arguments or not asyncio.run(names_of_jobs(commands.location)), "columns are those of a job"


def test_failures_that_cannot_be_written_are_refused_before_the_run(commands: Commands) -> None:
    targets = write(commands.folder / "targets.jsonl", searches(1))
    commands.settings["FAILURES_FEED"] = targets / "failures.jsonl"
    run = commands.run("collect", targets)
    assert (run.returncode, "Not a directory" in run.stderr) == (2, True), run.stderr


async def names_of_jobs(location: str) -> list[str]:
    jobs = Jobs(location)
    found = [each.name async for each in jobs.every()]
    await jobs.close()
    return found


def test_records_are_written_to_standard_output(commands: Commands) -> None:
    """Nothing else is printed there. The cursor of ``--after`` would be."""
    targets = write(commands.folder / "targets.jsonl", searches(3))
    run = commands.run("collect", targets, "--job", "piped", "-O", "-")
    assert run.returncode == 0, run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert [(each["id"], bool(each["data"])) for each in found] == [(f"t{number}", True) for number in range(3)]
    assert "  data:       - (3 lines)" in run.stderr
    run = commands.run("jobs", "export", "piped", "-O", "-", "--fields", "query")
    assert [json.loads(line)["data"] for line in run.stdout.splitlines()] == [
        {"query": f"mustard {n}"} for n in range(3)
    ]
    run = commands.run("jobs", "export", "piped", "-O", "-", "--after", "0")
    assert (run.returncode, run.stdout) == (2, "")
    assert "name a file for the records" in run.stderr


def test_standard_input_is_a_job_of_its_content(commands: Commands) -> None:
    out = commands.folder / "out.jsonl"
    text = "".join(f"{json.dumps({**row, 'id': 't'})}\n" for row in searches(2))  # two targets may have the same id
    for number in (1, 2):
        run = commands.run("collect", "-", "-O", out, input=text)
        assert run.returncode == 0, run.stderr
        assert [(line["id"], line["data"]["query"]) for line in lines(out)] == [("t", "mustard 0"), ("t", "mustard 1")]
        assert re.search(f"job stdin-[0-9a-f]+, run {number}: new", run.stderr)
    run = commands.run("collect", "-", input=text.splitlines()[0])
    assert re.search("job stdin-[0-9a-f]+, run 1: new", run.stderr), "other targets are another job"


def test_jobs_are_pushed_worked_shown_exported_retried_and_removed(commands: Commands) -> None:
    failing = [{"scraper": SEARCH, "query": ""}, {"id": "none", "scraper": SEARCH, "query": "challenge"}]
    targets = write(commands.folder / "targets.jsonl", [*searches(3), *failing])
    out = commands.folder / "out.jsonl"
    assert commands.run("jobs", "push", "mine", targets).returncode == 4
    assert commands.show("mine")["targets"] == dict.fromkeys(
        ("waiting", "running", "paused", "done", "failed", "dead", "cancelled"), 0
    ) | {"waiting": 4, "failed": 1}
    run = commands.run("work", "--drain")
    assert run.returncode == 0, run.stderr
    shown = json.loads(commands.run("jobs", "show", "mine", "--json").stdout)
    codes = {"INVALID_REQUEST": 1, "OK": 3, "UPSTREAM_BLOCKED": 1}
    assert (shown["state"], shown["tallies"]["code"]) == ("done", codes)
    assert commands.run("jobs", "check", "mine").stdout == "no differences\n"
    assert commands.run("jobs", "export", "mine", "-O", out).returncode == 0
    assert [line["id"] for line in lines(out)] == ["t0", "t1", "t2"]
    assert "targets to retry: 1" in commands.run("jobs", "retry", "mine").stderr, "the line that is no target stays"
    assert commands.run("jobs", "list").stdout.startswith("job mine, run 1: open (1 waiting, 3 done, 1 failed)")
    assert commands.run("jobs", "cancel", "mine").returncode == 0
    assert commands.run("jobs", "push", "mine", targets).returncode == 4
    assert [commands.show("mine", number)["state"] for number in (1, 2)] == ["cancelled", "open"]
    assert commands.run("jobs", "rm", "mine").returncode == 0
    assert commands.run("jobs", "list", "--json").stdout == ""


def test_a_job_of_the_sandbox_never_continues_as_a_real_one(commands: Commands) -> None:
    targets = write(commands.folder / "targets.jsonl", searches(2))
    assert commands.run("jobs", "push", "mine", targets).returncode == 0
    commands.settings = {"SANDBOX": 0, "PLATFORM_ORIGINS": json.dumps({"retail": "http://127.0.0.1:9"})}
    run = commands.run("collect", targets, "--job", "mine")
    assert (run.returncode, "has different options (SANDBOX)" in run.stderr) == (2, True)
    for job, problem in (("mine", "was made with a different value of SANDBOX"), ("other", "does not exist")):
        run = commands.run("crawl", "retail", "-a", f"job={job}")
        assert (run.returncode, f"the job {job!r} {problem}" in run.stderr) == (1, True)
    assert commands.run("work", "--drain").returncode == 0
    assert commands.show("mine")["targets"]["waiting"] == 2


def test_further_pages_belong_to_the_job(commands: Commands) -> None:
    rows = [{"id": "c", "scraper": "retail-category-v4", "cat_id": "976759"}]
    targets, out = write(commands.folder / "targets.jsonl", rows), commands.folder / "out.jsonl"
    run = commands.run("collect", targets, "-O", out, "-a", "max_pages=3", "--job", "pages")
    assert run.returncode == 0, run.stderr
    assert sorted(line["params"]["page"] for line in lines(out)) == [1, 2, 3]
    assert commands.show("pages")["targets"]["done"] == 3
    commands.run("jobs", "push", "pages", targets, "-a", "max_pages=3", "--next-run")
    run = commands.run("collect", targets, "-O", out, "--job", "pages")
    assert run.returncode == 2
    assert "job pages, run 2 has different options (max_pages=3, SANDBOX): use --fresh" in run.stderr
    run = commands.run("collect", targets, "-O", out, "--job", "pages", "--fresh")
    assert run.returncode == 0, run.stderr
    assert (len(lines(out)), commands.show("pages")["run"]) == (1, 3)


def test_a_plain_crawl_leaves_no_file_behind(tmp_path: Path) -> None:
    """A crawl creates neither a store nor a folder ``.scrapy``, even with targets from a file."""
    (tmp_path / "scrapy.cfg").write_text((ROOT / "scrapy.cfg").read_text())
    write(tmp_path / "targets.jsonl", searches(2))
    program = [sys.executable, "-m", "scrapy", "crawl", "retail", "-s", "SANDBOX=1", "-O", "out.jsonl"]
    for given in ("query=mustard", "targets=targets.jsonl"):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        run = forks.run([*program, "-a", given], cwd=tmp_path, env=environment)
        assert run.returncode == 0, run.stderr
        assert sorted(each.name for each in tmp_path.rglob("*")) == ["out.jsonl", "scrapy.cfg", "targets.jsonl"]


# Concurrent workers, and kills


def in_shop(tmp_path: Path, location: str, shop: HangingPlatform) -> Commands:
    settings = {
        "PLATFORM_ORIGINS": json.dumps({"retail": shop.origin}),
        "PLATFORM_BUDGETS": json.dumps({"retail": {"concurrency": 1_000, "delay": 0, "sources": {}}}),
        "TARGETS_IN_FLIGHT": 16,
        "DOWNLOAD_TIMEOUT": 600,  # requests wait for permits
        "CLOSE_GRACE": 0.1,
        "JOB_EXITS": 1_000,  # a worker that a slow machine has not run for the time of a lease counts as killed
    }
    return Commands(tmp_path, location, settings)


def assert_complete(commands: Commands, job: str, n: int) -> None:
    """Assert that each of ``n`` targets is done, and that the exported records equal the simulated platform's truth."""
    out = commands.folder / "all.jsonl"
    assert commands.run("jobs", "export", job, "-O", out).returncode == 0
    found = lines(out)
    assert [(line["id"], line["params"]["query"]) for line in found] == [(f"t{i}", f"mustard {i}") for i in range(n)]
    for line in found:
        assert comparable(line["data"]) == comparable(TRUTH.expected_record({"scraper": SEARCH, **line["params"]}))
    assert commands.run("jobs", "check", job).stdout == "no differences\n"
    shown = commands.show(job)
    assert (shown["state"], shown["targets"]["done"]) == ("done", n)


AHEAD = 4
"""Number of responses that the shop is permitted to send beyond the targets that are done."""
LOST_SECONDS = 10.0
"""Seconds without a further target after which responses count as lost, with a worker or a server that was killed."""


def wait_until_done(commands: Commands, shop: HangingPlatform, job: str, done: int) -> None:
    """Permit responses of the shop until at least ``done`` targets of a job are done, and at most ``AHEAD`` more."""
    now = time.monotonic
    deadline, lost_at, last, permitted = now() + CONDITION_TIMEOUT_SECONDS, now() + LOST_SECONDS, 0, 0
    while (found := commands.show(job).get("targets", {}).get("done", 0)) < done:
        assert now() < deadline
        if found > last:
            last, lost_at = found, now() + LOST_SECONDS
        elif now() > lost_at:
            permitted, lost_at = found, now() + LOST_SECONDS
        permitted = max(permitted, found)
        shop.permits = (shop.permits or 0) + found + AHEAD - permitted
        permitted = found + AHEAD
        time.sleep(0.01)


def kill_after(commands: Commands, shop: HangingPlatform, job: str, done: int, *arguments: object) -> None:
    """Start a worker, and kill it once ``done`` targets of the job are done. The worker must still be running then."""
    shop.permits = 0
    process = commands.start(*arguments)
    wait_until_done(commands, shop, job, done)
    assert process.poll() is None, process.communicate()
    process.kill()
    process.communicate()
    shop.permits = None


def test_a_worker_releases_its_targets_on_sigterm(tmp_path: Path, shop: HangingPlatform) -> None:
    store = tmp_path / "jobs.sqlite3"
    commands = in_shop(tmp_path, str(store), shop)
    commands.run("jobs", "push", "released", write(tmp_path / "targets.jsonl", searches(40)))
    shop.permits = 0
    worker = commands.start("work")
    wait_until_done(commands, shop, "released", 3)
    worker.terminate()
    _, errors = worker.communicate()
    assert worker.returncode == 0, errors
    counts = commands.show("released")["targets"]
    assert (counts["running"], counts["waiting"] + counts["done"]) == (0, 40)
    assert 3 <= counts["done"] < 40
    with sqlite3.connect(store) as database:
        assert database.execute("SELECT max(exits) FROM targets").fetchone() == (0,)
    database.close()


def test_a_job_that_is_removed_while_it_runs_ends_its_command_with_a_sentence(
    tmp_path: Path, shop: HangingPlatform
) -> None:
    commands = in_shop(tmp_path, str(tmp_path / "jobs.sqlite3"), shop)
    shop.permits = 0
    file = write(tmp_path / "targets.jsonl", searches(20))
    command = commands.start("collect", file, "-O", tmp_path / "out.jsonl", "--job", "removed")
    wait_until_done(commands, shop, "removed", 1)
    assert commands.run("jobs", "rm", "removed").returncode == 0
    shop.permits = None
    _, errors = command.communicate()
    assert (command.returncode, "Traceback" in errors, (tmp_path / "out.jsonl").exists()) == (1, False, False), errors
    assert errors.rstrip().endswith("The job was removed while it ran: it has no output.")


KILLED_BEFORE_ITS_OUTPUT = """
import os, signal
from crawler.jobs.output import JobFiles
async def write(*_):
    os.kill(os.getpid(), signal.SIGKILL)
JobFiles.write = write
"""
FULL_DISK = """
from crawler.jobs.output import JobFiles
async def write(*_):
    raise OSError("the disk is full")
JobFiles.write = write
"""


def test_a_run_whose_output_was_not_written_is_written_before_the_next_run_begins(commands: Commands) -> None:
    targets, out = write(commands.folder / "targets.jsonl", searches(2)), commands.folder / "out.jsonl"
    given = ("collect", targets, "-O", out, "--job", "night")
    killed = commands.start(*given, before=KILLED_BEFORE_ITS_OUTPUT)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert (commands.show("night")["state"], out.exists()) == ("done", False)
    write(targets, searches(3))
    full = commands.start(*given, before=FULL_DISK)
    said = full.communicate()[1]
    assert full.returncode == 1
    assert "The output of job night, run 1 cannot be written: the disk is full. The store has the records" in said
    assert "with --fresh, it begins one at once" in said
    run = commands.run(*given)
    assert run.returncode == 0, run.stderr
    assert "job night, run 1: done, and its output is written now." in run.stderr
    assert "Spider opened" not in run.stderr
    assert [line["id"] for line in lines(out)] == ["t0", "t1"]
    run = commands.run(*given)
    assert "job night, run 2: new." in run.stderr
    assert [line["id"] for line in lines(out)] == ["t0", "t1", "t2"]


STOPPED_WHILE_A_CRAWL_OPENS = """
import os, signal
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner
crawl = AsyncCrawlerRunner.crawl
def stop_first(self, crawler, **arguments):
    stop = lambda: os.kill(os.getpid(), signal.SIGTERM)
    crawler.signals.connect(stop, signals.spider_opened, weak=False)
    return crawl(self, crawler, **arguments)
AsyncCrawlerRunner.crawl = stop_first
"""
NEVER_CLOSES = """
import asyncio
import crawler.commands.work as work
from crawler.jobs.source import JobSource
work.END_SECONDS = 0.5
async def close(self):
    print("closing", flush=True)
    await asyncio.Event().wait()
JobSource.close = close
"""
SPIDER_FAILS = """
from crawler.spiders.microblog import MicroblogSpider
def fail(self, *args, **kwargs):
    raise ZeroDivisionError("a permanent error")
MicroblogSpider.__init__ = fail
import crawler.jobs.crawls as crawls
from functools import partial
crawls.JobCrawls = partial(crawls.JobCrawls, restarts=(0.0, 0.0))
"""


def test_a_worker_ends_although_a_crawl_opens_at_that_moment(tmp_path: Path, shop: HangingPlatform) -> None:
    commands = in_shop(tmp_path, str(tmp_path / "jobs.sqlite3"), shop)
    commands.run("jobs", "push", "opening", write(tmp_path / "targets.jsonl", searches(40)))
    shop.permits = 0
    worker = commands.start("work", before=STOPPED_WHILE_A_CRAWL_OPENS)
    _, errors = worker.communicate()
    assert worker.returncode == 0, errors
    counts = commands.show("opening")["targets"]
    assert (counts["running"], counts["waiting"]) == (0, 40)


@pytest.mark.parametrize("signals", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_a_worker_ends_although_its_crawl_never_closes(tmp_path: Path, shop: HangingPlatform, signals: int) -> None:
    """The process ends within its bound. A second signal ends it at once."""
    commands = in_shop(tmp_path, str(tmp_path / "jobs.sqlite3"), shop)
    commands.run("jobs", "push", "hangs", write(tmp_path / "targets.jsonl", searches(40)))
    bound = NEVER_CLOSES if signals == 1 else NEVER_CLOSES.replace("0.5", "600")
    shop.permits = 0
    worker = commands.start("work", before=bound)
    wait_until_done(commands, shop, "hangs", 2)
    worker.terminate()
    assert worker.stdout is not None
    assert worker.stdout.readline() == "closing\n"
    if signals == 2:
        worker.terminate()
    _, errors = worker.communicate()
    message = "The crawls have not ended within 0.6 s: other workers take their targets over."
    assert (worker.returncode, message in errors) == ((1, True) if signals == 1 else (0, False)), errors


def test_a_worker_gives_up_a_job_whose_crawls_fail_with_the_same_error(commands: Commands) -> None:
    """The targets end with the error, and can be retried. The other jobs are collected. ``collect`` gives up after the
    first failure, and leaves the targets to its next start.
    """
    bad = write(commands.folder / "bad.jsonl", [{"scraper": "microblog-profile", "username": "quiet_harbor"}])
    for name, targets in (("bad", bad), ("good", write(commands.folder / "good.jsonl", searches(2)))):
        commands.run("jobs", "push", name, targets)
    run = commands.run("work", "--drain", before=SPIDER_FAILS)
    assert run.returncode == 1
    sentence = "microblog: the crawl of the job bad ended{} ZeroDivisionError: a permanent error"
    assert run.stderr.endswith(f"{sentence.format(' 3 times with the same error:')}\n")
    assert [commands.show(name)["state"] for name in ("bad", "good")] == ["done", "done"]
    failure = "1 INTERNAL_ERROR: The crawl of the job ended 3 times: ZeroDivisionError: a permanent error. (line 1"
    assert failure in commands.run("jobs", "show", "bad").stdout
    assert commands.run("jobs", "retry", "bad").stderr.endswith("targets to retry: 1\n")
    run = commands.run("collect", bad, "--job", "bad", before=SPIDER_FAILS)
    assert run.returncode == 1
    assert sentence.format(":") in run.stderr
    assert run.stderr.count("event=job_crawl_failed") == 1
    assert commands.show("bad")["targets"] == dict.fromkeys(commands.show("bad")["targets"], 0) | {"waiting": 1}


def test_an_interrupted_command_writes_what_there_is(tmp_path: Path, shop: HangingPlatform) -> None:
    commands = in_shop(tmp_path, str(tmp_path / "jobs.sqlite3"), shop)
    out = tmp_path / "out.jsonl"
    shop.permits = 0
    process = commands.start(
        "collect", write(tmp_path / "targets.jsonl", searches(40)), "-O", out, "--job", "interrupted"
    )
    wait_until_done(commands, shop, "interrupted", 3)
    process.send_signal(2)
    _, errors = process.communicate()
    assert process.returncode == 1, errors
    counts = commands.show("interrupted")["targets"]
    assert 3 <= counts["done"] < 40
    assert len(lines(out)) == counts["done"]
