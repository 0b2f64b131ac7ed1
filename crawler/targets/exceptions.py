"""Converts exceptions of Scrapy, Twisted and item pipelines to typed errors. Defines ``LimitReached``."""

from __future__ import annotations

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    DropItem,
    IgnoreRequest,
    ResponseDataLossError,
)
from twisted.internet.defer import AlreadyCalledError
from twisted.internet.error import ConnectError, ConnectionDone, ConnectionLost

from crawler.errors import (
    BlockedByPolicy,
    ItemDropped,
    ScrapeError,
    ServiceError,
    ShuttingDown,
    UpstreamError,
    UpstreamTimeout,
)

CAUSES: dict[type[Exception], str] = {
    CannotResolveHostError: "The platform's host name cannot be resolved: check the network and its DNS servers",
    DownloadConnectionRefusedError: "The platform's server refused the connection",
    ConnectError: "No connection to the platform's server: check the network and its firewall",
    ConnectionDone: "The connection was closed before the response was complete",
    ConnectionLost: "The connection was lost before the response was complete",
    ResponseDataLossError: "The connection was lost before the response was complete",
    DownloadCancelledError: "The download was cancelled, for example because it is larger than DOWNLOAD_MAXSIZE",
    DownloadFailedError: "The download failed before the response was complete",
    OSError: "The download failed: the system reported a network error",
}
"""Exception of a download -> the message for it. Subclasses precede their bases."""
DOWNLOAD_FAILURES: tuple[type[Exception], ...] = (
    ScrapeError,
    IgnoreRequest,
    DownloadTimeoutError,
    AlreadyCalledError,
    *CAUSES,
)
"""The exceptions of downloads that become the error of a target.

Scrapy's engine raises ``AlreadyCalledError`` if it was closed between a response and its redirect or retry.
"""


class LimitReached(BlockedByPolicy):
    """Raised when a crawl has reached a limit that its user has set.

    In a job, such a target is paused until the limit is raised.
    """


class ReleaseEnded(Exception):  # not a ScrapeError, because scrape() may catch a ScrapeError and use another source
    """Raised to end ``scrape()``, because the target already has its outcome, or was started again on another lane."""


def as_scrape_error(error: BaseException | None) -> ScrapeError:
    """Convert an exception to a typed error.

    A failed download becomes an upstream error (or the error of a policy or of the end of the crawl), a dropped item
    ``ItemDropped``, and any unknown exception ``ServiceError``.
    """
    if isinstance(error, ScrapeError):
        return error
    if isinstance(error, DropItem):
        return ItemDropped(f"The item was dropped: {error}", reason="dropped")
    if isinstance(error, DOWNLOAD_FAILURES):
        return _download_error(error)
    return ServiceError("Internal error. The log has its details under this request's id.")


def _download_error(error: Exception) -> ScrapeError:
    if isinstance(error, AlreadyCalledError):
        return ShuttingDown("The crawl ended before the target was done.")
    if isinstance(error, DownloadTimeoutError):
        return UpstreamTimeout("The platform did not respond in time.", reason="timeout")
    if not isinstance(error, IgnoreRequest):
        happened = next(text for kind, text in CAUSES.items() if isinstance(error, kind))
        reason = "cancelled" if isinstance(error, DownloadCancelledError) else "connection"
        return UpstreamError(f"{happened}.", reason=reason)
    if "robots.txt" in str(error):  # Scrapy provides no other detail of the failure
        return BlockedByPolicy("The request is forbidden by this service's policy (robots.txt).")
    return UpstreamError(f"The download was given up: {error}.", reason="given_up")  # redirect loop, decompression bomb
