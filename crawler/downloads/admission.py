"""Decides when a request may be sent. Until then, the request waits for a lane, circuit breakers and download slots."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import cast

from scrapy import Request

from crawler.downloads.egress_setting import DIRECT
from crawler.downloads.lane import Lane, egress_failed
from crawler.downloads.lanes import Lanes, start_in
from crawler.downloads.throttle import ReleaseSlot, no_slot_in_time
from crawler.errors import CircuitOpen, Overloaded
from crawler.targets.target import Release, Target

BACKGROUND_SECONDS = 0.1
"""While first requests of foreground targets wait for a lane, a background target's request takes none. This is the
maximum number of seconds until it checks again whether they still wait."""

Patience = Callable[[str, float, float], float]
"""Returns the seconds after which a request whose lanes are all suspended is tried again. Arguments: the request's
source, the seconds until one of the lanes may be usable, and the seconds for which all have been suspended."""


def time_left(request: Request) -> float | None:
    """Return the seconds until the deadline of a request's target. None: no target, or no deadline."""
    target: Target | None = request.meta.get("target")
    return None if target is None else target.seconds_left


@dataclass(slots=True)
class _Pending:
    """A request that waits for admission."""

    request: Request
    target: Target | None
    release: Release
    source: str | None
    """The source whose circuit breakers the request must pass. None: the request need not pass any."""
    background: bool
    """Whether the requests of all targets that are not in the background have priority."""
    deadline: float | None
    """The time (of the event loop) by which the download must start. None: no deadline."""
    refused: bool = False
    """Whether the platform has refused the target before. The target then gets the lane of that refusal. If the
    lane is suspended, the target's first request fails instead of waiting."""

    @classmethod
    def of(cls, request: Request) -> _Pending:
        """Create the object for a request from its ``meta``.

        A request to an optional source waits for at most half of its target's remaining time, so that the target still
        has time to complete without this source.
        """
        meta = request.meta
        source = None if "admitted" in meta else meta.get("source")
        target: Target | None = meta.get("target")
        if target is None:
            return cls(request, None, Release(), source, background=False, deadline=None)
        deadline = target.deadline
        if deadline is not None and "optional" in meta:
            deadline = (asyncio.get_running_loop().time() + deadline) / 2
        return cls(request, target, target.release, source, target.background, deadline)


@dataclass
class Admission:
    """Admits the requests of a crawler to a platform's lanes.

    The first request of a target waits until a lane has a free slot and is not suspended for the request's source
    (``meta["source"]``). The target then keeps this lane, and its later requests wait for this lane only. So a first
    request never waits for a suspended lane while another lane is free.
    """

    lanes: Lanes
    patience: Patience

    async def admit(self, request: Request) -> ReleaseSlot:
        """Wait until a request may be sent, and return the function that releases its slots.

        A request that was admitted before, such as a retry, is not held back by circuit breakers again.

        Raises:
            ReleaseEnded: the target already has its outcome, or was started again on another lane.
            CircuitOpen: the lanes are suspended for the source, and the request must not wait.
            EgressFailed: the target's lane is suspended because its egress has failed.
            Overloaded: no slot is free before the target's deadline.
            UpstreamTimeout: the deadline passed while no slot was free.
        """
        pending = _Pending.of(request)
        source, release = pending.source, pending.release
        try:
            while True:
                release.check()
                if (release.not_before or self.lanes.postponed) and (seconds := self._seconds_to_wait(pending)) > 0:
                    await asyncio.sleep(seconds)
                    continue
                lane = release.lane or self.lanes.only or await self._only_lane(pending)
                if lane is None:
                    lane, slots = await self._next_free(pending)
                else:
                    taken = await self._take(lane, pending)
                    if isinstance(taken, float):
                        await self._wait(pending, [(taken, lane)])
                        continue
                    slots = taken
                if not release.ended and release.lane in {None, lane} and not (source and lane.suspension(source)):
                    break
                slots()  # the lane or the target has changed while the request waited
                lane.withdraw(source)
        finally:
            if pending.target is not None:
                self.lanes.postponed.pop(pending.target.id, None)
        if lane.egress is not DIRECT:
            request.meta["egress"] = lane.egress.name
        if release.lane is None:
            self.lanes.give(lane, release)
        if source is not None:
            request.meta["admitted"] = True
            lane.breakers[source].sent(release)
        return slots if self.lanes.only else partial(self._free, slots)

    def _seconds_to_wait(self, pending: _Pending) -> float:
        """Return the seconds for which a first request waits, because its or another target met a rate limit."""
        release = pending.release
        if release.not_before:
            return release.not_before - asyncio.get_running_loop().time()
        is_first = pending.target is not None and release.lane is None
        return BACKGROUND_SECONDS if is_first and self.lanes.has_due else 0.0

    def _free(self, slots: ReleaseSlot) -> None:
        slots()
        self.lanes.changed.set()

    async def _only_lane(self, pending: _Pending) -> Lane | None:
        """Return the only lane that the first request of a target may use. None: it may use several lanes.

        A request without a target or a source, such as for robots.txt, gets the first of the candidates.

        Raises:
            CircuitOpen: the platform has refused the target before, through the egress that has just failed for it.
        """
        if pending.target is None or pending.source is None:
            return self.lanes.candidates(pending.release)[0]
        refused = await self.lanes.refused_by(pending.target)
        if refused is not None and refused is pending.release.failed:
            raise _refused_before(refused)
        pending.refused = refused is not None
        candidates = self.lanes.candidates(pending.release)
        return refused or (candidates[0] if len(candidates) == 1 else None)

    async def _take(self, lane: Lane, pending: _Pending) -> ReleaseSlot | float:
        """Pass the circuit breakers of a lane for a request, and wait for the lane's slots.

        Return the function that releases the slots. If a breaker is open, return the seconds until it may let the
        request through.

        Raises:
            Overloaded: the download cannot start before the deadline.
            UpstreamTimeout: the deadline passed while no slot was free.
        """
        source, meta = pending.source, pending.request.meta
        if source is None:
            return await lane.acquire(meta.get("source"), pending.deadline, background=pending.background)
        breaker, can_wait = lane.breakers[source], pending.deadline is None and "optional" not in meta
        if can_wait and breaker.must_wait:
            return BACKGROUND_SECONDS
        if wait := await lane.enter(source):
            return wait
        try:
            first = pending.release.limit is not None
            slots = await lane.acquire(source, pending.deadline, background=pending.background, first=first)
        except BaseException:
            lane.withdraw(source)
            raise
        if can_wait and breaker.must_wait and not lane.is_paced(source):  # others were refused in the meantime
            slots()
            lane.withdraw(source)
            return BACKGROUND_SECONDS
        return slots

    async def _next_free(self, pending: _Pending) -> tuple[Lane, ReleaseSlot]:
        """Wait until one of several lanes has a free slot and is not suspended. Take its slots.

        Return the lane, and the function that releases the slots. Requests to the same source get their lanes in order:
        only the first waiting request looks for a lane. Background requests have an order of their own.

        Raises:
            ReleaseEnded, CircuitOpen, Overloaded, UpstreamTimeout: as for ``admit``.
        """
        source, lanes, counted = cast("str", pending.source), self.lanes, not pending.background
        while True:
            self._check_deadline(pending, source)
            lanes.waiting += counted
            try:
                async with asyncio.timeout_at(pending.deadline), lanes.turns[source, counted]:
                    found, waits = await self._first_free(pending, source)
            except TimeoutError:
                raise no_slot_in_time() from None
            finally:
                lanes.waiting -= counted
            if found is not None:
                return found
            await self._wait(pending, waits)

    def _check_deadline(self, pending: _Pending, source: str) -> None:
        """Raise ``Overloaded`` if no slot can become free before the deadline."""
        lanes = [lane for lane in self.lanes.candidates(pending.release) if not lane.suspension(source)]
        if pending.deadline is not None and lanes:
            seconds = start_in(lanes, self.lanes.waiting)
            if asyncio.get_running_loop().time() + seconds >= pending.deadline:
                raise no_slot_in_time(seconds)

    async def _first_free(
        self, pending: _Pending, source: str
    ) -> tuple[tuple[Lane, ReleaseSlot] | None, list[tuple[float, Lane]]]:
        """Wait for a free lane, and take its slots.

        Return the lane with the function that releases its slots, and an empty list. If all lanes are suspended, return
        None, and each lane with its remaining seconds.

        Raises:
            ReleaseEnded, UpstreamTimeout: as for ``admit``.
            Overloaded: other processes have taken all slots before the deadline.
        """
        full: dict[Lane, Overloaded] = {}
        while True:
            pending.release.check()
            self.lanes.changed.clear()
            waits: list[tuple[float, Lane]] = []
            free_in: list[float] = []
            for lane in self.lanes.candidates(pending.release):
                if lane in full:
                    continue
                if wait := lane.suspension(source):
                    waits.append((wait, lane))
                    continue
                seconds = (
                    BACKGROUND_SECONDS
                    if pending.background and self.lanes.waiting
                    else lane.free_in(source, background=pending.background)
                )
                if seconds > 0:
                    free_in.append(seconds)
                    continue
                try:
                    taken = await self._take(lane, pending)
                except Overloaded as error:  # other processes have taken the slots that were expected to be free
                    full[lane] = error
                    continue
                if not isinstance(taken, float):
                    return (lane, taken), []
                waits.append((taken, lane))
            if not free_in:
                if full:
                    raise next(iter(full.values()))
                return None, waits
            with suppress(TimeoutError):
                async with asyncio.timeout(min([*free_in, *(wait for wait, _ in waits)])):
                    await self.lanes.changed.wait()

    async def _wait(self, pending: _Pending, waits: list[tuple[float, Lane]]) -> None:
        """Wait until the circuit breaker of one of the suspended lanes may let a request through.

        ``waits``: the lanes that the request may use, each with the seconds to wait.

        Raises:
            CircuitOpen: the request must not wait.
            EgressFailed: the target's lane is suspended because its egress has failed.
        """
        source, meta = cast("str", pending.source), pending.request.meta
        seconds, lane = min(waits, key=itemgetter(0))
        if not lane.open_seconds(source):  # another request is sent first, because the last one was blocked
            await asyncio.sleep(seconds)
            return
        if pending.refused and pending.release.lane is None:
            raise _refused_before(lane, seconds)
        if lane.connection.cooldown_left and pending.release.lane:
            raise egress_failed(lane.egress.name, "it is suspended after failures")
        fallbacks = () if lane.full_suspension else meta.get("fallbacks", ())
        replaced = any(lane.breakers.closed(names) for names in fallbacks)
        if time_left(pending.request) is not None or replaced or "optional" in meta:
            raise CircuitOpen(
                f"{lane.cause(source)}: the circuit breaker is open.",
                retry_after=math.ceil(seconds),
                reason="circuit_open",
            )
        open_seconds = min(lane.open_seconds(source) for _, lane in waits)
        await asyncio.sleep(self.patience(source, seconds, open_seconds))


def _refused_before(lane: Lane, seconds: float = 0.0) -> CircuitOpen:
    return CircuitOpen(
        f"The platform has refused this target through the egress {lane.egress.name}, which cannot be used "
        "now. The target is not sent through another egress.",
        retry_after=math.ceil(seconds) or None,
        reason="refused_before",
    )
