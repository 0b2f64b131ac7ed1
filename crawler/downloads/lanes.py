"""A platform's lanes: the throttles, circuit breakers and targets of each egress.

A target gets its lane when its first request is sent, and keeps this lane for all of its requests, so that the platform
sees one visitor from start to end. Only if the egress fails, the target starts again on another lane.

*Refusals* are remembered: the egress through which a platform refused a target, and the egresses that have met a wall.
A *wall* is a reason for which a source refuses requests, such as its login wall. An egress has met a wall when refusals
for this reason have opened the source's circuit breaker. As long as a refusal is remembered, the target is not sent
through another egress.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from operator import attrgetter
from typing import ClassVar, NamedTuple

import structlog

from crawler.configuration.names import first_of
from crawler.downloads.breaker import CircuitBreaker, refusal_reason
from crawler.downloads.egress_setting import DIRECT
from crawler.downloads.facts import Fact, Facts
from crawler.downloads.lane import Lane
from crawler.errors import CircuitOpen, EgressFailed, ScrapeError, UpstreamBlocked, UpstreamRateLimited
from crawler.targets.target import InvalidTarget, Outcome, Release, Target

WALL_SECONDS = 600.0
"""If more than half of a platform's egresses meet the same wall within this many seconds, all are suspended."""


def target_key(target: Target) -> str:
    """Return the target's ``key`` as text, for the name of a fact."""
    return target.key.hex()


class Refused(Fact):
    """A target that the platform has refused through an egress."""

    kind: ClassVar[str] = "refused"
    egress: str = ""
    """The name of the egress."""
    until: float = 0.0
    """The time until which the refusal is remembered."""

    def ends(self) -> float:
        return self.until

    def remember(self, now: float, _processes: int, *, egress: str, seconds: float) -> None:
        """Remember the egress of a refusal for ``seconds``."""
        self.egress, self.until = egress, now + seconds


class Wall(Fact):
    """A reason for which a source refuses requests (a wall), and the egresses that have met it."""

    kind: ClassVar[str] = "wall"
    met: dict[str, float] = {}  # noqa: RUF012  # msgspec copies it
    """Name of an egress -> the time at which the egress met the wall last."""

    def ends(self) -> float:
        return max(self.met.values(), default=0.0) + WALL_SECONDS

    def meet(self, now: float, _processes: int, *, egress: str) -> int:
        """Record that an egress has met the wall.

        Return the number of egresses that met it in the last ``WALL_SECONDS``.
        """
        self.met = {name: at for name, at in self.met.items() if abs(now - at) <= WALL_SECONDS} | {egress: now}
        return len(self.met)

    def forget(self, _now: float, _processes: int) -> None:
        """Forget all egresses that have met the wall."""
        self.met = {}


@dataclass
class Refusals:
    """Remembers the refusals of one platform. ``keep_seconds``: seconds for which a refused target is remembered."""

    keep_seconds: float
    platform: str = ""
    facts: Facts = field(default_factory=Facts)

    async def remember(self, key: str, egress: str) -> None:
        """Remember that a target was refused through an egress."""
        remember = partial(Refused.remember, egress=egress, seconds=self.keep_seconds)
        await self.facts.change(Refused, self._name(key), remember)

    def known(self, key: str) -> str | None:
        """Return the name of the egress through which a target was refused, as far as this process knows, or None."""
        return self._valid(self.facts.find(Refused, self._name(key)))

    async def egress_of(self, key: str) -> str | None:
        """Return the name of the egress through which a target was refused in any process, or None."""
        return self._valid(await self.facts.look_up(Refused, self._name(key)))

    async def meet(self, wall: str, egress: str) -> int:
        """Record that an egress has met a wall. Return the number of egresses that met it in the last ``WALL_SECONDS``.

        ``wall``: the source and the reason of the refusals.
        """
        return await self.facts.change(Wall, self._name(wall), partial(Wall.meet, egress=egress))

    async def forget(self, wall: str) -> None:
        """Forget which egresses have met a wall."""
        await self.facts.change(Wall, self._name(wall), Wall.forget)

    def _name(self, key: str) -> str:
        return f"{self.platform}:{key}"

    def _valid(self, found: Refused | None) -> str | None:
        if found is None:
            return None
        left = found.until - self.facts.now()
        # A refusal is remembered for a much shorter time if the clock was not set back since.
        return found.egress if 0 < left < 2 * self.keep_seconds else None


logger = structlog.get_logger(__name__)

REFUSED = (UpstreamBlocked, UpstreamRateLimited)
"""The errors with which a platform refuses a target. As long as the refusal is remembered, the target is not sent
through another egress."""
SOON_SECONDS = 0.1
"""A postponed target is due this many seconds early, so that it comes before targets that wait for the same time."""


@dataclass
class Lanes:
    """The lanes of one platform, one for each egress."""

    lanes: tuple[Lane, ...]
    refusals: Refusals
    on_completed: Callable[[Outcome], None] | None = None
    """Called with each outcome of a valid target."""
    _storing: set[asyncio.Task[None]] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    turns: defaultdict[tuple[str, bool], asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """(Source, whether targets are in the foreground) -> a lock. The first request with it gets the next free lane."""
    waiting: int = 0
    """Number of targets whose first request waits for one of several lanes. Background targets are not counted."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a slot becomes free."""
    postponed: dict[str, tuple[Release, str]] = field(default_factory=dict)
    """Id of each target that met a rate limit and was not requested again yet -> its release, and the source of its
    first request."""

    def __post_init__(self) -> None:
        self.only = self.lanes[0] if len(self.lanes) == 1 else None
        """The only lane of a platform with one egress. None: the platform has several."""

    def __iter__(self) -> Iterator[Lane]:
        return iter(self.lanes)

    def give(self, lane: Lane, release: Release) -> None:
        """Assign a lane to a target."""
        release.lane, lane.last_target = lane, next(self._numbers)
        lane.targets += 1

    def candidates(self, release: Release) -> Sequence[Lane]:
        """Return the lanes that a target may use, sorted by ``Lane.next_slot``: all but ``release.failed``."""
        return sorted((lane for lane in self.lanes if lane is not release.failed), key=Lane.next_slot)

    def postpone(self, target: Target, lane: Lane, source: str) -> None:
        """Let a target that met a rate limit start again on the same lane, before targets that were not requested.

        ``source``: that of its first request.
        """
        self.give(lane, target.release)
        self.postponed[target.id] = target.release, source

    @property
    def has_due(self) -> bool:
        """Whether targets that were not requested yet must wait for a postponed target.

        They wait if it can be requested now, or if its source has answered since the rate limit: further requests would
        then be refused now and then. While the source refuses them all, its circuit breaker decides.
        """
        soon = asyncio.get_running_loop().time() + SOON_SECONDS
        return any(
            release.lane is not None
            and release.lane.suspension(source) <= SOON_SECONDS
            and (release.not_before <= soon or not release.lane.breakers[source].is_refusing)
            for release, source in self.postponed.values()
        )

    async def refused_by(self, target: Target) -> Lane | None:
        """Return the lane through which the platform has refused a target before, in any process."""
        return self._named(await self.refusals.egress_of(target_key(target)))

    def of(self, target: Target, source: str) -> Lane:
        """Return the lane of a target, for requests that contain the guest token of an egress.

        A target whose first request was not sent has no lane. It gets one now: the lane through which the platform has
        refused it before, or else the lane with the earliest slot. Lanes that are suspended for the source are used
        only if all are.
        """
        release = target.release
        if release.lane is not None:
            return release.lane
        candidates = self.candidates(release)
        refused = None if self.only else self._named(self.refusals.known(target_key(target)))
        free = (lane for lane in candidates if not lane.open_seconds(source))
        lane = refused if refused and refused in candidates else next(free, candidates[0])
        self.give(lane, release)
        return lane

    def _named(self, egress: str | None) -> Lane | None:
        return next((lane for lane in self.lanes if lane.egress.name == egress), None)

    # Capacity

    @property
    def in_use(self) -> tuple[Lane, ...]:
        """The lanes through which at least one source may be requested.

        If there are none, the lanes whose requested sources are all suspended, but not the egress or the platform: a
        source that was not requested yet may still work through them as a fallback.
        """
        if self.only and not self.only.egress.proxy:
            return self.lanes
        working = tuple(lane for lane in self.lanes if not lane.full_suspension)
        return tuple(lane for lane in working if not lane.usable_in) or working

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent downloads through the lanes in use."""
        return sum(map(attrgetter("budget.concurrency"), self.in_use))

    def start_in(self, ahead: int = 0, sources: Sequence[str] = ()) -> float:
        """Return the minimum seconds until a download can start after ``ahead`` other downloads.

        They may be too few, but never too many: for several lanes, the sum of their rates is assumed.
        ``sources``: sources that are requested as well, so those with a budget of their own must allow it by then.

        Raises:
            CircuitOpen: all egresses are suspended.
        """
        lanes = self.in_use
        if not lanes:
            retry_after = math.ceil(self.usable_in)
            raise CircuitOpen(
                "All egresses of the platform are suspended.", retry_after=retry_after, reason="circuit_open"
            )
        seconds = start_in(lanes, ahead + self.waiting)
        for source in sources:
            own = [throttle.start_in(ahead) for lane in lanes if (throttle := lane.sources.get(source)) is not None]
            seconds = max(seconds, min(own, default=0.0))
        return seconds

    def idle_in(self) -> float:
        """Return the minimum seconds until a lane can have started all of its waiting downloads.

        Then a further download can start through the lane without a delay, and without using its burst.

        Raises:
            CircuitOpen: all egresses are suspended.
        """
        self.start_in()
        return min(
            max(throttle.start_in(background=True) for throttle in (lane.budget, *lane.sources.values()))
            for lane in self.in_use
        )

    @property
    def spacing(self) -> float:
        """The shortest average time in seconds between the starts of downloads, of all lanes together."""
        return min(lane.budget.shortest_delay for lane in self.lanes) / len(self.lanes)

    @property
    def usable_in(self) -> float:
        """Seconds until one of the lanes can be used, as far as this process knows. 0 if one can be used now."""
        return min(lane.usable_in for lane in self.lanes)

    # Results

    async def count(self, target: Target, source: str, error: ScrapeError | None, status: int | None = None) -> None:
        """Count the result of a request for its target's lane, even if the target already has its outcome.

        Nothing is counted for ``CircuitOpen``, and for a target that has no lane or was started again on another lane.
        If more than half of the egresses have met the same wall (``Refusals``), the platform is suspended.
        """
        release = target.release
        lane = release.lane
        if lane is None or release.successor is not None or isinstance(error, CircuitOpen):
            return
        release.is_refused |= isinstance(error, REFUSED)
        await lane.count(source, error, status, release)
        platform = lane.platform
        if platform is None:
            return
        if isinstance(error, EgressFailed):
            platform.release_trial()
        elif platform.open_seconds is not None:  # the request may have been the trial
            await platform.record(error)
        elif isinstance(error, REFUSED) and lane.breakers[source].cooldown_left:
            await self._meet_wall(platform, lane, source, error)

    async def _meet_wall(self, platform: CircuitBreaker, met_by: Lane, source: str, error: ScrapeError) -> None:
        """Record that an egress has met a wall (``Refusals``).

        If more than half of the egresses have met it in the last ``WALL_SECONDS``, suspend the platform.
        """
        reason = refusal_reason(error)
        wall = f"{source}:{reason}"
        number = await self.refusals.meet(wall, met_by.egress.name)
        if 2 * number <= len(self.lanes):
            return
        await self.refusals.forget(wall)
        seconds = math.ceil(max(lane.breakers[source].cooldown_left for lane in self.lanes))
        logger.warning("platform_suspended", source=source, reason=reason, egresses=number, seconds=seconds)
        await platform.record(UpstreamRateLimited(error.message, retry_after=seconds, reason=reason))

    async def has_failed(self, target: Target, error: ScrapeError) -> bool:
        """Whether the egress may be the cause of a counted error, so that the target may succeed through another
        egress.

        The reason ``connection`` means that no try got a complete response. Such a target counts as lost.
        """
        lane = target.release.lane
        if lane is None or self.only or not lane.egress.proxy:
            return False
        if error.reason == "connection":
            await lane.count_lost(target.id)
            return True
        return isinstance(error, EgressFailed)

    def completed(self, outcome: Outcome) -> None:
        """Pass an outcome to ``on_completed``. If there are several lanes, remember a refused target and its egress."""
        target = outcome.target
        if isinstance(target, InvalidTarget):
            return
        if self.on_completed is not None:
            self.on_completed(outcome)
        if outcome.error is not None:
            self.remember(target, outcome.error)

    def remember(self, target: Target, error: ScrapeError) -> None:
        """If there are several lanes and the platform has refused the target, remember its egress."""
        lane = target.release.lane
        if lane is not None and not self.only and isinstance(error, REFUSED):
            storing = asyncio.ensure_future(self.refusals.remember(target_key(target), lane.egress.name))
            self._storing.add(storing)
            storing.add_done_callback(self._storing.discard)

    async def stored(self) -> None:
        """Wait until all refused targets are stored for other and later processes."""
        await asyncio.gather(*self._storing)


def start_in(lanes: Sequence[Lane], ahead: int) -> float:
    """Return the minimum seconds until a download can start through ``lanes`` after ``ahead`` other downloads."""
    if len(lanes) == 1:
        return lanes[0].budget.start_in(ahead)
    rate = sum(1 / shortest if (shortest := lane.budget.shortest_delay) else math.inf for lane in lanes)
    at_once = sum(lane.budget.burst_left for lane in lanes)
    return min(lane.budget.start_in() for lane in lanes) + max(0, ahead + 1 - at_once) / rate


class Suspension(NamedTuple):
    """A suspended egress, source or platform, the reason, and the remaining seconds of the suspension."""

    name: str
    reason: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.name} ({self.reason}, {math.ceil(self.seconds)} s)"


def suspensions(lanes: Lanes) -> list[Suspension]:
    """Return all suspensions of a platform, the shortest first. Empty while at least one source may be requested."""
    if not lanes.usable_in:
        return []
    found = dict.fromkeys(each for lane in lanes for each in _of_lane(lane))  # all lanes share the platform's breaker
    return sorted(found, key=lambda each: each.seconds)


def _of_lane(lane: Lane) -> Iterator[Suspension]:
    if lane.platform is not None and lane.platform.cooldown_left:
        yield _suspension("the platform", lane.platform)
    elif lane.connection.cooldown_left:
        yield _suspension(f"egress {lane.egress.name}", lane.connection)
    else:
        through = "" if lane.egress is DIRECT else f" through egress {lane.egress.name}"
        for source, breaker in lane.breakers.items():
            if breaker.cooldown_left:
                yield _suspension(f"source {source}{through}", breaker)


def _suspension(name: str, breaker: CircuitBreaker) -> Suspension:
    return Suspension(name, breaker.reason or "suspended", breaker.cooldown_left)


def waiting_for(found: list[Suspension]) -> str:
    """Return a text that names the first suspensions.

    >>> waiting_for([Suspension("egress berlin", "egress_failed", 29.5), Suspension("egress paris", "http_429", 60.0)])
    'egress berlin (egress_failed, 30 s), egress paris (http_429, 60 s)'
    """
    return first_of([str(each) for each in found])
