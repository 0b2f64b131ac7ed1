"""Webhooks: what is sent, to which addresses, and the effects of slow, failing and hostile receivers. Issue 47."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import subprocess
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog
from standardwebhooks import Webhook

from crawler.downloads import public_addresses
from crawler.jobs.events import post
from crawler.jobs.store import Store
from crawler.service.webhooks import outbox, signed_request
from crawler.service.webhooks.dispatcher import Dispatcher
from tests.crawls import ROOT
from tests.service.receivers import ENDLESS, Behaviour, Receiver, receiving, silence, status, text

CLIENT = "acme"
SECRET = outbox.new_secret()
MODULES = ROOT / ".venv" / "typescript" / "node_modules"
PUBLIC = "93.184.215.14"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait before retries, and do not use the network, not even to find the host's own address."""
    monkeypatch.setattr(outbox, "DELAYS", (0.05,) * 40)
    monkeypatch.setattr("crawler.service.webhooks.dispatcher.POLL_SECONDS", 0.05)
    monkeypatch.setattr("crawler.service.webhooks.dispatcher.CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(public_addresses, "_is_own", lambda _ip: False)


@dataclass
class Outbox:
    """A store with a client's webhook, and a dispatcher."""

    store: Store
    dispatcher: Dispatcher

    async def watch(self, url: str, client: str = CLIENT, secret: str = SECRET) -> None:
        await self.store.transact(lambda s: outbox.put(s, client, url, secret))

    async def post(self, client: str = CLIENT, **data: Any) -> str:
        sent = await self.store.transact(lambda s: post(s, client, "job.done", data, s.now()))
        assert sent is not None
        return sent

    async def listed(self, client: str = CLIENT) -> list[dict[str, Any]]:
        return await self.store.transact(lambda s: outbox.listed(s, client, "msg_~", 100), write=False)

    async def ended(self, client: str = CLIENT, least: int | None = None) -> dict[str, Any]:
        """Wait until no event is pending, or the newest event has at least ``least`` attempts. Return this event."""
        async with asyncio.timeout(60):
            while True:
                listed = await self.listed(client)
                if least and len(listed[0]["attempts"]) >= least:
                    return listed[0]
                if "pending" not in {each["state"] for each in listed}:
                    return listed[0]
                await asyncio.sleep(0.02)


@asynccontextmanager
async def outbox_of(location: str, *, private: bool = True) -> AsyncIterator[Outbox]:
    store = Store(location)
    dispatcher = Dispatcher(store, private=private)
    dispatcher.open()
    try:
        yield Outbox(store, dispatcher)
    finally:
        await dispatcher.close()
        await store.close()


def verify(receiver: Receiver) -> list[Any]:
    """Return the received events. The Standard Webhooks library verifies the signature of each."""
    return [Webhook(SECRET).verify(each.body, each.headers) for each in receiver.requests]


# Delivery


async def test_an_event_is_delivered_once_the_receiver_is_up(location: str) -> None:
    """The receiver is down, then responds with 500, redirects, 404 and 103, and at last, slowly, with 204.

    No redirect is followed, and all attempts have the same id and body.
    """
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with outbox_of(location) as box, receiving(status(200)) as other:
        await box.watch(f"http://127.0.0.1:{port}/hook?token=1")
        sent = await box.post(job_id="7")
        await box.ended(least=1)
        redirect = status(302, f"Location: http://127.0.0.1:{other.port}/\r\n")
        permanent = status(308, f"Location: http://127.0.0.1:{other.port}/\r\n")
        behaviours = [status(500), redirect, permanent, status(404), status(103), status(204, delay=0.3)]
        async with receiving(*behaviours, port=port) as receiver:
            last = await box.ended()
        assert (last["id"], last["state"], last["next_attempt_at"]) == (sent, "delivered", None)
        assert last["attempts"][0]["error"] == "no connection: Connection refused"
        assert [each["status"] for each in last["attempts"]][-6:] == [500, 302, 308, 404, None, 204]
        assert not other.requests, "a redirect was followed"
    assert {each.headers["webhook-id"] for each in receiver.requests} == {sent}
    assert len({each.body for each in receiver.requests}) == 1
    assert receiver.requests[0].line == "POST /hook?token=1 HTTP/1.1"
    assert receiver.requests[0].headers["Host"] == f"127.0.0.1:{port}"
    (event, *_) = verify(receiver)
    assert (event["type"], event["data"]) == ("job.done", {"job_id": "7"})


async def test_an_unexpected_error_counts_as_a_try_and_is_logged(
    sqlite_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the fix, the event was sent again every 30 s without a log line."""

    async def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("crawler.service.webhooks.dispatcher.send", fail)
    monkeypatch.setattr(outbox, "DELAYS", (0.0,) * 2)
    with structlog.testing.capture_logs() as logs:
        async with outbox_of(sqlite_store) as box:
            await box.watch("http://127.0.0.1:1/")
            await box.post()
            last = await box.ended()
    assert (last["state"], [each["error"] for each in last["attempts"]]) == ("failed", ["internal error"] * 3)
    assert [each["event"] for each in logs].count("webhook_failed") == 3


async def test_a_delivery_fails_after_its_last_try(sqlite_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "DELAYS", (0.01, 0.01))
    async with outbox_of(sqlite_store) as box, receiving(status(500)) as receiver:
        await box.watch(f"http://127.0.0.1:{receiver.port}/")
        await box.post()
        last = await box.ended()
        assert (last["state"], len(last["attempts"]), len(receiver.requests)) == ("failed", 3, 3)
        await box.post()
        await box.store.transact(lambda s: outbox.drop(s, CLIENT))
        last = await box.ended()
    assert (last["state"], last["attempts"][-1]["error"]) == ("failed", "the webhook was deleted")


async def test_several_processes_send_each_event_once(location: str) -> None:
    async with receiving(status(200)) as receiver, outbox_of(location) as box, outbox_of(location), outbox_of(location):
        await box.watch(f"http://127.0.0.1:{receiver.port}/")
        sent = {await box.post(n=n) for n in range(60)}
        await box.ended()
    assert sorted(each.headers["webhook-id"] for each in receiver.requests) == sorted(sent)


async def test_a_receiver_that_never_answers_does_not_delay_other_clients(sqlite_store: str) -> None:
    async with outbox_of(sqlite_store) as box, receiving(silence) as silent, receiving(status(200)) as other:
        await box.watch(f"http://127.0.0.1:{silent.port}/")
        await box.watch(f"http://127.0.0.1:{other.port}/", "other")
        for _ in range(50):
            await box.post()
        await box.post("other")
        assert (await box.ended("other"))["state"] == "delivered"
        assert len(silent.requests) <= outbox.PER_CLIENT


async def test_the_receiver_in_javascript_of_the_documentation(sqlite_store: str, tmp_path: Path) -> None:
    if not (MODULES / "standardwebhooks").exists():
        pytest.skip("the verifier for JavaScript is not installed: scripts/test installs it where there is npm")
    (program,) = re.findall(r"^```js\n(.*?)^```$", (ROOT / "docs/webhooks.md").read_text(), re.MULTILINE | re.DOTALL)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    (secret,) = set(re.findall(r"whsec_\w+", program))
    (tmp_path / "receiver.mjs").write_text(program.replace("8902", str(port)))
    (tmp_path / "node_modules").symlink_to(MODULES)
    process = await asyncio.create_subprocess_exec("node", "receiver.mjs", cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"listening\n"
        async with outbox_of(sqlite_store) as box:
            await box.watch(f"http://127.0.0.1:{port}/", secret=SECRET)
            await box.post(name="forged")
            assert (await box.ended(least=1))["attempts"][0]["status"] == 400
            await box.watch(f"http://127.0.0.1:{port}/", secret=secret)
            await box.post(name="Grüße 🎈", quote='"\\\u2028')
            assert (await box.ended())["state"] == "delivered"
        printed = {await process.stdout.readline() for _ in range(2)}
    finally:
        process.kill()
        await process.wait()
    assert 'job.done {"name":"Grüße 🎈","quote":"\\"\\\\\u2028"}\n'.encode() in printed


# Addresses


@pytest.mark.parametrize(
    ("url", "private", "reason"),
    [
        ("http://example.com/", False, "https"),
        ("https://127.0.0.1/", False, "public"),
        ("https://[::1]/", False, "public"),
        ("https://[::ffff:10.0.0.1]:8443/", False, "public"),
        ("https://[1:2]/", False, "public"),
        ("https://169.254.169.254/", True, "public"),
        ("http://93.184.215.14/", True, "public"),
        ("https://user:password@example.com/", False, "user name"),
        ("https://example.com/#part", False, "fragment"),
        ("https://example.com/\r\nX: y", False, "ASCII"),
        ("https://exämple.com/", False, "ASCII"),
        ("https://example.com\\@127.0.0.1/", False, "ASCII"),
        ("https://example.com:99999/", False, "port"),
        ("file:///etc/passwd", True, "https"),
        ("https://example.com/" + "a" * 2_000, False, "2000"),
    ],
)
def test_a_url_that_nothing_would_be_sent_to_is_refused(url: str, private: bool, reason: str) -> None:  # noqa: FBT001  # a case
    with pytest.raises(ValueError, match=reason):
        signed_request.check_url(url, private=private)


@pytest.mark.parametrize("url", ["https://example.com", "https://example.com:8443/a?b=c%20d", "https://1.1.1.1/"])
def test_a_public_url_is_accepted(url: str) -> None:
    assert signed_request.check_url(url, private=False) == url


@dataclass
class Network:
    """A stub of the network: counts the lookups of names, and records the addresses to which connections are made."""

    answers: list[list[str]]
    lookups: int = 0

    def __post_init__(self) -> None:
        self.connected: list[str] = []
        self.connect = asyncio.open_connection

    async def resolve(self, _host: str, _port: int) -> list[str]:
        self.lookups += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    async def open_connection(self, host: str, port: int, **options: Any) -> Any:
        self.connected.append(host)
        if host == "127.0.0.1":
            return await self.connect(host, port, **options)
        raise OSError(111, "Connection refused")


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    made = Network([[PUBLIC]])
    monkeypatch.setattr(public_addresses, "resolve", made.resolve)
    monkeypatch.setattr(asyncio, "open_connection", made.open_connection)
    return made


async def test_a_name_that_is_bound_to_a_private_address_is_not_connected(sqlite_store: str, network: Network) -> None:
    """The first lookup returns a public address, the next ones a private one, alone and together with a public one."""
    network.answers = [[PUBLIC], ["127.0.0.1"], ["10.0.0.7", PUBLIC, "::1"], ["169.254.169.254"], ["fd00::1"]]
    async with outbox_of(sqlite_store, private=False) as box, receiving(status(200)) as receiver:
        await box.watch(f"https://rebound.test:{receiver.port}/")
        await box.post()
        last = await box.ended(least=5)
    refused, failed = "the host has no allowed address", "no connection: Connection refused"
    assert [each["error"] for each in last["attempts"]][:5] == [failed, refused, failed, refused, refused]
    assert set(network.connected) == {PUBLIC}, "an address was looked up again, or not checked"
    assert network.lookups >= 5
    assert not receiver.requests


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a certificate for ``receiver.test`` and its private key."""
    path = tmp_path_factory.mktemp("tls") / "pair.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout - -out -"
    names = ["-subj", "/CN=receiver.test", "-addext", "subjectAltName=DNS:receiver.test"]
    path.write_bytes(subprocess.run([*command.split(), *names], check=True, capture_output=True).stdout)
    return path


@pytest.mark.parametrize(("name", "error"), [("receiver.test", None), ("other.test", "TLS failed: Hostname mismatch")])
async def test_tls_is_checked_for_the_name_and_not_for_the_address(  # noqa: PLR0913, PLR0917  # fixtures and a case
    sqlite_store: str,
    network: Network,
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    error: str | None,
) -> None:
    network.answers = [["127.0.0.1"]]
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificate)
    names: list[str | None] = []
    server.sni_callback = lambda _socket, sent, _context: names.append(sent)
    monkeypatch.setattr(signed_request, "_tls", lambda: ssl.create_default_context(cafile=str(certificate)))
    async with outbox_of(sqlite_store) as box, receiving(status(200), tls=server) as receiver:
        await box.watch(f"https://{name}:{receiver.port}/")
        await box.post()
        last = await box.ended(least=1)
    assert names == [name]
    assert network.connected == ["127.0.0.1"]
    assert (last["attempts"][0]["error"] or "").startswith(error or "")
    assert [each.headers["Host"] for each in receiver.requests] == ([] if error else [f"{name}:{receiver.port}"])


# Hostile receivers


HOSTILE = {
    "endless line": (b"HTTP/1.1 200 ", ENDLESS, "not HTTP"),
    "endless head of interim responses": (b"HTTP/1.1 103 Early\r\n", b"a: b\r\n" * 4_096, "not HTTP"),
    "endless interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 4_096, "not HTTP"),
    "endless head": (b"HTTP/1.1 500 Text\r\n", b"a: b\r\n" * 4_096, "status 500"),
    "endless body": (b"HTTP/1.1 500 Text\r\n\r\n", ENDLESS, "status 500"),
    "endless body of success": (b"HTTP/1.1 200 Text\r\n\r\n", ENDLESS, None),
    "slow head": (b"HTTP/1.1 20", b"", "no response within"),
}
SOCKET_BYTES = 8 * 2**20
"""The most that the buffers of the two ends of a loopback connection can hold."""


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_hostile_receiver_costs_bounded_time_and_memory(
    sqlite_store: str, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, piece, error = HOSTILE[case]
    monkeypatch.setattr(signed_request, "TRY_SECONDS", 0.5)
    async with outbox_of(sqlite_store) as box, receiving(silence) as receiver:
        receiver.behaviours = [receiver.flood(begin, piece) if piece else text_and_silence(begin)]
        await box.watch(f"http://127.0.0.1:{receiver.port}/")
        tracemalloc.start()
        await box.post()
        last = await box.ended(least=1)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    found = last["attempts"][0]["error"]
    assert (found is None) == (error is None)
    assert (error or "") in (found or "")
    assert receiver.sent < SOCKET_BYTES
    assert peak < 8 * 2**20


def text_and_silence(begin: bytes) -> Behaviour:
    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(begin)
        await silence(reader, writer)

    return send


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", "not HTTP"),
        (b"\x16\x03\x01\x02\x00" * 100 + b"\n", "not HTTP"),
        (b"HTTP/1.1 999 Text\r\n\r\n", "not HTTP"),
        (b"HTTP/2 200 Text\r\n\r\n", "not HTTP"),
        (b"SSH-2.0-server\r\n", "not HTTP"),
    ],
)
async def test_a_receiver_that_does_not_send_http_is_an_error(sqlite_store: str, answer: bytes, error: str) -> None:
    async with outbox_of(sqlite_store) as box, receiving(text(answer)) as receiver:
        await box.watch(f"http://127.0.0.1:{receiver.port}/")
        await box.post()
        assert error in (await box.ended(least=1))["attempts"][0]["error"]


GARBAGE = {"HTTP": b"HTTP/1.1 200 OK\r\n\r\n", "a record": b"\x16\x03\x03\xff\xff" + ENDLESS, "nothing": b""}


@pytest.mark.parametrize("begin", GARBAGE)
async def test_garbage_instead_of_tls_is_an_error(
    sqlite_store: str, begin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signed_request, "TRY_SECONDS", 0.5)

    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            writer.write(GARBAGE[begin])
            await reader.read()
        writer.transport.abort()

    async with outbox_of(sqlite_store) as box:
        server = await asyncio.start_server(garbage, "127.0.0.1", 0)
        await box.watch(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        await box.post()
        error = (await box.ended(least=1))["attempts"][0]["error"]
        server.close()
    assert error.startswith("no response within" if begin == "nothing" else "TLS failed: ")


async def test_the_log_has_no_secret_url_or_body(sqlite_store: str) -> None:
    with structlog.testing.capture_logs() as logged:
        async with outbox_of(sqlite_store) as box, receiving(status(500), status(200)) as receiver:
            await box.watch(f"http://127.0.0.1:{receiver.port}/?token=hidden-token")
            sent = await box.post(note="hidden-data")
            await box.ended()
    lines = [each for each in logged if each["event"] == "webhook"]
    assert [(each["delivery"], each["attempt"], each["result"]) for each in lines] == [
        (sent, 1, "failed"),
        (sent, 2, "delivered"),
    ]
    assert not [each for each in (SECRET, SECRET.removeprefix("whsec_"), "hidden") if each in repr(logged)]
