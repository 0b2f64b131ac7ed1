"""Jobs survive random faults: a few in the fast tier, three seeds of many in the soak tier."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crawler.jobs.lifecycle import Jobs
from tests.conftest import program
from tests.jobs.chaos import ROOT, Plan, run
from tests.jobs.workers import new_job

DATABASES = ["sqlite", "postgresql"]


def need(database: str) -> None:
    if database == "postgresql" and (program("initdb") is None or program("postgres") is None):
        pytest.skip("needs PostgreSQL (Debian and Ubuntu: apt-get install postgresql)")


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.soak)])
def test_a_job_survives_some_faults(database: str) -> None:
    need(database)
    faults, _ = run(database, Plan(seed=7, runs=2, targets=25, locked=1.5, full=1, most=6))
    assert faults


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("database", DATABASES)
def test_outcomes_bills_and_totals_are_equal_after_some_faults(database: str, seed: int) -> None:
    """``crawler_job_targets`` and ``crawler_job_records`` are these totals."""
    need(database)
    faults, _ = run(database, Plan(seed, runs=2, targets=50, locked=1.5, full=1, most=10))
    assert sum(faults.values()) >= 3


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("database", DATABASES)
def test_a_job_survives_all_faults(database: str, seed: int) -> None:
    need(database)
    faults, seconds = run(database, Plan(seed))
    assert sum(faults.values()) >= 20
    sys.stdout.write(f"{database}, seed {seed}: {seconds:.0f} s, {dict(faults)}\n")


async def test_a_worker_whose_store_is_deleted_exits_with_1_and_a_sentence(tmp_path: Path) -> None:
    store = tmp_path / "jobs.sqlite3"
    jobs = Jobs(str(store))
    job = await new_job(jobs, 1_000)
    options = (store, job.id, tmp_path / "log", 1, 0.2, 2.0)
    command = [sys.executable, "-m", "tests.jobs.chaos_worker", *map(str, options)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (tmp_path / "log").exists() or not (tmp_path / "log").stat().st_size:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    store.unlink()
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert errors.decode().endswith(
        f"The store {store} was deleted or replaced while the worker ran: its jobs are lost.\n"
    )
    await jobs.close()
