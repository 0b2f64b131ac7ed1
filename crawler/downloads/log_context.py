"""The request id in every log line of a target, including those of its page objects.

A crawler processes many targets at once, and its tasks do not start in the context of the HTTP call. Scrapy runs each
download and each callback in a task of its own, so a variable bound at its start holds for everything in that task
(middlewares, page object, pipelines), and for nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from structlog.contextvars import bind_contextvars

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response


class BindTarget:
    """Binds the target's id: the first downloader middleware, and the first spider middleware."""

    def process_request(self, request: Request) -> None:
        """Bind before a download."""
        _bind(request)

    def process_spider_input(self, response: Response) -> None:
        """Bind before a callback."""
        _bind(response.request)


def _bind(request: Request | None) -> None:
    target = request.meta.get("target") if request else None
    if target is not None:
        bind_contextvars(request_id=target.id)
