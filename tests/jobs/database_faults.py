"""Faults of the database of a store: locks, crashes, lost connections, a full disk, jumps of its clock."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg

from tests.jobs.postgresql_server import PostgreSqlServer

TMPFS_MB = 160
FAKETIME = next(map(str, Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), "")


@dataclass
class FaultyDatabase:
    """A database, and the faults that it suffers, each in the thread of its caller."""

    location: str
    disk: Path
    """The folder of the database's files."""
    is_small: bool
    """Whether the folder is a small file system, which can be filled up."""
    server: PostgreSqlServer | None
    clock: Path | None
    """The file with the offset of a clock, None if the clock cannot be changed."""
    chance: random.Random

    @property
    def environment(self) -> dict[str, str]:
        """What to add to the environment of processes: with SQLite, their clock is the database's."""
        return fake_time(self.clock) if self.clock and not self.server else {}

    def faults(self, locked: float, full: float) -> dict[str, Callable[[], None]]:
        """Return the possible faults. ``locked``, ``full``: seconds of a lock, and of a full disk."""
        found: dict[str, Callable[[], None]] = {"lock": partial(self.lock, locked)}
        if self.server:
            found |= {"crash": self.crash, "terminate": self.terminate}
        if self.is_small:
            found["fill"] = partial(self.fill, full)
        if self.clock:
            found["jump"] = self.jump
        return found

    def lock(self, seconds: float) -> None:
        """Hold a lock of the database, like a backup or a console."""
        with suppress(sqlite3.Error, psycopg.Error):
            if self.server:
                with psycopg.connect(self.location) as connection:
                    # A worker that is suspended within a transaction is continued only after this fault. If the
                    # server's clock was set back meanwhile, the server does not end the transaction in time.
                    connection.execute("SET lock_timeout = '20s'")
                    connection.execute("LOCK TABLE jobs")
                    time.sleep(seconds)
            else:
                with closing(sqlite3.connect(self.location, isolation_level=None)) as database:
                    database.execute("BEGIN EXCLUSIVE")
                    time.sleep(seconds)

    def crash(self) -> None:
        """Kill the server, and start it again."""
        assert self.server is not None
        self.server.kill()
        time.sleep(self.chance.random() * 2)
        self.server.start()

    def terminate(self) -> None:
        """End all connections, so that the results of their commits are unknown."""
        sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        with suppress(psycopg.Error), psycopg.connect(self.location) as connection:
            connection.execute(f"{sql} AND pid <> pg_backend_pid()")

    def fill(self, seconds: float) -> None:
        """Fill the disk, and free it again."""
        filler = self.disk / "filler"
        with filler.open("wb", buffering=0) as file:
            while shutil.disk_usage(self.disk).free:
                with suppress(OSError):  # another process may have written in the meantime
                    file.write(bytes(4_096))
        time.sleep(seconds)
        filler.unlink()
        if self.server:
            self.server.start()  # it exits if it cannot write its log

    def jump(self) -> None:
        """For 4 seconds, set a clock forward or back by 26 hours or 20 seconds.

        This is the clock of the PostgreSQL server, or with SQLite the clock of the processes.
        """
        assert self.clock is not None
        self.clock.write_text(self.chance.choice(("+93600", "-93600", "+20", "-20")))
        time.sleep(4)
        self.clock.write_text("+0")


@contextmanager
def faulty_database(kind: str, folder: Path, chance: random.Random) -> Iterator[FaultyDatabase]:
    """Make a database of the kind ``sqlite`` or ``postgresql`` in a folder with a short path, and end it afterwards."""
    disk, clock = folder / "disk", folder / "clock"
    disk.mkdir()
    clock.write_text("+0")
    with ExitStack() as stack:
        is_small = stack.enter_context(small_disk(disk))
        server = None
        if kind == "postgresql":
            server = PostgreSqlServer(disk, fake_time(clock) if FAKETIME else None)
            stack.callback(server.close)
        location = server.url if server else str(disk / "jobs.sqlite3")
        yield FaultyDatabase(location, disk, is_small, server, clock if FAKETIME else None, chance)


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


def fake_time(clock: Path) -> dict[str, str]:
    """Environment of a process whose wall clock (but no monotonic clock) is shifted by the offset in a file."""
    names = {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    return {"LD_PRELOAD": FAKETIME, **names}
