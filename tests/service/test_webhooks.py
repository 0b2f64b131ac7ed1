"""Events of real jobs, sent by a real endpoint to well-behaved, failing, slow and hostile receivers."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import shlex
import signal
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook as Verifier

from crawler.errors import StoreUnavailable
from crawler.jobs.lifecycle import Jobs
from crawler.jobs.store import Store
from crawler.service.keys import Keys, KeyStore, Webhook, new_secret
from crawler.service.webhooks import Event, Webhooks, claim_events, due_events
from tests.conftest import empty_database
from tests.crawls import ROOT
from tests.http_server import free_port
from tests.jobs.test_changes import SEARCH, page, run
from tests.proxies import certificate_for_localhost
from tests.service import metrics_of
from tests.service.client import HEADERS, call
from tests.service.conftest import Service, running
from tests.service.receivers import ENDLESS, Behaviour, Receiver, receiving, silence, status, text
from tests.tiers import FAST_ON_POSTGRESQL, FAST_ON_SQLITE

MODULES = ROOT / ".venv" / "typescript" / "node_modules"
PATCH = "from crawler.service import webhooks as w; "
QUICK = PATCH + "w.DELAYS = (*[0.05] * 5, 3.0); w.TRY_SECONDS = 2.0; w.CLAIM_SECONDS = 60.0; w.POLL_SECONDS = 0.05"
TWICE = PATCH + "w.DELAYS = (0.05,); w.POLL_SECONDS = 0.05"
MUTE = PATCH + "w.POLL_SECONDS = 3600"
PATIENT = PATCH + "w.DELAYS = (0.05,) * 40; w.CLAIM_SECONDS = 1.0; w.POLL_SECONDS = 0.05"
TARGETS = b"scraper,query\nretail-search-v4,mustard\nretail-search-v4,\n"
"""A target with a record and an invalid line."""


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(300):
        while True:
            if condition():
                return
            await asyncio.sleep(0.02)


@dataclass
class Client:
    """A client of an endpoint, whose webhook the operator has set."""

    service: Service
    name: str
    key: str
    secret: str

    async def finish_job(self) -> str:
        """Run a job to its end. Return its id."""
        headers = HEADERS | {"X-API-Key": self.key, "Content-Type": "text/csv", "Prefer": "wait=60"}
        reply = await asyncio.to_thread(call, self.service.url, "/v1/jobs", TARGETS, headers=headers)
        assert reply.body["job"]["state"] == "done", reply.body
        return str(reply.body["job"]["job_id"])

    def tries(self) -> list[dict[str, str]]:
        """Return the log lines of the tries, in their order."""
        lines = [line for line in self.service.logged().splitlines() if "event=webhook " in line]
        found = [dict(part.split("=", 1) for part in shlex.split(line) if "=" in part) for line in lines]
        return [each for each in found if each["client"] == self.name]

    async def ended(self, n: int = 1) -> list[dict[str, str]]:
        """Wait until ``n`` events are delivered or given up. Return the tries."""
        await until(lambda: sum(each["result"] != "failed" for each in self.tries()) >= n)
        return self.tries()


@dataclass
class Endpoint:
    """A running endpoint of simulated platforms, whose keys are in a file."""

    service: Service
    keys: KeyStore
    store: str

    def client(self, url: str, name: str = "acme") -> Client:
        """Make a client with a webhook."""
        client = Client(self.service, name, self.keys.create(name), new_secret())
        assert self.keys.set_webhook(name, Webhook(url=url, secret=client.secret))
        return client

    async def deliver(self, url: str, name: str) -> tuple[Client, list[dict[str, str]]]:
        """Make a client with a webhook, run a job, and wait until its event is delivered or given up.

        Return the client and the tries.
        """
        client = self.client(url, name)
        await client.finish_job()
        return client, await client.ended()

    async def is_emptied(self) -> None:
        """Wait until no event is left to send."""
        store = Store(self.store)
        rows = "SELECT id FROM outbox"
        await until(lambda: not store.transact_sync(lambda session: session.rows(rows), write=False))
        store.disconnect()


@contextmanager
def serving(folder: Path, store: str, before: str = QUICK, workers: int = 1) -> Iterator[Endpoint]:
    keys = KeyStore(folder / "keys.sqlite")
    if not keys.all():
        keys.create("operator")  # without any key, the endpoint does not start
    settings = (f"KEYS_FILE={keys.path}", f"STORE={store}", "SANDBOX=1")
    with running(folder / "log", *settings, sandbox=False, before=before, workers=workers) as service:
        yield Endpoint(service, keys, store)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.soak)])
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """An endpoint whose environment has a proxy to which nothing can connect: no event may be sent over it."""
    folder = tmp_path_factory.mktemp("endpoint")
    with ExitStack() as stack:
        store = str(folder / "store.sqlite3")
        if request.param == "postgresql":
            store = stack.enter_context(empty_database(request.getfixturevalue("postgresql")))
        with pytest.MonkeyPatch.context() as environment:
            for each in ("http_proxy", "HTTP_PROXY", "all_proxy"):
                environment.setenv(each, "http://127.0.0.1:9")
            started = stack.enter_context(serving(folder, store))
        yield started


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """The name of a client that no other test has."""
    return re.sub(r"\W+", "-", request.node.name).strip("-")[:90]


def verified(receiver: Receiver, client: Client) -> list[Any]:
    """Return the received events. The Standard Webhooks library verifies the signature of each."""
    return [Verifier(client.secret).verify(each.body, each.headers) for each in receiver.requests]


# What is sent


async def test_the_event_of_a_job_is_signed_and_has_its_counts(endpoint: Endpoint, name: str) -> None:
    async with receiving(status(204)) as receiver:
        client = endpoint.client(f"{receiver.url}hook?token=hidden", name)
        before = metrics_of.value(endpoint.service.url, "crawler_webhooks_total", result="delivered")
        job_id = await client.finish_job()
        (sent,) = await client.ended()
        (event,) = verified(receiver, client)
        after = metrics_of.value(endpoint.service.url, "crawler_webhooks_total", result="delivered")
    assert (sent["attempt"], sent["result"], sent["status"], after - before) == ("1", "delivered", "204", 1)
    assert (event["type"], event["data"]["job_id"], event["data"]["state"]) == ("job.done", job_id, "done")
    counts = {state: n for state, n in event["data"]["targets"].items() if n}
    assert counts == {"total": 2, "done": 1, "failed": 1}
    assert event["data"]["created_at"] <= event["data"]["ended_at"] <= event["timestamp"]
    (request,) = receiver.requests
    assert request.line == "POST /hook?token=hidden HTTP/1.1"
    assert (request.headers["Webhook-Id"], request.headers["Content-Type"]) == (sent["id"], "application/json")
    log = endpoint.service.logged()
    assert not [each for each in (client.secret, client.secret.removeprefix("whsec_"), "hidden") if each in log]


@FAST_ON_SQLITE
async def test_the_event_of_a_later_run_has_the_numbers_of_changes(tmp_path: Path, location: str) -> None:
    jobs, keys = Jobs(location), KeyStore(tmp_path / "keys.sqlite")
    client_key, secret = keys.create("acme"), new_secret()
    async with receiving(status(204)) as receiver:
        assert keys.set_webhook("acme", Webhook(url=receiver.url, secret=secret))
        await run(jobs, SEARCH, page(SEARCH, "A"), owner="acme")
        second = await run(jobs, SEARCH, page(SEARCH, "A", "B", products__0__name="new"), owner="acme")
        await jobs.close()
        with serving(tmp_path, location) as endpoint:  # would crawl the targets itself while a run is open
            client = Client(endpoint.service, "acme", client_key, secret)
            await client.ended(2)
    counts = {"compared": 1, "changed": 1, "appeared": 1}
    assert {each["data"]["run"]: each["data"]["changes"] for each in verified(receiver, client)} == {
        1: None,
        2: {"counts": counts, "url": f"/v1/jobs/{second.id}/changes"},
    }


async def test_all_tries_have_the_changes_of_the_first_one(sqlite_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier run may be retried between two tries. While the store is unavailable, nothing is sent."""
    jobs = Jobs(sqlite_store)
    runs = [await run(jobs, SEARCH, page(SEARCH, "A"), owner="acme") for _ in range(2)]
    webhooks = Webhooks(jobs.writes, Keys({}), jobs, "")
    far = 1e12
    due = await jobs.writes.transact(lambda session: due_events(session, far, far, []))
    (event,) = await jobs.writes.transact(lambda session: claim_events(session, due[1:], far))
    sent: list[bytes] = []

    async def send(each: Event, _: Webhook) -> int:
        sent.append(each.body)
        return 500

    monkeypatch.setattr(webhooks, "_send", send)
    webhook = Webhook(url="http://127.0.0.1/", secret=new_secret())
    for found in (StoreUnavailable("The disk is full."), [], runs[:1]):

        async def earlier(_: object, found: Any = found) -> Any:
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(jobs, "earlier", earlier)
        await webhooks._deliver(event, webhook)
        _, (body,) = await jobs.writes.transact(lambda session: session.rows("SELECT body FROM outbox ORDER BY id"))
        event = replace(event, body=body)
    await jobs.close()
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert json.loads(sent[0])["data"]["changes"] is None


async def test_no_event_is_kept_for_a_client_without_a_webhook(endpoint: Endpoint, name: str) -> None:
    """Nor for a client whose keys were revoked before the event was sent."""
    async with receiving(status(500), silence) as receiver:
        client = endpoint.client(receiver.url, name)
        await client.finish_job()
        endpoint.keys.revoke(client.key.split("_")[1])
        await endpoint.is_emptied()
        other = endpoint.client(receiver.url, f"{name}-2")
        assert endpoint.keys.set_webhook(other.name, None)
        received = len(receiver.requests)
        await other.finish_job()
        await endpoint.is_emptied()
    assert len(receiver.requests) == received
    assert other.tries() == []


# Receivers that fail


def slowly(begin: bytes, piece: bytes) -> Behaviour:
    """Return a behaviour: send a response whose rest arrives byte by byte and never ends."""

    async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(begin)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.05)

    return send


TIMEOUT = "no response within 2 s"
FAILURES = {
    "no response": (silence, TIMEOUT),
    "late response": (status(200, delay=600), TIMEOUT),
    "slow head": (slowly(b"HTTP/1.1 20", b"0"), TIMEOUT),
    "slow headers": (slowly(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"), TIMEOUT),
    "slow body of an error": (slowly(b"HTTP/1.1 500 Text\r\nContent-Length: 999\r\n\r\n", b"x"), "500"),
    "closed connection": (text(b""), "ConnectionDone"),
    "not HTTP": (text(b"SSH-2.0-server\r\n"), "ParseError"),
    "interim response only": (text(b"HTTP/1.1 103 Early\r\n\r\n"), "ConnectionDone"),
}
SOCKET_BYTES = 8 * 2**20
"""The most that the buffers of the two ends of a loopback connection can hold."""


@pytest.mark.parametrize("case", FAILURES)
async def test_an_event_is_repeated_until_it_is_delivered(endpoint: Endpoint, name: str, case: str) -> None:
    """All tries have the same id and body, and each has a valid signature."""
    behaviour, expected = FAILURES[case]
    async with receiving(behaviour, status(200)) as receiver:
        client, (first, last) = await endpoint.deliver(receiver.url, name)
        assert len(verified(receiver, client)) == 2
    assert (first["result"], last["result"], last["status"]) == ("failed", "delivered", "200")
    assert expected in (first["status"] or first["error"])
    assert {each.headers["Webhook-Id"] for each in receiver.requests} == {first["id"]}
    assert len({each.body for each in receiver.requests}) == 1


async def test_an_event_is_given_up_after_its_last_try_and_no_redirect_is_followed(
    endpoint: Endpoint, name: str
) -> None:
    codes = [301, 302, 303, 307, 308, 500, 500]
    async with receiving(status(200)) as other:
        behaviours = [status(code, f"Location: {other.url}\r\n") for code in codes]
        async with receiving(*behaviours, status(204)) as receiver:
            _, tries = await endpoint.deliver(receiver.url, name)
            await endpoint.is_emptied()
        assert other.requests == []
    assert [each["status"] for each in tries] == [str(code) for code in codes]
    assert [each["result"] for each in tries] == ["failed"] * 6 + ["given_up"]
    assert len(receiver.requests) == 7


async def test_a_receiver_that_is_down_gets_the_event_later(endpoint: Endpoint, name: str) -> None:
    port = free_port()
    client = endpoint.client(f"http://127.0.0.1:{port}/", name)
    await client.finish_job()
    await until(client.tries)
    async with receiving(status(200), port=port) as receiver:
        first, *_, last = await client.ended()
    assert (first["error"].partition(":")[0], last["result"]) == ("ConnectionRefusedError", "delivered")
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    ("begin", "piece", "result"),
    [
        (b"HTTP/1.1 200 ", ENDLESS, "failed"),
        (b"HTTP/1.1 200 Text\r\n", b"a: b\r\n" * 4_096, "failed"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 4_096, "failed"),
        (b"HTTP/1.1 200 Text\r\n\r\n", ENDLESS, "delivered"),
        (b"HTTP/1.1 500 Text\r\n\r\n", ENDLESS, "failed"),
    ],
    ids=["line", "head", "interim responses", "body", "body of an error"],
)
async def test_few_bytes_of_an_endless_response_are_read(
    endpoint: Endpoint, name: str, begin: bytes, piece: bytes, result: str
) -> None:
    async with receiving(silence) as receiver:
        receiver.behaviours = [receiver.flood(begin, piece), status(200)]
        _, tries = await endpoint.deliver(receiver.url, name)
    assert tries[0]["result"] == result
    assert receiver.sent < SOCKET_BYTES


async def test_a_response_is_not_decompressed(endpoint: Endpoint, name: str) -> None:
    """The endpoint does not ask for compression, and a body of 64 MB in 64 kB stays compressed."""
    bomb = gzip.compress(bytes(64 * 2**20))
    head = f"HTTP/1.1 200 Text\r\nContent-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n".encode()
    async with receiving(text(head + bomb)) as receiver:
        before = peak_kilobytes(endpoint.service)
        _, tries = await endpoint.deliver(receiver.url, name)
        assert tries[0]["result"] == "delivered"
        assert "Accept-Encoding" not in receiver.requests[0].headers
    assert peak_kilobytes(endpoint.service) - before < 32_000


def peak_kilobytes(service: Service) -> int:
    """Return the peak of the resident memory of a service."""
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{service.pid}/status").read_text())
    return int(peak)


async def test_a_slow_receiver_does_not_delay_other_clients(endpoint: Endpoint, name: str) -> None:
    async with receiving(silence) as silent, receiving(status(200)) as quick:
        slow = endpoint.client(silent.url, f"{name}-slow")
        other = endpoint.client(quick.url, f"{name}-quick")
        await asyncio.gather(*(slow.finish_job() for _ in range(6)))
        await other.finish_job()
        assert (await other.ended())[0]["attempt"] == "1"
        assert not [each for each in slow.tries() if each["result"] == "delivered"]


async def test_the_certificate_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate must be trusted, and be for the host of the URL."""
    certificate = certificate_for_localhost(tmp_path / "pair.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    store = str(tmp_path / "store.sqlite3")
    async with receiving(status(200), tls=context) as receiver:
        with serving(tmp_path, store, TWICE) as endpoint:
            _, untrusted = await endpoint.deliver(f"https://localhost:{receiver.port}/", "untrusted")
            assert "certificate verify failed" in untrusted[0]["error"]
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with serving(tmp_path, store, TWICE) as endpoint:
            _, wrong = await endpoint.deliver(f"https://127.0.0.1:{receiver.port}/", "wrong")
            assert "VerificationError" in wrong[0]["error"]
            assert receiver.requests == []
            _, trusted = await endpoint.deliver(f"https://localhost:{receiver.port}/", "trusted")
            assert trusted[0]["result"] == "delivered"


# Processes


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.soak)])
@FAST_ON_POSTGRESQL
async def test_after_kill_9_an_event_is_sent_again_with_the_same_id(
    tmp_path: Path, location: str, workers: int
) -> None:
    """The service is killed before the first try, between two tries, and while the receiver responds."""
    async with receiving(status(500), status(500), silence, status(200)) as receiver:
        with serving(tmp_path, location, MUTE, workers) as endpoint:
            client = endpoint.client(receiver.url)
            await client.finish_job()
            kill_all(endpoint.service)
        assert receiver.requests == []
        for requests in (1, 3):
            with serving(tmp_path, location, PATIENT, workers) as endpoint:
                await until(lambda: len(receiver.requests) >= requests)  # noqa: B023  # awaited here
                kill_all(endpoint.service)
        with serving(tmp_path, location, PATIENT, workers) as endpoint:
            await endpoint.is_emptied()
    assert len({each.headers["Webhook-Id"] for each in receiver.requests}) == 1
    assert {each["type"] for each in verified(receiver, client)} == {"job.done"}
    assert len(receiver.requests) >= 4


def kill_all(service: Service) -> None:
    """Kill ``scrapy serve`` and its worker processes at the same moment."""
    children = Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split()
    for pid in (service.pid, *map(int, children)):
        os.kill(pid, signal.SIGKILL)


# Documentation


async def test_the_receiver_in_javascript_of_the_documentation(endpoint: Endpoint, name: str, tmp_path: Path) -> None:
    if not (MODULES / "standardwebhooks").exists():
        pytest.skip("the verifier for JavaScript is not installed: scripts/test installs it where there is npm")
    (program,) = re.findall(r"^```js\n(.*?)^```$", (ROOT / "docs/webhooks.md").read_text(), re.MULTILINE | re.DOTALL)
    port = free_port()
    (secret,) = set(re.findall(r"whsec_\w+", program))
    (tmp_path / "receiver.mjs").write_text(program.replace("8902", str(port)))
    (tmp_path / "node_modules").symlink_to(MODULES)
    process = await asyncio.create_subprocess_exec("node", "receiver.mjs", cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"listening\n"
        client = endpoint.client(f"http://127.0.0.1:{port}/", name)
        await client.finish_job()
        await until(client.tries)
        assert client.tries()[0]["status"] == "400", "another secret"
        assert endpoint.keys.set_webhook(name, Webhook(url=f"http://127.0.0.1:{port}/", secret=secret))
        assert (await client.ended())[-1]["result"] == "delivered", "a new secret takes effect with the next try"
        printed = await process.stdout.readline()
    finally:
        process.kill()
        await process.wait()
    assert printed.startswith(b'job.done {"job_id":"')
