"""Shared state (``SharedFacts``) of several processes that use one store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crawler.jobs.shared_facts import SharedFacts

UNREACHABLE = "postgresql://nobody@127.0.0.1:1/nothing"
PATIENT = "from crawler.jobs import shared_facts, store; shared_facts.ANSWER_SECONDS = store.BUSY_SECONDS = 300.0"
"""Code that a process runs first. On a busy machine, the store may answer later than after two seconds, and then the
process would use its own share of the limits."""


@asynccontextmanager
async def processes(store: str, number: int = 2) -> AsyncIterator[tuple[SharedFacts, ...]]:
    """Yield the shared state of ``number`` processes. Without the store, each uses its share of the limits."""
    found = tuple(SharedFacts(store, number) for _ in range(number))
    try:
        yield found
    finally:
        for each in found:
            await each.close()
