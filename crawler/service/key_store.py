"""API keys, quotas and webhooks of clients in an SQLite file, and the valid keys of this file in memory."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import structlog

from crawler.errors import StoreUnavailable
from crawler.service.keys import Holder, Key, Webhook, check_client, hash_of, holder_of, webhook_of
from crawler.storage.sqlite import SqliteFile

logger = structlog.get_logger(__name__)

READ_SECONDS = 1.0
"""Maximum seconds for which reading the file waits for the lock of another process."""
WAIT_SECONDS = 0.5
"""Maximum seconds for which a call waits for changed keys."""
RETRY_SECONDS = 1
"""Seconds after a failure until the file is read again."""

SCHEMA = (
    (
        "CREATE TABLE IF NOT EXISTS keys"
        " (id TEXT PRIMARY KEY, client TEXT NOT NULL, hash BLOB NOT NULL, created INTEGER NOT NULL,"
        " revoked INTEGER, rate TEXT, concurrency INTEGER)"
    ),
    "CREATE TABLE IF NOT EXISTS quotas (client TEXT PRIMARY KEY, quota INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS webhooks (client TEXT PRIMARY KEY, url TEXT NOT NULL, secret TEXT NOT NULL)",
)
SET_QUOTA = "INSERT INTO quotas (client, quota) VALUES (?, ?) ON CONFLICT (client) DO UPDATE SET quota = excluded.quota"
SET_WEBHOOK = "INSERT OR REPLACE INTO webhooks (client, url, secret) VALUES (?, ?, ?)"


Version = tuple[int, int, int]
"""Identifies a version of the file: its inode, its modification time and its size."""


class KeyStore:
    """API keys, quotas and webhooks of clients in an SQLite file, which only its owner may read and write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SqliteFile(path, SCHEMA)

    def create(
        self, client: str, rate: str | None = None, concurrency: int | None = None, quota: int | None = None
    ) -> str:
        """Create a key for a client and return it. The key cannot be read again, because only its hash is stored.

        ``rate`` and ``concurrency`` replace the settings ``KEY_RATE`` and ``KEY_CONCURRENCY`` for this key. ``quota``
        becomes the quota of the client, for all of its keys. None: the client keeps its current quota, if any.

        Raises:
            ValueError: the client's name is not valid.
            sqlite3.Error: the file cannot be written.
        """
        check_client(client)
        key_id, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
        key = f"sk_{key_id}_{secret}"
        with self._file.transaction() as database:
            row = (key_id, client, hash_of(key), int(time.time()), rate, concurrency)
            database.execute(
                "INSERT INTO keys (id, client, hash, created, rate, concurrency) VALUES (?, ?, ?, ?, ?, ?)", row
            )
            if quota is not None:
                database.execute(SET_QUOTA, (client, quota))
        return key

    def revoke(self, key_id: str) -> bool:
        """Revoke a key. Return False if no valid key has this id.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        if self._is_missing:
            return False
        with self._file.transaction() as database:
            change = "UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL"
            return database.execute(change, (int(time.time()), key_id)).rowcount == 1

    def set_quota(self, client: str, quota: int | None) -> bool:
        """Set or remove (None) the quota of a client. Return False if the client has no valid key.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        if quota is None:
            return self._change(client, "DELETE FROM quotas WHERE client = ?")
        return self._change(client, SET_QUOTA, quota)

    def set_webhook(self, client: str, webhook: Webhook | None) -> bool:
        """Set or remove (None) the webhook of a client. Return False if the client has no valid key.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        if webhook is None:
            return self._change(client, "DELETE FROM webhooks WHERE client = ?")
        return self._change(client, SET_WEBHOOK, webhook.url, webhook.secret)

    def _change(self, client: str, statement: str, *values: object) -> bool:
        """Run a statement for a client. Return False if the client has no valid key."""
        if self._is_missing:
            return False
        with self._file.transaction() as database:
            known = "SELECT 1 FROM keys WHERE client = ? AND revoked IS NULL"
            if not database.execute(known, (client,)).fetchone():
                return False
            database.execute(statement, (client, *values))
        return True

    def all(self) -> list[Key]:
        """Return all keys, including revoked keys, the oldest first. Without a file, there are none.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        return [] if self._is_missing else self.read()

    def read(self) -> list[Key]:
        """Return all keys as with ``all()``, but raise an error without a file. The file is not changed or created.

        Raises:
            sqlite3.Error: the file is missing, locked or damaged.
        """
        uri = f"{self.path.absolute().as_uri()}?mode=rw"  # "ro" could not roll back an interrupted transaction
        with closing(sqlite3.connect(uri, uri=True, timeout=READ_SECONDS)) as database:
            rows = database.execute(
                "SELECT client, id, rate, concurrency, hash, created, revoked FROM keys ORDER BY created, id"
            )
            quotas = dict(_rows(database, "quotas"))
            webhooks = {
                client: Webhook.model_construct(url=url, secret=secret)
                for client, url, secret in _rows(database, "webhooks")
            }
            return [
                Key(Holder(client, key_id, rate, concurrency, quotas.get(client), webhooks.get(client)), *key)
                for client, key_id, rate, concurrency, *key in rows
            ]

    @property
    def _is_missing(self) -> bool:
        try:
            return not self.path.exists()
        except OSError:  # such as a folder of another user: SQLite reports it
            return False

    @property
    def version(self) -> Version | None:
        """The version of the file, or None if it is missing."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


class KeyRing:
    """The valid API keys of a ``KeyStore``, in memory.

    If another process changes the store's file, the next lookup reads the file again, in a thread. While the file
    cannot be read (because it is locked, damaged or missing), the keys that were read last stay valid. While the file
    is being read, a key that is not among them is refused only after the read, because the key may be new. Before the
    file is created, there are no keys.
    """

    def __init__(self, store: KeyStore) -> None:
        self.store = store
        self.failures = 0
        self._valid: dict[bytes, Holder] | None = None
        """Hash of a valid key -> its client. None: the keys have not been read yet."""
        self._version: Version | None = None
        self._reading: asyncio.Task[None] | None = None
        self._is_failing = False
        self._retry_at = 0.0

    async def holder(self, key: str | None) -> Holder:
        """Return the client that owns the key. Raises the errors of ``Keys.holder``."""
        if key and (self._valid is not None or self.store.version is not None):
            if self._is_failing or self._version is None or self.store.version != self._version:
                await self._refresh()
            if self._reading is not None and hash_of(key) not in (self._valid or {}):
                await asyncio.wait([self._reading])
            if self._valid is None:
                raise _no_keys()
        return holder_of(key, self._valid or {})

    async def webhook(self, client: str) -> Webhook | None:
        """Return the webhook of a client. Raises the errors of ``Keys.webhook``."""
        if self._valid is None and self.store.version is None:
            return None
        await self._refresh()
        if self._valid is None:
            raise _no_keys()
        return webhook_of(client, self._valid)

    async def _refresh(self) -> None:
        """Read the file if it has changed, and wait for the new keys, at most ``WAIT_SECONDS``.

        After a failed read, calls do not wait: they use the keys of the last successful read until a read succeeds
        again. The file's version is read in the event loop, because a lock on the file does not delay this.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WAIT_SECONDS
        while (version := self.store.version) != self._version or version is None or self._is_failing:
            if self._reading is None and loop.time() >= self._retry_at:
                self._reading = asyncio.create_task(self._read(version))
            if self._reading is None or self._is_failing:
                return
            done, _ = await asyncio.wait([self._reading], timeout=max(0.0, deadline - loop.time()))
            if not done:
                return

    async def _read(self, version: Version | None) -> None:
        try:
            keys = await asyncio.to_thread(self.store.read)
        except (sqlite3.Error, OSError) as error:
            self.failures += 1
            if not self._is_failing:
                valid = None if self._valid is None else len(self._valid)
                logger.error(  # noqa: TRY400  # the error's text is enough
                    "keys_unavailable", file=str(self.store.path), error=str(error), still_valid=valid
                )
            self._is_failing = True
        else:
            self._valid = {key.hash: key.holder for key in keys if key.revoked is None}
            self._version = version
            if self._is_failing:
                logger.warning("keys_available", file=str(self.store.path), valid=len(self._valid))
            self._is_failing = False
        finally:
            self._retry_at = asyncio.get_running_loop().time() + (RETRY_SECONDS if self._is_failing else 0)
            self._reading = None


def _no_keys() -> StoreUnavailable:
    return StoreUnavailable("The API keys cannot be read; retry the call.", retry_after=RETRY_SECONDS)


def _rows(database: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table of clients. Files of earlier versions may lack it."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        return []
    return database.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608  # a constant
