"""The shapes of everything that the endpoint answers, as models: the OpenAPI document is generated from them.

Answers are not built from them, which would cost a call more than all else here; the tests hold every answer of a
running service against the document instead.
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
    """How the call ended, in short."""

    code: str
    """`OK`, or the error's code."""
    message: str
    """For people; it may change."""
    retryable: bool
    """Whether the same call may succeed later."""


class Meta(Model):
    """About the call."""

    client_id: str
    """Whose key it was; "" where there was none that is known."""
    scraper: str
    """The scraper's primary name, also where it was called by an alias; "" where none was reached."""
    billable: bool
    """True only where fresh data was served."""
    duration_ms: int = Field(ge=0)
    """Milliseconds."""


class Detail(Model):
    """One thing that is wrong."""

    loc: list[str | int]
    """The path of a request field, or of a place in the platform's payload."""
    msg: str
    """What was expected."""
    type: str
    """A word for the kind of fault."""


class Upstream(Model):
    """What the platform did."""

    status: int | None
    """Its HTTP status, null where it gave none."""
    reason: str
    """A short word for it."""


class Error(Model):
    """Why there is no data."""

    code: str = Field(json_schema_extra={"enum": [error.code for error in documented()]})
    """The code to act on; each is explained on the page that `doc_url` names."""
    type: ErrorType
    """Whose matter it is."""
    message: str
    """For people; it may change."""
    details: list[Detail]
    """The places that are wrong, where that can be said."""
    retry_after: int | None
    """Seconds to wait before a repeat; over HTTP also the header `Retry-After`."""
    upstream: Upstream | None
    """What the platform did; null where it was not asked."""
    doc_url: str
    """Where the code is explained."""


class Answer(Model):
    """What all answers of a scraper share."""

    request_id: str = Field(pattern=REQUEST_ID)
    """Names the call in the service's log; also the header `X-Request-Id`."""
    status: Status
    """How the call ended."""
    meta: Meta
    """Whose call it was, of what, whether it is billable and how long it took."""


class Success(Answer, Generic[DataT]):
    """The envelope around a target's data."""

    success: Literal[True]
    """Whether there is data."""
    data: DataT
    """What the scraper found. What the platform does not show is null, "" or []."""
    error: None
    """Null: nothing failed."""


class Failure(Answer):
    """The envelope around an error."""

    success: Literal[False]
    """Whether there is data."""
    data: None
    """Null: there is none."""
    error: Error
    """Why."""


class ScraperEntry(Model):
    """A scraper of the catalogue."""

    name: str
    """Its name in the URL."""
    aliases: list[str]
    """Further names; they take and give the same."""
    platform: str
    """The platform that it asks."""
    summary: str
    """What one call gives."""
    params_schema: dict[str, Any]
    """JSON Schema of the request body."""
    example: dict[str, Any]
    """Params that the sandbox answers."""


class Catalogue(Model):
    """Every scraper that there is."""

    scrapers: list[ScraperEntry]
    """By name."""


class UsageEntry(Model):
    """A day's calls of one scraper."""

    day: str = Field(pattern=DAY)
    """In UTC."""
    scraper: str
    """Its primary name."""
    calls: int
    """All calls that carried the key and named the scraper."""
    billable: int
    """Those that were answered with fresh data."""
    outcomes: dict[str, int]
    """Calls by code; `CLIENT_GONE` where the caller did not wait for the answer."""


class UsageReport(Model):
    """A client's usage."""

    client_id: str
    """Whose key it is."""
    from_: str = Field(pattern=DAY, alias="from")
    """The first day, inclusive."""
    to: str = Field(pattern=DAY)
    """The last day, inclusive."""
    calls: int
    """Of all days together."""
    billable: int
    """Of all days together."""
    usage: list[UsageEntry]
    """The newest day first."""


class Health(Model):
    """That the process lives."""

    status: Literal["ok"]
    """In one word."""


class Readiness(Model):
    """Whether calls are taken."""

    status: Literal["ready", "draining", "broken"]
    """`broken`: of no platform."""
    broken: list[str]
    """The platforms whose calls are not taken."""
