"""The source of targets of a crawl that works on a job: claims targets, and stores their outcomes."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from crawler.errors import StoreUnavailable
from crawler.jobs import tables as sql
from crawler.jobs.job import Claim, Finished, Followup, Key
from crawler.jobs.leases import Holder
from crawler.jobs.seen import SeenByJobs
from crawler.jobs.worker import Worker, WorkerStoppedError
from crawler.targets.parser import TargetParser
from crawler.targets.sources import TargetSource, TargetsUnavailableError
from crawler.targets.target import InvalidTarget, Outcome, SavedTarget, Target, followup_key
from crawler.targets.tracker import LimitReached
from crawler.targets.warning import UNREAD, unread_paths

if TYPE_CHECKING:
    from crawler.jobs.job import Account, Job, Stored
    from crawler.jobs.lifecycle import Jobs
    from crawler.jobs.store import Session, Statement
    from crawler.spiders.base import PlatformSpider

CLAIMED_AT_ONCE = 8
"""Maximum number of targets that a worker claims at once. Other workers cannot take the targets that wait in this
worker."""
POLL_SECONDS = 0.5
"""Interval in seconds at which a worker tries to claim targets while none waits, but other workers still have some."""


@dataclass
class JobSource(TargetSource):
    """Claims the targets of a platform in a job until all have outcomes, or the job is paused, cancelled or removed.

    An outcome is reported to the crawl after its commit. The outcome of a target that another worker has taken
    meanwhile is not reported.

    In a job of whole roots, the spider keeps state between the targets of a root. When such a root is claimed, the
    spider restores its state from the notes of the root's finished targets.
    """

    jobs: Jobs
    job: Job
    spider: PlatformSpider
    account: Account | None = None
    """The client to whom the job belongs. None: the job was made by a command."""
    keeps_followups: ClassVar[bool] = True
    stores: ClassVar[bool] = True
    seen: SeenByJobs | None = field(default=None, init=False)
    """The seen entries of the job's listings, if the job has the argument ``since=last``."""
    expected: int | None = None
    """The number of waiting and running targets of the platform when this worker started. None: not known.

    Other workers may take some of these targets.
    """
    _claims: dict[str, Claim] = field(default_factory=dict)
    """Id of a target in flight -> its claim."""
    _results: dict[Key, asyncio.Future[bool]] = field(default_factory=dict)
    """Target whose outcome is not committed yet -> a future with whether the outcome was stored."""
    _ready: deque[Target | InvalidTarget] = field(default_factory=deque)
    """Claimed targets that the tracker has not taken yet."""
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _further: dict[str, tuple[Target, ...]] = field(default_factory=dict)
    """Id of a target -> further follow-ups of its root, which are stored with the target's own follow-ups."""
    _root_names: dict[str, bytes] = field(default_factory=dict)
    """Id of an input line's target -> the key of its root."""

    def __post_init__(self) -> None:
        if self.job.options.since == "last":
            self.seen = SeenByJobs(self.jobs.reads, self.job, self.root_of)
        self.platform, self.parser = self.spider.platform, TargetParser(self.spider.scrapers)
        holder = Holder(
            lease=self.spider.settings.getfloat("JOB_LEASE"),
            exits=self.spider.settings.getint("JOB_EXITS"),
            job=self.job.id,
            also_store=self._also_store,
        )
        self.worker = Worker(
            self.jobs.writes,
            lambda finished: self._resolve(finished.claim, stored=True),
            self._lost,
            self._take,
            holder,
        )

    def _also_store(self, session: Session, batch: Sequence[Stored]) -> None:
        if self.account is not None:
            self.account.also_store(session, batch)
        if self.seen is not None:
            self.seen.store_entries(session, batch)

    async def open(self) -> None:
        with suppress(StoreUnavailable):
            self.expected = await self.jobs.count_unfinished(self.job.id, self.platform)
            _, self.own_columns = await self.jobs.described(self.job)
        await self.worker.__aenter__()

    async def close(self) -> None:
        """Store the last outcomes, and release the targets without outcomes, so that other workers can take them.

        Raises:
            WorkerStoppedError: the worker has stopped because of an error, so that outcomes may not be stored.
        """
        try:
            await self.worker.close()
        finally:
            await self.jobs.close()

    async def __aiter__(self) -> AsyncIterator[Target | InvalidTarget]:
        while True:
            while self._ready:
                target = self._ready.popleft()
                claim = self._claims.get(target.id)
                if claim is not None and claim.target in self.worker.held:  # the lease may have been lost meanwhile
                    yield target
            self._arrived.clear()
            try:
                claims = await self.worker.claim(self.platform, 1 if self.job.whole_roots else CLAIMED_AT_ONCE)
            except WorkerStoppedError as error:
                raise TargetsUnavailableError(str(error)) from error
            for root, found in itertools.groupby(claims, lambda claim: claim.root):
                if root is None:
                    self._take(list(found))
                else:
                    await self._take_root(root, list(found))
            if not claims and not self._ready:
                if await self._is_finished():
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._arrived.wait()

    async def _is_finished(self) -> bool:
        try:
            job = await self.jobs.get(self.job.id)
            if job is None:
                raise TargetsUnavailableError(f"The job {self.job.name!r} was removed.")
            if job.state != "open":
                return True
            waits = self.account is None or self.account.waits or bool(self.worker.held)
            return not await self.jobs.has_left(job.id, self.platform, running=waits)
        except StoreUnavailable:
            return False  # claim() ends the worker after a long outage

    def _take(self, claims: Sequence[Claim]) -> None:
        self._ready += [self._target(claim) for claim in claims]
        self._arrived.set()

    async def _take_root(self, root: bytes, claims: Sequence[Claim]) -> None:
        """Take the waiting targets of a root, after the spider has restored its state from the root's finished
        targets.
        """
        notes = [(code, orjson.loads(note)) for code, note in await self._read(sql.NOTES, root)]
        found = [self._target(claim) for claim in claims]
        waiting = [each for each in found if isinstance(each, Target)]
        name = next((each.root for each in waiting if each.root), None)
        taken = self.spider.restore(name, notes, waiting)
        ids = {each.id for each in taken}
        ended = [each for each in waiting if each.id not in ids]
        further = tuple(each for each in taken if each.id not in self._claims)
        self._ready += [each for each in found if each not in ended]
        for carrier in (ended or taken)[:1]:
            self._further[carrier.id] = further
        for each in ended:  # by the restored state, the root no longer needs them
            self.worker.finish(self._finished(self._claims.pop(each.id), Outcome(each, None, None, 0)))

    async def _read(self, statement: Statement, root: bytes) -> list[Any]:
        """Return rows of a root. During an outage of the store, wait for its end."""
        while True:
            try:
                return await self.jobs.read(statement, job=self.job.id, root=root)
            except StoreUnavailable:
                if self.worker.failure is not None:
                    raise TargetsUnavailableError(str(self.worker.failure)) from None
                await asyncio.sleep(POLL_SECONDS)

    def _target(self, claim: Claim) -> Target | InvalidTarget:
        work = claim.work
        if claim.root is not None and (name := work.get("root")) is not None:
            # The ids of targets come from the user, and two targets may have the same id.
            unique = name if self._root_names.setdefault(name, claim.root) == claim.root else claim.root.hex()
            work = {**work, "root": unique}
        if work["id"] in self._claims:
            work = {**work, "id": claim.key.hex()}
        target = self.parser.load(SavedTarget.model_validate(work), row=claim.row)
        if self.account is not None and isinstance(target, Target):
            target = replace(target, background=True)  # calls of the endpoint have priority
        self._claims[target.id] = claim
        return target

    def root_of(self, target_id: str) -> bytes | None:
        """Return the root of a target in progress by its id."""
        claim = self._claims.get(target_id)
        return None if claim is None else claim.root

    async def store(self, outcome: Outcome) -> bool:
        """Store an outcome. Return False if another worker has taken the target, or if nothing can be stored."""
        claim = self._claims.pop(outcome.target.id, None)
        if claim is None or claim.target not in self.worker.held:
            return False
        result: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._results[claim.target] = result
        self.worker.finish(self._finished(claim, outcome))
        while self.worker.failure is None:
            await asyncio.wait({result}, timeout=POLL_SECONDS)
            if result.done():
                return result.result()
        return False

    def _finished(self, claim: Claim, outcome: Outcome) -> Finished:
        further = self._further.pop(outcome.target.id, ())
        note = outcome.note if self.seen is None else self.seen.note(outcome)
        return finished(claim, replace(outcome, followups=outcome.followups + further, note=note))

    def _lost(self, claim: Claim) -> None:
        for target_id, each in list(self._claims.items()):
            if each.target == claim.target:
                del self._claims[target_id]
                self.spider.tracker.abandon(target_id)
        self._resolve(claim, stored=False)

    def _resolve(self, claim: Claim, *, stored: bool) -> None:
        result = self._results.pop(claim.target, None)
        if result is not None and not result.done():
            result.set_result(stored)


def finished(claim: Claim, outcome: Outcome) -> Finished:
    """Return a target's outcome in the form in which it is stored."""
    if isinstance(outcome.error, LimitReached):
        return Finished(claim, "paused")
    followups = tuple(
        Followup(_followup_key(claim, each), each.scraper.platform, each.dump()) for each in outcome.followups
    )
    stored: dict[str, Any] = {"duration_ms": outcome.duration_ms}
    tallies = _tallies(outcome)
    if outcome.error is not None:
        stored["error"] = outcome.error.as_dict() | {"retryable": outcome.error.retryable}
        return Finished(claim, "failed", outcome.code, stored, None, followups, outcome.note, tallies)
    stored["warnings"] = [each.as_dict() for each in outcome.warnings]
    if isinstance(outcome.target, Target):
        stored["contract"] = outcome.target.scraper.contract
    if outcome.record is not None:
        stored["fetched_at"] = outcome.record.fetched_at.isoformat()
    if outcome.new_entries is not None:
        stored["new_entries"] = sorted(outcome.new_entries)
    return Finished(claim, "done", outcome.code, stored, outcome.data, followups, outcome.note, tallies)


def _tallies(outcome: Outcome) -> Counter[tuple[str, str]]:
    """Return the numbers that an outcome adds to the tallies of its job: (kind, name) -> number."""
    tallies: Counter[tuple[str, str]] = Counter()
    if outcome.is_partial:
        tallies["partial", "records"] += 1
    for each in outcome.warnings:
        if each.coverage is not None:
            tallies["coverage", "listings"] += 1
            tallies["coverage", "collected"] += each.coverage.collected
            tallies["coverage", "expected"] += each.coverage.expected or 0
            tallies.update(("missing rows", f"{each.source}/{reason}") for reason in each.coverage.failures)
        if each.reason != UNREAD:
            tallies["warning", f"{each.source}/{each.code}/{each.reason}"] += 1
    for (source, path), unread in unread_paths(outcome.warnings).items():
        tallies["unread", f"{source}/{path}"] += 1
        if unread.loses_rows:
            tallies["unread rows", f"{source}/{path}"] += unread.rows
    return tallies


def _followup_key(claim: Claim, followup: Target) -> bytes:
    params = followup.params.model_dump(mode="json", exclude_none=True)
    return followup_key(claim.key, orjson.dumps([followup.scraper.name, params], option=orjson.OPT_SORT_KEYS).decode())
