"""The request id in every log line of a target, down to its page objects.

A crawler serves many targets at once, and none of its tasks starts in the context of the call that asked. Scrapy runs
each download and each callback in a task of its own, so that what is bound at the beginning of either holds for all
that follows in it (middlewares, page object, pipelines), and for nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from structlog.contextvars import bind_contextvars

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class BindTarget:
    """The first of the downloader middlewares and of the spider middlewares."""

    def process_request(self, request: Request) -> None:
        """Before a download."""
        _bind(request)

    def process_spider_input(self, response: Response) -> None:
        """Before a callback."""
        _bind(response.request)


def _bind(request: Request | None) -> None:
    target = request.meta.get("target") if request else None
    if target is not None:
        bind_contextvars(request_id=target.id)
