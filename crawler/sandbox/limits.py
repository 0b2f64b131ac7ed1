"""Limits by rate: a simulated platform refuses requests of a client that has sent too many of them in some seconds."""

from __future__ import annotations

import re
import time
from collections import defaultdict, deque
from dataclasses import dataclass

_LIMIT = re.compile(r"(\d+)/(\d+(?:\.\d+)?)", re.ASCII)


@dataclass(frozen=True)
class Limit:
    """The number of requests that a client may send within a number of seconds."""

    requests: int
    seconds: float

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Parse a limit such as ``50/900``: 50 requests in 900 seconds.

        Raises:
            ValueError: the text is not a limit.
        """
        found = _LIMIT.fullmatch(text)
        if found is None or not int(found[1]) or not float(found[2]):
            raise ValueError(f"expected requests/seconds, such as 50/900, not {text!r}")
        return cls(int(found[1]), float(found[2]))


class Windows:
    """Counts the requests of each client of a platform in the last seconds. Requests above the limit count, too."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._times: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=limit.requests))
        """The times of the last requests of each client: as many as the limit allows."""

    def count(self, client: str) -> float:
        """Count a request, and return 0, or the seconds until the client may send requests again."""
        now, times = time.monotonic(), self._times[client]
        exceeded = len(times) == self.limit.requests and now - times[0] < self.limit.seconds
        times.append(now)
        return times[0] + self.limit.seconds - now if exceeded else 0.0
