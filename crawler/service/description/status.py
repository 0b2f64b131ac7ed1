"""The catalogue, usage, status and health in the OpenAPI document: the models of the responses, and the routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from crawler.platforms.model import Model
from crawler.service.description.contract import Time
from crawler.service.description.headers import TEXT
from crawler.service.description.operations import operation, public, query, response, success
from crawler.service.description.schemas import Json, Refs

DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
PerMinute = Annotated[list[int], Field(min_length=60, max_length=60)]
"""One number for each of the last 60 minutes."""


class Throttle(Model):
    """The budget of a platform, or of one of its sources, through an egress."""

    concurrency: int
    """The maximum number of concurrent downloads, for all processes together."""
    delay: float
    """Seconds between the starts of two downloads, on average."""
    next_slot: Time
    """The earliest time at which the next download may start, at least the time of the response (`at`)."""


class SourceThrottle(Throttle):
    """The budget of one source through an egress."""

    source: str
    """The name of the source, which is one page or call of the platform."""


class CircuitBreaker(Model):
    """The circuit breaker of one source through an egress."""

    source: str
    """The name of the source. `(connection)`: failures of the egress itself. `(platform)`: suspensions of the whole
    platform."""
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
    """The name of the source, which is one page or call of the platform."""
    code: str
    """The error code of the warning."""
    reason: str
    """The cause in short, for programs. `unread`: the source responded, but parts of its payload could not be read."""
    count: int
    """The number of targets."""


class UnreadPath(Model):
    """How often a part of a source's payload could not be read."""

    source: str
    """The name of the source, which is one page or call of the platform."""
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
    """The circuit breakers of the egress, of the whole platform, and of the sources requested since the start."""
    rests_until: Time | None
    """The end of the egress's suspension: no source is requested through it before. Null if it is not suspended."""


class PlatformStatus(Outcomes):
    """The state of a platform. The outcomes include those of targets that ended before they had an egress."""

    platform: str
    """The name of the platform, such as `retail`."""
    waiting: int
    """Synchronous calls in the platform's queue, and asynchronous calls that have not started."""
    in_flight: int
    """All calls that have no response yet, including the waiting ones. Also the targets in progress of jobs without
    `max_pages`, `exhaustive` and `since`."""
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


class ScraperEntry(Model):
    """A scraper in the catalogue."""

    name: str
    """The scraper's name, as in the URL `/v1/scrapers/<name>`."""
    aliases: list[str]
    """Other names under which the scraper can be called."""
    platform: str
    """The name of the platform that the scraper belongs to."""
    summary: str
    """A description of the data that one call returns."""
    params_schema: dict[str, Any]
    """The JSON Schema of the request body."""
    example: dict[str, Any]
    """Params that return data in the sandbox (the simulated platforms)."""


class Catalogue(Model):
    """All scrapers."""

    scrapers: list[ScraperEntry]
    """The scrapers, without their aliases."""


class UsageEntry(Model):
    """The calls of one scraper on one day."""

    day: str = Field(pattern=DAY)
    """The day in UTC."""
    scraper: str
    """The scraper's primary name."""
    calls: int
    """The number of calls of the scraper with any of the client's keys."""
    billable: int
    """Calls that returned fresh data."""
    partial: int
    """Calls whose record has a warning (`X-Partial`), including repeated calls with a stored response."""
    outcomes: dict[str, int]
    """The number of calls by code. `CLIENT_GONE`: the client disconnected or deleted the call before its end."""


class QuotaReport(Model):
    """The state of a client's quota in the current month (UTC)."""

    limit: int
    """The maximum number of billable calls of the client in a month, with all of its keys together."""
    used: int
    """The billable calls of this month."""
    reserved: int
    """Calls in progress, and targets of jobs that wait or run. Each of them counts as used when it ends, if it is
    billable."""
    resets_at: Time
    """The beginning of the next month."""


class UsageReport(Model):
    """The calls of a client in a period."""

    client_id: str
    """The client that owns the API key of this request."""
    from_: str = Field(pattern=DAY, alias="from")
    """The first day, inclusive."""
    to: str = Field(pattern=DAY)
    """The last day, inclusive."""
    calls: int
    """The number of all calls in the period."""
    billable: int
    """All billable calls of these days."""
    partial: int
    """All calls of these days with a partial record."""
    pending: int
    """Calls that the responding process could not store yet, because the store was slow or unavailable. They are not
    included in the other numbers. Usually 0."""
    quota: QuotaReport | None
    """The client's quota in the current month, whatever `from` and `to` are; null if the client has none."""
    usage: list[UsageEntry]
    """One entry for each day and scraper, the newest day first."""


class Health(Model):
    """The process is running."""

    status: Literal["ok"]
    """Always `ok`: a process that does not run does not respond."""


class Readiness(Model):
    """Whether the service accepts calls."""

    status: Literal["ready", "draining", "broken"]
    """`draining`: the service is shutting down. `broken`: the crawlers of all platforms fail to start."""
    broken: list[str]
    """The platforms whose crawlers fail to start."""


def paths(ref: Refs) -> Json:
    """Return the routes."""
    catalogue = (
        "All scrapers, with their params and an example.\n"
        "For programs that choose a scraper at run time. An alias is listed in the entry of its scraper."
    )
    usage = (
        "The calls of the key's client, by day and scraper.\n"
        "Days are in UTC. Calls with all keys of the client are counted. A call is counted at most a second after its"
        " response."
    )
    day = TEXT | {"format": "date", "pattern": DAY}
    days = (
        query("from", "The first day; by default 30 days before the last one.", day),
        query("to", "The last day; by default today.", day),
    )
    status = (
        "The state of each platform and egress, and the outcomes of the last hour.\n"
        "For dashboards: throttles, circuit breakers, waiting calls, and completed targets by minute and code, as sums"
        " over all processes of the service."
    )
    healthz = "Whether the process is running.\nFor liveness checks: a process that does not respond must be restarted."
    readyz = (
        "Whether the service accepts calls.\nFor load balancers: send calls only to processes that respond with 200."
    )
    refuses = "The service accepts no calls: it is shutting down, or all its crawlers fail to start."
    ready = success(ref[Readiness]) | {"503": response(refuses, ref[Readiness])}
    return {
        "/v1/scrapers": {"get": public("catalogue", catalogue, success(ref[Catalogue]))},
        "/v1/usage": {"get": operation("usage", usage, success(ref[UsageReport]), *days)},
        "/v1/status": {"get": operation("status", status, success(ref[ServiceStatus]))},
        "/healthz": {"get": public("healthz", healthz, success(ref[Health]))},
        "/readyz": {"get": public("readyz", readyz, ready)},
    }
