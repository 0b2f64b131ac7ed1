"""``Idempotency-Key``: a call that is sent twice runs once and is billed once.

A successful result is stored with its key and returned to repeated calls. Its bill is in the same transaction, so that
a record that can be replayed is always billed. A failure is not stored, because it is not billed and a retry may
succeed. Its key can be used again.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import orjson

from crawler.errors import Detail, IdempotencyInProgress, IdempotencyMismatch, InvalidRequest
from crawler.jobs.clock import STORE_TIME, store_time
from crawler.jobs.job import compress, decompress
from crawler.service.calls.envelope import Served
from crawler.service.clients import quotas, usage
from crawler.targets.warning import OutcomeWarning

if TYPE_CHECKING:
    from crawler.jobs.store import Session, Store
    from crawler.service.calls.envelope import Call
    from crawler.targets.target import Target

STORE = (
    "UPDATE idempotency SET data = :body, warnings = :warnings, expires = :until"
    " WHERE client = :client AND key = :key AND owner = :owner"
)
"""Stores the response of a call."""
KEY = re.compile(r"[\x21-\x7e]{1,255}")
"""Matches valid keys: 1 to 255 visible ASCII characters."""

STORE_SECONDS = 0.25
"""Seconds for which a call may use the store after its deadline."""
PURGE_SECONDS = 5.0
"""Maximum seconds for deleting expired keys."""
LEASE_SECONDS = 5.0
"""A call's claim on its key expires this long after the call's deadline, in case its process was killed."""


class Idempotency:
    """Stores the results of calls with an ``Idempotency-Key`` for ``ttl`` seconds."""

    def __init__(self, store: Store, ttl: float) -> None:
        self.store = store
        self.ttl = ttl

    async def once(self, key: str | None, call: Call, target: Target, serve: Callable[[], Awaitable[Served]]) -> Served:
        """Run ``serve``, or return the stored result if the same call was already completed.

        Raises:
            StoreUnavailable: the key cannot be checked, or the result cannot be stored.
            InvalidRequest: the key is malformed.
            IdempotencyInProgress: the same call is still running.
            IdempotencyMismatch: the key was used for another call.
        """
        if key is None:
            return await serve()
        check_key(key)
        owned = (call.client_id, key, target.id)
        try:
            stored = await self._claim(key, call.client_id, target)
            if stored is not None:
                return stored
            served = await serve()
            body = orjson.dumps(served.data)
            await self._store(owned, call, body, served, max(target.seconds_left or 0, STORE_SECONDS))
        except (IdempotencyInProgress, IdempotencyMismatch):
            raise
        except BaseException:
            # This includes a client that has disconnected: nothing was billed, and the client may retry at once.
            await self._release(owned)
            raise
        return replace(served, data=orjson.Fragment(body))

    async def _store(self, owned: Owned, call: Call, body: bytes, served: Served, seconds: float) -> None:
        """Store a record with its key, its usage and the end of its reservation.

        If the client disconnects meanwhile, wait until it is known whether the record is stored. It is then billed.
        """
        counts = {
            (call.client_id, call.scraper, usage.today(), "OK"): [1, int(served.billable), int(bool(served.warnings))]
        }

        def store(session: Session) -> None:
            store_result(session, owned, body, served.warnings, self.ttl)
            usage.add(session, counts)
            if call.has_reservation:
                quotas.settle(session, [(call.client_id, call.request_id)])

        storing = asyncio.ensure_future(self.store.transact(store, seconds=seconds))

        def stored(done: asyncio.Future[None]) -> None:
            if not done.cancelled() and done.exception() is None:
                call.billed = served

        storing.add_done_callback(stored)
        try:
            await asyncio.shield(storing)
        except asyncio.CancelledError:
            await asyncio.wait([storing])
            raise

    async def _release(self, owned: Owned) -> None:
        """Release the key. Wait at most ``STORE_SECONDS``: it continues then. If it fails, the claim expires."""
        release = asyncio.ensure_future(self.store.transact(lambda session: release_key(session, owned)))
        release.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([release], timeout=STORE_SECONDS)

    async def purge(self) -> None:
        """Delete expired keys, unless the clock has just jumped.

        Raises:
            StoreUnavailable: the store cannot be written.
        """
        if not STORE_TIME.is_steady:
            return
        now = int(store_time())
        delete = "DELETE FROM idempotency WHERE expires <= :now"
        await self.store.transact(lambda session: session.run(delete, now=now), seconds=PURGE_SECONDS)

    async def _claim(self, key: str, client: str, target: Target) -> Served | None:
        """Claim the key for this call, and return None. If a completed call has the key, return its stored result."""
        left = target.seconds_left or 0
        claim = Claim.make(key, client, target, left)
        found = await self.store.transact(claim.take, seconds=left)
        if found is None:
            return None
        found.check(claim)
        return found.replayed()


def check_key(key: str) -> None:
    """Check the value of an ``Idempotency-Key`` header.

    Raises:
        InvalidRequest: the key is malformed.
    """
    if not KEY.fullmatch(key):
        message = "Idempotency-Key: expected 1 to 255 visible ASCII characters"
        detail: Detail = {"loc": ["Idempotency-Key"], "msg": message, "type": "string_pattern_mismatch"}
        raise InvalidRequest(message, details=[detail])


@dataclass(frozen=True, slots=True)
class Found:
    """The row of an ``Idempotency-Key`` that another call has claimed."""

    fingerprint: str
    owner: str
    """The id of that call."""
    expires: int
    data: bytes | None
    """The JSON of that call's record, compressed. None: it is still running."""
    warnings: str | None

    def check(self, claim: Claim) -> None:
        """Check that the key was used for the same call.

        Raises:
            IdempotencyMismatch: the other call has another scraper or other params.
        """
        if self.fingerprint != claim.fingerprint:
            raise IdempotencyMismatch("This Idempotency-Key was used for another scraper or other params.")

    def replayed(self) -> Served:
        """Return the stored result.

        Raises:
            IdempotencyInProgress: the other call is still running.
        """
        if self.data is None:
            wait = max(1, int(self.expires - LEASE_SECONDS - store_time()))
            raise IdempotencyInProgress("A call with this Idempotency-Key is still running.", retry_after=min(wait, 5))
        return Served(
            orjson.Fragment(decompress(self.data)),
            billable=False,
            headers={"Idempotent-Replayed": "true"},
            warnings=tuple(map(OutcomeWarning.from_dict, orjson.loads(self.warnings or "[]"))),
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """A call's claim on its ``Idempotency-Key``."""

    client: str
    key: str
    fingerprint: str
    """Identifies the scraper and the params."""
    owner: str
    """The id of the call."""
    expires: int
    """When another call may claim the key, in Unix seconds."""

    @classmethod
    def make(cls, key: str, client: str, target: Target, seconds: float) -> Claim:
        """Return the claim of a target's call. ``seconds``: the maximum duration of the call."""
        fingerprint = hashlib.sha256(orjson.dumps(target.as_dict() | {"id": ""})).hexdigest()
        return cls(client, key, fingerprint, target.id, math.ceil(store_time() + seconds + LEASE_SECONDS))

    def take(self, session: Session) -> Found | None:
        """Claim the key, and return None. If another call has the key, return that call's row."""
        primary_key = {"client": self.client, "key": self.key}
        expired = "DELETE FROM idempotency WHERE client = :client AND key = :key AND expires <= :now"
        session.run(expired, **primary_key, now=int(store_time()))
        claim = (
            "INSERT INTO idempotency (client, key, fingerprint, owner, expires)"
            " VALUES (:client, :key, :fingerprint, :owner, :expires) ON CONFLICT (client, key) DO NOTHING"
        )
        if session.run(claim, **primary_key, fingerprint=self.fingerprint, owner=self.owner, expires=self.expires):
            return None
        query = (
            "SELECT fingerprint, owner, expires, data, warnings FROM idempotency WHERE client = :client AND key = :key"
        )
        return Found(*session.rows(query, **primary_key)[0])


Owned = tuple[str, str, str]
"""An ``Idempotency-Key`` and its call: the client, the key, and the id of the call."""


def store_result(session: Session, owned: Owned, data: bytes, warnings: tuple[OutcomeWarning, ...], ttl: float) -> None:
    """Store the JSON of a call's record with its key for ``ttl`` seconds, if the call still has the key."""
    client, key, owner = owned
    texts = orjson.dumps([each.as_dict() for each in warnings]).decode()
    until = int(store_time() + ttl)
    session.run(STORE, client=client, key=key, owner=owner, body=compress(data), warnings=texts, until=until)


def release_key(session: Session, owned: Owned, *, stored: bool = False) -> None:
    """Release a call's key, so that another call can use it. ``stored``: also if a record is stored with it."""
    client, key, owner = owned
    delete = "DELETE FROM idempotency WHERE client = :client AND key = :key AND owner = :owner"
    session.run(delete if stored else f"{delete} AND data IS NULL", client=client, key=key, owner=owner)
