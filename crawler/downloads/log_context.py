"""Adds the target's id to all log lines that are written while the target is processed, as ``request_id``.

A crawler processes many targets at the same time, and its tasks do not inherit the context of the HTTP call. Scrapy
runs each download and each callback in its own task. A context variable that is set at the start of the task is
therefore seen by everything that runs in it (middlewares, page objects, pipelines), but not by other targets.
``TargetTracker.enter`` does the same for the task of a callback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from structlog.contextvars import bind_contextvars

if TYPE_CHECKING:
    from scrapy import Request


class BindTarget:
    """Sets the target's id for log lines. It is the first downloader middleware."""

    def process_request(self, request: Request) -> None:
        """Set the target's id in the task of a download."""
        target = request.meta.get("target")
        if target is not None:
            bind_contextvars(request_id=target.id)
