"""The clients of the standing attack: good and hostile ones, and what they must receive."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from crawler.errors import documented
from tests.service import client, test_hostile, test_routes
from tests.service.client import Reply
from tests.soak.attacks import SLOW, Victim, exchange
from tests.soak.product import Pace, Product
from tests.soak.targets import FORMATS, Lines, Targets, lines, rows
from tests.targets.test_xlsx import BROKEN, HOSTILE, OLE, REFUSED

CODES = {error.code for error in documented()} - {"INTERNAL_ERROR"}
LATE_SECONDS = 1.0
"""Seconds after its deadline in which a call must have its response, beside what the machine was too slow for."""
CLIENT_SECONDS = 10.0
"""The same, measured by the client: this process also writes and reads the bodies of all other requests."""
SLOW_SECONDS = 20.0
"""Seconds for which a slow connection is kept: it must be closed after 15."""
UNFINISHED = 6
"""Number of jobs that are not done, from which on a client makes no other."""
ENVELOPES = {"RATE_LIMITED", "CONCURRENCY_LIMITED", "STORE_UNAVAILABLE", "OVERLOADED", "SHUTTING_DOWN"}
"""The errors with which an upload is to be repeated."""


@dataclass
class Ledger:
    """What the clients have sent and received."""

    differences: Counter[str] = field(default_factory=Counter)
    answered: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Client -> how many calls got a response with a code."""
    billable: Counter[str] = field(default_factory=Counter)
    """Client -> how many of its calls are billable, as their envelopes state."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """Client -> how many of its calls have no response, because either side has closed the connection."""
    uploads: dict[str, Lines] = field(default_factory=dict)
    """Idempotency key -> the lines of the upload."""
    jobs: dict[str, str] = field(default_factory=dict)
    """Idempotency key -> the id of the job that the client received."""
    figures: Counter[str] = field(default_factory=Counter)

    def differs(self, text: str) -> None:
        self.differences[text[:600]] += 1


class Clients:
    """Three clients: ``caller`` waits for its responses, ``jobs`` makes jobs, ``hostile`` does what nobody should."""

    def __init__(self, product: Product, keys: dict[str, str], targets: Targets, ledger: Ledger, pace: Pace) -> None:
        self.product = product
        self.keys = keys
        self.targets = targets
        self.ledger = ledger
        self.pace = pace
        self.ended = threading.Event()
        self.uploads = threading.Lock()

    def run(self, seed: str) -> None:
        """Act until the attack ends."""
        chance = random.Random(seed)  # noqa: S311  # no secret
        while not self.ended.is_set():
            action = chance.choices(list(ACTIONS), list(ACTIONS.values()))[0]
            self.ledger.figures[action.__name__] += 1
            try:
                action(self, chance)
            except (OSError, HTTPException):
                self.ledger.figures["broken"] += 1
                time.sleep(0.1)
            except Exception as error:  # noqa: BLE001  # a response that the client cannot read is a difference
                self.ledger.differs(f"{action.__name__}: {type(error).__name__}: {error}")

    def send(self, name: str, method: str, path: str, body: Any = None, timeout: float = 180, **headers: str) -> Reply:
        """Send a request of a client. A response with an error must be an envelope with a known code."""
        own = {**client.HEADERS, "X-API-Key": self.keys.get(name, name)}
        own |= {key.replace("_", "-"): value for key, value in headers.items()}
        reply = client.call(self.product.url, path, body, method=method, headers=own, timeout=timeout)
        if reply.status >= 400:
            try:
                body, is_envelope = reply.body, False
                is_envelope = not body["success"] and body["status"]["code"] == body["error"]["code"] in CODES
            except (KeyError, TypeError):
                pass
            if not is_envelope:
                self.ledger.differs(f"{method} {path}: {reply.status} {str(reply.body)[:300]}")
        return reply

    # Good clients

    def call(self, chance: random.Random) -> None:
        """Call a scraper, and wait for the response, which must come before the deadline."""
        wanted, wait = self.targets.draw(chance), chance.choice((1, 3, 8, 20))
        begin, late = time.monotonic(), self.pace.lateness()
        path = f"/v1/scrapers/{wanted.scraper}"
        try:
            reply = self.send("caller", "POST", path, wanted.params, Prefer=f"wait={wait}")
        except (OSError, HTTPException):
            self.ledger.unanswered["caller"] += 1
            raise
        seconds, slack = time.monotonic() - begin, self.pace.lateness() - late
        within = reply.body["meta"]["duration_ms"] / 1000
        if within > wait + LATE_SECONDS + slack or seconds > wait + CLIENT_SECONDS + slack:
            self.ledger.differs(f"{wanted} with wait={wait} after {seconds:.1f} s ({within=}, {slack:.1f} s of load)")
        self.ledger.answered["caller"][reply.code] += 1
        self.ledger.billable["caller"] += reply.body["meta"]["billable"]
        if found := wanted.contradiction(reply.code, None, reply.body["data"]):
            self.ledger.differs(f"a call has {found}")

    def upload(self, chance: random.Random) -> None:
        """Upload a job, and repeat the upload with its key until it is accepted."""
        with self.uploads:
            number = len(self.ledger.uploads)
            if number >= UNFINISHED and sum(each["state"] == "open" for each in self.listed("jobs")) >= UNFINISHED:
                return
            key = f"upload-{number}"
            of = self.ledger.uploads[key] = lines(self.targets, chance, f"{number}")
        media_type = chance.choice([*FORMATS])
        body = FORMATS[media_type](rows(of))
        while not self.ended.is_set():
            with suppress(OSError, HTTPException):
                reply = self.send("jobs", "POST", "/v1/jobs", body, Content_Type=media_type, Idempotency_Key=key)
                if reply.status == 202:
                    self.ledger.jobs[key] = reply.body["job"]["job_id"]
                    return
                if reply.code not in {*ENVELOPES, "IDEMPOTENCY_IN_PROGRESS"}:
                    self.ledger.differs(f"an upload of {media_type}: {reply.body['error']}")
                    return
            time.sleep(chance.random() * 2)

    def listed(self, name: str) -> list[dict[str, Any]]:
        """Return all jobs of a client."""
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            reply = self.send(name, "GET", f"/v1/jobs{after}")
            if reply.status != 200:
                raise ConnectionError(reply.code)
            found += reply.body["jobs"]
            if reply.body["next_after"] is None:
                return found
            after = f"?after={reply.body['next_after']}"

    def read_job(self, chance: random.Random) -> None:
        """Read a job and its outcomes in any format, while it runs."""
        if self.ledger.jobs:
            path = f"/v1/jobs/{chance.choice([*self.ledger.jobs.values()])}"
            rest = ("", "/records", "/records?format=csv", "/records?format=xlsx", "/failures", "/changes")
            self.send("jobs", "GET", path + chance.choice(rest))

    # Hostile clients

    def leave(self, chance: random.Random) -> None:
        """Send a request or a part of one, read slowly, and leave before the end, with or without a reset."""
        name, method, path, reads, kind = "hostile", "POST", client.SEARCH, 0, chance.random()
        media_type, body = "application/json", b'{"query": "%b"}' % chance.choice((b"hang", b"slow"))
        length = len(body)
        if kind < 0.2:  # an upload that stalls
            path, media_type, length = "/v1/jobs", "text/plain", 10_000_000
            body = b"mustard\n" * chance.randrange(1_000)
        elif kind < 0.4 and self.ledger.jobs:
            name, method, path = "jobs", "GET", f"/v1/jobs/{chance.choice([*self.ledger.jobs.values()])}/records"
            body, length, reads = b"", 0, chance.randrange(20)
        else:
            self.ledger.unanswered["hostile"] += 1
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {self.keys[name]}\r\n"
        head += f"Content-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.product.port), timeout=30) as connection:
            if chance.random() < 0.5:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(head.encode() + body)
            for _ in range(reads):
                connection.recv(1_000)
                time.sleep(0.2)
            self.ended.wait(chance.random() * (1 if length == len(body) else 10))

    def misspell(self, chance: random.Random) -> None:
        """Send a wrong key, invalid JSON, invalid params, or a wrong path. At a start, keys may be unavailable."""
        path = client.CATEGORY
        wrong = f"{path}s", "/v1/job", "/v1/jobs/x/y/z", "/v1/jobs/99999999", f"{path}?fild=x"
        name, method, path, body, statuses = chance.choice(
            [
                (chance.choice(("wrong", "sk_0_x", "")), "POST", path, {}, {401}),
                ("hostile", "POST", path, chance.choice(test_routes.BODIES), {400}),
                ("hostile", "POST", path, chance.choice(test_routes.PARAMS), {400}),
                ("hostile", "GET", chance.choice(wrong), None, {404, 405}),
            ]
        )
        reply = self.send(name, method, path, body)
        if reply.status not in {*statuses, 503}:
            self.ledger.differs(f"{reply.status} instead of {statuses}: {str(reply.body)[:200]}")

    def malform(self, chance: random.Random) -> None:
        """Send malformed HTTP."""
        name = chance.choice([*test_hostile.REQUESTS])
        sent, statuses = test_hostile.REQUESTS[name]
        received = exchange(Victim(self.product.url, 0), sent)
        status = int(received[9:12] or b"0") if received.startswith(b"HTTP/1.") else 0
        if status not in {*statuses, 401, 0, 100}:
            self.ledger.differs(f"{name}: {status} instead of {statuses}")

    def dawdle(self, chance: random.Random) -> None:
        """Send and read so slowly that the endpoint must close the connection. ``Books`` counts those that are left."""
        _, first, drip = SLOW[chance.choice([*SLOW])]
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", self.product.port))
            connection.settimeout(0)
            ends = time.monotonic() + SLOW_SECONDS
            with suppress(ConnectionError):
                connection.send(first)
                while time.monotonic() < ends:
                    time.sleep(0.25)
                    connection.send(drip)

    def upload_workbook(self, chance: random.Random) -> None:
        """Upload a hostile or damaged workbook."""
        quick = {name: HOSTILE[name] for name in QUICK_BOMBS}
        makers = {name: make for name, (make, _) in (BROKEN | REFUSED | quick).items()} | {"old": lambda: OLE}
        name = chance.choice([*makers])
        body = makers[name]()
        media_type = [*FORMATS][-1]
        reply = self.send("hostile", "POST", "/v1/jobs", body, Content_Type=media_type)
        if reply.status not in {202, 400, 429, 503}:
            self.ledger.differs(f"the workbook {name}: {reply.status} {str(reply.body)[:200]}")

    def meddle(self, chance: random.Random) -> None:
        """Make a job, and cancel, delete, retry or repeat one at any time."""
        if chance.random() < 0.4:
            self.send("hostile", "POST", "/v1/jobs", rows(lines(self.targets, chance, "m")))
        elif jobs := self.listed("hostile"):
            path = f"/v1/jobs/{chance.choice(jobs)['job_id']}"
            method, rest = chance.choice((("DELETE", ""), ("POST", "/retry?all=true"), ("POST", "/runs")))
            self.send("hostile", method, path + rest)


QUICK_BOMBS = ("the last cell of the grid", "a cell far away", "a cell outside of the grid", "entities")
"""The hostile workbooks that take this process less than a second to make."""
ACTIONS: dict[Callable[[Clients, random.Random], None], int] = {
    Clients.call: 40,
    Clients.upload: 8,
    Clients.read_job: 6,
    Clients.leave: 10,
    Clients.misspell: 9,
    Clients.malform: 4,
    Clients.dawdle: 3,
    Clients.upload_workbook: 3,
    Clients.meddle: 3,
}
"""What a client does -> how often, in relation to the others."""
