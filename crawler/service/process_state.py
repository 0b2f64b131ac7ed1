"""Makes the state of this process from its crawlers, and adds up the states of several processes.

Times are Unix seconds. The time of a next slot or of the end of a cooldown is None if it has passed, so that the state
of an idle process does not change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from crawler.jobs.clock import store_time

if TYPE_CHECKING:
    from crawler.downloads.breaker import CircuitBreaker
    from crawler.downloads.lane import Lane
    from crawler.downloads.throttle import Throttle
    from crawler.service.calls.open_crawlers import OpenCrawlers

State = dict[str, Any]
"""Platform -> ``waiting``, ``in_flight`` and ``egresses``. JSON, because other processes read it from the store."""

CLOSED, TRIAL, OPEN = "closed", "trial", "open"
SEVERITY = (CLOSED, TRIAL, OPEN)
"""If the states of a circuit breaker differ between processes, the last of them in this order is reported."""


def process_state(crawlers: OpenCrawlers) -> State:
    """Return the state of this process."""
    return {
        platform: {
            "waiting": len(crawler.source),
            "in_flight": crawler.in_flight,
            "egresses": {lane.egress.name: _lane_state(lane) for lane in crawler.lanes},
        }
        for platform, crawler in crawlers.of.items()
    }


def _lane_state(lane: Lane) -> State:
    return {
        "targets": lane.targets,
        "next_slot": _next_slot(lane.budget),
        "sources": {source: _next_slot(throttle) for source, throttle in lane.sources.items()},
        "breakers": {
            source: _breaker_state(breaker)
            for source, breaker in (dict(sorted(lane.breakers.items())) | lane.lane_breakers).items()
        },
        "rests_until": _in(lane.usable_in),
    }


def _next_slot(throttle: Throttle) -> float | None:
    seconds = throttle.earliest() - asyncio.get_running_loop().time()
    return round(store_time() + seconds, 3) if seconds > 0 else None


def _breaker_state(breaker: CircuitBreaker) -> State:
    seconds = breaker.open_seconds
    if seconds is None:
        return {"state": CLOSED, "since": None, "until": None, "reason": None}
    left = breaker.cooldown_left
    return {
        "state": OPEN if left else TRIAL,
        "since": round(store_time() - seconds, 1),
        "until": _in(left),
        "reason": breaker.reason,
    }


def _in(seconds: float) -> float | None:
    """Return the Unix time in ``seconds`` from now, rounded so that an unchanged state stays the same. None for 0."""
    return round(store_time() + seconds, 1) if seconds else None


def total(states: Sequence[State], platform: str, egresses: Iterable[str]) -> State:
    """Return the state of a platform and some of its egresses, as the sum of the states of several processes."""
    found = [state[platform] for state in states if platform in state]
    return {
        "waiting": sum(each["waiting"] for each in found),
        "in_flight": sum(each["in_flight"] for each in found),
        "egresses": {
            name: _total_lane([each["egresses"][name] for each in found if name in each["egresses"]])
            for name in egresses
        },
    }


def _total_lane(found: Sequence[State]) -> State:
    sources = {source for each in found for source in each["sources"]}
    breakers = {source for each in found for source in each["breakers"]}
    return {
        "targets": sum(each["targets"] for each in found),
        "next_slot": _earliest(each["next_slot"] for each in found),
        "sources": {
            source: _earliest(each["sources"][source] for each in found if source in each["sources"])
            for source in sources
        },
        "breakers": {
            source: max(
                (each["breakers"][source] for each in found if source in each["breakers"]),
                key=lambda breaker: (SEVERITY.index(breaker["state"]), breaker["until"] or 0.0),
            )
            for source in sorted(breakers)
        },
        "rests_until": max((each["rests_until"] or 0.0 for each in found), default=0.0) or None,
    }


def _earliest(times: Iterable[float | None]) -> float | None:
    """Return the earliest time. None, which means now, is the earliest of all."""
    return min((each or 0.0 for each in times), default=0.0) or None
