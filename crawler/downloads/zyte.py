"""Support for ``ZYTE_API_KEY``: Zyte API downloads the pages, so that platforms do not see this machine's address."""

from __future__ import annotations

from scrapy import Request
from scrapy.exceptions import UsageError
from scrapy.settings import BaseSettings

from crawler.errors import (
    BlockedByPolicy,
    ScrapeError,
    ServiceError,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)


class Addon:
    """Scrapy add-on that enables scrapy-zyte-api if ``ZYTE_API_KEY`` is set."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Change the settings so that requests are sent to Zyte API. With ``SANDBOX``, none are.

        Raises:
            UsageError: the key is set, but the extra ``zyte`` is not installed, or ``PLATFORM_ORIGINS`` is set, too.
        """
        if not settings.get("ZYTE_API_KEY") or settings.getbool("SANDBOX"):
            return
        if settings.getdict("PLATFORM_ORIGINS"):
            raise UsageError("ZYTE_API_KEY and PLATFORM_ORIGINS exclude each other: Zyte API reaches no local servers")
        try:
            from scrapy_zyte_api import Addon as ZyteApi  # noqa: PLC0415  # slow, needs the extra "zyte"

            ZyteApi().update_settings(settings)
            settings["DOWNLOAD_HANDLERS"]["http"] = "crawler.downloads.zyte_handlers.HttpHandler"
            settings["DOWNLOAD_HANDLERS"]["https"] = "crawler.downloads.zyte_handlers.HttpsHandler"
        except ImportError as error:
            raise UsageError("ZYTE_API_KEY needs scrapy-zyte-api[provider]: install the extra 'zyte'") from error
        settings["DOWNLOADER_MIDDLEWARES"]["crawler.downloads.zyte.Refusals"] = (
            989  # only ThrottleMiddleware is nearer to the network than this middleware
        )


class Refusals:
    """Downloader middleware that converts error responses of Zyte API to typed errors.

    The client of Zyte API has already retried the requests for which this is useful.
    """

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Raise the typed error for an error response of Zyte API. Ignore other exceptions."""
        from zyte_api import RequestError  # noqa: PLC0415  # needs the extra "zyte"

        if isinstance(exception, RequestError):
            raise refusal(exception.status) from exception


def refusal(status: int) -> ScrapeError:
    """Return the typed error for an HTTP status of Zyte API itself (not of the platform).

    >>> refusal(520).code, refusal(429).code, refusal(401).code
    ('UPSTREAM_BLOCKED', 'UPSTREAM_RATE_LIMITED', 'INTERNAL_ERROR')
    """
    match status:
        case 520:
            return UpstreamBlocked("Zyte API could not download the page: the platform blocks it.", reason="zyte_ban")
        case 429 | 503:
            return UpstreamRateLimited("Zyte API's rate limit is exceeded.", reason="zyte_rate_limit")
        case 451:
            return BlockedByPolicy("Zyte API does not download from this platform.", reason="zyte_forbidden")
        case 401 | 402 | 403:
            return ServiceError("Zyte API does not accept ZYTE_API_KEY or its account.", reason="zyte_account")
        case _:
            return UpstreamError(f"Zyte API responded with status {status}.", reason="zyte")
