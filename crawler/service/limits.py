"""Limits of clients: calls per period and calls in flight of a key, and places that clients get in turn."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from crawler.downloads.facts import Fact, Facts
from crawler.downloads.throttle import Limit, Starts
from crawler.errors import ConcurrencyLimited, RateLimited

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from limits import RateLimitItem
    from scrapy.settings import BaseSettings

    from crawler.service.keys import Holder

MAX_CALL_SECONDS = 150.0
"""Seconds after which a call no longer counts as in flight, in case its process was killed."""
ROUNDING_SECONDS = 1e-6
"""Tolerance for rounding errors of sums of seconds."""


@dataclass(frozen=True)
class RateLimitStatus:
    """The state of a key's rate limit."""

    quota: int
    """Number of calls that the key may make in the period, in all processes together."""
    window: int
    """Length of the period in seconds."""
    remaining: int
    """Number of calls that this process still allows. Other processes may allow more."""
    reset: int
    """Seconds until the key may make all calls of the period again; after a refused call, until the next call is
    allowed."""
    allowed: bool
    processes: int = 1
    """Number of processes that divide the quota among them. 1: all processes share it."""

    @property
    def headers(self) -> dict[str, str]:
        """Response headers with the rate limit: those of the IETF draft, and the common ``X-RateLimit-*`` headers."""
        return {
            "RateLimit-Policy": f'"key";q={self.quota};w={self.window}',
            "RateLimit": f'"key";r={self.remaining};t={self.reset}',
            "X-RateLimit-Limit": str(self.quota),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset),
        }

    def check(self) -> None:
        """Check that the call is within the limit.

        Raises:
            RateLimited: the call exceeds the limit. ``retry_after`` is the number of seconds until a call is allowed.
        """
        if not self.allowed:
            raise RateLimited(
                f"Rate limit exceeded: this key may make {self.quota} calls in {self.window} s"
                f"{_divided(self.processes)}.",
                retry_after=self.reset,
            )


class Rate(Fact):
    """The state of a key's rate limit, by the generic cell rate algorithm (GCRA).

    A key may make all calls of a period at once. Further calls are allowed at equal intervals.
    """

    kind: ClassVar[str] = "rate"
    full_at: float = 0.0
    """The time (of ``Facts.now()``) at which the key may make all calls of a period again."""

    def ends(self) -> float:
        return self.full_at

    def count(self, now: float, processes: int, *, calls: int, period: int) -> RateLimitStatus:
        """Count a call. ``calls``: number of calls that are allowed in ``period`` seconds."""
        share = min(calls, max(1, calls // processes))
        if not share:
            return RateLimitStatus(calls, period, 0, period, allowed=False, processes=processes)
        spacing = period / share
        used = min(max(self.full_at - now, 0.0), float(period))  # a larger value means that the clock was set back
        allowed = used + spacing <= period + ROUNDING_SECONDS
        if allowed:
            used += spacing
        self.full_at = now + used
        remaining = math.floor((period - used) / spacing + ROUNDING_SECONDS)
        reset = used if allowed else used + spacing - period
        return RateLimitStatus(calls, period, remaining, max(1, math.ceil(reset)), allowed, processes)


class KeyLimits:
    """The limits of all keys. ``KEY_RATE`` and ``KEY_CONCURRENCY`` apply to keys without their own limits."""

    def __init__(self, settings: BaseSettings, facts: Facts) -> None:
        self.rate: str | None = settings.get("KEY_RATE")
        self.concurrency = settings.getint("KEY_CONCURRENCY")
        self._facts = facts
        self._tokens = itertools.count()

    async def count(self, holder: Holder) -> RateLimitStatus | None:
        """Count a call against the rate limit of its key. Return the new state, or None if the key has no limit."""
        rate = holder.rate or self.rate
        if not rate:
            return None
        item = _parse(rate)
        count = partial(Rate.count, calls=item.amount, period=item.get_expiry())
        return await self._facts.change(Rate, holder.key_id, count)

    def in_flight(self, holder: Holder) -> AbstractAsyncContextManager[None]:
        """Return a context in which a call counts as in flight. Calls of a key without a limit are not counted.

        Raises (when the context is entered):
            ConcurrencyLimited: the key already has its maximum of calls in flight.
        """
        slots = holder.concurrency or self.concurrency
        return self._slot(holder.key_id, slots) if slots else nullcontext()

    @asynccontextmanager
    async def _slot(self, key_id: str, slots: int) -> AsyncIterator[None]:
        name, token = f"calls:{key_id}", f"{self._facts.owner}:{next(self._tokens)}"
        take = partial(_take, limit=Limit(slots, lease=MAX_CALL_SECONDS), token=token)
        is_refused = False
        try:
            is_refused = not await self._facts.change(Starts, name, take)
            if is_refused:
                raise ConcurrencyLimited(
                    f"Concurrency limit reached: this key may have {slots} calls in flight"
                    f"{_divided(self._facts.processes)}.",
                    retry_after=1,
                )
            yield
        finally:
            if not is_refused:  # after a cancellation, the slot may have been taken
                self._facts.change_soon(Starts, name, partial(Starts.release, token=token))


def _take(calls: Starts, now: float, processes: int, *, limit: Limit, token: str) -> bool:
    """Take a slot, or return False. A refused call does not wait for a slot, so none is left to it."""
    is_taken = calls.take(now, processes, limit=limit, token=token) is not None
    calls.waiting.clear()
    return is_taken


@cache
def _parse(rate: str) -> RateLimitItem:
    from limits import parse  # noqa: PLC0415  # a slow import, needed only if a rate is set

    return parse(rate)


def _divided(processes: int) -> str:
    return f", of which each of {processes} processes allows an equal share" if processes > 1 else ""


T = TypeVar("T")


class Turns:
    """A number of places for pieces of work.

    Free places are given to the waiting clients in turn, whatever number of pieces each of them waits for.
    """

    def __init__(self, places: int, of_client: int) -> None:
        """``of_client``: maximum number of places that one client has at the same time."""
        self.places, self.of_client = places, of_client
        self._taken: Counter[str] = Counter()
        """Client -> the number of its places."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Client -> its pieces of work that wait. The client whose turn is next is first."""

    @asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """Wait for a place for a piece of a client's work, and free the place at the end."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(place)
        self._give()
        try:
            await place
            yield
        finally:
            if place.cancelled() or not place.done():
                place.cancel()
            else:
                self._taken -= Counter([client])
            self._give()

    async def each(self, client: str, pieces: AsyncIterator[T], size: int) -> AsyncGenerator[T]:
        """Yield each of a client's pieces of work in a turn: the turn ends when the next piece is requested.

        ``size``: number of pieces in a turn.
        """
        while True:
            async with self.turn(client):
                for _ in range(size):
                    try:
                        piece = await anext(pieces)
                    except StopAsyncIteration:
                        return
                    yield piece

    def _give(self) -> None:
        while self._taken.total() < self.places:
            client = next((each for each in self._waiting if self._taken[each] < self.of_client), None)
            if client is None:
                return
            pieces = self._waiting.pop(client)
            place = pieces.popleft()
            if pieces:
                self._waiting[client] = pieces  # at the end: the turns of all other clients are before its next one
            if not place.cancelled():
                place.set_result(None)
                self._taken[client] += 1
