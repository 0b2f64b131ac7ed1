"""The response cache (off by default). Simultaneous calls of a cached scraper with the same params share one fetch.

Each worker process has its own cache in memory. A record that one worker has cached is not cached in the others.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import orjson

from crawler.errors import DEADLINE, UpstreamTimeout
from crawler.service.calls.envelope import Served
from crawler.targets.target import Target

Fetch = Callable[[Target], Awaitable[Served]]

ENTRY_OVERHEAD_BYTES = 500
"""Estimated bytes of memory that an entry takes in addition to its key and data."""


FRESH = {"no-cache", "no-store"}
"""Directives of a call's ``Cache-Control`` that require a new fetch for this call."""


@dataclass(frozen=True, slots=True)
class _Entry:
    data: bytes
    stored: float
    """When the entry was stored, on the monotonic clock."""


class _SharedFetch:
    """A fetch whose result several calls wait for. The fetch is cancelled when none of these calls waits any longer."""

    def __init__(self, fetch: Awaitable[Served], on_end: Callable[[], None]) -> None:
        self._task = asyncio.ensure_future(fetch)
        self._on_end = on_end
        self._waiting = 0
        self._billed = False

    async def join(self, deadline: float) -> Served:
        """Wait for the data. Only the first call that receives the data is billed.

        Raises:
            ScrapeError: the fetch failed, or (``UpstreamTimeout``) this call's own deadline passed.
        """
        self._waiting += 1
        try:
            async with asyncio.timeout_at(deadline):
                served = await asyncio.shield(self._task)
        except TimeoutError:
            raise UpstreamTimeout("The deadline passed before the platform responded.", reason=DEADLINE) from None
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._on_end()
                self._task.cancel()
        first, self._billed = not self._billed, True
        headers = {"X-Cache": "MISS"} if first else {"X-Cache": "HIT", "Age": "0"}
        return replace(served, billable=first, headers=headers)


class Cache:
    """Returns the data of targets from memory, or from the crawlers if it is not cached."""

    def __init__(self, fetch: Fetch, ttls: Mapping[str, float], max_bytes: int, max_wait: float) -> None:
        """Create an empty cache.

        ``ttls``: scraper name -> seconds for which its records are cached; other scrapers are not cached.
        ``max_wait``: the longest timeout, in seconds, that a call can have.
        """
        self._fetch = fetch
        self.ttls = ttls
        self.max_bytes = max_bytes
        self.max_wait = max_wait
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._size = 0
        self._fetches: dict[bytes, _SharedFetch] = {}

    def served(self, target: Target, control: str | None) -> Awaitable[Served]:
        """Return the target's data from the cache, from a fetch in progress or from a new fetch.

        ``control`` is the value of the call's ``Cache-Control`` header.

        Raises:
            ScrapeError: the fetch failed.
        """
        ttl = self.ttls.get(target.scraper.name, 0)
        return self._cached(target, control, ttl) if ttl else self._fetch(target)

    async def _cached(self, target: Target, control: str | None, ttl: float) -> Served:
        key, directives = target.key, _directives(control)
        if not directives.isdisjoint(FRESH):
            served = await self._fetch(target)
            if "no-store" not in directives:
                served = self._stored(key, served)
            return replace(served, headers={"X-Cache": "MISS"})
        if (hit := self._find(key, ttl)) is not None:
            return hit
        if key not in self._fetches:
            self._fetches[key] = _SharedFetch(self._fetch_and_store(key, target), partial(self._forget_fetch, key))
        assert target.deadline is not None
        return await self._fetches[key].join(target.deadline)

    def stored(self, target: Target, control: str | None) -> Served | None:
        """Return the target's cached data. None: it is not cached, or ``control`` requires a new fetch.

        ``control``: the value of the call's ``Cache-Control`` header.
        """
        ttl = self.ttls.get(target.scraper.name, 0)
        if not ttl or not _directives(control).isdisjoint(FRESH):
            return None
        return self._find(target.key, ttl)

    def _find(self, key: bytes, ttl: float) -> Served | None:
        entry = self._entries.get(key)
        if entry is None or (age := time.monotonic() - entry.stored) >= ttl:
            return None
        self._entries.move_to_end(key)
        headers = {"X-Cache": "HIT", "Age": str(int(age))}
        return Served(orjson.Fragment(entry.data), billable=False, headers=headers)

    async def _fetch_and_store(self, key: bytes, target: Target) -> Served:
        # The fetch has the longest deadline that a call can have: calls that join later may have more time than the
        # first.
        deadline = asyncio.get_running_loop().time() + self.max_wait
        return self._stored(key, await self._fetch(replace(target, deadline=deadline)))

    def _forget_fetch(self, key: bytes) -> None:
        del self._fetches[key]

    def _stored(self, key: bytes, served: Served) -> Served:
        """Encode a record and return it. Store it only if it is complete, so that a partial record is fetched again."""
        data = orjson.dumps(served.data)
        if not served.warnings:
            self._store(key, data)
        return replace(served, data=orjson.Fragment(data))

    def _store(self, key: bytes, data: bytes) -> None:
        self._drop(key)
        # orjson keeps up to 4 kB of unused memory behind its results. Copies take only the memory that is counted.
        key, data = bytes(memoryview(key)), bytes(memoryview(data))
        self._entries[key] = _Entry(data, time.monotonic())
        self._size += len(key) + len(data) + ENTRY_OVERHEAD_BYTES
        while self._size > self.max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry:
            self._size -= len(key) + len(entry.data) + ENTRY_OVERHEAD_BYTES


def _directives(control: str | None) -> set[str]:
    return {directive.strip().lower() for directive in (control or "").split(",")}
