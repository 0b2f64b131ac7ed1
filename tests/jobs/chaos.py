"""Collects runs of a job, whose workers, schedule and database suffer random faults, and checks the books at the end.

``python -m tests.jobs.chaos sqlite|postgresql SEED`` runs it alone.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from crawler.errors import StoreUnavailable
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.tables import STATES
from crawler.service import usage
from tests.jobs.chaos_cron import KEEP, NAME, OWNER
from tests.jobs.chaos_worker import fails, followups_of
from tests.jobs.database_faults import FaultyDatabase, faulty_database
from tests.jobs.workers import SCRAPER, lines, outcomes

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
WORKERS = 3
LEASE = 2.0
MAX_SECONDS = 900


@dataclass(frozen=True)
class Plan:
    """The parameters of a run."""

    seed: int
    runs: int = 3
    """How often a schedule starts two commands at once."""
    targets: int = 200
    """The number of targets of each run."""
    pace: float = 1.5
    """The longest time in seconds that a worker takes to "scrape" a target."""
    locked: float = 10.0
    """Seconds for which a lock is held."""
    full: float = 4.0
    """Seconds for which the disk is full."""
    most: float = math.inf
    """The number of faults after which no new ones are caused."""


@dataclass
class Chaos:
    """The workers of a job, its database, and the faults that they suffer."""

    plan: Plan
    folder: Path
    database: FaultyDatabase
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    crons: list[subprocess.Popen[str]] = field(default_factory=list)
    """The running commands of the schedule."""
    stopped: dict[int, float] = field(default_factory=dict)
    """Process id of each suspended worker -> the time (``time.monotonic()``) at which to continue it."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often each fault occurred."""
    started: int = 0

    def __post_init__(self) -> None:
        self.chance = self.database.chance
        self.location = self.database.location
        of_database = self.database.faults(self.plan.locked, self.plan.full)
        own = [self.kill, self.kill, self.suspend, self.restart, self.kill_cron, self.kill_cron]
        self.faults = [(each.__name__, each) for each in own] + [*of_database.items()]

    # Workers

    def keep_running(self) -> None:
        """Replace workers that have exited, and continue suspended workers when it is time."""
        for process in self.workers:
            if self.is_stopped(process) and process.pid not in self.stopped:  # within a transaction
                self.counts["suspended within a transaction"] += 1
                self.stopped[process.pid] = time.monotonic() + self.chance.choice(
                    (1, LEASE + 2, 12 if self.database.server else 4)
                )
        for pid, until in list(self.stopped.items()):
            if time.monotonic() > until:
                del self.stopped[pid]
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        self.workers = [each for each in self.workers if each.poll() is None]
        while len(self.workers) < WORKERS:
            self.start()

    def start(self) -> None:
        self.started += 1
        log = self.folder / f"stored-{self.started}"
        options = (self.location, 0, log, self.plan.seed * 1_000 + self.started, self.plan.pace, LEASE)
        environment = os.environ | self.database.environment
        with (self.folder / "errors").open("ab") as errors:
            command = [sys.executable, "-m", "tests.jobs.chaos_worker", *map(str, options)]
            self.workers.append(
                subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
            )

    @staticmethod
    def is_stopped(process: subprocess.Popen[bytes]) -> bool:
        with suppress(OSError):
            return Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
        return False

    def end(self) -> None:
        processes: list[subprocess.Popen[Any]] = [*self.workers, *self.crons]
        for process in processes:
            process.kill()
            process.wait()

    # The schedule

    def schedule(self) -> None:
        """Start a command, as a schedule does."""
        self.started += 1
        options = (self.location, self.plan.seed * 1_000 + self.started, self.plan.targets)
        with (self.folder / "errors").open("a") as errors:
            command = [sys.executable, "-m", "tests.jobs.chaos_cron", *map(str, options)]
            self.crons.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True))

    async def end_crons(self, jobs: Jobs) -> None:
        """Check the exit codes of commands that have ended. One that has failed or was killed is started again."""
        for process in [each for each in self.crons if each.poll() is not None]:
            self.crons.remove(process)
            assert process.stdout is not None
            numbers = re.findall("^run ([0-9]+)$", process.stdout.read(), re.MULTILINE)  # the log is printed, too
            process.stdout.close()
            self.counts[f"exit {process.returncode}"] += 1
            assert process.returncode in {0, 1, -signal.SIGKILL}
            if process.returncode:
                self.schedule()
                continue
            found = {each.run: each.state for each in await self.patiently(lambda: jobs.runs(NAME, OWNER))}
            assert [found.get(int(number), "done") for number in numbers] == ["done"], "exit code 0, but not done"

    @staticmethod
    async def patiently(read: Callable[[], Awaitable[T]]) -> T:
        while True:
            with suppress(StoreUnavailable):
                return await read()
            await asyncio.sleep(0.2)

    # Faults

    def kill_cron(self) -> None:
        if self.crons:
            process = self.chance.choice(self.crons)
            process.kill()
            process.wait()

    def kill(self) -> None:
        process = self.chance.choice(self.workers)
        process.kill()
        process.wait()

    def restart(self) -> None:
        """Shut down a worker, which releases its targets."""
        process = self.chance.choice(self.workers)
        if process.pid not in self.stopped:
            process.terminate()

    def suspend(self) -> None:
        """Suspend a worker for longer than its lease."""
        process = self.chance.choice(self.workers)
        if process.pid not in self.stopped:
            self.stopped[process.pid] = time.monotonic() + LEASE + 1 + self.chance.random() * 2
            process.send_signal(signal.SIGSTOP)

    @property
    def caused(self) -> Counter[str]:
        """How often each fault was caused, without what followed from it."""
        return Counter({name: self.counts[name] for name, _ in self.faults if name in self.counts})

    # The run

    async def run(self) -> None:
        """Collect the runs of a job. Each time, two commands start at once."""
        jobs = Jobs(self.location)
        begin = time.monotonic()
        fault_at = begin + 1
        try:
            for number in range(self.plan.runs):
                if number and self.chance.random() < 0.5:  # a kill between two runs
                    self.schedule()
                    await asyncio.sleep(self.chance.random())
                    self.kill_cron()
                self.schedule()
                self.schedule()
                while self.crons:
                    self.keep_running()
                    if fault_at < time.monotonic() and self.caused.total() < self.plan.most:
                        name, fault = self.chance.choice(self.faults)
                        self.counts[name] += 1
                        await asyncio.to_thread(fault)
                        fault_at = time.monotonic() + self.chance.random() * 2
                    await self.end_crons(jobs)
                    assert time.monotonic() < begin + MAX_SECONDS, f"{await jobs.runs(NAME, OWNER)}, {self.counts}"
                    await asyncio.sleep(0.1)
        finally:
            self.end()
        await self.assert_books(jobs)
        await jobs.close()

    async def assert_books(self, jobs: Jobs) -> None:
        """Assert that each target and follow-up has one outcome in each run, one bill, and at most one log line."""
        roots = [line.key for line in lines(self.plan.targets)]
        expected = roots + [key for root in roots for key in followups_of(root)]
        failed = sum(map(fails, expected))
        runs = await jobs.runs(NAME, OWNER, removed=True)
        last = runs[0].run
        assert last >= self.plan.runs
        assert [each.run for each in runs] == [*range(last, max(0, last - KEEP - 1), -1)]
        for each in runs:
            assert await jobs.check(each) == []
            stored = await outcomes(jobs, each)
            assert sorted(line.key for line in stored) == sorted(expected)
            assert [line.seq for line in stored] == list(range(1, len(expected) + 1))
            for line in stored:
                assert line.state == ("failed" if fails(line.key) else "done")
                assert (line.record is None) == fails(line.key)
                assert line.record is None or line.record["key"] == line.key.hex()
            assert (each.state, each.revision) == ("done", 1)
            assert each.counts == dict.fromkeys(STATES, 0) | {"done": len(expected) - failed, "failed": failed}
            assert {name: n for name, n in (await jobs.tallies(each.id)).items() if n} == {
                ("code", "OK"): len(expected) - failed,
                ("code", "TARGET_NOT_FOUND"): failed,
            }
        announced = [text for log in self.folder.glob("stored-*") for text in log.read_text().splitlines()]
        assert len(set(announced)) == len(announced)
        assert {text.split()[1] for text in announced} <= {key.hex() for key in expected}

        async def read(query: str) -> list[tuple[Any, ...]]:
            return await jobs.reads.transact(lambda session: session.rows(query), write=False)

        bills = await read("SELECT sum(calls), sum(billable) FROM usage")
        assert tuple(map(int, bills[0])) == (last * len(expected), last * (len(expected) - failed))
        totals = await jobs.reads.transact(usage.totals, write=False)
        good = last * (len(expected) - failed)
        assert sorted(map(tuple, totals)) == [
            (SCRAPER, "OK", good, good),
            (SCRAPER, "TARGET_NOT_FOUND", last * failed, 0),
        ]
        events = [json.loads(body)["data"] for (body,) in await read("SELECT body FROM outbox")]
        assert sorted((each["run"], each["revision"]) for each in events) == [(n, 1) for n in range(1, last + 1)]
        ids = {each.id for each in runs}
        for table in ("inputs", "targets", "records", "tallies"):
            assert {job for (job,) in await read(f"SELECT DISTINCT job FROM {table}")} <= ids  # noqa: S608


def run(kind: str, plan: Plan) -> tuple[Counter[str], float]:
    """Run a job on a database. Return the faults, and the duration in seconds.

    Raises:
        AssertionError: outcomes or counters are wrong.
    """
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="jc-", dir="/tmp"))  # the path of a socket must be short
    folder.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        chance = random.Random(plan.seed)  # noqa: S311  # no secret
        chaos = Chaos(plan, folder, stack.enter_context(faulty_database(kind, folder, chance)))
        asyncio.run(chaos.run())
        errors = (folder / "errors").read_text()
        assert "Traceback" not in errors, errors
    return chaos.caused, time.monotonic() - begin


if __name__ == "__main__":
    sys.stdout.write(f"{run(sys.argv[1], Plan(int(sys.argv[2])))}\n")
