"""API keys, and the quotas and webhooks of their clients: in an SQLite file, whose valid keys are kept in memory.

Only hashes of keys are stored.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import secrets
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import structlog
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, TypeAdapter, ValidationError

from crawler.configuration.setting_types import Expected, Rate
from crawler.errors import InvalidApiKey, MissingApiKey, StoreUnavailable
from crawler.platforms.model import first_problem
from crawler.storage.files import SqliteFile

logger = structlog.get_logger(__name__)

MAX_CLIENT = 100
CLIENT = re.compile(rf"[^\W_][\w @.:/+&'(),#-]{{0,{MAX_CLIENT - 1}}}")
"""Matches the valid names of clients: without control characters, and without the first character of a formula."""


SECRET_PREFIX = "whsec_"  # noqa: S105  # the prefix of all secrets
SECRET_BYTES = range(24, 65)
"""Valid sizes of a webhook's secret, by the Standard Webhooks specification."""

_HTTP_URL = TypeAdapter(HttpUrl)


def new_secret() -> str:
    """Return a new random secret of a webhook."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def check_secret(text: str) -> str:
    """Check the secret of a webhook, and return it.

    Raises:
        ValueError: the specification does not allow this secret. The message does not contain it.
    """
    try:
        size = len(base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True))
    except ValueError:
        size = 0
    if not text.startswith(SECRET_PREFIX) or size not in SECRET_BYTES:
        raise ValueError(
            f"expected {SECRET_PREFIX} and the Base64 form of {SECRET_BYTES[0]} to {SECRET_BYTES[-1]} bytes"
        )
    return text


def check_url(text: str) -> str:
    """Check the URL of a webhook, and return it in ASCII.

    Raises:
        ValueError: it is not an http or https URL without user name and password.
    """
    try:
        url = _HTTP_URL.validate_python(text)
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"]) from None
    if url.username or url.password:
        raise ValueError("expected a URL without user name and password: the secret signs each event")
    return str(url)


class Webhook(BaseModel):
    """The URL to which the events of a client are sent, and the secret that signs them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, AfterValidator(check_url)]
    secret: Annotated[str, AfterValidator(check_secret)] = Field(repr=False)


@dataclass(frozen=True, slots=True)
class Holder:
    """The client that owns a key, the limits of the key, and the quota and the webhook of the client."""

    client: str
    key_id: str
    rate: str | None = None
    """The key's rate limit, such as ``60/minute``. None: the setting ``KEY_RATE`` applies."""
    concurrency: int | None = None
    """The key's maximum of calls in flight. None: the setting ``KEY_CONCURRENCY`` applies."""
    quota: int | None = None
    """Maximum number of billable calls per month of the client, with all of its keys together. None: no limit."""
    webhook: Webhook | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """An API key as it is stored: by its hash."""

    holder: Holder
    hash: bytes
    created: int
    """Unix time in seconds."""
    revoked: int | None
    """Unix time in seconds; None if the key is not revoked."""


class Keys:
    """The valid API keys. These do not change while the process runs, unlike those of a ``KeyRing``."""

    failures = 0
    """Number of attempts to read the keys that failed."""
    accepts_sandbox = False
    """Whether the key ``sandbox`` is valid, too."""

    def __init__(self, valid: Mapping[bytes, Holder]) -> None:
        """``valid``: hash of a valid key -> its client."""
        self._valid = valid

    async def holder(self, key: str | None) -> Holder:
        """Return the client that owns a key.

        Keys are looked up by their hash, so response times reveal nothing about valid keys.

        Raises:
            MissingApiKey: the call has no key.
            InvalidApiKey: the key is unknown or revoked.
            StoreUnavailable: the keys could not be read yet.
        """
        hint = " The sandbox accepts the key 'sandbox', too." if self.accepts_sandbox else ""
        if not key:
            raise MissingApiKey(f"Send an API key in the header X-API-Key, or as Authorization: Bearer KEY.{hint}")
        if self.accepts_sandbox and key == "sandbox":
            return Holder("sandbox", "sandbox")
        holder = (await self._current(key)).get(hash_of(key))
        if holder is None:
            problem = (
                "The request has several API keys: send one." if "," in key else "This API key is unknown or revoked."
            )
            raise InvalidApiKey(f"{problem}{hint}")
        return holder

    async def webhook(self, client: str) -> Webhook | None:
        """Return the webhook of a client. None: it has no webhook, or no valid key.

        Raises:
            StoreUnavailable: the keys could not be read yet.
        """
        return next((each.webhook for each in (await self._current()).values() if each.client == client), None)

    async def _current(self, key: str | None = None) -> Mapping[bytes, Holder]:
        """Return the valid keys. ``key``: the key that is looked up, if it is only one."""
        return self._valid


def key_in(headers: Mapping[str, str]) -> str | None:
    """Return the API key in the headers of a request: ``X-API-Key``, or ``Authorization: Bearer``. None: there is none.

    ``headers``: by their lower-case names. Other schemes of ``Authorization`` are ignored: they are for proxies.

    Raises:
        InvalidApiKey: the headers have different keys.
    """
    key = headers.get("x-api-key")
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return key
    if key and key != token.strip():
        raise InvalidApiKey("X-API-Key and Authorization have different API keys: send one of the headers.")
    return token.strip()


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
    """An API key in the setting ``API_KEYS``: its hash and limits, its client, and the client's quota and webhook."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    client: Annotated[str, AfterValidator(check_client)]
    hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    """The SHA-256 hash of the key, in hexadecimal."""
    rate: Rate | None = None
    concurrency: int | None = Field(default=None, ge=1)
    quota: Annotated[str, Expected("a quota such as 100000/month", monthly_quota)] | None = None
    """The client's quota, such as ``100000/month``. All keys of a client share it, so they must have the same quota."""
    webhook: Webhook | None = None
    """The client's webhook. All keys of a client must have the same."""


_CONFIGURED = TypeAdapter(dict[str, ConfiguredKey], config=ConfigDict(defer_build=True))


def configured_keys(keys: object) -> Keys:
    """Return the API keys of the setting ``API_KEYS``.

    ``keys`` is the value of the setting: key id -> ``ConfiguredKey``.

    Raises:
        ValueError: a key is not valid. The message contains the location of the key, but never a hash.
    """
    try:
        found = _CONFIGURED.validate_python(keys, strict=True)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None
    shared = {key.client: key for key in found.values()}
    valid = {}
    for key_id, key in found.items():
        for name in ("quota", "webhook"):
            if getattr(key, name) != getattr(shared[key.client], name):
                raise ValueError(f"{key_id}.{name}: all keys of the client {key.client!r} must have the same {name}")
        quota = monthly_quota(key.quota) if key.quota else None
        valid[bytes.fromhex(key.hash)] = Holder(key.client, key_id, key.rate, key.concurrency, quota, key.webhook)
    return Keys(valid)


def export(keys: Iterable[Key]) -> str:
    """Return the keys that are not revoked as a value for the setting ``API_KEYS``.

    It has hashes, clients and limits, and the webhooks of clients with their secrets.
    """
    configured = {
        key.holder.key_id: ConfiguredKey(
            client=key.holder.client,
            hash=key.hash.hex(),
            rate=key.holder.rate,
            concurrency=key.holder.concurrency,
            quota=quota_text(key.holder.quota) if key.holder.quota else None,
            webhook=key.holder.webhook,
        )
        for key in keys
        if key.revoked is None
    }
    return _CONFIGURED.dump_json(configured, exclude_none=True).decode()


def hash_of(key: str) -> bytes:
    """Return the hash of a key, which is stored in its place."""
    return hashlib.sha256(key.encode()).digest()


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


class KeyRing(Keys):
    """The valid API keys of a ``KeyStore``, in memory.

    If another process changes the store's file, the next lookup reads the file again, in a thread. While the file
    cannot be read (because it is locked, damaged or missing), the keys that were read last stay valid. While the file
    is being read, a key that is not among them is refused only after the read, because the key may be new. Before the
    file is created, there are no keys.
    """

    def __init__(self, store: KeyStore) -> None:
        super().__init__({})
        self.store = store
        self._version: Version | None = None
        """The version of the file that was read last. None: the keys have not been read yet."""
        self._reading: asyncio.Task[None] | None = None
        self._is_failing = False
        self._retry_at = 0.0

    async def _current(self, key: str | None = None) -> Mapping[bytes, Holder]:
        if self._version is None and self.store.version is None:
            return {}
        await self._refresh()
        if key is not None and self._reading is not None and hash_of(key) not in self._valid:
            await asyncio.wait([self._reading])
        if self._version is None:
            raise StoreUnavailable("The API keys cannot be read; retry the call.", retry_after=RETRY_SECONDS)
        return self._valid

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
                logger.error(  # noqa: TRY400  # the error's text is enough
                    "keys_unavailable", file=str(self.store.path), error=str(error), still_valid=len(self._valid)
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


def _rows(database: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table of clients. Files of earlier versions may lack it."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
        return []
    return database.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608  # a constant
