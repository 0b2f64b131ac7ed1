"""``Idempotency-Key``: a call that is sent twice is made once, and billed once.

A success is kept with its key and answers whoever sends the same call again. A failure is not: it was not billed, and
a repeat may do better, so its key is free again.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import orjson

from crawler.errors import IdempotencyInProgress, IdempotencyMismatch, InvalidRequest
from crawler.service.envelope import Served

if TYPE_CHECKING:
    from crawler.service.store import Session, Store
    from crawler.targets.target import Target

SCHEMA = (
    (
        "CREATE TABLE IF NOT EXISTS idempotency (client TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL,"
        " owner TEXT NOT NULL, expires BIGINT NOT NULL, data BYTEA, PRIMARY KEY (client, key))"
    ),
)
KEY = re.compile(r"[\x21-\x7e]{1,255}")
"""What a key may be: visible ASCII."""

LEASE = 5.0
"""Seconds beyond its deadline after which a call without an answer is taken for dead, with its process."""


class Idempotency:
    """Keeps the answers of calls that carry a key, for ``ttl`` seconds."""

    def __init__(self, store: Store, ttl: float) -> None:
        self.store = store
        self.ttl = ttl

    async def once(
        self, key: str | None, client: str, target: Target, serve: Callable[[], Awaitable[Served]]
    ) -> Served:
        """What ``serve`` gives, or what it gave to the same call before.

        Raises:
            InvalidRequest: this is no key.
            IdempotencyInProgress: the same call is still running.
            IdempotencyMismatch: the key was used for another call.
        """
        if key is None:
            return await serve()
        if not KEY.fullmatch(key):
            message = "Idempotency-Key: expected 1 to 255 visible ASCII characters"
            detail = {"loc": ["Idempotency-Key"], "msg": message, "type": "string_pattern_mismatch"}
            raise InvalidRequest(message, details=[detail])  # type: ignore[list-item]  # it is a Detail
        try:
            kept = await self._claim(key, client, target)
            if kept is not None:
                return Served(orjson.Fragment(kept), billable=False, headers={"Idempotent-Replayed": "true"})
            served = await serve()
            body = orjson.dumps(served.data)
            until = int(time.time() + self.ttl)
            await self.store.transact(lambda session: _keep(session, client, key, target.id, until, body))
        except (IdempotencyInProgress, IdempotencyMismatch):
            raise
        except BaseException:
            # Also where the client is gone: nothing was billed, and the same call may come again at once.
            await asyncio.shield(self.store.transact(lambda session: _release(session, client, key, target.id)))
            raise
        return Served(orjson.Fragment(body), served.billable, served.headers)

    async def purge(self) -> None:
        """Forgets what is over."""
        now = int(time.time())
        await self.store.transact(lambda session: session.run("DELETE FROM idempotency WHERE expires <= :now", now=now))

    async def _claim(self, key: str, client: str, target: Target) -> bytes | None:
        assert target.deadline is not None
        left = target.deadline - asyncio.get_running_loop().time() + LEASE
        until = math.ceil(time.time() + left)
        fingerprint = hashlib.sha256(orjson.dumps(target.as_dict() | {"id": ""})).hexdigest()
        row = {"client": client, "key": key, "fingerprint": fingerprint, "owner": target.id, "expires": until}
        found = await self.store.transact(lambda session: _claim(session, row))
        if found is None:
            return None
        same, expires, data = found[0] == fingerprint, found[1], found[2]
        if not same:
            raise IdempotencyMismatch("This Idempotency-Key was used for another scraper or other params.")
        if data is None:
            wait = max(1, int(expires - LEASE - time.time()))
            raise IdempotencyInProgress("A call with this Idempotency-Key is still running.", retry_after=min(wait, 5))
        return bytes(data)


def _claim(session: Session, row: dict[str, Any]) -> tuple[str, int, bytes | None] | None:
    """None where the key is now this call's, else what is kept under it."""
    place = {"client": row["client"], "key": row["key"]}
    expired = "DELETE FROM idempotency WHERE client = :client AND key = :key AND expires <= :now"
    session.run(expired, **place, now=int(time.time()))
    claim = (
        "INSERT INTO idempotency (client, key, fingerprint, owner, expires)"
        " VALUES (:client, :key, :fingerprint, :owner, :expires) ON CONFLICT (client, key) DO NOTHING"
    )
    if session.run(claim, **row):
        return None
    query = "SELECT fingerprint, expires, data FROM idempotency WHERE client = :client AND key = :key"
    ((fingerprint, expires, data),) = session.rows(query, **place)
    return fingerprint, expires, data


def _keep(session: Session, client: str, key: str, owner: str, until: int, body: bytes) -> None:  # noqa: PLR0913, PLR0917  # a row
    change = (
        "UPDATE idempotency SET data = :body, expires = :until WHERE client = :client AND key = :key AND owner = :owner"
    )
    session.run(change, client=client, key=key, owner=owner, until=until, body=body)


def _release(session: Session, client: str, key: str, owner: str) -> None:
    unanswered = "DELETE FROM idempotency WHERE client = :client AND key = :key AND owner = :owner AND data IS NULL"
    session.run(unanswered, client=client, key=key, owner=owner)
