"""The catalogue, usage and health in the OpenAPI document: the models of the responses, and the routes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from crawler.platforms.model import Model
from crawler.service.description.contract import Time
from crawler.service.description.headers import TEXT
from crawler.service.description.operations import operation, public, query, response, success
from crawler.service.description.schemas import Json, Refs

DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


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
    """Calls whose record has a warning (`X-Partial`)."""
    outcomes: dict[str, int]
    """The number of calls by code. `CLIENT_GONE`: the client disconnected before the end of the call."""


class QuotaReport(Model):
    """The state of a client's quota in the current month (UTC)."""

    limit: int
    """The records of the client in a month, with all of its keys together. Above it, calls and new jobs are refused."""
    used: int
    """The records of this month."""
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
    healthz = "Whether the process is running.\nFor liveness checks: a process that does not respond must be restarted."
    readyz = (
        "Whether the service accepts calls.\nFor load balancers: send calls only to processes that respond with 200."
    )
    refuses = "The service accepts no calls: it is shutting down, or all its crawlers fail to start."
    ready = success(ref[Readiness]) | {"503": response(refuses, ref[Readiness])}
    return {
        "/v1/scrapers": {"get": public("catalogue", catalogue, success(ref[Catalogue]))},
        "/v1/usage": {"get": operation("usage", usage, success(ref[UsageReport]), *days)},
        "/healthz": {"get": public("healthz", healthz, success(ref[Health]))},
        "/readyz": {"get": public("readyz", readyz, ready)},
    }
