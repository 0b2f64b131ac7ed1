"""Callers in a process of their own: ``python -m benchmarks.callers PORT CALLERS SECONDS``.

Each caller repeats the request of the standard input over one connection for some seconds. Printed are the calls per
second, their number, and the products that all responses contain.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import time
from dataclasses import dataclass

import orjson
import uvloop

from benchmarks.opponents.http import Client
from benchmarks.stack import ROOT

Products = list[tuple[str, str]]
"""Id and name of each product of a response."""


@dataclass(frozen=True)
class Result:
    """Calls per second, and their number."""

    per_second: float
    calls: int


def products(body: bytes) -> Products:
    """Return the products of a response of the endpoint or of scrapyrt with an ordinary spider."""
    found = orjson.loads(body)
    rows = found["items"] if "items" in found else found["data"]["products"]
    return [(each["item_id"], each["name"]) for each in rows]


async def repeat(request: bytes, port: int, callers: int, seconds: float) -> tuple[float, list[bytes]]:
    """Return the seconds from the first request to the last response, and the bodies of all responses."""
    loop, bodies = asyncio.get_running_loop(), []
    clients = [(await loop.create_connection(Client, "127.0.0.1", port))[1] for _ in range(callers)]
    start = time.perf_counter()

    async def call(client: Client) -> None:
        while time.perf_counter() < start + seconds:
            bodies.append((await client.send(request))[1])

    await asyncio.gather(*map(call, clients))
    used = time.perf_counter() - start
    for client in clients:
        client.transport.close()
    return used, bodies


def run(request: bytes, port: int, callers: int, seconds: float, expected: Products) -> Result:
    """Call a server.

    Raises:
        SystemExit: a response has other products than expected.
    """
    command = [sys.executable, "-m", "benchmarks.callers", *map(str, (port, callers, seconds))]
    per_second, calls, found = json.loads(subprocess.check_output(command, cwd=ROOT, input=request))
    if [[list(each) for each in expected]] != found:
        raise SystemExit(f"Responses have other products than expected: {found}")
    return Result(per_second, calls)


if __name__ == "__main__":
    gc.disable()
    to, number, duration = sys.argv[1:]
    used, answers = uvloop.run(repeat(sys.stdin.buffer.read(), int(to), int(number), float(duration)))
    print(
        json.dumps([len(answers) / used, len(answers), list(dict.fromkeys(tuple(products(each)) for each in answers))])
    )
