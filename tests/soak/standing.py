"""``scripts/attack``: attacks the whole product for some minutes with faults and hostile strangers, all at once.

The product runs as its users run it: ``scrapy serve``, ``scrapy work`` and ``scrapy collect`` with one store. The seed
chooses the database, the number of processes, and every fault; when they strike within the work of the processes is
left to chance. In the end the books must balance (``books.py``). Exits 0 and prints a line of figures, or exits 1 and
prints the differences, and the command that repeats the attack.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, get_args

from crawler.service.keys import KeyStore, Webhook, new_secret
from tests.conftest import program
from tests.crawls import sandbox
from tests.http_server import in_thread
from tests.jobs.database_faults import FaultyDatabase, faulty_database
from tests.jobs.lossy_postgresql import lossy
from tests.proxies import NamedFault, Relay, proxies
from tests.service.hostile_platform import MEGABYTE, harmful_responses
from tests.service.receivers import ENDLESS, Receiver, receiving, silence, status, text
from tests.soak.books import Books, collected
from tests.soak.clients import Clients, Ledger
from tests.soak.product import Pace, Product, open_files, resident_megabytes
from tests.soak.store_faults import CLOCK_FILE, RATE_FILE
from tests.soak.targets import Targets, lines, rows

LEASE = 15
"""Seconds: longer than a busy machine keeps a worker waiting."""
MAX_GROWTH_MEGABYTES = 60
MAX_MORE_FILES = 40
"""More open files of the endpoint than at the start: connections to the platforms are kept for a while."""
CLIENTS = 6
"""Number of threads of clients."""
LOST = 0.02
"""Share of the COMMITs to PostgreSQL whose responses are lost."""


@dataclass
class Attack:
    """Everything that runs in an attack, and the chances of its faults."""

    seed: int
    folder: Path
    database: FaultyDatabase
    product: Product
    keys: Path
    rate: Path
    """The file with the share of operations of the store that fail."""
    egresses: list[Relay]
    platform: Relay
    receiver: Receiver
    kills_endpoint: bool
    workers: int
    clients: Clients = field(init=False)
    struck: Counter[str] = field(default_factory=Counter)
    """How often each fault occurred."""

    # Faults. Each takes the generator of its thread, and ends what it has begun.

    def fail_statements(self, chance: random.Random) -> None:
        """Statements, commits and responses to commits of all processes fail by chance."""
        self.rate.write_text(str(chance.choice((0.002, 0.02, 0.2))))
        time.sleep(2 + chance.random() * 4)
        self.rate.write_text("0")

    def break_database(self, chance: random.Random) -> None:
        """Lock or crash the database, end its connections, or fill its disk."""
        found = self.database.faults(1 + chance.random() * 4, 1 + chance.random() * 3)
        name = chance.choice([name for name in found if name != "jump"])
        self.struck[name] += 1
        found[name]()

    def jump(self, _: random.Random) -> None:
        """Set a clock forward or back."""
        if self.database.clock:
            self.database.jump()

    def kill_worker(self, chance: random.Random) -> None:
        self.product.any_worker(chance.randrange(9)).kill()

    def restart_worker(self, chance: random.Random) -> None:
        self.product.any_worker(chance.randrange(9)).terminate()

    def freeze_worker(self, chance: random.Random) -> None:
        """Suspend a worker for longer than its lease."""
        process = self.product.any_worker(chance.randrange(9))
        process.send_signal(signal.SIGSTOP)
        time.sleep(LEASE + 1 + chance.random() * 3)
        process.send_signal(signal.SIGCONT)

    def kill_collect(self, _: random.Random) -> None:
        if process := self.product.collecting:
            process.kill()

    def kill_endpoint(self, chance: random.Random) -> None:
        """Kill a process of the endpoint, or suspend it for longer than its lease."""
        if self.kills_endpoint and chance.random() < 0.7:
            self.product.kill_endpoint(chance.randrange(9))
        elif self.kills_endpoint:
            self.product.freeze_endpoint(chance.randrange(9), LEASE + 1)

    def break_network(self, chance: random.Random) -> None:
        """Let an egress or the platform refuse, hang, cut, or send what harms."""
        relay = chance.choice([*self.egresses, self.platform])
        fault = chance.choice(NETWORK_FAULTS)
        self.struck[fault if isinstance(fault, str) else "harmful response"] += 1
        relay.set(fault)
        time.sleep(1 + chance.random() * 4)
        relay.set("")

    def break_keys(self, chance: random.Random) -> None:
        """Lock, truncate or delete the file of API keys. The known keys stay valid."""
        if self.kills_endpoint:
            return  # an endpoint that starts needs its keys
        content = self.keys.read_bytes()
        with closing(sqlite3.connect(self.keys, isolation_level=None)) as keys:
            match chance.randrange(3):
                case 0:
                    keys.execute("BEGIN EXCLUSIVE")
                case 1:
                    os.truncate(self.keys, 0)
                case _:
                    self.keys.unlink()
            time.sleep(1 + chance.random() * 3)
        self.keys.write_bytes(content)

    # What runs beside the clients and the faults

    def collect(self, ended: threading.Event) -> None:
        """Collect files, again and again after kills, until each is complete. Compare the outputs with the files."""
        chance, number = random.Random(f"{self.seed} collect"), 0  # noqa: S311  # no secret
        ledger = self.clients.ledger
        while not ended.is_set():
            number += 1
            of = lines(self.clients.targets, chance, f"c{number}")
            file, out, failures = (self.folder / f"{name}{number}.jsonl" for name in ("in", "out", "failures"))
            file.write_text("".join(json.dumps(row) + "\n" for row in rows(of)))
            code = 1
            while code not in {0, 4} and not (ended.is_set() and ledger.differences):
                command = "collect", file, "--job", f"collect-{number}", "-O", out, "-s", f"FAILURES_FEED={failures}"
                self.product.collecting = self.product.start(*command)
                code = self.product.collecting.wait()
                ledger.figures[f"collect exit {code}"] += 1
                if code not in {0, 1, 4, -9}:
                    ledger.differs(f"scrapy collect ended with {code}")
                    break
            done = [collected(self.product, each.name) for each in (out, failures)]
            Books(self.clients, self.database.location).check_outcomes(f"collect-{number}", of, *done)
            ledger.figures["collected"] += len(of)

    def tend(self, ended: threading.Event) -> None:
        """Keep the workers running."""
        while not ended.wait(0.5):
            for each in self.product.tend(self.workers):
                self.clients.ledger.differs(each)

    def storm(self, name: str, ended: threading.Event) -> None:
        """Cause faults of one kind, one after the other, beside the faults of other kinds."""
        chance = random.Random(f"{self.seed} {name}")  # noqa: S311  # no secret
        choices, pause = FAULTS[name]
        while not ended.wait(pause * 2 * chance.random()):
            fault = chance.choices(list(choices), list(choices.values()))[0]
            self.struck[fault.__name__] += 1
            fault(self, chance)

    # The run

    def run(self, seconds: float) -> None:
        """Attack for some seconds, and check the books."""
        clients, ledger = self.clients, self.clients.ledger
        before, files = self.warm_up()
        storms_ended, ended = threading.Event(), threading.Event()
        tender = self.begin(self.tend, ended)
        storms = [self.begin(self.storm, name, storms_ended) for name in FAULTS]
        acting = [self.begin(clients.run, f"{self.seed} client {number}") for number in range(CLIENTS)]
        collector = self.begin(self.collect, clients.ended)
        clients.ended.wait(seconds)
        clients.ended.set()
        for thread in acting:
            thread.join()
        storms_ended.set()
        for thread in (*storms, collector):
            thread.join()
        books = Books(clients, self.database.location)
        books.settle()
        books.check(exact=not self.kills_endpoint)
        ended.set()
        tender.join()
        grown = (resident_megabytes(self.product.serving()) - before) / self.product.endpoints
        ledger.figures["MB more"] = round(grown)
        if grown > MAX_GROWTH_MEGABYTES:
            ledger.differs(f"each process of the endpoint has {grown:.0f} MB more memory than at the start")
        if (more := open_files(self.product.serving()) - files) > MAX_MORE_FILES:
            ledger.differs(f"the endpoint has {more} more open files than at the start")
        for each in (*self.product.end(), *self.product.logged_errors(), *self.wrong_events()):
            ledger.differs(each)

    def begin(self, work: Callable[..., None], *arguments: Any) -> threading.Thread:
        """Run something in a thread. An exception in it is a difference."""

        def run() -> None:
            try:
                work(*arguments)
            except Exception as error:  # noqa: BLE001  # the other threads go on, so that the books can be checked
                self.clients.ledger.differs(f"{work.__name__}: {type(error).__name__}: {error}")

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def warm_up(self) -> tuple[float, int]:
        """Use each part of the endpoint once. Return its memory in MB and its number of open files then."""
        chance = random.Random(self.seed)  # noqa: S311  # no secret
        self.product.serve()
        self.product.tend(self.workers)
        clients = self.clients
        for _ in range(3):
            for each in {each.scraper: each for each in reversed(clients.targets.others)}.values():
                reply = clients.send("hostile", "POST", f"/v1/scrapers/{each.scraper}", each.params, Prefer="wait=30")
                clients.ledger.answered["hostile"][reply.code] += 1
            clients.call(chance)
        clients.upload(chance)
        for action in (clients.read_job, clients.upload_workbook, clients.misspell) * 3:
            with suppress(OSError, HTTPException):
                action(chance)
        serving = self.product.serving()
        return resident_megabytes(serving), open_files(serving)

    def wrong_events(self) -> Iterator[str]:
        """Yield what is wrong with the events of webhooks: all tries of an event have the same body."""
        bodies: dict[str, set[bytes]] = {}
        for each in self.receiver.requests:
            bodies.setdefault(each.headers["Webhook-Id"], set()).add(each.body)
        self.clients.ledger.figures["events"] = len(bodies)
        for event, found in bodies.items():
            if len(found) > 1:
                yield f"the event {event} has {len(found)} different bodies: {[each[:200] for each in found]}"


NETWORK_FAULTS: list[Any] = [
    *filter(None, get_args(NamedFault)),
    *(
        "\r\n".join(["HTTP/1.1 200 OK", *map(": ".join, headers.items()), "", ""]).encode("latin-1") + body
        for headers, body in harmful_responses().values()
    ),
    b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 8 * MEGABYTE,
    b"HTTP/1.1 429 No\r\nRetry-After: 99999999\r\nContent-Length: 0\r\n\r\n",
]
Weights = dict[Callable[[Attack, random.Random], None], int]
FAULTS: dict[str, tuple[Weights, float]] = {
    "store": ({Attack.fail_statements: 3, Attack.break_database: 4}, 4.0),
    "clock": ({Attack.jump: 1}, 15.0),
    "workers": (
        {Attack.kill_worker: 3, Attack.freeze_worker: 2, Attack.restart_worker: 1, Attack.kill_collect: 2},
        6.0,
    ),
    "endpoint": ({Attack.kill_endpoint: 1, Attack.break_keys: 1}, 15.0),
    "network": ({Attack.break_network: 1}, 3.0),
}
"""Kind -> its faults with their weights, and the mean pause between two of them in seconds. The kinds occur at once."""


async def _by_chance(chance: random.Random, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a webhook in any way."""
    good, bad = [status(200)] * 3, [status(500), status(302, "Location: http://127.0.0.9/\r\n"), silence, text(b"\0")]
    await chance.choice([*good, *bad, status(200, delay=20), text(b"HTTP/1.1 200 OK\r\nX: " + ENDLESS)])(reader, writer)


@contextmanager
def prepared(seed: int, folder: Path) -> Iterator[Attack]:
    """Start everything but the product."""
    chance = random.Random(seed)  # noqa: S311  # no secret
    kind = "postgresql" if seed % 2 == 0 and program("initdb") and program("postgres") else "sqlite"
    endpoints, workers, kills_endpoint = chance.choice((1, 2)), chance.choice((1, 2)), chance.random() < 0.5
    with ExitStack() as stack:
        database = stack.enter_context(faulty_database(kind, folder, chance))
        database.clock = folder / "clock" if kind == "sqlite" else database.clock
        settings = stack.enter_context(sandbox("--light"))
        origins = json.loads(settings["PLATFORM_ORIGINS"])
        running = stack.enter_context(proxies(2))
        platform = Relay(int(origins["retail"].rpartition(":")[2]))
        servers: list[Any] = [platform.serving(), receiving(partial(_by_chance, random.Random(seed)))]  # noqa: S311
        if database.server:
            servers.append(lossy(database.location, seed, LOST))
        _, receiver, *proxied = stack.enter_context(in_thread(*servers))
        keys, rate = folder / "keys.sqlite", folder / "rate"
        rate.write_text("0")
        store = KeyStore(keys)
        own = {name: store.create(name) for name in ("caller", "jobs", "hostile")}
        for name in ("jobs", "hostile"):
            store.set_webhook(name, Webhook(url=f"http://127.0.0.1:{receiver.port}/", secret=new_secret()))
        settings |= {
            "PLATFORM_ORIGINS": json.dumps(origins | {"retail": f"http://127.0.0.1:{platform.port}"}),
            "EGRESSES": json.dumps(running.egresses),
            "STORE": proxied[0][0] if proxied else database.location,
            "KEYS_FILE": str(keys),
            "JOB_LEASE": LEASE,
            "JOB_EXITS": 10_000,  # no outcome depends on how many processes are killed
            "DOWNLOAD_MAXSIZE": 4 * MEGABYTE,
            "RETRY_BACKOFF_MAX": 2,
            "BREAKER_THRESHOLD": 0,  # an open circuit breaker would keep most targets waiting for minutes
            "BREAKER_COOLDOWN": 0,  # so would a suspended egress: it is suspended for twice as long after each failure
            "RETRY_AFTER_MAX": 2,
            "UNREAD_KEEP": 0,
            "EXTENSIONS": json.dumps({"tests.soak.store_faults.StoreFaults": 0}),
        }
        environment = {RATE_FILE: str(rate)} | ({CLOCK_FILE: str(database.clock)} if kind == "sqlite" else {})
        product = Product(folder, settings, environment, endpoints)
        stack.callback(product.kill)
        relays = [*running.relays.values()]
        attack = Attack(
            seed, folder, database, product, keys, rate, relays, platform, receiver, kills_endpoint, workers
        )
        attack.clients = Clients(product, own, Targets(origins), Ledger(), Pace(product))
        yield attack


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments, and attack. Return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/attack", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="chooses the faults (default: 1)")
    parser.add_argument("--minutes", type=float, default=3, help="duration of the attack (default: 3)")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends what it has started
    folder = Path(tempfile.mkdtemp(prefix="at-", dir="/tmp"))  # the path of a socket must be short
    folder.chmod(0o755)
    with prepared(options.seed, folder) as attack:
        database = "postgresql" if attack.database.server else "sqlite"
        print(f"seed {options.seed}: {database}, {attack.product.endpoints} endpoint(s), {attack.workers} worker(s)")
        attack.run(options.minutes * 60)
    ledger = attack.clients.ledger
    calls = ledger.answered["caller"]
    print(f"calls {calls.total()} {dict(calls)}; faults {attack.struck.total()} {dict(attack.struck)}")
    print(f"figures {dict(ledger.figures)}")
    if not ledger.differences:
        shutil.rmtree(folder, ignore_errors=True)
        print("0 differences")
        return 0
    for text_, number in ledger.differences.most_common():
        print(f"{number} times: {text_}")
    print(
        f"The logs are in {folder}/logs. To repeat: scripts/attack --seed {options.seed} --minutes {options.minutes:g}"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
