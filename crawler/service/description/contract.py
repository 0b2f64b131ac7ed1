"""Models of the endpoint's responses, from which the OpenAPI document is generated.

The service does not use these models to build responses, because validation would take more time than everything else
that the endpoint does. Instead, tests validate the responses of a running service against the OpenAPI document.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field

from crawler.errors import ErrorType, documented
from crawler.platforms.model import Model, schema_name

DataT = TypeVar("DataT")

REQUEST_ID = r"^req_[0-9A-HJKMNP-TV-Z]{26}$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""A time in the format of RFC 3339, in UTC."""


class Status(Model):
    """A summary of the call's result."""

    code: str
    """`OK`, or the error's code."""
    message: str
    """Text for people. It may change. For a partial record, it names what the record lacks."""
    retryable: bool
    """Whether the same call may succeed later."""


class AcceptedStatus(Model):
    """The status of an asynchronous call that waits or runs."""

    code: Literal["ACCEPTED"]
    """Always `ACCEPTED`."""
    message: str
    """Text for people about the state of the call. It may change."""
    retryable: bool
    """Whether the same request returns the response later: false after a `POST`, which would make a second call."""


class Meta(Model):
    """Metadata of the call."""

    client_id: str
    """The client that owns the API key; "" if the call has no valid key."""
    scraper: str
    """The scraper's primary name, even if the call used an alias; "" if the route does not belong to a scraper."""
    billable: bool
    """Whether the call `request_id` is billed: true only if the data was fetched for this call, false in a response
    with `Idempotent-Replayed`. Each `GET` of an asynchronous call returns the same value; the call is billed once."""
    duration_ms: int = Field(ge=0)
    """Milliseconds from the arrival of the call to its response."""


class Detail(Model):
    """One invalid value."""

    loc: list[str | int]
    """The path to the value, in the request or in the platform's payload."""
    msg: str
    """The problem with the value, or the expected value."""
    type: str
    """A short identifier of the problem, such as `string_type`."""


class Upstream(Model):
    """How the platform responded when the call failed."""

    status: int | None
    """The HTTP status of the response; null if the platform did not respond."""
    reason: str
    """A short identifier of the cause, such as `timeout`."""


class Error(Model):
    """Why the call failed."""

    code: str = Field(json_schema_extra={"enum": [error.code for error in documented()]})
    """The error code, which client code should test. The page at `doc_url` explains each code."""
    type: ErrorType
    """The origin of the error: the API key (`auth`), the request, the target, the platform (`upstream`) or the
    service."""
    message: str
    """Text for people. It may change."""
    details: list[Detail]
    """The invalid values, if they are known."""
    retry_after: int | None
    """Seconds to wait before a retry. The `Retry-After` header of the response has the same value."""
    upstream: Upstream | None
    """How the platform responded; null if no request was sent to it."""
    doc_url: str
    """The URL of the documentation of the code; a path if the service's own URL is not configured."""


class Answer(Model):
    """The fields that successful and failed calls of a scraper have in common."""

    request_id: str = Field(pattern=REQUEST_ID)
    """The id of the call in the service's log. The `X-Request-Id` header has the same value."""
    status: Status
    """The result of the call."""
    meta: Meta
    """The client, the scraper, whether the call is billable, and its duration."""


class Success(Answer, Generic[DataT]):
    """The response body of a successful call: the target's data and its envelope."""

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Return the name of the model for one type of data: ``RetailListingSuccess``."""
        return f"{schema_name(params[0])}{cls.__name__}"

    success: Literal[True]
    """Whether there is data."""
    data: DataT
    """The scraped record. Values that the platform does not show are null, "" or []."""
    error: None
    """Always null."""


class Failure(Answer):
    """The response body of a failed call: the error and its envelope."""

    success: Literal[False]
    """Whether there is data."""
    data: None
    """Always null."""
    error: Error
    """Why the call failed, and what to do."""


class Accepted(Answer):
    """The response body of an asynchronous call that waits or runs."""

    status: AcceptedStatus  # type: ignore[assignment]  # a narrower model
    """The status of the call."""
    success: Literal[False]
    """Whether there is data."""
    data: None
    """Always null."""
    error: None
    """Always null."""


class Completed(Answer):
    """The response body of an asynchronous call that succeeded. It is the same as for a synchronous call."""

    success: Literal[True]
    """Whether there is data."""
    data: dict[str, Any]
    """The scraped record: the `data` of the scraper that `meta.scraper` names."""
    error: None
    """Always null."""


class CallCounts(Model):
    """The numbers of a client's asynchronous calls by state."""

    waiting: int
    """Calls that have not started."""
    running: int
    """Calls that have started and have no response."""
    done: int
    """Calls with a stored response."""


class CallEntry(Model):
    """An asynchronous call of the client."""

    request_id: str = Field(pattern=REQUEST_ID)
    """The id of the call. `/v1/calls/<request_id>` is its URL."""
    scraper: str
    """The scraper's primary name."""
    params: dict[str, Any]
    """The params of the call, including defaults."""
    state: Literal["waiting", "running", "done"]
    """`done`: the call has a response."""
    accepted_at: str = Field(json_schema_extra={"format": "date-time"})
    """When the call was accepted."""
    completed_at: str | None = Field(json_schema_extra={"format": "date-time"})
    """When the call got its response; null if it has none."""
    code: str | None
    """`OK` or the code of the call's error; null if it has no response."""
    http_status: int | None
    """The HTTP status of the response; null if there is none."""
    billable: bool
    """Whether the call is billed."""
    expires_at: str = Field(json_schema_extra={"format": "date-time"})
    """When the stored response is deleted, or when a waiting call ends with the error `OVERLOADED`."""


class CallList(Model):
    """A page of the client's asynchronous calls, the newest first."""

    client_id: str
    """The client that owns the API key of this request."""
    counts: CallCounts
    """The numbers of all calls of the client."""
    calls: list[CallEntry]
    """The calls of this page."""
    next_cursor: str | None
    """The value of `cursor` for the next page; null on the last page."""


class ScraperEntry(Model):
    """A scraper in the catalogue."""

    name: str
    """The scraper's name in the URL."""
    aliases: list[str]
    """Other names under which the scraper can be called."""
    platform: str
    """The platform that it scrapes."""
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
    """Calls whose record lacks the data of an optional source, including repeated calls with a stored response."""
    outcomes: dict[str, int]
    """The number of calls by code. `CLIENT_GONE`: the client disconnected or deleted the call before its end."""


class QuotaReport(Model):
    """The state of a client's quota in the current month (UTC)."""

    limit: int
    """The maximum number of billable calls of the client in a month, with all of its keys together."""
    used: int
    """The billable calls of this month."""
    reserved: int
    """Calls in progress. When such a call is completed, it counts as used if it is billable."""
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
    """Calls that the responding process could not store yet, because the store is unavailable. They are not included in
    the other numbers. Usually 0."""
    quota: QuotaReport | None
    """The client's quota; null if it has none. It does not depend on `from` and `to`."""
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
