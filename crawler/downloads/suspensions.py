"""Lists the suspensions that a crawl waits for, for its progress bar and its log."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from crawler.downloads.breaker import CircuitBreaker
from crawler.downloads.egress_setting import DIRECT
from crawler.downloads.lane import Lane
from crawler.downloads.platform_lanes import Lanes

MAX_NAMED = 5
"""Maximum number of suspensions that the text names. The number of further ones is appended."""


class Suspension(NamedTuple):
    """A suspended egress, source or platform, and the remaining seconds."""

    name: str
    reason: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.name} ({self.reason}, {math.ceil(self.seconds)} s)"


def suspensions(lanes: Lanes) -> list[Suspension]:
    """Return all suspensions of a platform, the shortest first. Empty while a request can be sent."""
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
        for source, breaker in sorted(lane.breakers.items()):
            if breaker.cooldown_left:
                yield _suspension(f"source {source}{through}", breaker)


def _suspension(name: str, breaker: CircuitBreaker) -> Suspension:
    return Suspension(name, breaker.reason or "suspended", breaker.cooldown_left)


def waiting_for(found: list[Suspension]) -> str:
    """Return a text that names suspensions.

    >>> waiting_for([Suspension("egress berlin", "egress_failed", 29.5), Suspension("egress paris", "http_429", 60.0)])
    'egress berlin (egress_failed, 30 s), egress paris (http_429, 60 s)'
    """
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return ", ".join(map(str, found[:MAX_NAMED])) + more
