"""The endpoint's life cycle: start, replacement of crawlers under load, shutdown, keys."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from crawler.commands.keys import printable
from crawler.errors import InvalidApiKey
from crawler.sandbox.retail.site import FAULTS, Site
from crawler.service.keys import KeyRing, KeyStore
from tests import forks
from tests.service.client import CATEGORY, call, many
from tests.service.conftest import running
from tests.service.key_commands import Keys


def test_every_call_has_its_outcome(tmp_path: Path) -> None:
    """Also of faulty targets, a third of all, and while crawlers are replaced."""
    faults = sorted(cat_id for cat_id, name in Site.fault_ids.items() if name != "hang")
    calls, expected = [], []
    for n in range(60):
        faulty = faults[n // 3 % len(faults)]
        calls.append((CATEGORY, {"cat_id": "3944", "page": n % 5 + 1} if n % 3 else {"cat_id": faulty}))
        expected.append("OK" if n % 3 else FAULTS[Site.fault_ids[faulty]].code)
    # Every call gets a response, but it may be late if the machine is busy.
    with running(tmp_path / "log", "DOWNLOAD_TIMEOUT=60", "SERVICE_RECYCLE_TARGETS=10") as service:
        replies = asyncio.run(many(service.url, calls))
        assert [reply.code for reply in replies] == expected, service.logged()[-3_000:]
        assert "Traceback" not in service.logged()


def test_keys_are_created_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys, ring = Keys(tmp_path / "keys", capsys), KeyRing(KeyStore(tmp_path / "keys"))
    _, key, note = keys("create", "acme")
    key = key.strip()
    key_id = key.split("_")[1]
    assert (key.startswith("sk_"), note) == (True, "Save this key now: only its hash is stored.\n")
    assert key.encode() not in (tmp_path / "keys").read_bytes(), "only the hash is stored"
    assert asyncio.run(ring.holder(key)).client == "acme"
    assert keys("list")[1].split()[::3] == [key_id, "acme"]
    assert keys("revoke", key_id) == (0, "", "")
    with pytest.raises(InvalidApiKey, match="revoked"):
        asyncio.run(ring.holder(key))
    assert keys("revoke", key_id)[0] == 1
    assert keys("unknown")[0] == 2


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        *(("damaged", arguments, "file is not a database.") for arguments in (("list",), ("create", "acme"))),
        ("folder", ("create", "acme"), "[Errno 21] Is a directory"),
        ("file/keys.sqlite", ("create", "acme"), "[Errno "),
        ("k" * 300, ("create", "acme"), "[Errno 36] File name too long"),
        *(("k" * 300, arguments, "") for arguments in (("list",), ("revoke", "a"))),
    ],
)
def test_a_file_of_keys_that_cannot_be_used_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, arguments: tuple[str, ...], reason: str
) -> None:
    """A name that is too long is as if its folder were another user's, which tests of the user root cannot try."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "damaged").write_text("This is not a database. " * 50)
    code, out, problem = Keys(tmp_path / name, capsys)(*arguments)
    assert (code, out, problem.count("\n")) == (1, "", 1)
    assert problem.startswith(f"{tmp_path / name} cannot be read: {reason}")


def test_only_the_owner_may_read_the_keys(tmp_path: Path) -> None:
    store = KeyStore(tmp_path / "folder" / "keys.sqlite")
    store.create("acme")
    assert store.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("client", ["Acme", "O'Brien & Co. (EU), #7", "team@example.com", "Zoë 1", "x" * 100])
def test_names_of_clients_are_accepted(tmp_path: Path, client: str) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    store.create(client)
    assert [key.holder.client for key in store.all()] == [client]


@pytest.mark.parametrize(
    "client", ["", " ", "a\nb", "a\u202eb", "x" * 101, "=1+1", "+1", "-1", "@SUM(A1)", "a\tb", "a\x1b[1m"]
)
def test_unsafe_names_of_clients_are_refused(tmp_path: Path, client: str) -> None:
    store = KeyStore(tmp_path / "keys.sqlite")
    with pytest.raises(ValueError, match="invalid client name"):
        store.create(client)
    assert not store.path.exists()


def test_names_of_earlier_versions_are_printed_without_control_characters() -> None:
    assert printable("acme") == "acme"
    assert printable("a\n\u202eb") == r"'a\n\u202eb'"


def test_routes_can_be_moved_to_a_second_port(tmp_path: Path) -> None:
    hidden = "SERVICE_HIDDEN_ROUTES=/docs,/llms.txt,/metrics,/openapi.json"
    settings = (hidden, "CONSOLE=0", "SERVICE_INTERNAL_ADDRESS=127.0.0.1:0")
    with running(tmp_path / "log", *settings, workers=2) as service:
        assert service.process.stdout
        internal = service.process.stdout.readline().split()[2]
        for path in ("/docs", "/llms.txt", "/metrics", "/openapi.json", "/docs/start.js", "/"):
            assert call(service.url, path, method="GET").code == "SCRAPER_NOT_FOUND"
            assert call(internal, path, method="GET").status == (302 if path == "/" else 200)
        for url in (service.url, internal):
            assert call(url, "/healthz", method="GET").status == 200
            assert call(url, CATEGORY, {"cat_id": "976759"}).code == "OK"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "scrapy keys create"),
        (
            ["--sandbox", "-s", "SERVICE_HIDDEN_ROUTES=/healthz"],
            "SERVICE_HIDDEN_ROUTES.0: Input should be '/docs', '/llms.txt', '/metrics' or '/openapi.json'.",
        ),
        (["--sandbox", "-s", "SERVICE_URL=data.example.com"], "SERVICE_URL: expected a URL such as"),
        (["--sandbox", "-s", "SERVICE_INTERNAL_ADDRESS=x"], "expected an address such as 127.0.0.1:9100."),
        (["--sandbox", "-s", "SERVICE_INTERNAL_ADDRESS=0.0.0.0:1"], "loopback"),
        (["--sandbox", "--host", "0.0.0.0"], "loopback"),
        (["--sandbox", "--host", "example.com"], "loopback"),
    ],
)
def test_an_invalid_command_line_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    settings = {"CRAWLER_KEYS_FILE": str(tmp_path / "none.sqlite"), "CRAWLER_STORE": str(tmp_path / "store.sqlite3")}
    run = forks.run(
        [sys.executable, "-m", "scrapy", "serve", "--port", "0", *arguments], env={**os.environ, **settings}
    )
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr
