"""Structured log lines, written with the standard library's logging, so that Scrapy's log settings apply to them."""

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
    """Configure structlog to format log events as ``event=name key=value`` lines.

    The lines include the context variables, such as the request id. ``last`` replaces the processors that format the
    line.
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


def skip_unhandled_records() -> None:
    """Set the levels of the root and Scrapy's logger so that records which all handlers would drop are not created.

    Scrapy sets ``LOG_LEVEL`` only on its handler, and the level of its own logger to DEBUG. So its records of each page
    and item are created and then dropped. Handlers that users have added, to any logger, still get their records.
    """
    handlers = list(logging.root.handlers)
    for logger in logging.Logger.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):  # not a placeholder for the parent of loggers
            handlers += (each for each in logger.handlers if not isinstance(each, logging.NullHandler))
    level = min((handler.level for handler in handlers), default=logging.NOTSET)
    for logger in (logging.root, logging.getLogger("scrapy")):
        logger.setLevel(max(logger.level, level))


def one_line(text: str, size: int = 200) -> str:
    """Return the first ``size`` characters of a text, for logs and terminals.

    If one of these is not printable, such as a line break, all non-printable and non-ASCII ones are escaped.
    """
    text = text[:size]
    return text if text.isprintable() else ascii(text)[1:-1]


def structure_everything(settings: Settings) -> None:
    """Format the log records of all libraries, such as Scrapy and Twisted, as logfmt lines with the request id.

    Only ``scrapy serve`` and ``scrapy mcp`` use this format, because programs read their logs. Crawls have Scrapy's own
    format. Scrapy's log handler is not used, because each open crawler would install it again. Of Scrapy's log
    settings, ``LOG_FILE``, ``LOG_FILE_APPEND``, ``LOG_ENCODING``, ``LOG_ENABLED`` and ``LOG_LEVEL`` are applied.
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
    # On the root logger, so that no records below the level are created.
    logging.root.setLevel(settings["LOG_LEVEL"])


def _stamp(_logger: object, _method: str, event: EventDict) -> EventDict:
    record: logging.LogRecord = event["_record"]
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return {**event, "time": time, "level": record.levelname.lower(), "logger": record.name}
