"""API keys, and the quotas of their clients. Only hashes of keys are stored. The ``keys`` command manages both."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from crawler.configuration.setting_types import Expected, Rate
from crawler.errors import InvalidApiKey, MissingApiKey
from crawler.platforms.model import first_problem

MAX_CLIENT = 100
CLIENT = re.compile(rf"[^\W_][\w @.:/+&'(),#-]{{0,{MAX_CLIENT - 1}}}")
"""Matches the valid names of clients: without control characters, and not like a formula."""


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

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    client: Annotated[str, AfterValidator(check_client)]
    hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    """The SHA-256 hash of the key, in hexadecimal."""
    rate: Rate | None = None
    concurrency: int | None = Field(default=None, ge=1)
    quota: Annotated[str, Expected("a quota such as 100000/month", monthly_quota)] | None = None
    """The client's quota, such as ``100000/month``. All keys of a client share it, so they must have the same quota."""


_CONFIGURED = TypeAdapter(dict[str, ConfiguredKey], config=ConfigDict(defer_build=True))


class ConfiguredKeys:
    """The API keys of the setting ``API_KEYS``. A change of the setting takes effect only in a new process."""

    failures = 0

    def __init__(self, keys: object) -> None:
        """``keys`` is the value of the setting: key id -> ``ConfiguredKey``.

        Raises:
            ValueError: a key is not valid. The message contains the location of the key, but never a hash.
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
        return holder_of(key, self._valid)

    async def find(self, client: str) -> Holder | None:
        return find_client(client, self._valid)


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


def holder_of(key: str | None, valid: Mapping[str, Key]) -> Holder:
    """Return the client that owns a key. ``valid``: key id -> the valid key.

    Hashes are compared in constant time, even for an unknown key, so that response times reveal nothing.

    Raises:
        MissingApiKey: there is no key.
        InvalidApiKey: the key is unknown or revoked.
    """
    if not key:
        raise MissingApiKey("Send an API key in the header X-API-Key.")
    stored = valid.get(id_of(key))
    matches = hmac.compare_digest(hash_of(key), stored.hash if stored else bytes(32))
    if stored is None or not matches:
        raise InvalidApiKey("This API key is unknown or revoked.")
    return stored.holder


def find_client(client: str, valid: Mapping[str, Key]) -> Holder | None:
    """Return a client with one of its valid keys, or None. ``valid``: key id -> the valid key."""
    return next((each.holder for each in valid.values() if each.client == client), None)


def id_of(key: str) -> str:
    """Return the id in a key, "" if the text does not have the form of a key."""
    return key.split("_", 2)[1] if key.count("_") > 1 else ""


def hash_of(key: str) -> bytes:
    """Return the hash of a key, which is stored in its place."""
    return hashlib.sha256(key.encode()).digest()
