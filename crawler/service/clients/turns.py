"""Divides places among clients in turn, so that no client waits for all the work of another one."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

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
