"""Collects runs of a job, whose workers, schedule and database suffer random faults, and checks the books at the end.

``python -m tests.jobs.chaos sqlite|postgresql SEED`` runs it alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from crawler.errors import StoreUnavailable
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.states import STATES
from tests.jobs.chaos_cron import KEEP, NAME, OWNER
from tests.jobs.chaos_worker import fails, followups_of
from tests.jobs.postgresql_server import PostgreSqlServer
from tests.jobs.workers import lines, outcomes

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
WORKERS = 3
LEASE = 2.0
TMPFS_MB = 160
MAX_SECONDS = 900
FAKETIME = next(map(str, Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), "")


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
    faults_until: float = 1e9
    """Seconds from the start of the run after which no new faults are caused."""


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small file system on a folder. Yield whether this was permitted."""
    options = f"size={TMPFS_MB}m,mode=777"
    command = [shutil.which("mount") or "mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    mounted = os.getuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run([shutil.which("umount") or "umount", "--lazy", str(folder)], check=True)


@dataclass
class Chaos:
    """The workers of a job, its database, and the faults that they suffer."""

    plan: Plan
    folder: Path
    server: PostgreSqlServer | None
    disk: bool
    """Whether the database is on a small file system that can be filled up."""
    clock: Path | None
    """The file with the clock's offset, None if the clock cannot be changed."""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    crons: list[subprocess.Popen[str]] = field(default_factory=list)
    """The running commands of the schedule."""
    stopped: dict[int, float] = field(default_factory=dict)
    """Process id of each suspended worker -> the time (``time.monotonic()``) at which to continue it."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often each fault occurred."""
    started: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.plan.seed)  # noqa: S311  # no secret
        self.store = self.folder / "disk/jobs.sqlite3"
        self.location = self.server.url if self.server else str(self.store)
        self.faults: list[Callable[[], None]] = [self.kill, self.kill, self.suspend, self.restart, self.lock]
        self.faults += [self.kill_cron] * 2
        if self.server:
            self.faults += [self.crash, self.terminate]
        if self.disk:
            self.faults.append(self.fill)
        if self.clock:
            self.faults.append(self.jump)

    # Workers

    def keep_running(self) -> None:
        """Replace workers that have exited, and continue suspended workers when it is time."""
        for process in self.workers:
            if self.is_stopped(process) and process.pid not in self.stopped:  # within a transaction
                self.counts["suspended within a transaction"] += 1
                self.stopped[process.pid] = time.monotonic() + self.chance.choice(
                    (1, LEASE + 2, 12 if self.server else 4)
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
        environment = os.environ | ({} if self.server else self.fake_time())
        with (self.folder / "errors").open("ab") as errors:
            command = [sys.executable, "-m", "tests.jobs.chaos_worker", *map(str, options)]
            self.workers.append(
                subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
            )

    def fake_time(self) -> dict[str, str]:
        return fake_time(self.clock) if self.clock else {}

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

    def lock(self) -> None:
        """Hold a lock of the database, like a backup or a console."""
        with suppress(sqlite3.Error, psycopg.Error):
            if self.server:
                with psycopg.connect(self.location) as connection:
                    # A worker that is suspended within a transaction is continued only after this fault. If the
                    # server's clock was set back meanwhile, the server does not end the transaction in time.
                    connection.execute("SET lock_timeout = '20s'")
                    connection.execute("LOCK TABLE jobs")
                    time.sleep(self.plan.locked)
            else:
                with closing(sqlite3.connect(self.location, isolation_level=None)) as database:
                    database.execute("BEGIN EXCLUSIVE")
                    time.sleep(self.plan.locked)

    def crash(self) -> None:
        assert self.server is not None
        self.server.kill()
        time.sleep(self.chance.random() * 2)
        self.server.start()

    def terminate(self) -> None:
        """End all connections, so that the results of their commits are unknown."""
        sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        with suppress(psycopg.Error), psycopg.connect(self.location) as connection:
            connection.execute(f"{sql} AND pid <> pg_backend_pid()")

    def fill(self) -> None:
        """Fill the disk, and free it again."""
        filler = self.folder / "disk/filler"
        with filler.open("wb", buffering=0) as file:
            while shutil.disk_usage(filler.parent).free:
                with suppress(OSError):  # a worker may have written in the meantime
                    file.write(bytes(4_096))
        time.sleep(self.plan.full)
        filler.unlink()
        if self.server:
            self.server.start()  # it exits if it cannot write its log

    def jump(self) -> None:
        """For 4 seconds, set a clock forward or back by 26 hours or 20 seconds.

        This is the clock of the PostgreSQL server, or with SQLite the clock of the workers.
        """
        assert self.clock is not None
        self.clock.write_text(self.chance.choice(("+93600", "-93600", "+20", "-20")))
        time.sleep(4)
        self.clock.write_text("+0")

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
                    if fault_at < time.monotonic() < begin + self.plan.faults_until:
                        fault = self.chance.choice(self.faults)
                        self.counts[fault.__name__] += 1
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
        self.counts["runs"] = last
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
        events = [json.loads(body)["data"] for (body,) in await read("SELECT body FROM outbox")]
        assert sorted((each["run"], each["revision"]) for each in events) == [(n, 1) for n in range(1, last + 1)]
        ids = {each.id for each in runs}
        for table in ("inputs", "targets", "records", "tallies"):
            assert {job for (job,) in await read(f"SELECT DISTINCT job FROM {table}")} <= ids  # noqa: S608


def fake_time(clock: Path) -> dict[str, str]:
    """Environment of a process whose wall clock (but no monotonic clock) is shifted by the offset in a file."""
    names = {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    return {"LD_PRELOAD": FAKETIME, **names}


def run(kind: str, plan: Plan) -> tuple[Counter[str], float]:
    """Run a job on a database. Return the faults, and the duration in seconds.

    Raises:
        AssertionError: outcomes or counters are wrong.
    """
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="jc-", dir="/tmp"))  # the path of a socket must be short
    folder.chmod(0o755)
    disk = folder / "disk"
    disk.mkdir()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        has_disk = stack.enter_context(small_disk(disk))
        clock: Path | None = folder / "clock"
        if FAKETIME:
            assert clock is not None
            clock.write_text("+0")
        else:
            clock = None
        server: Any = None
        if kind == "postgresql":
            server = PostgreSqlServer(disk, fake_time(clock) if clock else None)
            stack.callback(server.close)
        chaos = Chaos(plan, folder, server, has_disk, clock)
        asyncio.run(chaos.run())
        errors = (folder / "errors").read_text()
        assert "Traceback" not in errors, errors
    return chaos.counts, time.monotonic() - begin


if __name__ == "__main__":
    sys.stdout.write(f"{run(sys.argv[1], Plan(int(sys.argv[2])))}\n")
