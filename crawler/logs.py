"""Structured logs through the standard library's logging, so that Scrapy's level and file settings hold."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from structlog.typing import EventDict, Processor

if TYPE_CHECKING:
    from scrapy.settings import Settings

LOGFMT = structlog.processors.LogfmtRenderer(key_order=["event"], bool_as_flag=False)


def configure(*last: Processor) -> None:
    """Format events as ``event=name key=value`` lines that include the bound context (the request id).

    ``last`` replaces the final processors, which format the line.
    """
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            *(last or (structlog.processors.format_exc_info, LOGFMT)),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def structure_everything(settings: Settings) -> None:
    """Format the log records of all libraries as logfmt lines, so that those of Scrapy and Twisted have the request id.

    Used by the endpoint, whose log is parsed by machines. Crawls keep Scrapy's own format, for people. Scrapy's handler
    is not used, because each opened crawler would install it again; Scrapy's log settings apply all the same.
    """
    configure(structlog.stdlib.ProcessorFormatter.wrap_for_formatter)
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.contextvars.merge_contextvars],
        processors=[
            _stamp,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["time", "level", "logger", "event"], bool_as_flag=False),
        ],
    )
    handler: logging.Handler = logging.NullHandler()
    if settings["LOG_FILE"]:
        mode = "a" if settings.getbool("LOG_FILE_APPEND") else "w"
        handler = logging.FileHandler(settings["LOG_FILE"], mode, encoding=settings["LOG_ENCODING"])
    elif settings.getbool("LOG_ENABLED"):
        handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    logging.root.addHandler(handler)
    logging.root.setLevel(settings["LOG_LEVEL"])  # at the root logger, so that records below the level are not created


def _stamp(_logger: object, _method: str, event: EventDict) -> EventDict:
    record: logging.LogRecord = event["_record"]
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return {**event, "time": time, "level": record.levelname.lower(), "logger": record.name}
