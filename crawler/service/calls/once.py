"""The header ``Idempotency-Key``: a repeated call runs once and is billed once.

The record of a successful synchronous call is stored in the row of its key, in the transaction that stores its bill. So
every replayed record was billed. For an asynchronous call, the stored record of its target is used. Failures are not
stored, because they are not billed and a retry may succeed: their keys can be used again.
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
from crawler.jobs import statements as sql
from crawler.jobs.clock import STORE_TIME, store_time
from crawler.jobs.job import compress, decompress
from crawler.jobs.tables import idempotency, insert_into
from crawler.service.calls.envelope import Served
from crawler.service.clients import quotas, usage
from crawler.targets.warning import OutcomeWarning

if TYPE_CHECKING:
    from crawler.jobs.store import Session, Store
    from crawler.service.calls.envelope import Call
    from crawler.targets.target import Target

KEY = re.compile(r"[\x21-\x7e]{1,255}")
"""Matches valid idempotency keys: 1 to 255 visible ASCII characters."""

STORE_SECONDS = 0.25
"""Seconds after a call's deadline for which the call may still use the store."""
PURGE_SECONDS = 5.0
"""Maximum seconds for deleting expired keys."""
LEASE_SECONDS = 5.0
"""A call's claim on its key expires this long after the call's deadline, in case its process was killed."""
CLAIM = insert_into(idempotency)
FIND = "SELECT fingerprint, owner, expires, record, warnings FROM idempotency WHERE client = :client AND key = :key"
STORE = (
    "UPDATE idempotency SET record = :record, warnings = :warnings, expires = :until"
    " WHERE client = :client AND key = :key AND owner = :owner"
)
KEEP = "UPDATE idempotency SET expires = :until WHERE client = :client AND key = :key AND owner = :owner"
RELEASE = "DELETE FROM idempotency WHERE client = :client AND key = :key AND owner = :owner"


class Once:
    """Runs each synchronous call with an ``Idempotency-Key`` once, and stores its record for ``ttl`` seconds."""

    def __init__(self, store: Store, ttl: float) -> None:
        self.store = store
        self.ttl = ttl

    async def run(self, key: str, call: Call, target: Target, serve: Callable[[], Awaitable[Served]]) -> Served:
        """Run ``serve``, or return the stored record if the same call was already completed.

        Raises:
            StoreUnavailable: the key cannot be checked, or the record cannot be stored.
            InvalidRequest: the key is malformed.
            IdempotencyInProgress: the same call is still running.
            IdempotencyMismatch: the key was used for another call.
            ScrapeError: ``serve`` has raised this error.
        """
        left = target.seconds_left or 0
        claim = Claim.make(key, call.client_id, target, left)
        try:
            found = await self.store.transact(claim.take, seconds=left)
            if found is not None:
                return found.replayed(claim)
            served = await serve()
            body = orjson.dumps(served.data)
            await self._store(claim, call, body, served, max(target.seconds_left or 0, STORE_SECONDS))
        except (IdempotencyInProgress, IdempotencyMismatch):
            raise
        except BaseException:
            # The key is released also after the client has disconnected: nothing was billed, and the client may retry.
            await self._release(claim)
            raise
        return replace(served, data=orjson.Fragment(body))

    async def _store(self, claim: Claim, call: Call, body: bytes, served: Served, seconds: float) -> None:
        """Store a record with its key, its usage and the end of its reservation.

        If the client disconnects meanwhile, wait for the end of the transaction: the record is stored and billed, or
        neither.
        """
        counts = {
            (call.client_id, call.scraper, usage.today(), "OK"): [1, int(served.billable), int(bool(served.warnings))]
        }

        def store(session: Session) -> None:
            store_record(session, claim, body, served.warnings, self.ttl)
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

    async def _release(self, claim: Claim) -> None:
        """Release the key of a call without a record.

        Wait at most ``STORE_SECONDS`` for the transaction, which then continues. After a failure, the claim expires.
        """
        release = asyncio.ensure_future(
            self.store.transact(lambda session: release_key(session, claim.client, claim.key, claim.owner))
        )
        release.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([release], timeout=STORE_SECONDS)

    async def purge(self) -> None:
        """Delete expired keys. Nothing is deleted just after the clock was changed.

        Raises:
            StoreUnavailable: the store cannot be written.
        """
        if STORE_TIME.is_steady:
            now, delete = int(store_time()), "DELETE FROM idempotency WHERE expires <= :now"
            await self.store.transact(lambda session: session.run(delete, now=now), seconds=PURGE_SECONDS)


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
    """The row of an ``Idempotency-Key`` that an earlier call has claimed."""

    fingerprint: str
    owner: str
    """The id of that call."""
    expires: int
    record: bytes | None
    """The compressed JSON of that call's record. None: the call still waits or runs."""
    warnings: bytes

    def check(self, claim: Claim) -> None:
        """Check that the earlier call had the same scraper and params as the call of ``claim``.

        Raises:
            IdempotencyMismatch: the earlier call had a different scraper or different params.
        """
        if self.fingerprint != claim.fingerprint:
            raise IdempotencyMismatch("This Idempotency-Key was used for another scraper or other params.")

    def replayed(self, claim: Claim) -> Served:
        """Return the stored record.

        Raises:
            IdempotencyMismatch: as for ``check()``.
            IdempotencyInProgress: the earlier call still waits or runs.
        """
        self.check(claim)
        if self.record is None:
            wait = max(1, int(self.expires - LEASE_SECONDS - store_time()))
            raise IdempotencyInProgress("A call with this Idempotency-Key is still running.", retry_after=min(wait, 5))
        return Served(
            orjson.Fragment(decompress(self.record)),
            billable=False,
            headers={"Idempotent-Replayed": "true"},
            warnings=tuple(map(OutcomeWarning.from_dict, orjson.loads(self.warnings))),
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """A call's claim on its ``Idempotency-Key``."""

    client: str
    key: str
    fingerprint: str
    """A hash of the scraper and the params."""
    owner: str
    """The id of the call."""
    expires: int
    """When other calls may claim the key: a time of the store in whole seconds."""

    @classmethod
    def make(cls, key: str, client: str, target: Target, seconds: float) -> Claim:
        """Return the claim of a target's call. ``seconds``: the maximum duration of the call.

        Raises:
            InvalidRequest: the key is malformed.
        """
        check_key(key)
        fingerprint = hashlib.sha256(orjson.dumps(target.as_dict() | {"id": ""})).hexdigest()
        return cls(client, key, fingerprint, target.id, math.ceil(store_time() + seconds + LEASE_SECONDS))

    def take(self, session: Session) -> Found | None:
        """Claim the key, and return None. If another call has the key, return that call's row."""
        named = {"client": self.client, "key": self.key}
        expired = "DELETE FROM idempotency WHERE client = :client AND key = :key AND expires <= :now"
        session.run(expired, **named, now=int(store_time()))
        if session.run(CLAIM, **named, fingerprint=self.fingerprint, owner=self.owner, expires=self.expires):
            return None
        ((fingerprint, owner, expires, record, warnings),) = session.rows(FIND, **named)
        if record is None:
            values = {"owner": self.client, "key": owner.encode(), "now": 0.0}
            if (call := session.execute(sql.CALL, values).fetchone()) is not None and call.state == "done":
                record, warnings = call.data, orjson.dumps(orjson.loads(call.outcome)["warnings"])
        return Found(fingerprint, owner, expires, record, warnings)


def store_record(session: Session, claim: Claim, data: bytes, warnings: tuple[OutcomeWarning, ...], ttl: float) -> None:
    """Store the JSON of a call's record with its key for ``ttl`` seconds, if the call still has the key."""
    session.run(
        STORE,
        client=claim.client,
        key=claim.key,
        owner=claim.owner,
        record=compress(data),
        warnings=orjson.dumps([each.as_dict() for each in warnings]),
        until=int(store_time() + ttl),
    )


def keep_key(session: Session, client: str, key: str, owner: str, until: float) -> None:
    """Keep the key of an asynchronous call with a stored record until a time of the store."""
    session.run(KEEP, client=client, key=key, owner=owner, until=int(until))


def release_key(session: Session, client: str, key: str, owner: str, *, stored: bool = False) -> None:
    """Release a call's key, so that another call can use it. ``stored``: also release a key with a stored record."""
    session.run(RELEASE if stored else f"{RELEASE} AND record IS NULL", client=client, key=key, owner=owner)
