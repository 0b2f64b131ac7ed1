"""API keys in the setting ``API_KEYS``, in the format that ``scrapy keys export`` prints."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from crawler.commands.serve import valid_keys
from crawler.errors import InvalidApiKey, MissingApiKey
from crawler.service.keys import Holder, Keys, KeyStore, export, key_in
from tests.service.client import Reply, call
from tests.service.conftest import running

VALID = {"a1": {"client": "acme", "hash": "0" * 64}}


def keys_of(**settings: Any) -> Keys:
    """Return the keys that ``scrapy serve`` loads with these settings."""
    return valid_keys(Settings(settings))


def test_exported_keys_are_valid_without_their_file(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    key, revoked = store.create("acme", "60/minute", 4), store.create("former")
    store.revoke(revoked.split("_")[1])
    exported = export(store.all())
    assert key not in exported
    assert "former" not in exported

    keys = keys_of(API_KEYS=exported, KEYS_FILE=str(tmp_path / "missing.sqlite"))
    assert type(keys) is Keys
    assert asyncio.run(keys.holder(key)) == Holder("acme", key.split("_")[1], "60/minute", 4)
    unknown = "This API key is unknown or revoked."
    for wrong, message in (
        (revoked, unknown),
        ("sandbox", unknown),
        (f"{key}, sandbox", "several API keys: send one."),
    ):
        with pytest.raises(InvalidApiKey, match=message):
            asyncio.run(keys.holder(wrong))
    with pytest.raises(MissingApiKey):
        asyncio.run(keys.holder(None))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("sk_a1_secret", "Expecting value"),
        (5, "'int' object is not iterable"),
        ({"a1": "sk_a1_secret"}, "a1: Input should be a valid dictionary"),
        ({"a1": {"client": "acme"}}, "a1.hash: Field required"),
        ({"a1": {"client": "acme", "hash": "sk_a1_secret"}}, "a1.hash: String should match pattern"),
        ({"a1": VALID["a1"] | {"client": "=1+1"}}, "a1.client: invalid client name '=1+1'"),
        ({"a1": VALID["a1"] | {"rate": "often"}}, "a1.rate: expected a rate limit such as 60/minute"),
        ({"a1": VALID["a1"] | {"concurrency": 0}}, "a1.concurrency: Input should be greater than or equal to 1"),
        ({"a1": VALID["a1"] | {"key": "x"}}, "a1.key: Extra inputs are not permitted"),
    ],
)
def test_wrong_keys_are_refused(value: Any, message: str) -> None:
    text = value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict) else value
    with pytest.raises(UsageError) as raised:
        keys_of(API_KEYS=text)
    assert str(raised.value).startswith(f"API_KEYS: expected the output of 'scrapy keys export'; {message}")
    assert "secret" not in str(raised.value)


def test_without_any_key_the_endpoint_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No API key is valid"):
        keys_of(API_KEYS="{}", KEYS_FILE=str(tmp_path / "missing.sqlite"))


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({}, None),
        ({"x-api-key": "a"}, "a"),
        ({"authorization": "Bearer a"}, "a"),
        ({"authorization": "bearer  a "}, "a"),
        ({"authorization": "Bearer  a ", "x-api-key": "a"}, "a"),
        ({"authorization": "Bearer a", "x-api-key": ""}, "a"),
        ({"authorization": "Basic YTpi", "x-api-key": "a"}, "a"),
        ({"authorization": "Basic YTpi"}, None),
        ({"authorization": "Bearer"}, ""),
    ],
)
def test_a_key_is_in_one_of_two_headers(headers: dict[str, str], key: str | None) -> None:
    assert key_in(headers) == key


@pytest.mark.parametrize("authorization", ["Bearer b", "Bearer", "Bearer a, Bearer b"])
def test_two_different_keys_are_refused(authorization: str) -> None:
    with pytest.raises(InvalidApiKey, match="different API keys"):
        key_in({"authorization": authorization, "x-api-key": "a"})


def test_the_sandbox_accepts_the_keys_of_clients_and_its_own(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")

    def usage(**headers: str) -> Reply:
        return call(
            service.url, "/v1/usage", method="GET", headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    with running(tmp_path / "log", f"KEYS_FILE={store.path}") as service:
        refused = usage(X_API_Key="sk_unknown")
        assert (refused.status, refused.code) == (401, "INVALID_API_KEY")
        assert refused.body["status"]["message"].endswith("The sandbox accepts the key 'sandbox', too.")
        assert 'Bearer realm="scrapers"' in refused.headers["www-authenticate"]
        key = store.create("acme")  # while the endpoint runs
        for headers, client in (
            ({"X_API_Key": "sandbox"}, "sandbox"),
            ({"Authorization": "Bearer sandbox"}, "sandbox"),
            ({"X_API_Key": key}, "acme"),
            ({"Authorization": f"Bearer {key}"}, "acme"),
        ):
            assert usage(**headers).body["client_id"] == client
        both = usage(X_API_Key=key, Authorization="Bearer sandbox")
        assert (both.status, both.code) == (401, "INVALID_API_KEY")
        unknown = call(service.url, "/v1/scrapers/none", {}, headers={"Authorization": f"Bearer {key}"})
        assert (unknown.code, unknown.body["meta"]["client_id"]) == ("SCRAPER_NOT_FOUND", "acme")
        assert call(service.url, "/v1/scrapers/none", {}, headers={}).body["meta"]["client_id"] == ""
