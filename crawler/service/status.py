"""``GET /v1/status``: the state of each platform and egress, as the sum over all processes that share the store.

Each process writes its own state and its counts to the store, and reads the state and the counts of all processes. So
processes need no connections to each other. The state of a killed process is ignored after ``FORGET_SECONDS``.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson

from crawler.errors import StoreUnavailable
from crawler.jobs.clock import STORE_TIME, store_time, utc_text
from crawler.jobs.tables import insert_into, processes
from crawler.registry import spiders
from crawler.service import metrics, outcome_counts
from crawler.service.calls.stored import WAITING, load
from crawler.service.outcome_counts import MINUTE_SECONDS, History, OutcomeCounts
from crawler.service.process_state import OPEN, TRIAL, State, process_state, total

if TYPE_CHECKING:
    from crawler.downloads.lane import Lane
    from crawler.jobs.store import Session, Store
    from crawler.service.calls.open_crawlers import OpenCrawlers
    from crawler.targets.target import Outcome

WRITE = insert_into(processes, replace=("at", "state"))

REWRITE_SECONDS = 10.0
"""Interval in seconds at which an unchanged state is written, to show that its process is running."""
FORGET_SECONDS = 30.0
"""After this many seconds without a write, the state of a process is ignored: it was probably killed."""
STORE_SECONDS = 2.0
"""Maximum seconds for which a report waits for the last counts to be stored, and then for the states."""

MANY_NOT_UNDERSTOOD = 0.2
MANY_REFUSED = 0.3
"""The shares of targets above which a headline mentions them. The alerts of Prometheus have the same shares."""
FEW_TARGETS = 5
"""With fewer targets, a share of them is not meaningful."""
REFUSALS = ("UPSTREAM_BLOCKED", "UPSTREAM_RATE_LIMITED")


class Status:
    """Stores the state and the outcomes of this process, and reports the sums of all processes."""

    def __init__(self, crawlers: OpenCrawlers, store: Store) -> None:
        self.crawlers = crawlers
        self.store = store
        self._id = uuid.uuid4().hex
        self._counts = OutcomeCounts()
        for crawler in crawlers.of.values():
            crawler.lanes.on_completed = self._completed
        self._written: tuple[bytes, float] = b"", 0.0
        """The state in the store, and the Unix time at which it was written."""
        self._purged_minute = 0
        self._write: asyncio.Task[None] | None = None

    def _completed(self, outcome: Outcome, egress: str) -> None:
        """Count an outcome for ``/v1/status`` and, under the same keys, for ``/metrics``."""
        metrics.count_outcome(outcome, self._counts.count(outcome, egress))

    async def flush(self, seconds: float) -> None:
        """Store the counts and the state, unless there are no counts and the stored state is equal and recent.

        Wait at most ``seconds``; the transaction may take longer. If the store is unavailable, the counts stay in
        memory for the next flush.
        """
        if self._write is None or self._write.done():
            self._write = asyncio.ensure_future(self._store())
        await asyncio.wait([self._write], timeout=seconds)

    async def _store(self) -> None:
        now = store_time()
        state = orjson.dumps(process_state(self.crawlers), option=orjson.OPT_SORT_KEYS)
        if not self._counts and state == self._written[0] and now < self._written[1] + REWRITE_SECONDS:
            return
        counts = self._counts.take()
        minute = int(now) // MINUTE_SECONDS
        purges = minute != self._purged_minute and STORE_TIME.is_steady

        def store(session: Session) -> None:
            counts.store(session)
            session.run(WRITE, id=self._id, at=int(now), state=state.decode())
            if purges:
                outcome_counts.purge(session)
                session.run("DELETE FROM processes WHERE at < :first", first=int(now - FORGET_SECONDS))

        try:
            await self.store.transact(store)
        except StoreUnavailable:  # the store logs it
            self._counts.put_back(counts)
        else:
            self._written = state, now
            if purges:
                self._purged_minute = minute

    async def close(self, seconds: float) -> None:
        """Store the last counts, and delete the state of this process."""
        await self.flush(seconds)
        delete = "DELETE FROM processes WHERE id = :id"
        with suppress(StoreUnavailable):  # the state is ignored after FORGET_SECONDS
            await self.store.transact(lambda session: session.run(delete, id=self._id), seconds=seconds)

    async def report(self) -> dict[str, Any]:
        """Return the response body of ``GET /v1/status``. ``description.status.ServiceStatus`` is its model.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        await self.flush(STORE_SECONDS)
        states, history, stored = await self.store.transact(_read, seconds=STORE_SECONDS, write=False)
        now = store_time()
        platforms = []
        for name, crawler in sorted(self.crawlers.of.items()):
            lanes = crawler.lanes
            state = total(states, name, [lane.egress.name for lane in lanes])
            egresses = [_egress(name, lane, state["egresses"][lane.egress.name], history, now) for lane in lanes]
            waiting = stored[name, WAITING]
            calls = {"waiting": state["waiting"] + waiting, "in_flight": state["in_flight"] + waiting}
            platform = {"platform": name} | calls | _history(history, name) | {"egresses": egresses}
            platforms.append(platform | {"headline": headline(platform)})
        return {
            "at": utc_text(now, "milliseconds"),
            "first_minute": utc_text(history.first * MINUTE_SECONDS, "milliseconds"),
            "workers": len(states),
            "platforms": platforms,
        }


def _read(session: Session) -> tuple[list[State], History, Counter[tuple[str, str]]]:
    """Return the states of the processes, the outcomes, and the asynchronous calls by platform and state."""
    rows = session.rows("SELECT state FROM processes WHERE at >= :first", first=int(store_time() - FORGET_SECONDS))
    return [orjson.loads(state) for (state,) in rows], History(session), Counter(load(session, spiders())[0])


def _egress(platform: str, lane: Lane, state: State, history: History, now: float) -> dict[str, Any]:
    limits = lane.limits
    return {
        "egress": lane.egress.name,
        "targets": state["targets"],
        "throttle": _throttle(limits, state["next_slot"], now),
        "sources": [
            {"source": source} | _throttle(limits["sources"][source], next_slot, now)
            for source, next_slot in sorted(state["sources"].items())
            if source in limits["sources"]
        ],
        "breakers": [{"source": source} | _breaker(each, now) for source, each in state["breakers"].items()],
        "rests_until": _future(state["rests_until"], now),
        **_history(history, platform, lane.egress.name),
    }


def _throttle(limits: Any, next_slot: float | None, now: float) -> dict[str, Any]:
    """Return the limits of a throttle, and its next slot: ``now`` if the time in the state has passed."""
    return {
        "concurrency": limits["concurrency"],
        "delay": limits["delay"],
        "next_slot": utc_text(max(next_slot or now, now), "milliseconds"),
    }


def _breaker(state: State, now: float) -> dict[str, Any]:
    """Return the state of a circuit breaker, whose cooldown may have ended since ``state`` was written."""
    until = _future(state["until"], now)
    since = None if state["since"] is None else utc_text(state["since"], "milliseconds")
    name = TRIAL if state["state"] == OPEN and until is None else state["state"]
    return {"state": name, "since": since, "until": until, "reason": state["reason"]}


def _history(history: History, platform: str, egress: str | None = None) -> dict[str, Any]:
    succeeded = history.last_success(platform, egress)
    return {
        "outcomes": history.outcomes(platform, egress),
        "warnings": history.warnings(platform, egress),
        "unread": history.unread(platform, egress),
        "last_success": None if succeeded is None else utc_text(succeeded, "milliseconds"),
    }


def _future(moment: float | None, now: float) -> str | None:
    return utc_text(moment, "milliseconds") if moment and moment > now else None


def headline(platform: dict[str, Any]) -> str:
    """Return a sentence with the most severe fact about a platform.

    ``platform``: its state and outcomes, as in the response of ``/v1/status``.
    """
    return next(_facts(platform))


def _facts(platform: dict[str, Any]) -> Iterator[str]:
    """Yield facts about a platform, the most severe ones first."""
    outcomes = {code: sum(numbers) for code, numbers in platform["outcomes"].items()}
    total = sum(outcomes.values())
    not_understood = outcomes.get("EXTRACTION_FAILED", 0)
    refused = sum(outcomes.get(code, 0) for code in REFUSALS)
    suspended = [each["egress"] for each in platform["egresses"] if each["rests_until"]]
    if suspended and len(suspended) == len(platform["egresses"]):
        yield f"Suspended until {max(each['rests_until'] for each in platform['egresses'])}: no requests are sent."
    if total >= FEW_TARGETS and not_understood / total > MANY_NOT_UNDERSTOOD:
        yield f"The pages are not understood: {not_understood} of {total} targets in the last hour."
    if total >= FEW_TARGETS and refused / total > MANY_REFUSED:
        yield f"The platform refuses requests: {refused} of {total} targets in the last hour."
    if unread := platform["unread"]:
        more = ", and further paths" if len(unread) > 1 else ""
        yield f"The platform may have changed: {unread[0]['path']} of {unread[0]['source']} was unread{more}."
    if suspended:
        yield f"Suspended egresses: {', '.join(suspended)}."
    if total:
        yield f"{outcomes.get('OK', 0)} of {total} targets in the last hour have a record."
    yield "No targets in the last hour."
