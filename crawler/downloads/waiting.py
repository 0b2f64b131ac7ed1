"""What a crawl waits for while it may send no request: for its progress bar and its log."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from crawler.downloads.breaker import CircuitBreaker
from crawler.downloads.egress import DIRECT
from crawler.downloads.routes import Route, Routes

MAX_NAMED = 5
"""Maximum number of suspensions that are named; the others are counted."""


class Suspension(NamedTuple):
    """An egress, a source or a platform to which no request may be sent for some time."""

    name: str
    reason: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.name} ({self.reason}, {math.ceil(self.seconds)} s)"


def suspensions(routes: Routes) -> list[Suspension]:
    """Return all suspensions of a platform, the shortest first. Empty as long as a request can be sent."""
    if not routes.resting:
        return []
    found = dict.fromkeys(each for route in routes for each in _of_route(route))  # all routes share the platform's
    return sorted(found, key=lambda each: each.seconds)


def _of_route(route: Route) -> Iterator[Suspension]:
    if route.platform is not None and route.platform.cooldown_left:
        yield _suspension("the platform", route.platform)
    elif route.connection.cooldown_left:
        yield _suspension(f"egress {route.egress.name}", route.connection)
    else:
        through = "" if route.egress is DIRECT else f" through egress {route.egress.name}"
        for source, breaker in route.breakers:
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
