"""API keys: created and revoked on the command line, checked in memory, stored as hashes only."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from crawler.errors import InvalidApiKey, MissingApiKey
from crawler.storage.sqlite import SqliteFile

SCHEMA = (
    (
        "CREATE TABLE IF NOT EXISTS keys"
        " (id TEXT PRIMARY KEY, client TEXT NOT NULL, hash BLOB NOT NULL, created INTEGER NOT NULL,"
        " revoked INTEGER, rate TEXT, concurrency INTEGER)"
    ),
)


@dataclass(frozen=True, slots=True)
class Key:
    """A stored key: what is known of it does not open anything."""

    id: str
    client: str
    hash: bytes
    created: int
    """Unix seconds."""
    revoked: int | None
    """Unix seconds, None while it is valid."""
    rate: str | None = None
    """Calls in a time, as ``60/minute``; None: the setting ``KEY_RATE``."""
    concurrency: int | None = None
    """Calls at once; None: the setting ``KEY_CONCURRENCY``."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose key a call carries, and what it may ask for."""

    client: str
    key_id: str
    rate: str | None = None
    concurrency: int | None = None


class Keys(Protocol):
    """Whoever can say whose key it is."""

    def holder(self, key: str | None) -> Holder:
        """Whose key it is.

        Raises:
            MissingApiKey: there is none.
            InvalidApiKey: unknown or revoked.
        """


class SandboxKeys:
    """The sandbox's only key, ``sandbox``."""

    def holder(self, key: str | None) -> Holder:
        if not key:
            raise MissingApiKey("Send your API key in the header X-API-Key. This is the sandbox: its key is 'sandbox'.")
        if key != "sandbox":
            raise InvalidApiKey("This is the sandbox: its key is 'sandbox'.")
        return Holder("sandbox", "sandbox")


class KeyStore:
    """Keys in an SQLite file. A change made by another process holds from the next call on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SqliteFile(path, SCHEMA)
        self._seen: tuple[int, int] | None = None
        self._valid: dict[str, Key] = {}

    def create(self, client: str, rate: str | None = None, concurrency: int | None = None) -> str:
        """A new key for a client, with limits of its own if any: the only time that it is readable."""
        key_id, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
        key = f"sk_{key_id}_{secret}"
        with self._file.transaction() as database:
            row = (key_id, client, _hash(key), int(time.time()), rate, concurrency)
            database.execute(
                "INSERT INTO keys (id, client, hash, created, rate, concurrency) VALUES (?, ?, ?, ?, ?, ?)", row
            )
        return key

    def revoke(self, key_id: str) -> bool:
        """Revokes a key; False where there is no valid key with this id."""
        with self._file.transaction() as database:
            change = "UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL"
            return database.execute(change, (int(time.time()), key_id)).rowcount == 1

    def all(self) -> list[Key]:
        """Every key, the oldest first."""
        if not self.path.exists():
            return []
        with closing(self._file.connect()) as database:
            rows = database.execute(
                "SELECT id, client, hash, created, revoked, rate, concurrency FROM keys ORDER BY created, id"
            )
            return [Key(*row) for row in rows]

    @property
    def empty(self) -> bool:
        """Whether no key is valid."""
        return all(key.revoked is not None for key in self.all())

    def holder(self, key: str | None) -> Holder:
        """See ``Keys``. All hashes are compared in constant time, also against a key that does not exist."""
        if not key:
            raise MissingApiKey("Send your API key in the header X-API-Key.")
        self._reload()
        key_id = key.split("_", 2)[1] if key.count("_") > 1 else ""
        known = self._valid.get(key_id)
        matches = hmac.compare_digest(_hash(key), known.hash if known else bytes(32))
        if known is None or not matches:
            raise InvalidApiKey("This API key is unknown or revoked.")
        return Holder(known.client, known.id, known.rate, known.concurrency)

    def _reload(self) -> None:
        status = self.path.stat() if self.path.exists() else None
        seen = (status.st_mtime_ns, status.st_size) if status else None
        if seen != self._seen:
            self._valid = {key.id: key for key in self.all() if key.revoked is None}
            self._seen = seen


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
