"""The response cache (off by default), and one fetch for equal calls that come at the same time.

Kept in memory, by worker: what it saves is the platform's patience and the caller's time, not a promise.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import orjson

from crawler.errors import UpstreamTimeout
from crawler.service.envelope import Served
from crawler.targets.target import Target

Fetch = Callable[[Target], Awaitable[dict[str, Any]]]

ENTRY_COST = 500
"""Bytes that an entry takes beside its key and its data."""


@dataclass(frozen=True, slots=True)
class _Entry:
    data: bytes
    stored: float
    """Moment of the monotonic clock."""


class _Flight:
    """One fetch, and all who wait for it. It is given up when nobody does any more."""

    def __init__(self, fetching: Awaitable[bytes], ended: Callable[[], None]) -> None:
        self._task = asyncio.ensure_future(fetching)
        self._ended = ended
        self._waiting = 0
        self._billed = False

    async def join(self, deadline: float) -> Served:
        """What it brings. Whoever gets it first is billed for it.

        Raises:
            ScrapeError: the target's, or ``UpstreamTimeout`` at the caller's own deadline.
        """
        self._waiting += 1
        try:
            async with asyncio.timeout_at(deadline):
                data = await asyncio.shield(self._task)
        except TimeoutError:
            raise UpstreamTimeout("The deadline passed before the platform had answered.") from None
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._ended()
                self._task.cancel()
        first, self._billed = not self._billed, True
        found = {"X-Cache": "MISS"} if first else {"X-Cache": "HIT", "Age": "0"}
        return Served(orjson.Fragment(data), billable=first, headers=found)


class Cache:
    """Between the endpoint and the crawlers."""

    def __init__(self, fetch: Fetch, ttls: Mapping[str, float], max_bytes: int, longest: float) -> None:
        """``ttls``: seconds by scraper; a scraper without is not cached. ``longest``: seconds that any call waits."""
        self._fetch = fetch
        self.ttls = ttls
        self.max_bytes = max_bytes
        self.longest = longest
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._size = 0
        self._flights: dict[bytes, _Flight] = {}

    async def served(self, target: Target, control: str | None) -> Served:
        """The target's data: kept, on its way already, or fetched. ``control`` is the call's ``Cache-Control``.

        Raises:
            ScrapeError: as the fetch does.
        """
        ttl = self.ttls.get(target.scraper.name, 0)
        if not ttl:
            return Served(await self._fetch(target))
        key = orjson.dumps([target.scraper.name, target.params.model_dump(mode="json")], option=orjson.OPT_SORT_KEYS)
        asked = {directive.strip().lower() for directive in (control or "").split(",")}
        if not asked.isdisjoint({"no-cache", "no-store"}):
            data = orjson.dumps(await self._fetch(target))
            if "no-store" not in asked:
                self._keep(key, data)
            return Served(orjson.Fragment(data), headers={"X-Cache": "MISS"})
        entry = self._entries.get(key)
        if entry and (age := time.monotonic() - entry.stored) < ttl:
            self._entries.move_to_end(key)
            found = {"X-Cache": "HIT", "Age": str(int(age))}
            return Served(orjson.Fragment(entry.data), billable=False, headers=found)
        if key not in self._flights:
            self._flights[key] = _Flight(self._fly(key, target), partial(self._landed, key))
        assert target.deadline is not None
        return await self._flights[key].join(target.deadline)

    async def _fly(self, key: bytes, target: Target) -> bytes:
        # Its own deadline is as late as any call's can be: those who join may have more time than the first.
        deadline = asyncio.get_running_loop().time() + self.longest
        data = orjson.dumps(await self._fetch(replace(target, deadline=deadline)))
        self._keep(key, data)
        return data

    def _landed(self, key: bytes) -> None:
        del self._flights[key]

    def _keep(self, key: bytes, data: bytes) -> None:
        self._drop(key)
        self._entries[key] = _Entry(data, time.monotonic())
        self._size += len(key) + len(data) + ENTRY_COST
        while self._size > self.max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry:
            self._size -= len(key) + len(entry.data) + ENTRY_COST
