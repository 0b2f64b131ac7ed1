"""A worker process of the chaos program: ``python -m tests.jobs.chaos_worker STORE JOB LOG SEED PACE LEASE``.

The worker "scrapes" each target for a random time, and writes the target's key to its log after the commit of the
outcome. The worker loses the responses to some commits, and suspends itself within some transactions, until
``chaos.py`` continues it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import signal
import sqlite3
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from crawler.errors import StoreUnavailable
from crawler.jobs.job import Claim, Finished, Followup, Stored
from crawler.jobs.leases import Holder
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.store import Session, Store
from crawler.jobs.worker import Worker, WorkerStoppedError
from crawler.service.usage import store_bills
from crawler.targets.target import followup_key
from tests.jobs.workers import SCRAPER

IN_FLIGHT = 8
EXITS = 10_000
"""More exits than this make a target ``dead``. The number is so high that no outcome depends on the faults."""
LOST_ANSWERS = 0.02
SUSPENSIONS = 0.01


def followups_of(key: bytes) -> list[bytes]:
    """The keys of a target's follow-ups: none to two."""
    return [followup_key(key, f"page={page}") for page in range(2, 2 + key[0] % 3)]


def fails(key: bytes) -> bool:
    """Whether the outcome of a target is an error, which depends only on its key."""
    return key[1] % 8 == 0


def outcome(claim: Claim) -> Finished:
    """The outcome of a target depends on its key only."""
    keys = followups_of(claim.key) if "parent" not in claim.work else []
    found = tuple(Followup(key, "retail", {"parent": claim.key.hex(), "scraper": SCRAPER}) for key in keys)
    if fails(claim.key):
        return Finished(claim, "failed", "TARGET_NOT_FOUND", {"error": {"code": "TARGET_NOT_FOUND"}}, None, found)
    text = hashlib.sha256(claim.key).hexdigest() * 40
    return Finished(claim, "done", "OK", {"warnings": []}, {"key": claim.key.hex(), "text": text}, found)


class LostAnswerError(sqlite3.OperationalError, OSError):
    """The error if a connection ends before the response to a commit. For both databases, it counts as an outage."""


def lose_answers(chance: random.Random) -> None:
    """Make some transactions fail after their commit."""
    run: Callable[..., Any] = Store._run

    def _run(store: Store, work: Callable[[Session], Any], *, write: bool) -> Any:
        found = run(store, work, write=write)
        if write and chance.random() < LOST_ANSWERS:
            raise LostAnswerError("the connection ended after the commit")
        return found

    Store._run = _run  # type: ignore[method-assign, assignment]


class ScrapingProcess:
    """Works until the job is done, or until SIGTERM."""

    def __init__(self, location: str, log: Path, chance: random.Random, pace: float, lease: float) -> None:
        self.jobs = Jobs(location)
        self.chance = chance
        self.pace = pace
        self.log = log.open("a", buffering=1)
        self.scrapes: dict[tuple[int, bytes], asyncio.Task[None]] = {}
        self.stopping = asyncio.Event()
        holder = Holder(lease=lease, exits=EXITS, also_store=self.also_store)
        self.worker = Worker(self.jobs.writes, self.note, self.lost, lambda _: None, holder)

    def note(self, finished: Finished) -> None:
        """Write the key of a target whose outcome is stored to the log."""
        self.scrapes.pop(finished.claim.target, None)
        self.log.write(f"{finished.claim.job} {finished.claim.key.hex()}\n")

    def lost(self, claim: Claim) -> None:
        """Stop scraping a target."""
        if task := self.scrapes.pop(claim.target, None):
            task.cancel()

    def also_store(self, session: Session, batch: Sequence[Stored]) -> None:
        """Store the bills. Suspend this process within some transactions."""
        store_bills(session, batch)
        if self.chance.random() < SUSPENSIONS:
            os.kill(os.getpid(), signal.SIGSTOP)

    async def scrape(self, claim: Claim) -> None:
        """Finish a target after a random time."""
        await asyncio.sleep(self.chance.random() * self.pace)
        self.worker.finish(outcome(claim))

    async def run(self, job: int) -> None:
        """Work."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stopping.set)
        async with self.worker:
            while not self.stopping.is_set() and self.worker.failure is None:
                if (free := IN_FLIGHT - len(self.scrapes)) > 0:
                    claims = await self.worker.claim("retail", free)
                    self.scrapes |= {claim.target: asyncio.create_task(self.scrape(claim)) for claim in claims}
                if not self.scrapes and await self.is_done(job):
                    break
                await asyncio.sleep(0.02)
            for task in self.scrapes.values():
                task.cancel()
        await self.jobs.close()
        self.log.close()

    async def is_done(self, job: int) -> bool:
        """Whether the job is known to be done. The job 0 stands for all jobs, which never end."""
        with suppress(StoreUnavailable):
            found = await self.jobs.get(job)
            return job > 0 and (found is None or found.state == "done")
        return False


async def work(location: str, job: int, log: Path, chance: random.Random, options: tuple[float, float]) -> None:
    """Run a worker."""
    await ScrapingProcess(location, log, chance, *options).run(job)


def main() -> int:
    """Run the program."""
    location, job, log, seed, pace, lease = sys.argv[1:]
    chance = random.Random(seed)  # noqa: S311  # no secret
    lose_answers(chance)
    try:
        asyncio.run(work(location, int(job), Path(log), chance, (float(pace), float(lease))))
    except WorkerStoppedError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
