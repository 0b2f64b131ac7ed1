"""``Idempotency-Key``: a call that is sent twice runs once and is billed once.

A successful result is stored with its key and returned to repeated calls. A failure is not stored, because it is not
billed and a retry may succeed. Its key can be used again.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from crawler.errors import IdempotencyInProgress, IdempotencyMismatch, InvalidRequest
from crawler.service.envelope import Served
from crawler.service.store import NewColumn
from crawler.targets.target import FailedSource

if TYPE_CHECKING:
    from crawler.service.store import Session, Store
    from crawler.targets.target import Target

SCHEMA = (
    (
        "CREATE TABLE IF NOT EXISTS idempotency (client TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL,"
        " owner TEXT NOT NULL, expires BIGINT NOT NULL, data BYTEA, warnings TEXT, PRIMARY KEY (client, key))"
    ),
    NewColumn("idempotency", "warnings", "TEXT"),
)
STORE = (
    "UPDATE idempotency SET data = :body, warnings = :warnings, expires = :until"
    " WHERE client = :client AND key = :key AND owner = :owner"
)
"""Stores the response of a call."""
KEY = re.compile(r"[\x21-\x7e]{1,255}")
"""Matches valid keys: 1 to 255 visible ASCII characters."""

LEASE_SECONDS = 5.0
"""A call's claim on its key expires this long after the call's deadline, in case its process was killed."""


class Idempotency:
    """Stores the results of calls with an ``Idempotency-Key`` for ``ttl`` seconds."""

    def __init__(self, store: Store, ttl: float) -> None:
        self.store = store
        self.ttl = ttl

    async def once(
        self, key: str | None, client: str, target: Target, serve: Callable[[], Awaitable[Served]]
    ) -> Served:
        """Run ``serve``, or return the stored result if the same call was already completed.

        Raises:
            InvalidRequest: the key is malformed.
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
            stored = await self._claim(key, client, target)
            if stored is not None:
                return stored
            served = await serve()
            body = orjson.dumps(served.data)
            row = {"client": client, "key": key, "owner": target.id, "until": int(time.time() + self.ttl)}
            row |= {"body": body, "warnings": orjson.dumps([*map(list, served.warnings)]).decode()}
            await self.store.transact(lambda session: session.run(STORE, **row))
        except (IdempotencyInProgress, IdempotencyMismatch):
            raise
        except BaseException:
            # This includes a client that has disconnected: nothing was billed, and the client may retry at once.
            await asyncio.shield(self.store.transact(lambda session: _release(session, client, key, target.id)))
            raise
        return replace(served, data=orjson.Fragment(body))

    async def purge(self) -> None:
        """Delete expired keys."""
        now = int(time.time())
        await self.store.transact(lambda session: session.run("DELETE FROM idempotency WHERE expires <= :now", now=now))

    async def _claim(self, key: str, client: str, target: Target) -> Served | None:
        """Claim the ``Idempotency-Key`` for this call. If a completed call has it, return the stored result."""
        assert target.deadline is not None
        left = target.deadline - asyncio.get_running_loop().time() + LEASE_SECONDS
        until = math.ceil(time.time() + left)
        fingerprint = hashlib.sha256(orjson.dumps(target.as_dict() | {"id": ""})).hexdigest()
        row = {"client": client, "key": key, "fingerprint": fingerprint, "owner": target.id, "expires": until}
        found = await self.store.transact(lambda session: _claim(session, row))
        if found is None:
            return None
        known, expires, data, warnings = found
        if known != fingerprint:
            raise IdempotencyMismatch("This Idempotency-Key was used for another scraper or other params.")
        if data is None:
            wait = max(1, int(expires - LEASE_SECONDS - time.time()))
            raise IdempotencyInProgress("A call with this Idempotency-Key is still running.", retry_after=min(wait, 5))
        return Served(
            orjson.Fragment(bytes(data)),
            billable=False,
            headers={"Idempotent-Replayed": "true"},
            warnings=tuple(FailedSource(*each) for each in orjson.loads(warnings or "[]")),
        )


def _claim(session: Session, row: dict[str, Any]) -> tuple[str, int, bytes | None, str | None] | None:
    """Insert the row of this call's ``Idempotency-Key``. If another call has the key, return that call's row."""
    primary_key = {"client": row["client"], "key": row["key"]}
    expired = "DELETE FROM idempotency WHERE client = :client AND key = :key AND expires <= :now"
    session.run(expired, **primary_key, now=int(time.time()))
    claim = (
        "INSERT INTO idempotency (client, key, fingerprint, owner, expires)"
        " VALUES (:client, :key, :fingerprint, :owner, :expires) ON CONFLICT (client, key) DO NOTHING"
    )
    if session.run(claim, **row):
        return None
    query = "SELECT fingerprint, expires, data, warnings FROM idempotency WHERE client = :client AND key = :key"
    ((fingerprint, expires, data, warnings),) = session.rows(query, **primary_key)
    return fingerprint, expires, data, warnings


def _release(session: Session, client: str, key: str, owner: str) -> None:
    release = "DELETE FROM idempotency WHERE client = :client AND key = :key AND owner = :owner AND data IS NULL"
    session.run(release, client=client, key=key, owner=owner)
