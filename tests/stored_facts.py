"""Reads the facts that processes share through a store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from crawler.downloads.breaker import Blocks, BreakerKey
from crawler.downloads.facts import F
from crawler.jobs.shared_facts import OF_SCOPE, scope_of
from crawler.jobs.store import Session, Store


def stored_facts(location: str, kind: type[F], groups: Iterable[str]) -> tuple[dict[str, F], float]:
    """Return the stored facts of a kind by their names, and the time of the database.

    ``groups``: the parts of the names before the first colon.
    """

    def read(session: Session) -> tuple[dict[str, F], float]:
        rows = [row for each in groups for row in session.rows(OF_SCOPE, scope=scope_of(kind, each))]
        facts = {key.removeprefix(f"{kind.kind}:"): msgspec.json.decode(data, type=kind) for key, data in rows}
        return facts, session.now()

    store = Store(location)
    try:
        return store.transact_sync(read, write=False)
    finally:
        asyncio.run(store.close())


def suspensions(location: str, platform: str) -> dict[str, list[tuple[str, str | None]]]:
    """Return the suspended egresses of a platform: the source and the reason of each suspension."""
    found, now = stored_facts(location, Blocks, [platform])
    suspended: dict[str, list[tuple[str, str | None]]] = {}
    for name, blocks in found.items():
        if blocks.open_until > now:
            key = BreakerKey.parse(name)
            suspended.setdefault(key.egress.removeprefix("@"), []).append((key.source, blocks.reason))
    return suspended
