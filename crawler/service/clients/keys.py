"""API keys, and the quotas of their clients. Only hashes of keys are stored. The ``keys`` command manages both."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Protocol

import structlog
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from crawler.configuration.setting_types import Expected, Rate
from crawler.errors import InvalidApiKey, MissingApiKey, StoreUnavailable
from crawler.platforms.model import first_problem
from crawler.storage.sqlite import SqliteFile

logger = structlog.get_logger(__name__)

MAX_CLIENT = 100
CLIENT = re.compile(rf"[^\W_][\w @.:/+&'(),#-]{{0,{MAX_CLIENT - 1}}}")
"""Matches the valid names of clients: without control characters, and not like a formula."""

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
)
SET_QUOTA = "INSERT INTO quotas (client, quota) VALUES (?, ?) ON CONFLICT (client) DO UPDATE SET quota = excluded.quota"


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
    quota: int | None = None
    """Maximum number of billable calls per month of the client, with all of its keys together. None: no limit."""

    @property
    def holder(self) -> Holder:
        """The client, and the limits of the key."""
        return Holder(self.client, self.id, self.rate, self.concurrency, self.quota)


@dataclass(frozen=True, slots=True)
class Holder:
    """The client that owns a key, the limits of the key, and the quota of the client."""

    client: str
    key_id: str
    rate: str | None = None
    concurrency: int | None = None
    quota: int | None = None


class Keys(Protocol):
    """Interface that looks up the client that owns an API key."""

    failures: int
    """Number of attempts to read the keys that failed."""

    async def holder(self, key: str | None) -> Holder:
        """Return the client that owns the key.

        Raises:
            MissingApiKey: the call has no key.
            InvalidApiKey: the key is unknown or revoked.
            StoreUnavailable: the keys could not be read yet.
        """

    async def find(self, client: str) -> Holder | None:
        """Return a client with its quota. None: it has no valid key, or the keys could not be read yet."""


class SandboxKeys:
    """The keys of the sandbox: only ``sandbox`` is valid."""

    failures = 0

    async def holder(self, key: str | None) -> Holder:
        if not key:
            raise MissingApiKey("Send an API key in the header X-API-Key. The sandbox accepts the key 'sandbox'.")
        if key != "sandbox":
            raise InvalidApiKey("This API key is unknown. The sandbox accepts the key 'sandbox'.")
        return Holder("sandbox", "sandbox")

    async def find(self, client: str) -> Holder | None:
        return Holder(client, client) if client == "sandbox" else None


def check_client(name: str) -> str:
    """Check the name of a client, which appears in logs, reports and spreadsheets, and return it.

    Raises:
        ValueError: the name is not valid.
    """
    if not CLIENT.fullmatch(name):
        raise ValueError(
            f"invalid client name {name[:80]!r}: use 1 to {MAX_CLIENT} letters, digits, spaces and "
            "@ . _ - : / + & ' ( ) , #, with a letter or digit at the start"
        )
    return name


def quota_text(quota: int) -> str:
    """Return a quota as users write it, such as ``100000/month``."""
    return f"{quota}/month"


def monthly_quota(text: str) -> int:
    """Return the number of billable calls per month of a quota such as ``100000/month``.

    Raises:
        ValueError: the text is not a quota, or allows no calls.
    """
    match = re.fullmatch(r"([1-9][0-9]{0,14})/month", text, re.ASCII)
    if match is None:
        raise ValueError(f"expected a quota such as 100000/month, not {text!r}")
    return int(match.group(1))


class ConfiguredKey(BaseModel):
    """An API key in the setting ``API_KEYS``: its hash, its client, its limits, and the quota of its client."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    client: Annotated[str, AfterValidator(check_client)]
    hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    """The SHA-256 hash of the key, in hexadecimal."""
    rate: Rate | None = None
    concurrency: int | None = Field(default=None, ge=1)
    quota: Annotated[str, Expected("a quota such as 100000/month", monthly_quota)] | None = None
    """Such as ``100000/month``. It must be the same for all keys of a client, because they share it."""


_CONFIGURED = TypeAdapter(dict[str, ConfiguredKey])


class ConfiguredKeys:
    """The API keys of the setting ``API_KEYS``. A changed setting needs a new process."""

    failures = 0

    def __init__(self, keys: object) -> None:
        """``keys`` is the value of the setting: key id -> ``ConfiguredKey``.

        Raises:
            ValueError: a key is not valid. The message has its place, and never a hash.
        """
        try:
            found = _CONFIGURED.validate_python(keys, strict=True)
        except ValidationError as error:
            raise ValueError(first_problem(error)) from None
        quotas = {key.client: key.quota for key in found.values()}
        for key_id, key in found.items():
            if key.quota != quotas[key.client]:
                raise ValueError(f"{key_id}.quota: all keys of the client {key.client!r} must have the same quota")
        self._valid = {
            key_id: Key(
                key_id,
                key.client,
                bytes.fromhex(key.hash),
                created=0,
                revoked=None,
                rate=key.rate,
                concurrency=key.concurrency,
                quota=monthly_quota(key.quota) if key.quota else None,
            )
            for key_id, key in found.items()
        }

    async def holder(self, key: str | None) -> Holder:
        return _holder(key, self._valid)

    async def find(self, client: str) -> Holder | None:
        return _find(client, self._valid)


def export(keys: Iterable[Key]) -> str:
    """Return the keys that are not revoked as a value for the setting ``API_KEYS``: hashes, clients and limits."""
    configured = {
        key.id: ConfiguredKey(
            client=key.client,
            hash=key.hash.hex(),
            rate=key.rate,
            concurrency=key.concurrency,
            quota=quota_text(key.quota) if key.quota else None,
        )
        for key in keys
        if key.revoked is None
    }
    return _CONFIGURED.dump_json(configured, exclude_none=True).decode()


Version = tuple[int, int, int]
"""Identifies a version of the file: its inode, its modification time and its size."""


class KeyStore:
    """API keys and the quotas of clients in an SQLite file, which only its owner may read and write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = SqliteFile(path, SCHEMA)

    def create(
        self, client: str, rate: str | None = None, concurrency: int | None = None, quota: int | None = None
    ) -> str:
        """Create a key for a client and return it. The key cannot be read again, because only its hash is stored.

        ``rate`` and ``concurrency`` replace the settings ``KEY_RATE`` and ``KEY_CONCURRENCY`` for this key. ``quota``
        becomes the quota of the client, for all of its keys. None: the client keeps its present quota, if any.

        Raises:
            ValueError: the client's name is not valid.
        """
        check_client(client)
        key_id, secret = secrets.token_hex(5), secrets.token_urlsafe(32)
        key = f"sk_{key_id}_{secret}"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch(mode=0o600)
        with self._file.transaction() as database:
            row = (key_id, client, _hash(key), int(time.time()), rate, concurrency)
            database.execute(
                "INSERT INTO keys (id, client, hash, created, rate, concurrency) VALUES (?, ?, ?, ?, ?, ?)", row
            )
            if quota is not None:
                database.execute(SET_QUOTA, (client, quota))
        return key

    def revoke(self, key_id: str) -> bool:
        """Revoke a key. Return False if no valid key has this id."""
        if not self.path.exists():
            return False
        with self._file.transaction() as database:
            change = "UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL"
            return database.execute(change, (int(time.time()), key_id)).rowcount == 1

    def set_quota(self, client: str, quota: int | None) -> bool:
        """Set or remove (None) the quota of a client. Return False if the client has no valid key."""
        if not self.path.exists():
            return False
        with self._file.transaction() as database:
            known = "SELECT 1 FROM keys WHERE client = ? AND revoked IS NULL"
            if not database.execute(known, (client,)).fetchone():
                return False
            if quota is None:
                database.execute("DELETE FROM quotas WHERE client = ?", (client,))
            else:
                database.execute(SET_QUOTA, (client, quota))
        return True

    def all(self) -> list[Key]:
        """Return all keys, including revoked keys, the oldest first. Without a file, there are none.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        return self.read() if self.path.exists() else []

    def read(self) -> list[Key]:
        """Return all keys as with ``all()``, but raise an error without a file. The file is not changed or created.

        Raises:
            sqlite3.Error: the file is missing, locked or damaged.
        """
        uri = f"{self.path.absolute().as_uri()}?mode=rw"  # not "ro", which could not undo a transaction that was killed
        with closing(sqlite3.connect(uri, uri=True, timeout=READ_SECONDS)) as database:
            rows = database.execute(
                "SELECT id, client, hash, created, revoked, rate, concurrency FROM keys ORDER BY created, id"
            )
            quotas = _quotas(database)
            return [replace(Key(*row), quota=quotas.get(row[1])) for row in rows]

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

    If another process changes the store's file, the next lookup reads it again, in a thread. While the file cannot be
    read (because it is locked, damaged or missing), the last keys stay valid. A key that is not among them is refused
    only after the file was read, or could not be read: on a busy machine, a client may use a new key before that.
    """

    def __init__(self, store: KeyStore) -> None:
        self.store = store
        self.failures = 0
        self._valid: dict[str, Key] | None = None
        """Key id -> the valid key. None: the keys have not been read yet."""
        self._version: Version | None = None
        self._reading: asyncio.Task[None] | None = None
        self._is_failing = False
        self._retry_at = 0.0

    async def holder(self, key: str | None) -> Holder:
        """Return the client that owns the key, as in ``Keys``."""
        if key:
            if self._is_failing or self._version is None or self.store.version != self._version:
                await self._refresh()
            if self._reading is not None and _key_id(key) not in (self._valid or {}):
                await asyncio.wait([self._reading])
            if self._valid is None:
                raise StoreUnavailable("The API keys cannot be read; retry the call.", retry_after=RETRY_SECONDS)
        return _holder(key, self._valid or {})

    async def find(self, client: str) -> Holder | None:
        """Return a client, as in ``Keys``."""
        await self._refresh()
        return _find(client, self._valid or {})

    async def _refresh(self) -> None:
        """Read the file if it has changed, and wait for the new keys, at most ``WAIT_SECONDS``.

        After a failed read, calls use the last keys at once until a read succeeds. The file's version is read in the
        event loop, because a lock on the file does not delay this.
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
            self._valid = {key.id: key for key in keys if key.revoked is None}
            self._version = version
            if self._is_failing:
                logger.warning("keys_available", file=str(self.store.path), valid=len(self._valid))
            self._is_failing = False
        finally:
            self._retry_at = asyncio.get_running_loop().time() + (RETRY_SECONDS if self._is_failing else 0)
            self._reading = None


def _holder(key: str | None, valid: Mapping[str, Key]) -> Holder:
    """Return the client that owns a key. ``valid``: key id -> the valid key.

    Hashes are compared in constant time, even for an unknown key, so that response times reveal nothing.

    Raises:
        MissingApiKey: there is no key.
        InvalidApiKey: the key is unknown or revoked.
    """
    if not key:
        raise MissingApiKey("Send an API key in the header X-API-Key.")
    stored = valid.get(_key_id(key))
    matches = hmac.compare_digest(_hash(key), stored.hash if stored else bytes(32))
    if stored is None or not matches:
        raise InvalidApiKey("This API key is unknown or revoked.")
    return stored.holder


def _find(client: str, valid: Mapping[str, Key]) -> Holder | None:
    return next((each.holder for each in valid.values() if each.client == client), None)


def _key_id(key: str) -> str:
    """Return the id in a key, or an empty string if the key does not have the form of one."""
    return key.split("_", 2)[1] if key.count("_") > 1 else ""


def _quotas(database: sqlite3.Connection) -> dict[str, int]:
    """Return the quota of each client that has one. Files of earlier versions have no table of quotas."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'quotas'").fetchone():
        return {}
    return dict(database.execute("SELECT client, quota FROM quotas"))


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
