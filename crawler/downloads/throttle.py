"""Rate limiting within this process. ``redis_throttle.py`` shares the limits."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from crawler.errors import Overloaded, UpstreamTimeout

ReleaseSlot = Callable[[], None]

NO_SLOT = "no_turn"
"""Reason of an ``UpstreamTimeout``: no slot became free before the deadline of the target."""


class Throttle(Protocol):
    """Interface of a platform's throttle, which makes downloads wait for a slot."""

    concurrency: int

    @property
    def shortest_delay(self) -> float:
        """See ``LocalThrottle``."""

    def earliest(self, ahead: int = 0) -> float:
        """See ``LocalThrottle``."""

    def free_in(self) -> float:
        """See ``LocalThrottle``."""

    async def acquire(self, deadline: float | None = None, *, background: bool = False) -> ReleaseSlot:
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
    _background: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the background download that is next to start."""

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.concurrency)

    @property
    def shortest_delay(self) -> float:
        """The shortest time in seconds between the starts of two downloads."""
        return self.delay * (1 - self.jitter)

    def earliest(self, ahead: int = 0) -> float:
        """Return the earliest time (of the event loop) at which a download can start after ``ahead`` others."""
        return max(asyncio.get_running_loop().time(), self._next_start) + ahead * self.shortest_delay

    def free_in(self) -> float:
        """Return the seconds until ``acquire`` does not wait. ``inf``: until a slot is released."""
        return math.inf if self._slots.locked() else max(0.0, self._next_start - asyncio.get_running_loop().time())

    async def acquire(self, deadline: float | None = None, *, background: bool = False) -> ReleaseSlot:
        """Wait for a slot, and return the function that releases it. ``deadline`` is a time of the event loop.

        ``background``: let all other downloads start first. The start of a background download is not reserved ahead.

        Raises:
            Overloaded: the download cannot start before the deadline. This is raised without waiting.
            UpstreamTimeout: the deadline passed while no slot was free.
        """
        if background:
            await self._wait_for_others(deadline)
        wait = self._book(deadline)
        if wait > 0:
            await asyncio.sleep(wait)
        if not self._slots.locked():
            await self._slots.acquire()  # does not wait
            return self._slots.release
        try:
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        except TimeoutError:
            raise no_slot_in_time() from None
        return self._slots.release

    async def _wait_for_others(self, deadline: float | None) -> None:
        """Wait until a download can start at once. Background downloads start in the order in which they began to wait.

        Raises:
            Overloaded: no download could start at once before the deadline.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(deadline), self._background:
                while (start := self._next_start) > loop.time():  # noqa: ASYNC110  # others move the next start
                    await asyncio.sleep(start - loop.time())
        except TimeoutError:
            raise no_slot_before_deadline(self._next_start - loop.time()) from None

    def _book(self, deadline: float | None) -> float:
        """Reserve the next start. Return the seconds until it.

        Raises:
            Overloaded: the next start is not before the deadline.
        """
        now = asyncio.get_running_loop().time()
        start = max(now, self._next_start)
        if deadline is not None and start >= deadline:
            raise no_slot_before_deadline(start - now)
        if self.delay:
            self._next_start = start + self.delay * jittered(self.jitter)
        return start - now

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
    return UpstreamTimeout("The deadline passed while waiting for a download slot.", reason=NO_SLOT)
