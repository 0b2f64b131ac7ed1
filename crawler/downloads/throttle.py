"""Per-platform throttling and circuit breaking in one process. ``redis_throttle.py`` is for several processes."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from crawler.errors import CircuitOpen, Overloaded, ScrapeError, TargetError, UpstreamBlocked, UpstreamTimeout

ReleaseSlot = Callable[[], None]


class Throttle(Protocol):
    """Interface of a platform's throttle, which makes downloads wait for a slot."""

    concurrency: int

    def earliest(self, ahead: int = 0) -> float:
        """See ``LocalThrottle``."""

    async def acquire(self, deadline: float | None = None) -> ReleaseSlot:
        """See ``LocalThrottle``."""


@dataclass
class LocalThrottle:
    """A platform's throttle in one process.

    At most ``concurrency`` downloads run at once. Their starts are about ``delay`` seconds apart.
    """

    concurrency: int
    delay: float = 0.0
    jitter: float = 0.5
    """Maximum deviation from the delay, as a share of it. Delays are random, so that requests have no fixed rhythm."""
    _next_start: float = 0.0
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.concurrency)

    def earliest(self, ahead: int = 0) -> float:
        """Return the earliest time (of the event loop) at which a download can start after ``ahead`` others."""
        return max(asyncio.get_running_loop().time(), self._next_start) + ahead * self.delay * (1 - self.jitter)

    async def acquire(self, deadline: float | None = None) -> ReleaseSlot:
        """Wait for a slot, and return the function that releases it. ``deadline`` is a time of the event loop.

        Raises:
            Overloaded: the download cannot start before the deadline. This is raised without waiting.
            UpstreamTimeout: the deadline passed while no slot was free.
        """
        loop = asyncio.get_running_loop()
        start = max(loop.time(), self._next_start)
        if deadline is not None and start >= deadline:
            raise no_slot_before_deadline(start - loop.time())
        if self.delay:
            self._next_start = start + self.delay * jittered(self.jitter)
            await asyncio.sleep(start - loop.time())
        try:
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        except TimeoutError:
            raise no_slot_in_time() from None
        return self._slots.release

    def share(self, processes: int) -> LocalThrottle:
        """Return the throttle for one of several processes that divide the platform's budget among them.

        Each process has at least one slot.
        """
        return LocalThrottle(max(1, self.concurrency // processes), self.delay * processes, self.jitter)


def jittered(jitter: float) -> float:
    """Return a random factor between 1 - ``jitter`` and 1 + ``jitter``."""
    return random.uniform(1 - jitter, 1 + jitter)  # noqa: S311  # no secret


def no_slot_before_deadline(seconds: float) -> Overloaded:
    """Return the error for a request that cannot get a slot before its deadline."""
    wait = math.ceil(seconds)
    return Overloaded(f"The platform's next download slot is free in {wait} s, after the deadline.", retry_after=wait)


def no_slot_in_time() -> UpstreamTimeout:
    """Return the error for a request that waited for a slot until its deadline."""
    return UpstreamTimeout("The deadline passed while waiting for a download slot.", reason="no_turn")


@dataclass
class CircuitBreaker:
    """Stops requests to a platform for ``cooldown`` seconds after ``threshold`` consecutive blocks.

    A block with ``retry_after`` opens the breaker at once, for at least this time. With ``threshold`` 0, the breaker
    never opens. After the cooldown, one target is tried. If the platform blocks it, too, the breaker opens again, with
    a doubled cooldown. If it gets data or an error of the target itself, the breaker closes.
    """

    threshold: int
    cooldown: float
    max_cooldown: float = 900.0
    """Maximum cooldown in seconds after it has been doubled."""
    _blocks: int = 0
    _open_until: float = 0.0
    _trial_in_flight: bool = False

    @property
    def remaining(self) -> float:
        """Seconds until a target may be tried; 0 if the breaker is closed."""
        if not self._open:
            return 0.0
        if self._trial_in_flight:
            return 1.0
        return max(0.0, self._open_until - time.monotonic())

    def check(self) -> None:
        """Check whether a target may be tried now.

        Raises:
            CircuitOpen: the breaker is open. ``retry_after`` is the number of seconds to wait.
        """
        wait = self.remaining
        if wait:
            raise CircuitOpen(
                "The platform has blocked the last requests; its circuit breaker is open.",
                retry_after=math.ceil(wait),
            )
        self._trial_in_flight = self._open

    @property
    def _open(self) -> bool:
        return 0 < self.threshold <= self._blocks

    async def wait(self) -> None:
        """Wait until a target may be tried. Only crawls wait; calls of the endpoint use ``check``."""
        while wait := self.remaining:  # noqa: ASYNC110  # waits for a time, which a further block may postpone
            await asyncio.sleep(wait)
        self.check()

    def record(self, error: ScrapeError | None) -> None:
        """Count consecutive blocks: a block increases the count, and data or an error of the target resets it.

        Other errors leave the count unchanged: they do not show whether the platform blocks requests.
        """
        self._trial_in_flight = False
        if isinstance(error, UpstreamBlocked):
            retry_after = error.retry_after or 0
            self._blocks = max(self._blocks + 1, self.threshold if retry_after else 0)
            if self._open:
                doublings = min(self._blocks - self.threshold, 10)
                cooldown = min(self.cooldown * 2**doublings, self.max_cooldown)
                self._open_until = time.monotonic() + max(cooldown, retry_after)
        elif error is None or isinstance(error, TargetError):
            self._blocks = 0
