"""The clocks by which leases are counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

JUMP_SECONDS = 2.0
"""A wall clock that gains or loses more than this against the monotonic clock has jumped."""


def lease_clock() -> float:
    """Return the time in seconds. The clock continues while the machine sleeps, because leases expire then, too."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass
class SteadyClock:
    """Watches the database's wall clock for jumps.

    After a jump forward, all leases seem to have expired, until their workers renew them. After an outage of the
    database, leases have expired because nobody could renew them. A process that has just started, or was suspended,
    cannot exclude either. So leases count as expired only after the clock has been watched, and was steady, for longer
    than the interval of renewals.
    """

    needed: float
    """Seconds for which the clock must have been steady."""
    monotonic: Callable[[], float] = lease_clock
    _last: tuple[float, float] | None = None
    _since: float = 0.0

    def is_steady(self, now: float) -> bool:
        """Whether the clock has been steady for long enough. ``now``: the Unix time of the database."""
        here = self.monotonic()
        if self._last is None:
            self._since = here
        else:
            passed = here - self._last[1]
            if abs(now - self._last[0] - passed) > JUMP_SECONDS or passed > self.needed:
                self._since = here
        self._last = now, here
        return here - self._since >= self.needed
