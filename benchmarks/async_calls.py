"""An asynchronous call compared with a synchronous one: its processor time, and its size in the store.

What is measured: rounds of ``--calls`` searches by eight callers, synchronous and asynchronous in turn, with and
without an ``Idempotency-Key``. The processor time is that of the endpoint until all calls of a round are done.

Usage: .venv/bin/python -m benchmarks.async_calls [--calls N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from itertools import count
from pathlib import Path

from benchmarks.stack import cpu_seconds, stack

SEARCH = "/v1/scrapers/retail-search-v4"
CALLERS = 8
SETTLE_SECONDS = 1.0
"""After this time, the counts of the calls are stored."""
NUMBERS = count()


class Caller:
    """Makes calls to an endpoint, whose store is an SQLite file."""

    def __init__(self, port: int, pid: int, store: Path, headers: dict[str, str]) -> None:
        self.port, self.pid, self.store, self.headers = port, pid, store, headers
        self.accepted = 0

    def round(self, calls: int, *, is_async: bool, has_key: bool) -> tuple[float, float, int]:
        """Return the milliseconds of processor time and the stored bytes per call, and the bytes of a response."""
        begin, size = cpu_seconds(self.pid), self._stored_bytes()
        with ThreadPoolExecutor(CALLERS) as threads:
            shares = [threads.submit(self._calls, calls // CALLERS, is_async, has_key) for _ in range(CALLERS)]
            response = max(share.result() for share in shares)
        self.accepted += is_async * calls
        while self._done() < self.accepted:
            time.sleep(0.2)
        time.sleep(SETTLE_SECONDS)
        return (cpu_seconds(self.pid) - begin) / calls * 1e3, (self._stored_bytes() - size) / calls, response

    def _calls(self, number: int, is_async: bool, has_key: bool) -> int:  # noqa: FBT001  # one of four kinds
        headers = self.headers | ({"Prefer": "respond-async"} if is_async else {})
        size = 0
        with closing(HTTPConnection("127.0.0.1", self.port)) as connection:
            for _ in range(number):
                query = f"mustard {next(NUMBERS)}"
                key = {"Idempotency-Key": query.replace(" ", "-")} if has_key else {}
                connection.request("POST", SEARCH, json.dumps({"query": query}), headers | key)
                response = connection.getresponse()
                size = len(response.read())
                if response.status != 200 + 2 * is_async:
                    raise SystemExit(f"A call failed: {response.status}")
        return size

    def _done(self) -> int:
        with closing(HTTPConnection("127.0.0.1", self.port)) as connection:
            connection.request("GET", "/v1/calls?limit=1", headers=self.headers)
            return int(json.loads(connection.getresponse().read())["counts"]["done"])

    def _stored_bytes(self) -> int:
        with closing(sqlite3.connect(self.store)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            sizes = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count")]
            return int(sizes[0] - sizes[1]) * int(database.execute("PRAGMA page_size").fetchone()[0])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="An asynchronous call compared with a synchronous one.")
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    budget = {"retail": {"concurrency": 16, "delay": 0.0}}
    with stack(PLATFORM_BUDGETS=budget) as running:
        caller = Caller(*running.endpoint(), running.folder / "service.sqlite3", running.headers)
        caller.round(options.calls, is_async=False, has_key=False)
        for has_key in (False, True):
            found = [
                [caller.round(options.calls, is_async=is_async, has_key=has_key) for is_async in (False, True)]
                for _ in range(options.rounds)
            ]
            sync, other = (statistics.median(each[n][0] for each in found) for n in (0, 1))
            ratio = statistics.median(late[0] / early[0] for early, late in found)
            stored, record = statistics.median(late[1] for _, late in found), found[0][0][2]
            print(f"{'with' if has_key else 'without'} an Idempotency-Key:", end=" ")
            print(f"{sync:.2f} and {other:.2f} ms of processor time, ratio {ratio:.2f};", end=" ")
            print(f"{stored / 1e3:.1f} kB in the store for a response of {record / 1e3:.1f} kB")


if __name__ == "__main__":
    main()
