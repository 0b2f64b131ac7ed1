"""Work that the endpoint repeats until it shuts down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from crawler.errors import StoreUnavailable

logger = structlog.get_logger(__name__)


async def repeat(work: Callable[[], Awaitable[object]], seconds: float, failed: str) -> None:
    """Do some work at an interval, until cancelled. An exception must not end it.

    ``failed``: the event to log for an unexpected exception. An unavailable store has logged itself.
    """
    while True:
        try:
            await work()
        except StoreUnavailable:
            pass
        except Exception:
            logger.exception(failed)
        await asyncio.sleep(seconds)
