"""API keys, and the quotas and webhooks of their clients. Only hashes of keys are stored."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, TypeAdapter, ValidationError

from crawler.configuration.setting_types import Expected, Rate
from crawler.errors import AuthError, InvalidApiKey, MissingApiKey
from crawler.platforms.model import first_problem

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


class Keys(Protocol):
    """Interface that looks up the client that owns an API key."""

    @property
    def failures(self) -> int:
        """Number of attempts to read the keys that failed."""

    async def holder(self, key: str | None) -> Holder:
        """Return the client that owns the key.

        Raises:
            MissingApiKey: the call has no key.
            InvalidApiKey: the key is unknown or revoked.
            StoreUnavailable: the keys could not be read yet.
        """

    async def webhook(self, client: str) -> Webhook | None:
        """Return the webhook of a client. None: it has no webhook, or no valid key.

        Raises:
            StoreUnavailable: the keys could not be read yet.
        """


class FixedKeys:
    """API keys that do not change while the process runs."""

    failures = 0

    def __init__(self, valid: Mapping[bytes, Holder]) -> None:
        """``valid``: as for ``holder_of()``."""
        self._valid = valid

    async def holder(self, key: str | None) -> Holder:
        return holder_of(key, self._valid)

    async def webhook(self, client: str) -> Webhook | None:
        return webhook_of(client, self._valid)


class SandboxKeys:
    """The key ``sandbox``, and the keys of clients."""

    hint = " The sandbox accepts the key 'sandbox', too."

    def __init__(self, of_clients: Keys) -> None:
        self._of_clients = of_clients

    @property
    def failures(self) -> int:
        return self._of_clients.failures

    async def holder(self, key: str | None) -> Holder:
        if key == "sandbox":
            return Holder("sandbox", "sandbox")
        try:
            return await self._of_clients.holder(key)
        except AuthError as error:
            raise type(error)(error.message + self.hint) from None

    async def webhook(self, client: str) -> Webhook | None:
        return await self._of_clients.webhook(client)


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


def configured_keys(keys: object) -> FixedKeys:
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
    return FixedKeys(valid)


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


def holder_of(key: str | None, valid: Mapping[bytes, Holder]) -> Holder:
    """Return the client that owns a key. ``valid``: hash of a valid key -> its client.

    Keys are looked up by their hash, so response times reveal nothing about valid keys.

    Raises:
        MissingApiKey: there is no key.
        InvalidApiKey: the key is unknown or revoked.
    """
    if not key:
        raise MissingApiKey("Send an API key in the header X-API-Key, or as Authorization: Bearer KEY.")
    holder = valid.get(hash_of(key))
    if holder is None:
        raise InvalidApiKey("This API key is unknown or revoked.")
    return holder


def webhook_of(client: str, valid: Mapping[bytes, Holder]) -> Webhook | None:
    """Return the webhook of a client that has a valid key, or None. ``valid``: as for ``holder_of()``."""
    return next((each.webhook for each in valid.values() if each.client == client), None)


def hash_of(key: str) -> bytes:
    """Return the hash of a key, which is stored in its place."""
    return hashlib.sha256(key.encode()).digest()
