"""Work that the endpoint repeats until it shuts down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from crawler.errors import StoreUnavailable

logger = structlog.get_logger(__name__)

Periodic = tuple[Callable[[], Awaitable[object]], float, str]
"""The arguments of ``repeat()``: the work, the interval in seconds, and the event to log for an exception."""


@contextmanager
def logged(failed: str, **facts: Any) -> Iterator[None]:
    """Log an exception of the ``with`` block, and continue after the block.

    ``failed``: the event to log, with ``facts``. ``StoreUnavailable`` is not logged here, because the store itself logs
    that it is unavailable.
    """
    try:
        yield
    except StoreUnavailable:
        pass
    except Exception:
        logger.exception(failed, **facts)


async def repeat(work: Callable[[], Awaitable[object]], seconds: float, failed: str) -> None:
    """Repeat work, with pauses of ``seconds``, until cancelled. An exception of the work does not end this.

    ``failed``: the event to log for an exception.
    """
    while True:
        with logged(failed):
            await work()
        await asyncio.sleep(seconds)
