"""API keys. Only their hashes are stored. The ``keys`` command creates and revokes keys."""

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
    """An API key as it is stored: its hash, its client and its limits."""

    id: str
    client: str
    hash: bytes
    created: int
    """Unix time in seconds."""
    revoked: int | None
    """Unix time in seconds; None if the key is not revoked."""
    rate: str | None = None
    """The key's rate limit, such as ``60/minute``. None: the setting ``KEY_RATE`` applies."""
    concurrency: int | None = None
    """The key's maximum of calls in flight. None: the setting ``KEY_CONCURRENCY`` applies."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The client that owns a key, and the limits of the key."""

    client: str
    key_id: str
    rate: str | None = None
    concurrency: int | None = None


class Keys(Protocol):
    """Interface that looks up the client that owns an API key."""

    def holder(self, key: str | None) -> Holder:
        """Return the client that owns the key.

        Raises:
            MissingApiKey: the call has no key.
            InvalidApiKey: the key is unknown or revoked.
        """


class SandboxKeys:
    """The keys of the sandbox: only ``sandbox`` is valid."""

    def holder(self, key: str | None) -> Holder:
        if not key:
            raise MissingApiKey("Send an API key in the header X-API-Key. The sandbox accepts the key 'sandbox'.")
        if key != "sandbox":
            raise InvalidApiKey("This API key is unknown. The sandbox accepts the key 'sandbox'.")
        return Holder("sandbox", "sandbox")


class KeyStore:
    """API keys in an SQLite file. If another process changes the file, the next lookup reads it again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SqliteFile(path, SCHEMA)
        self._file_version: tuple[int, int] | None = None
        self._valid: dict[str, Key] = {}

    def create(self, client: str, rate: str | None = None, concurrency: int | None = None) -> str:
        """Create a key for a client and return it. The key cannot be read again, because only its hash is stored.

        ``rate`` and ``concurrency`` replace the settings ``KEY_RATE`` and ``KEY_CONCURRENCY`` for this key.
        """
        key_id, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
        key = f"sk_{key_id}_{secret}"
        with self._file.transaction() as database:
            row = (key_id, client, _hash(key), int(time.time()), rate, concurrency)
            database.execute(
                "INSERT INTO keys (id, client, hash, created, rate, concurrency) VALUES (?, ?, ?, ?, ?, ?)", row
            )
        return key

    def revoke(self, key_id: str) -> bool:
        """Revoke a key. Return False if no valid key has this id."""
        with self._file.transaction() as database:
            change = "UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL"
            return database.execute(change, (int(time.time()), key_id)).rowcount == 1

    def all(self) -> list[Key]:
        """Return all keys, including revoked keys, the oldest first."""
        if not self.path.exists():
            return []
        with closing(self._file.connect()) as database:
            rows = database.execute(
                "SELECT id, client, hash, created, revoked, rate, concurrency FROM keys ORDER BY created, id"
            )
            return [Key(*row) for row in rows]

    @property
    def empty(self) -> bool:
        """Whether the store has no valid key."""
        return all(key.revoked is not None for key in self.all())

    def holder(self, key: str | None) -> Holder:
        """Return the client that owns the key, as in ``Keys``.

        Hashes are compared in constant time, even for an unknown key, so that response times reveal nothing.
        """
        if not key:
            raise MissingApiKey("Send an API key in the header X-API-Key.")
        self._reload()
        key_id = key.split("_", 2)[1] if key.count("_") > 1 else ""
        stored = self._valid.get(key_id)
        matches = hmac.compare_digest(_hash(key), stored.hash if stored else bytes(32))
        if stored is None or not matches:
            raise InvalidApiKey("This API key is unknown or revoked.")
        return Holder(stored.client, stored.id, stored.rate, stored.concurrency)

    def _reload(self) -> None:
        status = self.path.stat() if self.path.exists() else None
        seen = (status.st_mtime_ns, status.st_size) if status else None
        if seen != self._file_version:
            self._valid = {key.id: key for key in self.all() if key.revoked is None}
            self._file_version = seen


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
