"""Limits by rate: a simulated platform refuses requests of a client that has sent too many of them in some seconds."""

from __future__ import annotations

import time
from collections import defaultdict, deque


class Windows:
    """Counts the requests of each client of a platform in the last seconds. Requests above the limit count, too."""

    def __init__(self, requests: float, seconds: float) -> None:
        self.seconds = seconds
        self._times: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=int(requests)))
        """The times of the last requests of each client: as many as the limit allows."""

    def count(self, client: str) -> float:
        """Count a request, and return 0, or the seconds until the client may send requests again."""
        now, times = time.monotonic(), self._times[client]
        exceeded = len(times) == times.maxlen and now - times[0] < self.seconds
        times.append(now)
        return times[0] + self.seconds - now if exceeded else 0.0
