"""Every way in which a target can fail to have data, as one tree of typed errors.

::

    ScrapeError
    ├── RequestError              the caller's request: mend it, then send it again
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
    ├── TargetError               the target itself: a repeat changes nothing
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

The page objects, the spiders, the middlewares and the endpoint raise these and nothing else on purpose;
whatever else is raised is a bug of ours and becomes ``INTERNAL_ERROR`` where the tracker meets it.
The errors derive from web-poet's ``PageObjectAction``, so that a fixture stores a page's failure as it stores its data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, TypedDict

from web_poet.exceptions import PageObjectAction

ErrorType = Literal["auth", "request", "target", "upstream", "service"]


class Detail(TypedDict):
    """One thing that is wrong: where (a path of keys and indexes), what was expected, and pydantic's word for it."""

    loc: list[str | int]
    msg: str
    type: str


class ScrapeError(PageObjectAction):
    """The base: what a caller, a feed and a log are told of a failure.

    ``details`` name the places (request fields or payload paths), ``retry_after`` is in seconds,
    ``upstream_status`` is the platform's HTTP status and ``reason`` a short machine-readable word for what it did.
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
        """The envelope's ``error`` object: code, type, message, details, retry_after, upstream, doc_url."""
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
    """The request cannot be served as it was sent."""

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
    """Raised when no scraper, or no route, has the name asked for."""

    code = "SCRAPER_NOT_FOUND"
    http_status = 404


class MethodNotAllowed(RequestError):
    """Raised when a route exists, but not for this HTTP method."""

    code = "METHOD_NOT_ALLOWED"
    http_status = 405

    def __init__(self, message: str, *, allowed: str) -> None:
        super().__init__(message)
        self.allowed = allowed


class PayloadTooLarge(RequestError):
    """Raised when a request body is larger than the endpoint reads, declared or counted."""

    code = "PAYLOAD_TOO_LARGE"
    http_status = 413


class UnsupportedMediaType(RequestError):
    """Raised when a request body is not ``application/json``."""

    code = "UNSUPPORTED_MEDIA_TYPE"
    http_status = 415


class BlockedByPolicy(RequestError):
    """Raised when the operator's own policy (robots.txt, allowed origins) forbids the download."""

    code = "BLOCKED_BY_POLICY"
    http_status = 422


class ItemDropped(RequestError):
    """Raised when an item pipeline dropped the target's item: the message holds the pipeline's reason."""

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
    """Raised when this key has made more calls than it may in the time window."""

    code = "RATE_LIMITED"
    http_status = 429
    retryable = True


class ConcurrencyLimited(RequestError):
    """Raised when this key has more calls in flight than it may."""

    code = "CONCURRENCY_LIMITED"
    http_status = 429
    retryable = True


class AuthError(ScrapeError):
    """The caller is not known."""

    type = "auth"
    http_status = 401


class MissingApiKey(AuthError):
    """Raised when a call carries no ``X-API-Key``."""

    code = "MISSING_API_KEY"


class InvalidApiKey(AuthError):
    """Raised when a call's ``X-API-Key`` is unknown or revoked."""

    code = "INVALID_API_KEY"


class TargetError(ScrapeError):
    """The platform answered clearly, and the answer is no."""

    type = "target"


class TargetNotFound(TargetError):
    """Raised when the platform says that the target does not exist, or that the page is not of the asked kind."""

    code = "TARGET_NOT_FOUND"
    http_status = 404


class TargetRestricted(TargetError):
    """Raised when the target exists but is not public: suspended, age- or region-gated, behind a login."""

    code = "TARGET_RESTRICTED"
    http_status = 422


class UpstreamError(ScrapeError):
    """Raised when the platform failed: 5xx or no connection after all retries. Also the base of its kind."""

    type = "upstream"
    code = "UPSTREAM_ERROR"
    http_status = 502
    retryable = True


class UpstreamBlocked(UpstreamError):
    """Raised when the platform refused us: login page, challenge, empty body. Counts towards the circuit breaker."""

    code = "UPSTREAM_BLOCKED"


class ExtractionFailed(UpstreamError):
    """Raised when a page was fetched but not understood, or holds another target: ``details`` carry the paths."""

    code = "EXTRACTION_FAILED"
    retryable = False


class UpstreamRateLimited(UpstreamError):
    """Raised when the platform says "slow down"."""

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
    """Raised for a bug of ours; its message holds no traceback. Also the base of its kind."""

    type = "service"
    code = "INTERNAL_ERROR"
    http_status = 500
    retryable = True


class Overloaded(ServiceError):
    """Raised when the waiting line is full, or the turn cannot come before the deadline."""

    code = "OVERLOADED"
    http_status = 503


class ShuttingDown(ServiceError):
    """Raised when the service drains, or a crawler went away with the target in hand."""

    code = "SHUTTING_DOWN"
    http_status = 503


def documented() -> list[type[ScrapeError]]:
    """Every error that has a code of its own, in the order of the tree."""

    def below(kind: type[ScrapeError]) -> Iterator[type[ScrapeError]]:
        if "code" in vars(kind):
            yield kind
        for child in kind.__subclasses__():
            if child.__module__ == __name__:  # what is raised elsewhere is a kind of these, under the same code
                yield from below(child)

    return list(below(ScrapeError))
