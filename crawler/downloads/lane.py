"""A lane: a platform through one egress, with its throttles and circuit breakers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from crawler.downloads.breaker import CONNECTION, PLATFORM, Breakers, CircuitBreaker, is_response, suspension_seconds
from crawler.downloads.egress_setting import Egress
from crawler.downloads.throttle import ReleaseSlot, Throttle
from crawler.errors import EgressFailed, ScrapeError

LOST_TARGETS = 2
"""An egress is suspended after this many targets have lost their connections in every try. A response of the platform
resets the count."""


@dataclass(eq=False)
class Lane:
    """A platform through one egress: its throttles and its circuit breakers."""

    egress: Egress
    budget: Throttle
    """The throttle of the platform's budget, for all requests of the lane."""
    sources: Mapping[str | None, Throttle]
    """Source -> its throttle, for sources with their own budget. Their requests use the platform's budget, too."""
    breakers: Breakers
    connection: CircuitBreaker
    """Open while the egress is suspended because of its own failures."""
    platform: CircuitBreaker | None = None
    """Open while the platform is suspended as a whole. None: the platform has only this egress."""
    targets: int = 0
    """Number of targets in flight that use the lane."""
    last_target: int = 0
    """The consecutive number of the last target that got the lane, counted over all lanes of the platform."""
    failures: int = 0
    """Number of failures of the egress since the last call of ``take_failures``."""
    targets_per_hour: float = 0.0
    """The number of targets per hour that the budget allows. 0: not known, or the sandbox, which has no budget."""
    _lost: set[str] = field(default_factory=set)
    """Ids of the targets that have lost their connections since the platform's last response or the last suspension."""

    def __post_init__(self) -> None:
        own = self.connection if self.egress.proxy else None
        self.lane_breakers = {
            name: each for name, each in ((CONNECTION, own), (PLATFORM, self.platform)) if each is not None
        }
        """The breakers that stop the requests to all sources."""
        self._usual = (self.budget,)
        self._throttles = {source: (own, self.budget) for source, own in self.sources.items()}
        """The throttles of a source's requests, the platform's own last. Other sources have the usual ones."""

    async def enter(self, source: str) -> float:
        """Pass the breakers for a request to a source. Return 0 if it may be sent, else the seconds to wait."""
        with ExitStack() as passed:
            for breaker in (*self.lane_breakers.values(), self.breakers[source]):
                if wait := await breaker.enter():
                    return wait
                passed.callback(breaker.release_trial)  # if the request does not pass all of them
            passed.pop_all()
        return 0.0

    async def acquire(
        self, source: str | None, deadline: float | None, *, background: bool, first: bool = False
    ) -> ReleaseSlot:
        """Wait for a slot of the platform, and for a slot of the source if it has its own budget.

        Return the function that releases these slots. The other arguments, and the exceptions, are those of
        ``Throttle.acquire``.
        """
        with ExitStack() as slots:
            for throttle in self._throttles.get(source, self._usual):
                slots.callback(await throttle.acquire(deadline, background=background, first=first))
            return slots.pop_all().close

    def starts_within(self, source: str, seconds: float) -> float:
        """Return the number of downloads from a source that the budgets let start in this time."""
        return min(throttle.starts_within(seconds) for throttle in self._throttles.get(source, self._usual))

    def is_paced(self, source: str | None) -> bool:
        """Whether requests to a source may have to wait although a slot is free."""
        return any(throttle.is_paced for throttle in self._throttles.get(source, self._usual))

    def free_in(self, source: str | None, *, background: bool = False) -> float:
        """Return the seconds until a download from a source can start, as far as this process knows.

        0: now. ``inf``: this process must release a slot first.
        """
        return max(throttle.free_in(background=background) for throttle in self._throttles.get(source, self._usual))

    def suspension(self, source: str) -> float:
        """Return the seconds for which the lane is suspended for a source, as far as this process knows."""
        left = self.breakers[source].cooldown_left
        return max(left, self.full_suspension) if self.lane_breakers else left

    @property
    def full_suspension(self) -> float:
        """Seconds for which no source may be requested: the egress has failed, or the whole platform is suspended."""
        return max((breaker.cooldown_left for breaker in self.lane_breakers.values()), default=0.0)

    @property
    def usable_in(self) -> float:
        """Seconds until at least one source may be requested, 0 if one may be now, as far as this process knows."""
        cooldowns = {name: breaker.cooldown_left for name, breaker in self.lane_breakers.items()}
        return suspension_seconds(self.breakers.cooldowns | cooldowns)

    def open_seconds(self, source: str) -> float:
        """Return the seconds since a breaker that stops requests to a source opened. 0 if all of them are closed."""
        return max(each.open_seconds or 0.0 for each in (*self.lane_breakers.values(), self.breakers[source]))

    def cause(self, source: str) -> str:
        """Describe why a request to a source must not be sent."""
        if self.connection.cooldown_left:
            return f"The egress {self.egress.name} has failed"
        if self.platform is not None and self.platform.cooldown_left:
            return "The platform has blocked or limited the last requests through most egresses"
        return f"The platform has blocked or limited the last requests to its source {source!r}"

    async def count(
        self, source: str, error: ScrapeError | None, status: int | None = None, release: Hashable | None = None
    ) -> None:
        """Count the result of a request: a failure of the egress, or else a result of the platform's source.

        After a block or rate limit, and after a trial, no burst is left, so that the source is not refused again.

        ``error``: None if the request succeeded. ``status``: the response's HTTP status. ``release``: the attempt at a
        target whose request it was.
        """
        if isinstance(error, EgressFailed):
            self.failures += not self.connection.cooldown_left  # during the cooldown, its cause is already counted
            await self.connection.record(error)
            return
        if await self.breakers[source].record(error, status, release):
            for throttle in self._throttles.get(source, self._usual):
                await throttle.drain()
        if not self.egress.proxy:
            return
        if is_response(error):
            self._lost.clear()
            await self.connection.record(None)
        else:
            self.connection.release_trial()

    async def count_lost(self, target_id: str) -> None:
        """Count a target whose connections were lost in every try. ``LOST_TARGETS`` of them suspend the egress."""
        self._lost.add(target_id)
        if len(self._lost) >= LOST_TARGETS:
            self._lost.clear()
            self.failures += 1
            await self.connection.record(egress_failed(self.egress.name, "connections were lost"))

    def withdraw(self, source: str | None) -> None:
        """Record that a request was not sent after ``enter``, or has no result, so that another can be the trial.

        ``source``: None if the request did not have to pass the breakers.
        """
        if source is None:
            return
        for breaker in (*self.lane_breakers.values(), self.breakers[source]):
            breaker.release_trial()

    def leave(self, release: Hashable) -> None:
        """Note that an attempt at a target has ended. Other requests no longer wait for the results of its requests.

        One of these requests may be a trial.
        """
        self.targets -= 1
        for source, breaker in self.breakers.items():
            if breaker.awaited.pop(release, None):
                self.withdraw(source)

    def take_failures(self) -> int:
        """Return the number of failures of the egress since the last call of this method."""
        number, self.failures = self.failures, 0
        return number

    def next_slot(self) -> tuple[bool, float, float, int]:
        """Return the sort key of the lane. A target's first request tries the lane with the lowest key first.

        The key consists of whether the lane is suspended for all sources, the seconds until the next slot, the number
        of targets in flight per slot, and ``last_target``.
        """
        suspended, load = self.full_suspension > 0, self.targets / self.budget.concurrency
        return suspended, round(self.budget.start_in(), 2), load, self.last_target


def egress_failed(name: str, why: str) -> EgressFailed:
    """Return the error for a failure of an egress."""
    return EgressFailed(f"The egress {name} failed: {why}.", reason="egress_failed")
