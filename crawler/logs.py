"""Structured logs through the standard library's logging, so that Scrapy's level, file and format settings hold."""

from __future__ import annotations

import structlog


def configure() -> None:
    """Events become ``event=name key=value`` lines; what is bound to the context (a request id) stands in each."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["event"], bool_as_flag=False),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
