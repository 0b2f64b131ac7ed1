"""The callers of the benchmarks: connections in a process of their own, which call a server.

They call as fast as it responds, or at a fixed rate.

``python -m benchmarks.callers`` reads one job per line of its input, and prints one result per line.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import orjson
import uvloop

from benchmarks.opponents.http import Client
from benchmarks.stack import ROOT

Products = list[tuple[str, str]]
"""Id and name of each product of a response."""


@dataclass(frozen=True)
class Job:
    """Calls of a server: each caller repeats the request over one connection for some seconds.

    ``rate``: calls per second that are sent at even distances, over as many connections as this takes. None: each
    caller sends its next call when it has the response of its last one.
    """

    port: int
    request: str
    callers: int
    seconds: float
    expected: Products
    rate: float | None = None


@dataclass(frozen=True)
class Result:
    """The outcome of a job."""

    seconds: float
    """From the first request to the last response."""
    latencies: list[float]
    """Milliseconds of each call, in ascending order."""


def products(body: bytes) -> Products:
    """Return the products of a response of the endpoint, of scrapyrt with this project, or of an ordinary spider."""
    found = orjson.loads(body)
    rows = found["items"] if "items" in found else [found["data"]]
    listed = rows[0]["products"] if rows and "products" in rows[0] else rows
    return [(each["item_id"], each["name"]) for each in listed]


async def run(job: Job) -> Result:
    """Do a job. The responses are checked at its end, so that the check costs no time between calls.

    Raises:
        ValueError: a response has other products than expected.
    """
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_connection(Client, "127.0.0.1", job.port))[1] for _ in range(job.callers)]
    request, latencies, bodies = job.request.encode(), [], []
    start = time.perf_counter()

    async def send(client: Client, due: float) -> None:
        bodies.append((await client.send(request))[1])
        latencies.append((time.perf_counter() - due) * 1000)

    async def repeat(client: Client) -> None:
        before = start
        while before < start + job.seconds:
            before = time.perf_counter()
            await send(client, before)

    async def send_when_due(due: float) -> None:
        await asyncio.sleep(due - time.perf_counter())
        client = clients.pop() if clients else (await loop.create_connection(Client, "127.0.0.1", job.port))[1]
        await send(client, due)
        clients.append(client)

    if job.rate is None:
        await asyncio.gather(*map(repeat, clients))
    else:
        numbers = range(int(job.rate * job.seconds))
        await asyncio.gather(*(send_when_due(start + number / job.rate) for number in numbers))
    seconds = time.perf_counter() - start
    for client in clients:
        client.transport.close()
    for body in bodies:
        if products(body) != [tuple(each) for each in job.expected]:
            raise ValueError(f"A response has other products than expected: {body[:1_000]!r}")
    return Result(seconds, sorted(latencies))


class Callers:
    """A process that makes calls."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, job: Job) -> Result:
        """Do a job.

        Raises:
            SystemExit: the process has ended, because a call failed or its response was wrong.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(job)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("The callers have stopped: their error is above.")
        return Result(**json.loads(line))


@contextlib.contextmanager
def callers() -> Iterator[Callers]:
    """Run a process of callers."""
    command = [sys.executable, "-m", "benchmarks.callers"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Callers(process)
        process.kill()


def main() -> None:
    """Do the jobs of the input."""
    gc.disable()  # each job collects at its end
    for line in sys.stdin:
        fields: dict[str, Any] = json.loads(line)
        print(json.dumps(asdict(uvloop.run(run(Job(**fields))))), flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
