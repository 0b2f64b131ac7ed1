"""All errors of targets and calls, as one tree of typed errors.

::

    ScrapeError
    ├── RequestError              the caller's request: correct it, then send it again
    │   ├── InvalidJson               INVALID_JSON               400
    │   ├── InvalidRequest            INVALID_REQUEST            400
    │   ├── ScraperNotFound           SCRAPER_NOT_FOUND          404
    │   ├── MethodNotAllowed          METHOD_NOT_ALLOWED         405
    │   ├── IdempotencyInProgress     IDEMPOTENCY_IN_PROGRESS    409  retryable
    │   ├── PayloadTooLarge           PAYLOAD_TOO_LARGE          413
    │   ├── UnsupportedMediaType      UNSUPPORTED_MEDIA_TYPE     415
    │   ├── BlockedByPolicy           BLOCKED_BY_POLICY          422
    │   ├── ItemDropped               ITEM_DROPPED               422
    │   ├── IdempotencyMismatch       IDEMPOTENCY_MISMATCH       422
    │   ├── RateLimited               RATE_LIMITED               429  retryable
    │   └── ConcurrencyLimited        CONCURRENCY_LIMITED        429  retryable
    ├── AuthError                 the caller's key
    │   ├── MissingApiKey             MISSING_API_KEY            401
    │   └── InvalidApiKey             INVALID_API_KEY            401
    ├── TargetError               the target itself: a retry changes nothing
    │   ├── TargetNotFound            TARGET_NOT_FOUND           404
    │   └── TargetRestricted          TARGET_RESTRICTED          422
    ├── UpstreamError             UPSTREAM_ERROR             502  retryable
    │   ├── UpstreamBlocked           UPSTREAM_BLOCKED           502  retryable
    │   ├── ExtractionFailed          EXTRACTION_FAILED          502
    │   ├── UpstreamRateLimited       UPSTREAM_RATE_LIMITED      503  retryable
    │   ├── CircuitOpen               CIRCUIT_OPEN               503  retryable
    │   └── UpstreamTimeout           UPSTREAM_TIMEOUT           504  retryable
    └── ServiceError              INTERNAL_ERROR             500  retryable
        ├── Overloaded                OVERLOADED                 503  retryable
        └── ShuttingDown              SHUTTING_DOWN              503  retryable

The page objects, spiders, middlewares and the endpoint raise only these errors. Any other exception is a bug: the
tracker and the endpoint convert it to ``INTERNAL_ERROR``. The errors derive from web-poet's ``PageObjectAction``, so
that a fixture can store the failure of a page like its data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, TypedDict

from web_poet.exceptions import PageObjectAction

ErrorType = Literal["auth", "request", "target", "upstream", "service"]


class Detail(TypedDict):
    """One invalid value: its path (keys and indexes), a message and pydantic's type of the error."""

    loc: list[str | int]
    msg: str
    type: str


class ScrapeError(PageObjectAction):
    """The base of all errors, with the attributes that callers, feeds and logs receive.

    ``details`` name the invalid request fields or payload paths, ``retry_after`` is in seconds, ``upstream_status`` is
    the platform's HTTP status and ``reason`` a machine-readable slug for the cause.
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

    def as_dict(self) -> dict[str, Any]:
        """Return the envelope's ``error``: code, type, message, details, retry_after, upstream, doc_url."""
        upstream = None
        if self.upstream_status is not None or self.reason:
            upstream = {"status": self.upstream_status, "reason": self.reason}
        return {
            "code": self.code,
            "type": self.type,
            "message": self.message,
            "details": self.details,
            "retry_after": self.retry_after,
            "upstream": upstream,
            "doc_url": f"/docs#{self.code}",
        }


class RequestError(ScrapeError):
    """The base of errors of the caller's request."""

    type = "request"


class InvalidJson(RequestError):
    """Raised when a request body is not one JSON object without repeated keys."""

    code = "INVALID_JSON"
    http_status = 400


class InvalidRequest(RequestError):
    """Raised when params are missing, unknown, mistyped, out of bounds or contradictory, before any request is made."""

    code = "INVALID_REQUEST"
    http_status = 400


class ScraperNotFound(RequestError):
    """Raised when a route or scraper does not exist."""

    code = "SCRAPER_NOT_FOUND"
    http_status = 404


class MethodNotAllowed(RequestError):
    """Raised when a route does not accept the HTTP method."""

    code = "METHOD_NOT_ALLOWED"
    http_status = 405

    def __init__(self, message: str, *, allowed: str) -> None:
        super().__init__(message)
        self.allowed = allowed


class PayloadTooLarge(RequestError):
    """Raised when the declared or received size of a request body is over the limit."""

    code = "PAYLOAD_TOO_LARGE"
    http_status = 413


class UnsupportedMediaType(RequestError):
    """Raised when a request body is not ``application/json``."""

    code = "UNSUPPORTED_MEDIA_TYPE"
    http_status = 415


class BlockedByPolicy(RequestError):
    """Raised when the operator's policy (robots.txt, allowed origins) forbids the download."""

    code = "BLOCKED_BY_POLICY"
    http_status = 422


class ItemDropped(RequestError):
    """Raised when an item pipeline dropped the target's item. The message contains the pipeline's reason."""

    code = "ITEM_DROPPED"
    http_status = 422


class IdempotencyInProgress(RequestError):
    """Raised when the call that first carried this ``Idempotency-Key`` is still running."""

    code = "IDEMPOTENCY_IN_PROGRESS"
    http_status = 409
    retryable = True


class IdempotencyMismatch(RequestError):
    """Raised when an ``Idempotency-Key`` was used before, for another scraper or other params."""

    code = "IDEMPOTENCY_MISMATCH"
    http_status = 422


class RateLimited(RequestError):
    """Raised when the API key is over its rate limit."""

    code = "RATE_LIMITED"
    http_status = 429
    retryable = True


class ConcurrencyLimited(RequestError):
    """Raised when the API key has too many calls in flight."""

    code = "CONCURRENCY_LIMITED"
    http_status = 429
    retryable = True


class AuthError(ScrapeError):
    """The base of errors of the API key."""

    type = "auth"
    http_status = 401


class MissingApiKey(AuthError):
    """Raised when a call carries no ``X-API-Key``."""

    code = "MISSING_API_KEY"


class InvalidApiKey(AuthError):
    """Raised when a call's ``X-API-Key`` is unknown or revoked."""

    code = "INVALID_API_KEY"


class TargetError(ScrapeError):
    """The base of errors of the target itself."""

    type = "target"


class TargetNotFound(TargetError):
    """Raised when the target does not exist on the platform, or is a page of another kind."""

    code = "TARGET_NOT_FOUND"
    http_status = 404


class TargetRestricted(TargetError):
    """Raised when the target exists but is not public: suspended, age or region restricted, behind a login wall."""

    code = "TARGET_RESTRICTED"
    http_status = 422


class UpstreamError(ScrapeError):
    """Raised when the platform failed: 5xx or no connection after all retries."""

    # Also the base of all upstream errors.
    type = "upstream"
    code = "UPSTREAM_ERROR"
    http_status = 502
    retryable = True


class UpstreamBlocked(UpstreamError):
    """Raised when the platform blocked the request: login wall, challenge, empty body. May open the circuit breaker."""

    code = "UPSTREAM_BLOCKED"


class ExtractionFailed(UpstreamError):
    """Raised when a page has an unknown structure, or shows another target. ``details`` contain the paths."""

    code = "EXTRACTION_FAILED"
    retryable = False


class UpstreamRateLimited(UpstreamError):
    """Raised when the platform limits the request rate."""

    code = "UPSTREAM_RATE_LIMITED"
    http_status = 503


class CircuitOpen(UpstreamError):
    """Raised without a download while a platform's circuit breaker is open."""

    code = "CIRCUIT_OPEN"
    http_status = 503


class UpstreamTimeout(UpstreamError):
    """Raised when the target's deadline passed."""

    code = "UPSTREAM_TIMEOUT"
    http_status = 504


class ServiceError(ScrapeError):
    """Raised for a bug in the project. The message has no traceback."""

    # Also the base of all service errors.
    type = "service"
    code = "INTERNAL_ERROR"
    http_status = 500
    retryable = True


class Overloaded(ServiceError):
    """Raised when the queue is full, or the call cannot start before its deadline."""

    code = "OVERLOADED"
    http_status = 503


class ShuttingDown(ServiceError):
    """Raised when the service shuts down, or a crawler closed before the target was completed."""

    code = "SHUTTING_DOWN"
    http_status = 503


def documented() -> list[type[ScrapeError]]:
    """Return all errors with a code, in the order of the tree."""

    def below(kind: type[ScrapeError]) -> Iterator[type[ScrapeError]]:
        if "code" in vars(kind):
            yield kind
        for child in kind.__subclasses__():
            if child.__module__ == __name__:  # subclasses in other modules share the code of their base
                yield from below(child)

    return list(below(ScrapeError))
