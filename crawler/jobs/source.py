"""The target source of a job's worker: claims targets, and stores their outcomes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from crawler.errors import StoreUnavailable
from crawler.jobs.job import Claim, Finished, Followup, Key, followup_key
from crawler.jobs.worker import Worker, WorkerStoppedError
from crawler.targets.exceptions import LimitReached
from crawler.targets.sources import TargetSource, TargetsUnavailableError
from crawler.targets.target import InvalidTarget, Outcome, SavedTarget, Target, TargetParser
from crawler.targets.warning import unread_paths

if TYPE_CHECKING:
    from crawler.jobs.job import Job
    from crawler.jobs.lifecycle import Jobs

CLAIMED_AT_ONCE = 8
"""Targets that a worker claims at once. Few, because no other worker can take targets that wait in this worker."""
POLL_SECONDS = 0.5
"""Interval at which new targets are searched while other workers have the last ones."""


@dataclass
class JobSource(TargetSource):
    """Claims the targets of a platform in a job until all have outcomes, or the job is paused, cancelled or removed.

    An outcome is reported to the crawl after its commit. The outcome of a target that another worker has taken
    meanwhile is not reported.
    """

    jobs: Jobs
    job: Job
    platform: str
    parser: TargetParser
    lease: float
    exits: int
    keeps_followups: ClassVar[bool] = True
    taken: int = 0
    _expected: int | None = None
    _claims: dict[str, Claim] = field(default_factory=dict)
    """Id of a target in flight -> its claim."""
    _results: dict[Key, asyncio.Future[bool]] = field(default_factory=dict)
    """Claims whose outcomes are not committed yet -> whether they were stored."""

    def __post_init__(self) -> None:
        options: dict[str, Any] = {"lease": self.lease, "exits": self.exits, "job": self.job.id}
        self.worker = Worker(
            self.jobs.writes,
            lambda finished: self._resolve(finished.claim, stored=True),
            self._lost,
            lambda _: None,
            **options,
        )

    async def open(self) -> None:
        with suppress(StoreUnavailable):
            self._expected = await self.jobs.count_unfinished(self.job.id, self.platform)
        await self.worker.__aenter__()

    async def close(self) -> None:
        """Store the last outcomes, and release the targets without outcomes, so that other workers can take them.

        Raises:
            WorkerStoppedError: the worker had stopped before, so that outcomes are not stored.
        """
        try:
            await self.worker.close()
        finally:
            await self.jobs.close()

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        while True:
            try:
                claims = await self.worker.claim(self.platform, CLAIMED_AT_ONCE)
            except WorkerStoppedError as error:
                raise TargetsUnavailableError(str(error)) from error
            for claim in claims:
                if claim.target in self.worker.held:  # its lease may have been lost while earlier ones were in flight
                    yield self._target(claim)
            if not claims:
                if await self._is_finished():
                    return
                await asyncio.sleep(POLL_SECONDS)

    async def _is_finished(self) -> bool:
        try:
            job = await self.jobs.get(self.job.id)
            if job is None:
                raise TargetsUnavailableError(f"The job {self.job.name!r} was removed.")
            return job.state != "open" or not await self.jobs.has_unfinished(job.id, self.platform)
        except StoreUnavailable:
            return False  # claim() ends the worker if this lasts too long

    def _target(self, claim: Claim) -> Target | InvalidTarget:
        self.taken += 1
        target = self.parser.load(SavedTarget.model_validate(claim.work), row=claim.row)
        if target.id in self._claims:  # ids are the user's, who may give one twice
            target = self.parser.load(SavedTarget.model_validate({**claim.work, "id": claim.key.hex()}), row=claim.row)
        self._claims[target.id] = claim
        return target

    @property
    def expected(self) -> int | None:
        """The number of targets without an outcome when this worker started. Other workers may take some of them."""
        return self._expected

    def owns(self, target: Target | InvalidTarget) -> bool:
        return False  # it is known after the commit

    async def store(self, outcome: Outcome) -> bool:
        """Store an outcome. Return False if another worker has taken the target, or if nothing can be stored."""
        claim = self._claims.pop(outcome.target.id)
        if claim.target not in self.worker.held:
            return False
        result: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._results[claim.target] = result
        self.worker.finish(finished(claim, outcome))
        while self.worker.failure is None:
            await asyncio.wait({result}, timeout=POLL_SECONDS)
            if result.done():
                return result.result()
        return False

    def _lost(self, claim: Claim) -> None:
        self._resolve(claim, stored=False)

    def _resolve(self, claim: Claim, *, stored: bool) -> None:
        result = self._results.pop(claim.target, None)
        if result is not None and not result.done():
            result.set_result(stored)


def finished(claim: Claim, outcome: Outcome) -> Finished:
    """Return what is stored of a target's outcome."""
    if isinstance(outcome.error, LimitReached):
        return Finished(claim, "paused")
    followups = tuple(
        Followup(_followup_key(claim, each), each.scraper.platform, each.dump()) for each in outcome.followups
    )
    stored: dict[str, Any] = {"duration_ms": outcome.duration_ms}
    if outcome.error is not None:
        stored["error"] = outcome.error.as_dict() | {"retryable": outcome.error.retryable}
        return Finished(claim, "failed", outcome.code, stored, None, followups, outcome.note)
    stored["warnings"] = [each.as_dict() for each in outcome.warnings]
    if outcome.record is not None:
        stored["fetched_at"] = outcome.record.fetched_at.isoformat()
    tallies: Counter[tuple[str, str]] = Counter()
    for (source, path), unread in unread_paths(outcome.warnings).items():
        tallies["unread", f"{source}/{path}"] += 1
        if unread.loses_rows:
            tallies["unread rows", f"{source}/{path}"] += unread.rows
    return Finished(claim, "done", outcome.code, stored, outcome.data, followups, outcome.note, tallies)


def _followup_key(claim: Claim, followup: Target) -> bytes:
    params = followup.params.model_dump(mode="json", exclude_none=True)
    return followup_key(claim.key, orjson.dumps([followup.scraper.name, params], option=orjson.OPT_SORT_KEYS).decode())
