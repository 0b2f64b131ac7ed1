"""The routes of the service itself: the catalogue of scrapers, usage, health and metrics."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import orjson
from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from crawler.errors import InvalidRequest
from crawler.platforms.model import Model
from crawler.registry import scrapers
from crawler.service.envelope import Answer, Call, Time, json_response, raw_response
from crawler.service.route import SCRAPERS, In, Reply, Route, params_schema

if TYPE_CHECKING:
    from crawler.service.parts import Parts

DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


def _day(text: str) -> str:
    try:
        if str(date.fromisoformat(text)) == text:
            return text
    except ValueError:
        pass
    raise ValueError("expected a day as YYYY-MM-DD")


Day = Annotated[
    str,
    AfterValidator(_day),
    WithJsonSchema({"type": "string", "format": "date", "pattern": DAY}),
]
"""A day, as text. In this form, days compare as their texts."""


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


class ReadCatalogue(Route):
    """All scrapers, with their params and an example.

    For programs that choose a scraper at run time. An alias is listed in the entry of its scraper.
    """

    path = SCRAPERS
    operation = "catalogue"
    is_public = True
    errors = (InvalidRequest,)
    replies = {200: Reply("Success.", Catalogue)}

    async def answer(self, call: Call, parts: Parts) -> Answer:
        return json_response(200, catalogue(), call)


@cache
def catalogue() -> bytes:
    """Return the catalogue as encoded JSON."""
    return orjson.dumps({"scrapers": entries()})


def entries() -> list[dict[str, Any]]:
    """Return one entry for each scraper. An alias is part of its scraper's entry."""
    distinct = {scraper.name: scraper for scraper in scrapers().values()}
    return [
        {
            "name": scraper.name,
            "aliases": list(scraper.aliases),
            "platform": scraper.platform,
            "summary": scraper.summary,
            "params_schema": params_schema(scraper.params),
            "example": scraper.example,
        }
        for scraper in distinct.values()
    ]


class ReadUsage(Route):
    """The calls of the key's client, by day and scraper.

    Days are in UTC. Calls with all keys of the client are counted. A call is counted at most a second after its
    response.
    """

    path = "/v1/usage"
    operation = "usage"
    replies = {200: Reply("Success.", UsageReport)}

    from_: Annotated[Day | None, In("query", "from")] = None
    """The first day; by default 30 days before the last one."""
    to: Day | None = None
    """The last day; by default today."""

    @model_validator(mode="after")
    def _validate_order(self) -> Self:
        if self.from_ and self.to and self.from_ > self.to:
            raise ValueError("from must not be after to")
        return self

    async def answer(self, call: Call, parts: Parts) -> Answer:
        days = [None if each is None else date.fromisoformat(each) for each in (self.from_, self.to)]
        return json_response(200, await parts.usage.report(call.holder, *days), call)


class ReadHealth(Route):
    """Whether the process is running.

    For liveness checks: a process that does not respond must be restarted.
    """

    path = "/healthz"
    operation = "healthz"
    is_public = True
    errors = (InvalidRequest,)
    replies = {200: Reply("Success.", Health)}

    async def answer(self, call: Call, parts: Parts) -> Answer:
        return json_response(200, {"status": "ok"}, call)


class ReadReadiness(Route):
    """Whether the service accepts calls.

    For load balancers: send calls only to processes that respond with 200.
    """

    path = "/readyz"
    operation = "readyz"
    is_public = True
    errors = (InvalidRequest,)
    replies = {
        200: Reply("Success.", Readiness),
        503: Reply("The service accepts no calls: it is shutting down, or all its crawlers fail to start.", Readiness),
    }

    async def answer(self, call: Call, parts: Parts) -> Answer:
        state = parts.crawlers.state
        return json_response(200 if state["status"] == "ready" else 503, state, call)


class ReadMetrics(Route):
    """The metrics for Prometheus."""

    path = "/metrics"
    is_public = True

    async def answer(self, call: Call, parts: Parts) -> Answer:
        from crawler.service import metrics  # noqa: PLC0415  # imports prometheus_client, which reads its environment

        return raw_response(call, metrics.CONTENT_TYPE, metrics.expose())


ROUTES: tuple[type[Route], ...] = (ReadCatalogue, ReadUsage, ReadHealth, ReadReadiness, ReadMetrics)
"""The routes of the service itself."""
