"""Asynchronous calls: every request in every state, restarts, and how long the store keeps them."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawler.sandbox.protocol import FakeResponse
from crawler.service.clients.key_store import KeyStore
from tests.hanging_platform import HangingPlatform, hanging_platform
from tests.service.client import HEADERS, SEARCH, Reply, call
from tests.service.conftest import Service, running
from tests.service.metrics_of import becomes, value

ASYNC = {"Prefer": "respond-async"}
CONTRACT_HEADERS = {"x-request-id", "location", "retry-after", "preference-applied", "x-queue-position", "x-partial"}
OK = {"scraper": "retail-search-v4", "code": "OK"}
WAIT = {"Prefer": "wait=60"}


@dataclass
class Clients:
    """A service with one download slot, and the platform, which does not respond to queries that begin with "hang"."""

    service: Service
    platform: HangingPlatform
    store: Path
    keys: dict[str, str]
    """Client name -> API key. "second" is a second key of the client acme."""

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, client: str = "acme"
    ) -> Reply:
        sent = {**HEADERS, "X-API-Key": self.keys[client], **(headers or {})}
        return call(self.service.url, path, body, method=method, headers=sent, timeout=120)

    def accept(self, query: str, headers: dict[str, str] | None = None, client: str = "acme") -> str:
        """Make an asynchronous call, and check that it is accepted. Return the path of its response."""
        reply = self.send("POST", SEARCH, {"query": query}, {**ASYNC, **(headers or {})}, client)
        assert (reply.status, reply.code) == (202, "ACCEPTED"), reply
        assert reply.headers["location"] == f"/v1/calls/{reply.body['request_id']}"
        return reply.headers["location"]

    def done(self, path: str, client: str = "acme") -> Reply:
        """Wait until a call has ended, and return its response."""
        while (reply := self.send("GET", path, headers=WAIT, client=client)).status == 202:
            pass
        return reply

    def hang(self, headers: dict[str, str] | None = None) -> str:
        """Make a call that occupies the download slot until ``platform.release`` is set. Return its path."""
        self.platform.release.clear()
        path = self.accept(f"hang{time.monotonic_ns()}", headers)
        self.platform.wait_until(lambda platform: platform.unanswered == 1)
        return path

    def outcomes(self, client: str = "acme") -> dict[str, int]:
        """Return the number of a client's calls for each code, and of its billable calls."""
        report = self.send("GET", "/v1/usage", client=client).body
        codes = {code: number for entry in report["usage"] for code, number in entry["outcomes"].items()}
        return codes | {"billable": report["billable"]}

    def set_expiry(self, path: str, seconds: float) -> None:
        """Let a call expire ``seconds`` from now."""
        with closing(sqlite3.connect(self.store, timeout=30)) as database, database:
            update = "UPDATE targets SET expires = ? WHERE key = ?"
            assert database.execute(update, (time.time() + seconds, path.rpartition("/")[2].encode())).rowcount == 1


def respond(platform: HangingPlatform, path: str, args: dict[str, str]) -> FakeResponse | None:
    query = args.get("q", "")
    if query.startswith("hang"):
        return None
    return (500, {}, b"") if query == "error" else platform.page(path, args)


def options(folder: Path, platform: HangingPlatform) -> tuple[str, ...]:
    return (
        f"KEYS_FILE={folder / 'keys.sqlite'}",
        f"STORE={folder / 'service.sqlite3'}",
        f"PLATFORM_ORIGINS={json.dumps({'retail': platform.origin})}",
        f"PLATFORM_BUDGETS={json.dumps({'retail': {'concurrency': 1, 'delay': 0}})}",
        "DOWNLOAD_TIMEOUT=3600",
        'RESPONSE_CACHE={"retail-category-v4": 60}',
    )


@contextmanager
def serving(folder: Path, *settings: str, workers: int = 1) -> Iterator[Clients]:
    """Run a service with the clients acme and other, and a platform that does not respond to some queries."""
    keys = KeyStore(folder / "keys.sqlite")
    names = {"acme": keys.create("acme"), "second": keys.create("acme"), "other": keys.create("other")}
    with (
        hanging_platform(lambda path, args: respond(platform, path, args)) as platform,
        running(folder / "log", *options(folder, platform), *settings, sandbox=False, workers=workers) as service,
    ):
        yield Clients(service, platform, folder / "service.sqlite3", names)
        platform.release.set()


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with serving(tmp_path_factory.mktemp("calls")) as started:
        yield started


@dataclass(frozen=True)
class State:
    """A state of a call, and the expected response to ``GET``."""

    name: str
    query: str
    status: int
    code: str
    retryable: bool = True
    headers: frozenset[str] = frozenset()
    billed: bool = False
    key_is_kept: bool = True
    """Whether a request with the same ``Idempotency-Key`` returns the same call."""


STATES = [
    State("waiting", "mustard", 202, "ACCEPTED", headers=frozenset({"retry-after", "x-queue-position"})),
    State("running", "hang", 202, "ACCEPTED", headers=frozenset({"retry-after"})),
    State("done", "mustard", 200, "OK", retryable=False, billed=True),
    State("failed", "error", 502, "UPSTREAM_ERROR", key_is_kept=False),
]


@contextmanager
def call_in(clients: Clients, state: State, key: str) -> Iterator[str]:
    """Create a call that is in the given state. Yield its path."""
    keyed = {"Idempotency-Key": key}
    if state.name == "waiting":
        clients.hang()
        yield clients.accept(state.query, keyed)
    elif state.name == "running":
        yield clients.hang(keyed)
    else:
        path = clients.accept(state.query, keyed)
        clients.done(path)
        yield path
    clients.platform.release.set()
    for entry in clients.send("GET", "/v1/calls").body["calls"]:
        clients.send("DELETE", f"/v1/calls/{entry['request_id']}")
    clients.platform.wait_until(lambda platform: platform.unanswered == 0)


def contract_headers(reply: Reply) -> set[str]:
    return (set(reply.headers) & CONTRACT_HEADERS) - {"x-request-id"}


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_every_state_with_every_request(clients: Clients, state: State) -> None:
    before = clients.outcomes()
    key = f"key-{state.name}"
    with call_in(clients, state, key) as path:
        request_id = path.rpartition("/")[2]
        got = clients.send("GET", path, client="second")
        assert (got.status, got.code, got.body["status"]["retryable"]) == (state.status, state.code, state.retryable)
        assert contract_headers(got) == state.headers
        assert got.headers["x-request-id"] == got.body["request_id"] == request_id
        assert got.body["success"] is (state.code == "OK")
        assert got.body["meta"]["client_id"] == "acme"
        assert got.body["meta"]["billable"] is state.billed
        assert (got.body["error"] is None) is (state.code in {"OK", "ACCEPTED"})

        for method in ("GET", "DELETE"):
            hidden = clients.send(method, path, client="other")
            unknown = clients.send(method, f"/v1/calls/req_{'0' * 26}", client="other")
            assert (hidden.status, hidden.code) == (404, "CALL_NOT_FOUND")
            assert hidden.body["error"] == unknown.body["error"]

        entry = clients.send("GET", "/v1/calls?limit=100").body["calls"]
        (listed,) = [each for each in entry if each["request_id"] == request_id]
        assert listed["state"] == {"failed": "done"}.get(state.name, state.name)
        assert listed["code"] == (None if state.status == 202 else state.code)

        query = clients.send("GET", "/v1/calls").body["calls"]
        params = next(each["params"] for each in query if each["request_id"] == request_id)
        again = clients.send("POST", SEARCH, params, {**ASYNC, "Idempotency-Key": key})
        assert (again.body["request_id"] == request_id) is state.key_is_kept
        if state.key_is_kept:
            assert (again.status, again.code, again.headers["idempotent-replayed"]) == (
                state.status,
                state.code,
                "true",
            )
            assert again.body["meta"]["billable"] is False, "US3-19"
            other = clients.send("POST", SEARCH, {"query": "other"}, {**ASYNC, "Idempotency-Key": key})
            assert (other.status, other.code) == (422, "IDEMPOTENCY_MISMATCH")
            synchronous = clients.send("POST", SEARCH, params, {"Idempotency-Key": key})
            expected = "OK" if state.name == "done" else "IDEMPOTENCY_IN_PROGRESS"
            assert synchronous.code == expected
        else:
            clients.done(again.headers["location"])

        deleted = clients.send("DELETE", path)
        assert (deleted.status, deleted.body, "content-length" in deleted.headers) == (204, None, False)
        for method in ("GET", "DELETE"):
            assert clients.send(method, path).code == "CALL_NOT_FOUND"
    after = clients.outcomes()
    assert after["billable"] - before["billable"] == state.billed
    cancelled = after.get("CLIENT_GONE", 0) - before.get("CLIENT_GONE", 0)
    assert cancelled == {"waiting": 2, "running": 1}.get(state.name, 0), "with the call that took the slot"


def test_a_call_that_is_done_in_time_is_returned_at_once(clients: Clients) -> None:
    reply = clients.send("POST", SEARCH, {"query": "salt"}, {"Prefer": "respond-async, wait=60"})
    assert (reply.status, reply.code) == (200, "OK")
    assert reply.headers["preference-applied"] == "wait=60"
    again = clients.send("GET", reply.headers["location"])
    assert again.body == reply.body
    clients.hang()
    late = clients.send("POST", SEARCH, {"query": "salt"}, {"Prefer": "wait=1, RESPOND-ASYNC"})
    assert (late.status, late.headers["preference-applied"]) == (202, "respond-async, wait=1")
    clients.platform.release.set()
    done = clients.done(late.headers["location"])
    assert (done.status, done.headers["preference-applied"]) == (200, "wait=60")


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({}, {"query": ""}, "INVALID_REQUEST"),
        ({}, b"[]", "INVALID_JSON"),
        ({"Content-Type": "text/plain"}, {"query": "x"}, "UNSUPPORTED_MEDIA_TYPE"),
        ({"Idempotency-Key": "é"}, {"query": "x"}, "INVALID_REQUEST"),
        ({"X-API-Key": "wrong"}, {"query": "x"}, "INVALID_API_KEY"),
    ],
    ids=["params", "json", "media type", "idempotency key", "api key"],
)
def test_a_wrong_call_is_refused_at_once(clients: Clients, headers: dict[str, str], body: Any, code: str) -> None:
    before = clients.send("GET", "/v1/calls").body["counts"]
    reply = clients.send("POST", SEARCH, body, {**ASYNC, **headers})
    assert reply.code == code
    assert clients.send("GET", "/v1/calls").body["counts"] == before


@pytest.mark.parametrize("query", ["state=gone", "limit=0", "limit=101", "cursor=x", "limit=1&limit=2", "page=1"])
def test_a_wrong_query_of_the_list_is_refused(clients: Clients, query: str) -> None:
    assert clients.send("GET", f"/v1/calls?{query}").code == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("POST", "/v1/calls", "GET, HEAD"), ("PUT", f"/v1/calls/req_{'0' * 26}", "GET, HEAD, DELETE")],
    ids=["list", "call"],
)
def test_other_methods_are_refused(clients: Clients, method: str, path: str, allowed: str) -> None:
    reply = clients.send(method, path)
    assert (reply.code, reply.headers["allow"]) == ("METHOD_NOT_ALLOWED", allowed)


def test_the_list_has_pages(clients: Clients) -> None:
    clients.hang()
    made = [clients.accept(f"page {number}", client="other") for number in range(3)]
    first = clients.send("GET", "/v1/calls?limit=2&state=waiting", client="other").body
    second = clients.send("GET", f"/v1/calls?limit=2&cursor={first['next_cursor']}", client="second").body
    assert second["calls"] == [] or second["client_id"] == "acme", "a cursor shows no other client's calls"
    second = clients.send("GET", f"/v1/calls?limit=2&cursor={first['next_cursor']}", client="other").body
    listed = [each["request_id"] for each in first["calls"] + second["calls"]]
    assert [f"/v1/calls/{each}" for each in listed] == made[::-1]
    assert (first["counts"]["waiting"], second["next_cursor"]) == (3, None)
    assert clients.send("GET", made[2], client="other").headers["x-queue-position"] == "3"
    assert becomes(clients.service.url, 3, "crawler_async_calls", platform="retail", state="waiting")
    clients.platform.release.set()
    for path in made:
        assert clients.done(path, "other").code == "OK"


def test_calls_are_not_jobs_of_the_client(clients: Clients) -> None:
    """The store keeps calls as targets of an internal job, which the job routes must not show."""
    assert clients.done(clients.accept("no job")).code == "OK"
    assert clients.send("GET", "/v1/jobs").body["jobs"] == []
    for number in range(1, 4):
        assert clients.send("GET", f"/v1/jobs/{number}").code == "JOB_NOT_FOUND"


def test_calls_count_once_in_usage_and_metrics(clients: Clients) -> None:
    before, answered = clients.outcomes(), value(clients.service.url, "crawler_calls_total", **OK)
    path = clients.accept("counted")
    for _ in range(3):
        assert clients.done(path).body["meta"]["billable"] is True
    after = clients.outcomes()
    assert (after["OK"] - before["OK"], after["billable"] - before["billable"]) == (1, 1)
    assert "ACCEPTED" not in after
    assert value(clients.service.url, "crawler_calls_total", **OK) - answered == 1


def test_the_same_key_twice_at_once_makes_one_call(clients: Clients) -> None:
    keyed = {**ASYNC, "Idempotency-Key": "at-once"}
    with ThreadPoolExecutor(8) as threads:
        replies = [*threads.map(lambda _: clients.send("POST", SEARCH, {"query": "same"}, keyed), range(8))]
    assert {reply.status for reply in replies} <= {200, 202}
    assert len({reply.body["request_id"] for reply in replies}) == 1


def test_a_cached_record_is_returned_at_once(clients: Clients) -> None:
    path, params = SEARCH.replace("search", "category"), {"cat_id": "976759"}
    assert clients.send("POST", path, params).headers["x-cache"] == "MISS"
    hit = clients.send("POST", path, params, ASYNC)
    assert (hit.status, hit.headers["x-cache"], hit.body["meta"]["billable"]) == (200, "HIT", False)


def test_a_call_that_has_waited_too_long_is_overloaded(clients: Clients) -> None:
    clients.hang()
    path = clients.accept("late")
    clients.set_expiry(path, -1)
    ended = clients.done(path)
    assert (ended.status, ended.code, ended.body["meta"]["billable"]) == (503, "OVERLOADED", False)
    assert "retry-after" not in ended.headers
    clients.platform.release.set()


def test_an_expired_response_is_not_found(clients: Clients) -> None:
    path = clients.accept("expiring")
    assert clients.done(path).code == "OK"
    clients.set_expiry(path, -1)
    for method in ("GET", "DELETE"):
        assert clients.send(method, path).code == "CALL_NOT_FOUND"


def test_the_store_is_private(clients: Clients) -> None:
    assert {file.stat().st_mode & 0o077 for file in clients.store.parent.glob("service.sqlite3*")} == {0}


# Restarts and workers


def test_accepted_calls_outlive_a_killed_service(tmp_path: Path) -> None:
    lease = "JOB_LEASE=5"  # the second service takes over the calls whose leases the first does not renew
    with serving(tmp_path, lease) as clients:
        done = clients.accept("before")
        before = clients.done(done)
        running_call = clients.hang({"Idempotency-Key": "kept"})
        params = clients.send("GET", "/v1/calls?state=running").body["calls"][0]["params"]
        waiting = [clients.accept(f"waiting {number}") for number in range(3)]
        platform = clients.platform
        clients.service.process.kill()
        clients.service.process.wait()
        platform.release.set()
        with running(tmp_path / "log2", *options(tmp_path, platform), lease, sandbox=False, workers=2) as service:
            restarted = Clients(service, platform, clients.store, clients.keys)
            assert restarted.send("GET", done).body == before.body
            again = restarted.send("POST", SEARCH, params, {**ASYNC, "Idempotency-Key": "kept"})
            assert again.headers["location"] == running_call
            for path in (running_call, *waiting):
                assert restarted.done(path).body["meta"]["billable"] is True
            assert restarted.outcomes() == {"OK": 5, "billable": 5}
            assert restarted.send("GET", "/v1/calls").body["counts"] == {"waiting": 0, "running": 0, "done": 5}
            service.process.terminate()
            assert service.process.wait(60) == 0
