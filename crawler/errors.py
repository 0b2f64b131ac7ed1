"""The typed errors with which targets and calls can fail.

A class with a ``code`` of its own is one line of ``documented()``, from which ``/docs``, ``/llms.txt``, the OpenAPI
document and the table in ``docs/errors.md`` are made. To add an error, add its class with a docstring, raise it, and
add a state that causes it to ``tests/service/states.py``; then run ``python -m tests.reference_tables`` and ``python -m
tests.service.examples``.

A failed target or call has one of these errors. The tracker converts the exceptions of downloads and item pipelines to
them (``targets/tracker.py``). Any other exception is a bug: the tracker and the endpoint convert it to
``INTERNAL_ERROR``. The errors derive from web-poet's ``PageObjectAction``, so that a fixture can have an error as the
expected result of a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, TypedDict

from web_poet.exceptions import PageObjectAction

ErrorType = Literal["auth", "request", "target", "upstream", "service"]
Alarm = Literal["layout", "shell", ""]
"""The alert that counts an error, beside the alerts that count its code (docs/alerts.md).

``layout``: the platform's pages may have a new layout. ``shell``: the visitor is throttled, or the layout is new. "":
neither.
"""

READABLE_REASONS = frozenset(
    {
        "filter_ignored",
        "null_post",
        "null_rows",
        "null_user",
    }
)
"""Reasons of an ``ExtractionFailed``: the result of the platform's query is null, and nothing says why; or the platform
ignored a filter.

Nothing in the response is unread: it says nothing about the layout, nor about the target.
"""
OTHER_FORM_REASONS = frozenset(
    {
        "bad_request",
        "incomplete",
        "null_post",
        "stub",
        "unknown_alert",
        "unknown_form",
    }
)
"""Reasons of an ``ExtractionFailed``: the response is readable, but is not the form of answer that has the data.

A second download would return the same: a message without a recorded meaning, a thin page, a refused form of request.
Instead of a null post, the post's embed page is requested.
"""
SHELL = "throttled_shell"
"""Reason of an ``UpstreamRateLimited``: the right page without the result of any query.

Platforms send such pages to visitors who request too much. A new layout without a known mark would look the same.
"""


class Detail(TypedDict):
    """An invalid value: its path (keys and indexes), a message, and an identifier of the problem, as in pydantic."""

    loc: list[str | int]
    msg: str
    type: str


def quoted(mark: str, *loc: str | int) -> list[Detail]:
    """Return the details of an error that rests on a mark: what the platform states, and where. It is cut if long."""
    return [{"loc": list(loc), "msg": " ".join(mark.split())[:300], "type": "mark"}]


class ScrapeError(PageObjectAction):
    """The base class of all typed errors.

    ``details``: the invalid values in the request or in the platform's payload. ``retry_after``: seconds to wait before
    a retry, None if not known. ``upstream_status``: the HTTP status of the platform's response, None without one.
    ``reason``: a short identifier of the cause, for programs; "" without one.
    """

    code: ClassVar[str]
    type: ClassVar[ErrorType]
    http_status: ClassVar[int]
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        details: list[Detail] | None = None,
        retry_after: int | None = None,
        upstream_status: int | None = None,
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or []
        self.retry_after = retry_after
        self.upstream_status = upstream_status
        self.reason = reason

    @property
    def alarm(self) -> Alarm:
        """The alert that counts the error."""
        return ""

    def as_dict(self, service_url: str = "") -> dict[str, Any]:
        """Return the object ``error`` of the envelope. ``service_url``: the setting ``SERVICE_URL``, "" if not set."""
        is_known = self.upstream_status is not None or self.reason
        upstream = {"status": self.upstream_status, "reason": self.reason} if is_known else None
        return {
            "code": self.code,
            "type": self.type,
            "message": self.message,
            "details": self.details,
            "retry_after": self.retry_after,
            "upstream": upstream,
            "doc_url": f"{service_url}/docs#{self.code}",
        }


class RequestError(ScrapeError):
    """The base class of errors in the caller's request."""

    type = "request"


class InvalidJson(RequestError):
    """Raised when a request body is not a JSON object, repeats a key, or is nested too deeply."""

    code = "INVALID_JSON"
    http_status = 400


class InvalidRequest(RequestError):
    """Raised when a param, query parameter or header is missing, unknown or invalid, or params contradict each other.

    Also for a URL of another site or kind of page, for malformed HTTP, and for an upload without a valid target. No
    request to the platform is made, except for a cursor, which only the platform can reject.
    """

    code = "INVALID_REQUEST"
    http_status = 400

    @classmethod
    def of(cls, name: str, problem: str) -> InvalidRequest:
        """Return the error of one value. ``name``: the param, the query parameter or the header."""
        return cls(f"{name}: {problem}", details=[{"loc": [name], "msg": problem, "type": "value_error"}])


class ScraperNotFound(RequestError):
    """Raised when a route or a scraper does not exist."""

    code = "SCRAPER_NOT_FOUND"
    http_status = 404


class JobNotFound(RequestError):
    """Raised when a client has no job with this id: it is unknown, was deleted, or has expired."""

    code = "JOB_NOT_FOUND"
    http_status = 404


class MethodNotAllowed(RequestError):
    """Raised when a route does not accept the HTTP method of a request."""

    code = "METHOD_NOT_ALLOWED"
    http_status = 405

    def __init__(self, message: str, *, allowed: str) -> None:
        super().__init__(message)
        self.allowed = allowed


class PayloadTooLarge(RequestError):
    """Raised when a request body is larger than 64 KiB, or a job's upload is larger than ``SERVICE_MAX_JOB_BYTES``."""

    code = "PAYLOAD_TOO_LARGE"
    http_status = 413


class UnsupportedMediaType(RequestError):
    """Raised when the ``Content-Type`` of a request body is not accepted, or the body is compressed.

    Calls accept ``application/json``. Uploads of jobs also accept tables and lists of links.
    """

    code = "UNSUPPORTED_MEDIA_TYPE"
    http_status = 415


class ExpectationFailed(RequestError):
    """Raised when the header ``Expect`` of a request is not ``100-continue``."""

    code = "EXPECTATION_FAILED"
    http_status = 417


class BlockedByPolicy(RequestError):
    """Raised when a policy forbids the download: robots.txt, Zyte API's rules, or a limit that a crawl's user set.

    robots.txt counts with ``ROBOTSTXT_OBEY``. With ``SANDBOX``, a request that would leave this machine is forbidden.
    Reasons: ``zyte_forbidden``, and ``max_requests`` for the limit of an exhaustive crawl.
    """

    code = "BLOCKED_BY_POLICY"
    http_status = 422


class ItemDropped(RequestError):
    """Raised when an item pipeline has dropped the target's item. The message contains the pipeline's reason."""

    code = "ITEM_DROPPED"
    http_status = 422


class IdempotencyInProgress(RequestError):
    """Raised when an earlier upload with the same ``Idempotency-Key`` has just ended."""

    code = "IDEMPOTENCY_IN_PROGRESS"
    http_status = 409
    retryable = True


class JobNotDone(RequestError):
    """Raised when a run of a job cannot begin, because the newest run of the same name is not done."""

    code = "JOB_NOT_DONE"
    http_status = 409
    retryable = True


class IdempotencyMismatch(RequestError):
    """Raised when the ``Idempotency-Key`` was used for another upload."""

    code = "IDEMPOTENCY_MISMATCH"
    http_status = 422


class RateLimited(RequestError):
    """Raised when a call exceeds the rate limit of its API key."""

    code = "RATE_LIMITED"
    http_status = 429
    retryable = True


class ConcurrencyLimited(RequestError):
    """Raised when an API key has too many calls in flight, or a client has too many unfinished jobs or uploads."""

    code = "CONCURRENCY_LIMITED"
    http_status = 429
    retryable = True


class QuotaExceeded(RequestError):
    """Raised when a client's records of this month are used up.

    ``retry_after`` is the number of seconds until the next month (UTC).
    """

    code = "QUOTA_EXCEEDED"
    http_status = 429
    retryable = True


class AuthError(ScrapeError):
    """The base class of errors of the caller's API key."""

    type = "auth"
    http_status = 401


class MissingApiKey(AuthError):
    """Raised when a request has no API key: neither ``X-API-Key`` nor ``Authorization: Bearer``."""

    code = "MISSING_API_KEY"


class InvalidApiKey(AuthError):
    """Raised when the API key of a request is unknown or revoked."""

    code = "INVALID_API_KEY"


class TargetError(ScrapeError):
    """The base class of errors whose cause is the target itself."""

    type = "target"


class TargetNotFound(TargetError):
    """Raised when the target does not exist on the platform, or its URL leads to another kind of page."""

    code = "TARGET_NOT_FOUND"
    http_status = 404


class TargetRestricted(TargetError):
    """Raised when the target exists but is not public: suspended, private, or restricted by age or region.

    ``upstream.reason`` is the cause.
    """

    code = "TARGET_RESTRICTED"
    http_status = 422


class UpstreamError(ScrapeError):
    """Raised when the platform responds with a server error (5xx) or cannot be reached, even after retries.

    Also raised for a body that is damaged or too large, for too many redirects, and if an egress failed (reason
    ``egress_failed``).
    """

    # UpstreamError is also the base class of all errors of the platform.
    type = "upstream"
    code = "UPSTREAM_ERROR"
    http_status = 502
    retryable = True


class UpstreamBlocked(UpstreamError):
    """Raised when the platform refuses the request: a challenge, a login wall, an empty body, a status such as 403."""

    code = "UPSTREAM_BLOCKED"


class ExtractionFailed(UpstreamError):
    """Raised when a page has an unknown structure, shows another target, or lacks the data without saying why.

    ``details`` has the paths in the page, or the text that the page shows instead of the data.
    """

    code = "EXTRACTION_FAILED"
    retryable = False

    @property
    def alarm(self) -> Alarm:
        return "" if self.reason in READABLE_REASONS | OTHER_FORM_REASONS else "layout"


class UpstreamRateLimited(UpstreamError):
    """Raised when the platform responds that it has received too many requests, or sends a page without any data.

    The reason of such a page is ``throttled_shell``.
    """

    code = "UPSTREAM_RATE_LIMITED"
    http_status = 503

    @property
    def alarm(self) -> Alarm:
        return "shell" if self.reason == SHELL else ""


class CircuitOpen(UpstreamError):
    """Raised when earlier requests were blocked or limited, or all egresses failed, so none is sent for some time.

    Reason ``refused_before``: the platform has refused this target through an egress that is suspended now.
    """

    code = "CIRCUIT_OPEN"
    http_status = 503


DEADLINE = "deadline"
"""Reason of an ``UpstreamTimeout``: the target's deadline passed after a request had been sent to the platform."""


class UpstreamTimeout(UpstreamError):
    """Raised when the platform does not respond in time, or the target's deadline passes before its outcome.

    Reasons: ``timeout`` for a download; ``deadline`` if a request had been sent to the platform, and ``no_turn`` if no
    download slot became free. ``upstream`` is null if no request was sent.
    """

    code = "UPSTREAM_TIMEOUT"
    http_status = 504


class BrowserFailed(UpstreamError):
    """Raised when the browser or its page crashed, or reported another error, while the page was loaded.

    The reason is ``browser_gone`` for a crash. Else it is ``browser_error``, and ``details`` quotes the error.
    """


class EgressFailed(UpstreamError):
    """Raised when the operator's own proxy or address failed before the platform responded, or is suspended."""


class ServiceError(ScrapeError):
    """Raised when the service itself fails, usually because of a bug. The log of the service has the details.

    Also raised if more than ``JOB_EXITS`` processes exited while they ran the target, and if Zyte API does not accept
    the key (reason ``zyte_account``).
    """

    # ServiceError is also the base class of all errors of the service.
    type = "service"
    code = "INTERNAL_ERROR"
    http_status = 500
    retryable = True


class Overloaded(ServiceError):
    """Raised when too many calls, connections or uploads are open, or a call cannot get a download slot in time."""

    code = "OVERLOADED"
    http_status = 503


class StoreUnavailable(ServiceError):
    """Raised when the service cannot read or write its store, or cannot read the API keys."""

    code = "STORE_UNAVAILABLE"
    http_status = 503


class ShuttingDown(ServiceError):
    """Raised when the service is shutting down, or the crawl ended before the target was completed."""

    code = "SHUTTING_DOWN"
    http_status = 503


def documented() -> list[type[ScrapeError]]:
    """Return all error classes that define a code of their own, in the order of the class tree."""

    def below(kind: type[ScrapeError]) -> Iterator[type[ScrapeError]]:
        if "code" in vars(kind):
            yield kind
        for child in kind.__subclasses__():
            if child.__module__ == __name__:  # subclasses in other modules share the code of their base
                yield from below(child)

    return list(below(ScrapeError))
