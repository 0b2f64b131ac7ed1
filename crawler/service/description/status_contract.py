"""Models of the response of ``GET /v1/status``, from which the OpenAPI document is generated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from crawler.platforms.model import Model
from crawler.service.description.contract import Time

PerMinute = Annotated[list[int], Field(min_length=60, max_length=60)]
"""One number for each of the last 60 minutes."""


class Throttle(Model):
    """The budget of a platform, or of one of its sources, through an egress."""

    concurrency: int
    """The maximum number of concurrent downloads, for all processes together."""
    delay: float
    """Seconds between the starts of two downloads, on average."""
    next_slot: Time
    """The earliest time at which the next download may start. It is never before the time of the response (`at`)."""


class SourceThrottle(Throttle):
    """The budget of one source through an egress."""

    source: str
    """The source."""


class CircuitBreaker(Model):
    """The circuit breaker of one source through an egress."""

    source: str
    """The source. `(connection)`: failures of the egress itself. `(platform)`: a suspension of the whole platform."""
    state: Literal["closed", "open", "trial"]
    """`closed`: requests are sent. `open`: no request is sent before `until`. `trial`: one request tries the source."""
    since: Time | None
    """When the circuit breaker opened; null while it is closed."""
    until: Time | None
    """The end of the cooldown; null if it is not `open`."""
    reason: str | None
    """The reason or error code of the last block, rate limit or egress failure; null if it is not known."""


class SourceWarnings(Model):
    """How often an optional source failed for one reason, or parts of a source's payload could not be read."""

    source: str
    """The source."""
    code: str
    """The error code of the failure."""
    reason: str
    """The cause in short, for programs. `unread`: the source responded, but parts of its payload could not be read."""
    count: int
    """The number of targets."""


class UnreadPath(Model):
    """How often a part of a source's payload could not be read."""

    source: str
    """The source."""
    path: str
    """The path in the payload, as the project expects it. `…unknown`: the platform sent names that are not known."""
    count: int
    """The number of targets."""


class Outcomes(Model):
    """The outcomes of the last 60 minutes."""

    outcomes: dict[str, PerMinute]
    """Completed targets by code: 60 numbers, one per minute, the oldest first. The last minute is not over yet."""
    warnings: list[SourceWarnings]
    """The warnings about incomplete records, the most frequent first."""
    unread: list[UnreadPath]
    """The parts of payloads that could not be read, the most frequent first."""
    last_success: Time | None
    """When the last target was completed with a record; null if none was within the last 30 days."""


class EgressStatus(Outcomes):
    """The state of a platform through one egress."""

    egress: str
    """The name of the egress; `direct` is the service's own connection."""
    targets: int
    """Targets in flight through the egress."""
    throttle: Throttle
    """The budget of the platform."""
    sources: list[SourceThrottle]
    """The sources with a budget of their own."""
    breakers: list[CircuitBreaker]
    """The circuit breakers of all sources that have been requested since the start."""
    rests_until: Time | None
    """The end of the egress's suspension: no source is requested through it before. Null if it is not suspended."""


class PlatformStatus(Outcomes):
    """The state of a platform. Its outcomes include those of targets that ended before they had an egress."""

    platform: str
    """The platform."""
    waiting: int
    """Synchronous calls in the platform's queue, and asynchronous calls that have not started."""
    in_flight: int
    """All calls that have no response yet, including the waiting ones."""
    egresses: list[EgressStatus]
    """The egresses of the platform, at least one."""
    headline: str
    """The most severe fact about the platform, for people."""


class ServiceStatus(Model):
    """The state of all platforms, and their outcomes of the last 60 minutes, in all processes of the service."""

    at: Time
    """The time of the response."""
    first_minute: Time
    """The beginning of the first of the 60 minutes."""
    workers: int
    """The number of processes whose values are included."""
    platforms: list[PlatformStatus]
    """The platforms, sorted by name."""
