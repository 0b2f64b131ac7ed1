"""Attacks on a service on loopback, one after the other, each with the limits of its effects.

Each attack makes one kind of hostile request. ``standing.py`` attacks with everything at once.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from crawler.service.keys import KeyStore
from tests.crawls import sandbox
from tests.service import client, test_hostile, test_routes
from tests.service.conftest import running
from tests.service.hostile_platform import canary
from tests.soak import attacks, faults
from tests.soak.attacks import Report, Victim
from tests.soak.turns import TURNS_FILE, longest_turn

MAX_TURN_SECONDS = 0.25
"""The maximum processor time of a single turn of the event loop."""
MAX_HEALTH_SECONDS = 0.25
MAX_GROWTH_MEGABYTES = 60
MAX_SLOW_MEGABYTES = 20
SILENCE_SECONDS = 2
"""If the service does not respond for this long, the sending side of the connection is closed."""
TYPED = {"OK", "STORE_UNAVAILABLE", "UPSTREAM_TIMEOUT", "OVERLOADED"}
"""The codes that are allowed during a fault. The last two are possible on a busy machine."""
EXTENSIONS = {"tests.soak.turns.Turns": 0}


@dataclass
class Verdict:
    """How many expectations an attack checked, and which of them failed."""

    tried: int = 0
    failures: list[str] = field(default_factory=list)
    report: Report | None = None

    def check(self, holds: bool, failure: str) -> None:  # noqa: FBT001  # reads as an assertion
        """Count an expectation, and record a failure if it does not hold."""
        self.tried += 1
        if not holds:
            self.failures.append(failure)


@dataclass(frozen=True)
class Attacked:
    """The service under attack, and the files that attacks may damage."""

    victim: Victim
    keys: Path
    store: Path
    turns: Path
    seconds: float
    """Duration of each fault in seconds."""


Attack = Callable[[Attacked], Verdict]


def hostile_bodies(service: Attacked) -> Verdict:
    """Invalid JSON and invalid params are rejected with the right codes."""
    verdict = Verdict()
    expected = [(body, "INVALID_JSON") for body in test_routes.BODIES]
    for sent, code in [*expected, *((params, "INVALID_REQUEST") for params in test_routes.PARAMS)]:
        reply = client.call(service.victim.url, client.CATEGORY, sent)
        verdict.check((reply.status, reply.code) == (400, code), f"{str(sent)[:40]}: {reply.status} {reply.code}")
    return verdict


def hostile_urls(service: Attacked) -> Verdict:
    """URLs of other hosts are rejected, and no request is sent to them."""
    verdict = Verdict()
    with canary() as foreign:
        for form in test_hostile.URLS:
            parts = {"host": "www.tiktok.com", "path": "/@a/video/1", "port": foreign.port}
            url = form.format_map(parts | dict.fromkeys(("wide", "cyrillic", "hidden"), "evil.example"))
            reply = client.call(service.victim.url, f"/v1/scrapers/{URL_SCRAPER}", {"url": url})
            verdict.check((reply.status, reply.code) == (400, "INVALID_REQUEST"), f"{url}: {reply.code}")
        verdict.check(not foreign.requested_paths, f"requested: {foreign.requested_paths}")
    return verdict


URL_SCRAPER = min(test_hostile.TAKE_URLS)


def malformed_http(service: Attacked) -> Verdict:
    """A malformed request gets one response with an allowed status, or the connection is closed."""
    verdict = Verdict()
    single = {name: (sent, {status}) for name, (sent, status) in test_hostile.RB_18.items()}
    for name, (sent, expected) in (test_hostile.REQUESTS | single).items():
        received = exchange(service.victim, sent).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        statuses = [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", received)]
        verdict.check(len(statuses) <= 1 and set(statuses or [0]) <= expected, f"{name}: {statuses or received[:60]!r}")
    return verdict


def exchange(victim: Victim, sent: bytes) -> bytes:
    """Send bytes and return all received bytes. The sending side is closed only if the service does not respond."""
    received = b""
    with socket.create_connection(victim.address, timeout=SILENCE_SECONDS) as connection, suppress(OSError):
        connection.sendall(sent)
        while True:
            try:
                piece = connection.recv(65_536)
            except TimeoutError:
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(60)
                continue
            if not piece:
                break
            received += piece
    return received


def pipelined_unread(service: Attacked) -> Verdict:
    """Pipelined requests for the largest file, whose responses nobody reads, take little memory."""
    report = attacks.pipelined_unread(service.victim, seconds=service.seconds)
    verdict = Verdict(report=report)
    verdict.check(report.grown <= MAX_GROWTH_MEGABYTES, f"memory grew by {report.grown:.0f} MB")
    left = report.megabytes_after - report.megabytes_before
    verdict.check(left <= MAX_GROWTH_MEGABYTES / 2, f"{left:.0f} MB are kept after the attack")
    return verdict


def slow_connections(service: Attacked) -> Verdict:
    """Heads, bodies, uploads and responses that never end, and idle connections, are closed within 20 seconds."""
    report = attacks.slow_connections(service.victim)
    verdict = Verdict(report=report)
    verdict.check(report.notes["open"] == 0, f"{report.notes['open']:.0f} connections are open")
    verdict.check(report.grown <= MAX_SLOW_MEGABYTES, f"memory grew by {report.grown:.0f} MB")
    for kind, received in report.notes["received"].items():
        without = [each[:40] for each in received if each and b'"success":false' not in each]
        verdict.check(not without, f"{kind}: {without[:1]} is no envelope")
    return verdict


def idle_connections(service: Attacked) -> Verdict:
    """Idle connections do not keep other clients from connecting, and do not delay their calls."""
    report = attacks.idle_connections(service.victim, seconds=service.seconds)
    verdict = Verdict(report=report)
    verdict.check(bool(report.calls), "no call was made")
    for code, seconds in report.calls:
        verdict.check(code == "OK", f"{code} after {seconds:.1f} s from another client")
    return verdict


def wrong_keys(service: Attacked) -> Verdict:
    """Calls with invalid keys get 401, and a valid key still works."""
    report = attacks.wrong_keys(service.victim)
    verdict = Verdict(report=report)
    statuses = report.notes["statuses"]
    verdict.check(statuses.keys() == {401}, f"statuses {statuses}")
    code, _, _ = attacks.call(service.victim, {"query": "mustard"})
    verdict.check(code == "OK", f"a valid key got {code}")
    return verdict


def under_fault(fault: str, store: str, service: Attacked) -> Verdict:
    """While the key file or the store has a fault, calls still end in time with one of the allowed codes."""
    file: Path = getattr(service, store)
    begin = partial(faults.FAULTS[fault], file)
    report, load = attacks.under_fault(service.victim, begin, seconds=service.seconds)
    verdict = Verdict(report=report)
    verdict.check(bool(load.results), "no call was made")
    for code, seconds in load.results:
        verdict.check(code in TYPED, code)
        verdict.check(seconds <= load.wait + 1, f"{code} after {seconds:.1f} s")
    return verdict


REQUEST_ATTACKS: dict[str, Attack] = {
    "hostile bodies and params": hostile_bodies,
    "hostile URLs": hostile_urls,
    "malformed HTTP": malformed_http,
    "pipelined requests, unread": pipelined_unread,
    "slow connections": slow_connections,
    "3,000 idle connections": idle_connections,
}
"""Attacks on a service that uses the sandbox and its API key."""
STORE_ATTACKS: dict[str, Attack] = {
    "wrong keys": wrong_keys,
    **{
        f"{name} {fault}": partial(under_fault, fault, store)
        for name, store in (("key store", "keys"), ("service store", "store"))
        for fault in faults.FAULTS
        if fault not in faults.NEED_MOUNT or faults.can_mount()
    },
}
"""Attacks on a service with an API key file. Some faults require the right to mount file systems."""


@contextmanager
def attacked(folder: Path, seconds: float, *, has_keys: bool) -> Iterator[Attacked]:
    """Run a service that can be attacked, with its files in a folder."""
    folder.mkdir()
    files = folder / "files"
    turns, keys, store = folder / "turns", files / "keys.sqlite", files / "service.sqlite3"
    os.environ[TURNS_FILE] = str(turns)
    settings, key = [f"EXTENSIONS={json.dumps(EXTENSIONS)}"], "sandbox"
    settings.append(f"STORE={store}")
    with ExitStack() as stack:
        stack.enter_context(faults.small_disk(files))  # a plain folder if mounting is not allowed
        if has_keys:
            key = KeyStore(keys).create("attacked")
            platforms = stack.enter_context(sandbox("--light"))
            settings += [f"KEYS_FILE={keys}", *(f"{name}={value}" for name, value in platforms.items())]
        service = stack.enter_context(running(folder / "log", *settings, sandbox=not has_keys))
        victim = Victim(service.url, service.pid, key)
        code, _, _ = attacks.call(victim, {"query": "mustard"})  # opens the crawler, whose imports block the loop
        if code != "OK":
            raise SystemExit(f"The service does not work: {code}\n{service.logged()}")
        yield Attacked(victim, keys, store, turns, seconds)


def judge(attack: Attack, service: Attacked) -> tuple[Verdict, float]:
    """Run an attack, and check the limits of all attacks. Return the verdict and the longest event-loop turn."""
    since = time.monotonic()
    try:
        verdict = attack(service)
    except (OSError, ValueError) as error:  # the service is gone, or its response is not valid
        verdict = Verdict(1, [f"{type(error).__name__}: {error}"])
    turn = longest_turn(service.turns, since)
    verdict.check(turn <= MAX_TURN_SECONDS, f"a turn of the event loop took {turn:.2f} s of processor time")
    if verdict.report:
        slowest = verdict.report.slowest_health
        verdict.check(slowest <= MAX_HEALTH_SECONDS, f"/healthz took {slowest:.2f} s")
    return verdict, turn
