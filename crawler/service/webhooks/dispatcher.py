"""Sends due deliveries: one loop in each process of the endpoint."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from crawler.errors import StoreUnavailable
from crawler.jobs.clock import store_time, utc_text
from crawler.service import metrics
from crawler.service.periodic import logged, repeat
from crawler.service.webhooks import outbox
from crawler.service.webhooks.outbox import Attempt, Delivery
from crawler.service.webhooks.signed_request import Response, send

if TYPE_CHECKING:
    from crawler.jobs.store import Store

logger = structlog.get_logger(__name__)

IN_FLIGHT = 16
"""Maximum number of deliveries in flight in a process."""
POLL_SECONDS = 1.0
"""Interval in seconds at which the store is searched for due deliveries."""
UPKEEP_SECONDS = 10.0
"""Interval in seconds at which old deliveries are deleted, and the age of undelivered ones is measured."""
CLOSE_SECONDS = 5.0
"""Seconds that deliveries in flight have to end when the service shuts down. Unfinished deliveries are repeated."""
DELETED = Response(None, "the webhook was deleted")
FAILED = Response(None, "internal error")


class Dispatcher:
    """Sends the events of all clients. ``private``: the setting ``WEBHOOK_PRIVATE``."""

    def __init__(self, store: Store, *, private: bool) -> None:
        self.store = store
        self.private = private
        self._in_flight: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        """Set when a delivery has ended, so that others can start."""
        self._loops: list[asyncio.Task[None]] = []

    def open(self) -> None:
        """Start to send due deliveries, and to delete old ones."""
        loops = (self._run(), repeat(self._tend, UPKEEP_SECONDS, "webhooks_failed"))
        self._loops = [asyncio.ensure_future(each) for each in loops]

    async def close(self) -> None:
        """Claim no more deliveries, and wait at most ``CLOSE_SECONDS`` for those in flight."""
        for each in self._loops:
            each.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
            for each in late:
                each.cancel()

    async def _run(self) -> None:
        while True:
            started = False
            with logged("webhooks_failed"):
                started = await self._start_due()
            if not started:
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._ended.wait()
            self._ended.clear()

    async def _start_due(self) -> bool:
        """Start as many due deliveries as possible. Return whether at least one was started."""
        free = IN_FLIGHT - len(self._tasks)
        seconds = await self.store.transact(outbox.seconds_until_due, write=False)
        if not free or seconds is None or seconds > 0:
            return False
        in_flight = self._in_flight.copy()
        claimed = await self.store.transact(lambda session: outbox.claim(session, free, in_flight))
        for each in claimed:
            self._in_flight[each.client] += 1
            task = asyncio.create_task(self._deliver(each))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return bool(claimed)

    async def _deliver(self, delivery: Delivery) -> None:
        loop = asyncio.get_running_loop()
        begin, at = loop.time(), utc_text(store_time())
        try:
            response = await self._send(delivery)
            attempt = Attempt(at, response.status, response.error, round((loop.time() - begin) * 1000))
            with suppress(StoreUnavailable):  # the event is sent again after the end of its claim
                goes_on = await self.store.transact(lambda session: outbox.end(session, delivery, attempt))
                result = "delivered" if attempt.error is None else "failed" if goes_on else "given_up"
                metrics.WEBHOOKS.labels(result).inc()
                logger.info(
                    "webhook",
                    delivery=delivery.id,
                    client=delivery.client,
                    event_type=delivery.type,
                    attempt=delivery.tries,
                    result=result,
                    status=attempt.status,
                    error=attempt.error,
                    duration_ms=attempt.duration_ms,
                )
        finally:
            self._in_flight[delivery.client] -= 1
            self._ended.set()

    async def _send(self, delivery: Delivery) -> Response:
        if delivery.url is None:
            return DELETED
        try:
            return await send(delivery.url, delivery.secret, delivery.id, delivery.body, private=self.private)
        except Exception:
            logger.exception("webhook_failed", delivery=delivery.id, client=delivery.client)
            return FAILED  # a failed try, so that the number of tries is limited

    async def _tend(self) -> None:
        metrics.WEBHOOKS_AGE.set(await self.store.transact(outbox.undelivered_age, write=False))
        await self.store.transact(outbox.purge)
