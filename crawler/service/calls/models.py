"""The envelope of the endpoint's responses as models, from which the OpenAPI document is generated.

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


class Meta(Model):
    """Metadata of the call."""

    client_id: str
    """The client that owns the API key; "" if the call has no valid key."""
    scraper: str
    """The scraper's primary name, even if the call used an alias; "" if the route does not belong to a scraper."""
    billable: bool
    """Whether the call is billed: true if there is data."""
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
    """The HTTP status of the platform's response, if the error depends on the response; null otherwise."""
    reason: str
    """A short identifier of the cause, such as `timeout`; "" if there is none."""


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
    """Seconds to wait before a retry; null if they are not known. The `Retry-After` header has the same value."""
    upstream: Upstream | None
    """How the platform responded, and the cause of the error; null if neither is known."""
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
