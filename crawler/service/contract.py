"""The models of the endpoint's responses. The OpenAPI document is generated from them.

Responses are not built from these models, because that would cost more time than the rest of the endpoint. Tests
validate the responses of a running service against the document instead.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from pydantic import Field

from crawler.errors import ErrorType, documented
from crawler.platforms.model import Model

DataT = TypeVar("DataT")

REQUEST_ID = r"^req_[0-9A-HJKMNP-TV-Z]{26}$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


class Status(Model):
    """The result of the call in short."""

    code: str
    """`OK`, or the error's code."""
    message: str
    """Text for people. It may change. Of a partial record it names the optional sources that failed."""
    retryable: bool
    """Whether the same call may succeed later."""


class Meta(Model):
    """Metadata of the call."""

    client_id: str
    """The client that owns the key; "" without a valid key."""
    scraper: str
    """The scraper's primary name, also for calls by an alias; "" if the route is not a scraper's."""
    billable: bool
    """True only if fresh data was served."""
    duration_ms: int = Field(ge=0)
    """Milliseconds."""


class Detail(Model):
    """One invalid value."""

    loc: list[str | int]
    """The path of a request field, or of a value in the platform's payload."""
    msg: str
    """The expected value."""
    type: str
    """A slug for the kind of fault."""


class Upstream(Model):
    """The platform's response."""

    status: int | None
    """Its HTTP status; null without a response."""
    reason: str
    """A slug for the cause."""


class Error(Model):
    """The reason of a failed call."""

    code: str = Field(json_schema_extra={"enum": [error.code for error in documented()]})
    """The code to handle. The page at `doc_url` explains each code."""
    type: ErrorType
    """The party that has to act."""
    message: str
    """Text for people. It may change."""
    details: list[Detail]
    """The invalid values, if they are known."""
    retry_after: int | None
    """Seconds to wait before a retry; over HTTP also the header `Retry-After`."""
    upstream: Upstream | None
    """The platform's response; null if no request was sent to it."""
    doc_url: str
    """The page that explains the code."""


class Answer(Model):
    """The fields that all responses of a scraper share."""

    request_id: str = Field(pattern=REQUEST_ID)
    """The id of the call in the service's log; also the header `X-Request-Id`."""
    status: Status
    """The result of the call."""
    meta: Meta
    """The client, the scraper, whether the call is billable, and its duration."""


class Success(Answer, Generic[DataT]):
    """The envelope around a target's data."""

    success: Literal[True]
    """Whether there is data."""
    data: DataT
    """The scraped record. Values that the platform does not show are null, "" or []."""
    error: None
    """Always null."""


class Failure(Answer):
    """The envelope around an error."""

    success: Literal[False]
    """Whether there is data."""
    data: None
    """Always null."""
    error: Error
    """The reason of the failure."""


class ScraperEntry(Model):
    """A scraper in the catalogue."""

    name: str
    """The name in the URL."""
    aliases: list[str]
    """Other names with the same params and data."""
    platform: str
    """The platform that it scrapes."""
    summary: str
    """The data that one call returns."""
    params_schema: dict[str, Any]
    """JSON Schema of the request body."""
    example: dict[str, Any]
    """Params that return data in the sandbox."""


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
    """All calls of the scraper with a key of the client."""
    billable: int
    """Calls that returned fresh data."""
    partial: int
    """Calls whose record lacks the data of an optional source, including repeated responses."""
    outcomes: dict[str, int]
    """Calls by code; `CLIENT_GONE` if the client disconnected before the response."""


class UsageReport(Model):
    """A client's usage."""

    client_id: str
    """The client that owns the key."""
    from_: str = Field(pattern=DAY, alias="from")
    """The first day, inclusive."""
    to: str = Field(pattern=DAY)
    """The last day, inclusive."""
    calls: int
    """All calls of these days."""
    billable: int
    """All billable calls of these days."""
    partial: int
    """All calls of these days with a partial record."""
    usage: list[UsageEntry]
    """The calls by day and scraper, the newest day first."""


class Health(Model):
    """The state of the process."""

    status: Literal["ok"]
    """Always `ok`."""


class Readiness(Model):
    """Whether the service accepts calls."""

    status: Literal["ready", "draining", "broken"]
    """`broken`: the crawlers of all platforms fail to start."""
    broken: list[str]
    """The platforms whose crawlers fail to start."""
