"""``scrapy keys webhook``, with which the operator sets a webhook, and the receiver ``scrapy webhook listen``."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import UsageError
from scrapy.settings import Settings
from standardwebhooks import Webhook as Signer

from crawler.commands.serve import valid_keys
from crawler.errors import StoreUnavailable
from crawler.service.keys import KeyRing, KeyStore, Webhook, check_secret, check_url, export, new_secret
from tests import forks
from tests.crawls import ROOT
from tests.service.client import call
from tests.service.key_commands import Keys

SCRAPY = [sys.executable, "-m", "scrapy"]
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + "a" * 40


@pytest.fixture
def keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Keys:
    return Keys(tmp_path / "keys.sqlite", capsys)


def webhook(folder: Path, client: str = "acme") -> Webhook | None:
    """Return the webhook that an endpoint uses for a client."""
    return asyncio.run(KeyRing(KeyStore(folder / "keys.sqlite")).webhook(client))


def test_the_operator_sets_the_url_and_the_secret_of_a_client(tmp_path: Path, keys: Keys) -> None:
    keys("create", "acme")
    _, printed, note = keys("webhook", "acme", "https://example.com/a")
    secret = check_secret(printed.strip())
    assert "Save this secret now" in note
    assert keys("webhook", "acme", "https://example.com/b") == (0, "", "")
    assert webhook(tmp_path) == Webhook(url="https://example.com/b", secret=secret), "the secret stays"
    assert keys("webhook", "acme")[:2] == (0, "https://example.com/b\n")
    assert keys("webhook", "acme", "https://example.com/b", "--secret", SECRET) == (0, "", "")
    assert webhook(tmp_path) == Webhook(url="https://example.com/b", secret=SECRET)
    assert SECRET not in repr(webhook(tmp_path))
    assert webhook(tmp_path, "other") is None
    assert keys("webhook", "acme", "none") == (0, "", "")
    assert keys("webhook", "acme")[:2] == (0, "none\n")
    assert webhook(tmp_path) is None


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (("other", "https://example.com/"), 1, "No valid key belongs to the client 'other'"),
        (("other",), 1, "No valid key belongs to the client 'other'"),
        (("acme", "example.com"), 2, "url: Input should be a valid URL"),
        (("acme", "https://example.com/", "more"), 2, "Usage: scrapy keys create"),
        (("acme", "https://example.com/", "--secret", "whsec_YQ=="), 2, "secret: expected whsec_"),
    ],
)
def test_wrong_use_of_scrapy_keys_webhook(
    tmp_path: Path, keys: Keys, arguments: tuple[str, ...], exit_code: int, message: str
) -> None:
    KeyStore(tmp_path / "keys.sqlite").create("acme")
    returned, _, errors = keys("webhook", *arguments)
    assert (returned, message in errors) == (exit_code, True), errors
    assert webhook(tmp_path) is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com", "https://example.com/"),
        ("http://10.0.0.5:8443/a?b=c%20d", "http://10.0.0.5:8443/a?b=c%20d"),
        ("https://[::1]:9000/", "https://[::1]:9000/"),
        ("https://exämple.com/ä", "https://xn--exmple-cua.com/%C3%A4"),
        ("ftp://example.com/", "scheme"),
        ("https://user:password@example.com/", "user name and password"),
        ("https://example.com:99999/", "port"),
        ("https:///path only", "valid"),
        ("", "valid"),
    ],
)
def test_urls_of_webhooks(url: str, expected: str) -> None:
    if expected.startswith("http"):
        assert check_url(url) == expected
        return
    with pytest.raises(ValueError, match=expected) as raised:
        check_url(url)
    assert "password@" not in str(raised.value)


def keys_of(**settings: Any) -> Webhook | None:
    return asyncio.run(valid_keys(Settings(settings)).webhook("acme"))


def test_exported_keys_have_the_webhook(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    store.create("acme")
    store.create("acme")
    expected = Webhook(url="https://example.com/", secret=SECRET)
    store.set_webhook("acme", expected)
    exported = export(store.all())
    assert keys_of(API_KEYS=exported) == expected
    first, *_ = (configured := json.loads(exported))
    for wrong, message in (
        ({"url": "https://example.com/", "secret": OTHER}, "must have the same webhook"),
        ({"url": "https://example.com/"}, f"{first}.webhook.secret: Field required"),
    ):
        with pytest.raises(UsageError, match=message):
            keys_of(API_KEYS=json.dumps(configured | {first: configured[first] | {"webhook": wrong}}))


def test_a_file_of_keys_without_webhooks_is_read(tmp_path: Path) -> None:
    """Such as the file of version 0.2, which has no table of webhooks."""
    store = KeyStore(tmp_path / "keys.sqlite")
    store.create("acme")
    with store._file.transaction() as database:
        database.execute("DROP TABLE webhooks")
    assert webhook(tmp_path) is None


def test_keys_that_cannot_be_read_are_no_answer(tmp_path: Path) -> None:
    """The endpoint deletes the events of clients without a webhook, so it must not take an outage for an answer."""
    (tmp_path / "keys.sqlite").write_bytes(b"damaged" * 1_000)
    with pytest.raises(StoreUnavailable):
        webhook(tmp_path)


def test_scrapy_webhook_listen() -> None:
    environment = os.environ | {"CRAWLER_WEBHOOK_SECRET": SECRET}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with forks.Popen([*SCRAPY, "webhook", "listen", "--port", "0"], cwd=ROOT, env=environment, **pipes) as listener:
        assert listener.stdout is not None
        assert listener.stderr is not None
        url = listener.stdout.readline().removeprefix("listening on ").strip()
        now = datetime.now(UTC)
        body = b'{"type":"job.done"}'
        headers = {"webhook-id": "1", "webhook-timestamp": str(int(now.timestamp()))}
        signed = headers | {"webhook-signature": Signer(SECRET).sign("1", now, body.decode())}
        assert call(url, "/", body, headers=signed).status == 204
        assert json.loads(listener.stdout.readline()) == {"id": "1", "type": "job.done"}
        assert call(url, "/", b"{}", headers=signed).status == 400
        assert listener.stderr.readline() == "refused: No matching signature found\n"
        assert call(url, "/", b"{}", headers=headers | {"webhook-signature": "x"}).status == 400
        assert call(url, "/", b"{}").status == 400
        listener.send_signal(signal.SIGINT)
        assert listener.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "secret", "message"),
    [
        (["listen"], "", "CRAWLER_WEBHOOK_SECRET: expected whsec_"),
        (["listen"], "whsec_short", "CRAWLER_WEBHOOK_SECRET: expected whsec_"),
        (["liste"], SECRET, "Usage: scrapy webhook listen"),
        (["listen", "--port", "99999"], SECRET, "Cannot listen on 127.0.0.1:99999"),
    ],
)
def test_wrong_use_of_scrapy_webhook(arguments: list[str], secret: str, message: str) -> None:
    environment = os.environ | {"CRAWLER_WEBHOOK_SECRET": secret}
    done = forks.run([*SCRAPY, "webhook", *arguments], env=environment)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_new_secrets_differ_and_are_valid() -> None:
    assert check_secret(new_secret()) != check_secret(new_secret())
