"""The clocks of leases: whether the database's clock is steady, and the time without its jumps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

JUMP_SECONDS = 2.0
"""Maximum seconds by which the time between two readings may differ on the wall clock and on the monotonic clock.

A larger difference means that the wall clock has jumped.
"""

OBSERVE_SECONDS = 1.0
"""Seconds after which the next transaction reads the time of the database again."""


lease_clock = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""Returns a monotonic time in seconds. The clock continues while the machine sleeps: leases expire then, too."""


@dataclass
class SteadyClock:
    """Compares the database's wall clock with the monotonic clock, to find jumps of the wall clock.

    After a jump forward, all leases seem to have expired, until their workers renew them. After an outage of the
    database, leases have expired because workers could not renew them. A process that has just started, or was
    suspended, cannot exclude such a jump or outage. Therefore leases count as expired only after this process has read
    the clock repeatedly, without a jump, for longer than the interval at which workers renew leases.
    """

    needed: float
    """Seconds without a jump after which the clock counts as steady. A longer gap between readings is a jump, too."""
    monotonic: Callable[[], float] = lease_clock
    _last: tuple[float, float] | None = None
    _since: float = 0.0

    def is_steady(self, now: float) -> bool:
        """Add a reading of the clock. Return whether the clock is steady. ``now``: the Unix time of the database."""
        here = self.monotonic()
        if self._last is None:
            self._since = here
        else:
            passed = here - self._last[1]
            if abs(now - self._last[0] - passed) > JUMP_SECONDS or passed > self.needed:
                self._since = here
        self._last = now, here
        return here - self._since >= self.needed


class StoreTime:
    """The Unix time of the store's host, without jumps of its wall clock.

    After a jump, this time follows the monotonic clock until the wall clock has been steady for ``needed`` seconds.
    Processes on several hosts have the same time, because PostgreSQL returns the time of its server.
    """

    def __init__(self, needed: float = 10.0, monotonic: Callable[[], float] = lease_clock) -> None:
        self.is_steady = False
        """Whether the wall clock was observed for ``needed`` seconds without a jump.

        While it is False, rows must not be deleted because of their age.
        """
        self._clock = SteadyClock(needed, monotonic)
        self._monotonic = monotonic
        self._offset: float | None = None
        self._observe_at = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the next transaction should call ``observe()``."""
        return self._monotonic() >= self._observe_at

    def observe(self, now: float) -> None:
        """Compare the time of the database with the monotonic clock. ``now``: the Unix time of the database."""
        here = self._monotonic()
        self._observe_at = here + OBSERVE_SECONDS
        self.is_steady = self._clock.is_steady(now)
        if self._offset is None or self.is_steady:
            self._offset = now - here

    def now(self) -> float:
        """Return the Unix time of the store's host in seconds. Before the first observation: the time of this host."""
        return time.time() if self._offset is None else self._monotonic() + self._offset


STORE_TIME = StoreTime()
"""The time of the store that this process uses. Each ``Store`` updates it in its transactions."""


store_time = STORE_TIME.now
"""Return the Unix time of the store's host in seconds, without the jumps of its wall clock."""


def utc_text(seconds: float, timespec: str = "seconds") -> str:
    """Return a Unix time as RFC 3339 text in UTC, such as ``2026-11-25T20:15:00Z``.

    >>> utc_text(0), utc_text(0.5, "milliseconds")
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:00.500Z')
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
