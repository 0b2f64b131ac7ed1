"""The envelope of the endpoint's responses: their status, headers and body, and the models that describe it.

The service does not use these models to build responses, because validation would take more time than everything else
that the endpoint does. Instead, tests validate the responses of a running service against the OpenAPI document.
"""

from __future__ import annotations

import base64
import io
import re
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

import orjson
from pydantic import Field

from crawler.errors import AuthError, ErrorType, MethodNotAllowed, ScrapeError, ServiceError, documented
from crawler.platforms.model import Model, schema_name
from crawler.targets.warning import LIMIT, UNPROVEN, UNREAD, OutcomeWarning

if TYPE_CHECKING:
    from crawler.outputs.selection import Selection
    from crawler.service.keys import Holder

MAX_UNREAD = 8
"""Maximum number of unread parts in the headers of a response. Reverse proxies limit the size of headers."""

_CROCKFORD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789ABCDEFGHJKMNPQRSTVWXYZ")
"""Translates the base 32 digits of RFC 4648 to the digits of a ULID."""
_BYTES, _DIGITS = 20, 26
"""The number of bytes to encode (a multiple of 5, so that base 32 needs no padding), and of digits of a ULID."""
_TOKEN = re.compile(r"[A-Za-z*][\w!#$%&'*+.^`|~:/-]*", re.ASCII)


class _RequestIds:
    """Generates ids that sort in the order in which they were generated, also within a millisecond."""

    def __init__(self) -> None:
        self._last = 0

    def new(self) -> str:
        """Generate ``req_`` and a ULID: 26 characters that sort by time."""
        number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
        if number >> 80 <= self._last >> 80:
            # The specification of ULIDs adds 1 to the last id. A random number in addition keeps ids hard to guess.
            number = self._last + 1 + secrets.randbits(64)
        self._last = number
        digits = base64.b32encode(number.to_bytes(_BYTES))[-_DIGITS:]
        return "req_" + digits.translate(_CROCKFORD).decode()


new_request_id = _RequestIds().new
"""Generate the id of a call. Ids sort by the time of the call."""


@dataclass
class Call:
    """A call in progress: the values for the envelope's ``meta`` and for the log line."""

    request_id: str = field(default_factory=new_request_id)
    client_id: str = ""
    scraper: str = ""
    method: str = ""
    path: str = ""
    """The path of the URL, without the query string."""
    request_headers: Mapping[str, str] = field(default_factory=dict)
    """The headers of the request, by their lower-case names."""
    content: IO[bytes] = field(default_factory=io.BytesIO)
    """The body of the request."""
    holder: Holder = field(init=False)
    """The client that owns the API key, once the key is checked."""
    fields: Selection | None = None
    """The fields of the record that the response contains. None: all fields."""
    target: str = ""
    """The params that differ from their defaults, as short text. Empty if they are invalid."""
    note: str = ""
    """A sentence about numbers in the request that were reduced to their limits, for the message of a successful
    response. "": there are none."""
    service_url: str = ""
    """The setting ``SERVICE_URL``, which precedes the path in links. "": links are paths."""
    started: float = field(default_factory=time.monotonic)
    wait: int | None = None
    """Seconds of the ``Prefer: wait`` header, limited to the valid range; None if the header is missing."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers to add to the response, whether the call succeeds or fails."""
    is_counted: bool = True
    """Whether the response counts in usage and metrics."""

    @property
    def duration_ms(self) -> int:
        """Milliseconds since the call arrived."""
        return round((time.monotonic() - self.started) * 1000)


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes
    code: str = "OK"
    billable: bool = False
    partial: bool = False
    """Whether the response has a record that lacks the data of an optional source, or an unread part of a payload."""


@dataclass(frozen=True)
class StreamedAnswer(Answer):
    """An HTTP response whose body is sent in pieces. ``pieces`` is None for the method HEAD."""

    pieces: AsyncIterator[bytes] | None = None


def success(call: Call, data: dict[str, Any], warnings: tuple[OutcomeWarning, ...]) -> Answer:
    """Return the response of a successful call. It is billable, even if the record is partial.

    ``warnings``: the optional sources whose data is missing, and the parts of payloads that were unread.
    """
    headers, message = _headers(call), "The scrape is complete."
    if warnings:
        headers["X-Partial"] = partial_header(warnings)
        message = partial_message(warnings)
    status = {"code": "OK", "message": f"{message} {call.note}".rstrip(), "retryable": False}
    if call.fields is not None:
        data = call.fields.row(data)
    body = _body(call, status, data, None, billable=True)
    return Answer(200, headers, body, billable=True, partial=bool(warnings))


def partial_message(warnings: Sequence[OutcomeWarning]) -> str:
    """Return the status message of a partial record: incomplete listings, failed sources, and the first unread parts.

    >>> from crawler.reading.contract import Unread
    >>> partial_message([OutcomeWarning.of_unread("listing", Unread("rows[].rating", "missing", 40, 40))])
    'Could not be read: rows[].rating: missing in 40 of 40.'
    >>> partial_message([OutcomeWarning("video", "BLOCKED_BY_POLICY", "limit", Unread("posts[]", "limit", 15, 30))])
    'Completed without: video for 15 of 30 posts[].'
    >>> unproven = Unread("rows[].price", "unproven", 0, 0, names=("min_price", "max_price"))
    >>> partial_message([OutcomeWarning.of_unread("listing", unproven)])
    'Not confirmed by the page: min_price, max_price.'
    """
    failed, unread, more = _shown(warnings)
    sentences = [f"Incomplete: {each.source}, {each.coverage}." for each in failed if each.coverage is not None]
    missing = [each.source for each in failed if each.coverage is None]
    limited = ((each.source, each.unread) for each in unread if each.unread and each.reason == LIMIT)
    missing += [f"{source} for {part.rows} of {part.of} {part.path}" for source, part in limited]
    if missing:
        sentences.append(f"Completed without: {', '.join(dict.fromkeys(missing))}.")
    if params := [name for each in unread if each.unread and each.reason == UNPROVEN for name in each.unread.names]:
        sentences.append(f"Not confirmed by the page: {', '.join(dict.fromkeys(params))}.")
    if parts := [str(each.unread) for each in unread if each.reason == UNREAD]:
        parts += [f"and {more} more"] * bool(more)
        sentences.append(f"Could not be read: {'; '.join(parts)}.")
    return " ".join(sentences)


def partial_header(warnings: Sequence[OutcomeWarning]) -> str:
    """Return the value of ``X-Partial``: an RFC 9651 list. Each warning is one item: its source, with parameters.

    At most ``MAX_UNREAD`` unread parts of payloads are listed. If there are others, the last item has their number as
    its parameter ``more``.

    >>> partial_header([OutcomeWarning("timeline", "EXTRACTION_FAILED", "stale_query_id")])
    'timeline; reason=stale_query_id; code=EXTRACTION_FAILED'
    >>> from crawler.platforms.coverage import Coverage
    >>> partial_header([OutcomeWarning.of_coverage("listing", Coverage(900, 443, ("no_end",)))])
    'listing; reason=incomplete; code=EXTRACTION_FAILED; expected=900; collected=443; why="no_end"'
    >>> from crawler.reading.contract import Unread
    >>> partial_header([OutcomeWarning.of_unread("listing", Unread("rows[].rating", "missing", 40, 40))])
    'listing; reason=unread; code=EXTRACTION_FAILED; path="rows[].rating"; cause=missing; rows=40; of=40'
    """
    failed, unread, more = _shown(warnings)
    items = [_item(each) for each in (*failed, *unread)]
    return ", ".join(items) + (f"; more={more}" if more else "")


def _shown(warnings: Sequence[OutcomeWarning]) -> tuple[list[OutcomeWarning], list[OutcomeWarning], int]:
    """Return the warnings without an unread part, those whose unread parts are listed, and the number of the others.

    Unread parts whose rows are lost are listed first.
    """
    failed = [each for each in warnings if each.unread is None]
    unread = [each for each in warnings if each.unread is not None]
    unread.sort(key=lambda each: not (each.unread and each.unread.loses_rows))
    return failed, unread[:MAX_UNREAD], max(0, len(unread) - MAX_UNREAD)


def _item(warning: OutcomeWarning) -> str:
    source, code, reason, unread, coverage = warning
    item = f"{_bare_item(source)}; reason={_bare_item(reason)}; code={_bare_item(code)}"
    if coverage is not None:
        item += "" if coverage.expected is None else f"; expected={coverage.expected}"
        return f"{item}; collected={coverage.collected}; why={_string(' '.join(coverage.reasons))}"
    if unread is None:
        return item
    path = _string(unread.path.replace("…", "..."))
    item += f"; path={path}; cause={unread.cause}; rows={unread.rows}; of={unread.of}"
    return f"{item}; loses_rows" if unread.loses_rows else item


def _bare_item(text: str) -> str:
    """Return the text as an RFC 9651 token if it is a valid token, else as a quoted string."""
    return text if _TOKEN.fullmatch(text) else _string(text)


def _string(text: str) -> str:
    """Return the text as an RFC 9651 string. Characters other than spaces and visible ASCII are replaced by "?"."""
    visible = re.sub(r"[^ -~]", "?", text)
    return '"' + re.sub(r'(["\\])', r"\\\1", visible) + '"'


def failure(call: Call, error: ScrapeError) -> Answer:
    """Return the response of a failed call. The error determines the status and the headers."""
    status = {"code": error.code, "message": error.message, "retryable": error.retryable}
    headers = _headers(call)
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, AuthError):
        headers["WWW-Authenticate"] = 'ApiKey realm="scrapers", header="X-API-Key", Bearer realm="scrapers"'
    if isinstance(error, MethodNotAllowed):
        headers["Allow"] = error.allowed
    return Answer(error.http_status, headers, _body(call, status, None, error.as_dict(call.service_url)), error.code)


def unexpected() -> ServiceError:
    """Return the error for a call that failed with an unexpected exception. The caller logs the exception."""
    return ServiceError("Internal error; the log of the service has the details under this request's id.")


def raw_bytes(answer: Answer) -> bytes:
    """Return a complete HTTP response as bytes, which states that the connection is closed after it.

    Used to refuse a request before Twisted has received it completely.
    """
    headers = answer.headers | {"Content-Length": str(len(answer.body)), "Connection": "close"}
    head = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return head.encode() + b"\r\n" + answer.body


def json_response(status: int, value: Any, call: Call) -> Answer:
    """Return a JSON response without an envelope, for routes that are not scrapers.

    ``value`` is JSON data, or JSON that is already encoded as bytes.
    """
    return Answer(status, _headers(call), value if isinstance(value, bytes) else orjson.dumps(value))


def empty_response(call: Call) -> Answer:
    """Return the response of a successful request without a response body: status 204."""
    headers = _headers(call)
    del headers["Content-Type"]
    return Answer(HTTPStatus.NO_CONTENT, headers, b"")


def raw_response(
    call: Call, media_type: str, body: bytes, headers: dict[str, str] | None = None, status: int = 200
) -> Answer:
    """Return a response with a given body, such as a page of the documentation or the metrics."""
    return Answer(status, _headers(call) | {"Content-Type": media_type} | (headers or {}), body)


def _headers(call: Call) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "X-Request-Id": call.request_id,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    headers |= call.headers
    if call.wait is not None:
        headers["Preference-Applied"] = f"wait={call.wait}"
    return headers


def _body(
    call: Call,
    status: dict[str, Any],
    data: dict[str, Any] | None,
    error: dict[str, Any] | None,
    *,
    billable: bool = False,
) -> bytes:
    envelope = {
        "request_id": call.request_id,
        "success": data is not None,
        "status": status,
        "data": data,
        "error": error,
        "meta": {
            "client_id": call.client_id,
            "scraper": call.scraper,
            "billable": billable,
            "duration_ms": call.duration_ms,
        },
    }
    return orjson.dumps(envelope)


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


class Envelope(Model):
    """The fields that successful and failed calls of a scraper have in common."""

    request_id: str = Field(pattern=REQUEST_ID)
    """The id of the call in the service's log. The `X-Request-Id` header has the same value."""
    status: Status
    """The result of the call."""
    meta: Meta
    """The client, the scraper, whether the call is billable, and its duration."""


class Success(Envelope, Generic[DataT]):
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


class Failure(Envelope):
    """The response body of a failed call: the error and its envelope."""

    success: Literal[False]
    """Whether there is data."""
    data: None
    """Always null."""
    error: Error
    """Why the call failed, and what to do."""
