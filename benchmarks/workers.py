"""Two workers compared with one: CPU time per call, and the distribution of the calls.

What is measured: calls of a light search page over ``CLIENTS`` kept connections, ``scrapy serve`` with one process and
with ``--workers 2``, each with its own sandbox in the same run; rounds alternate. CPU time is that of all of the
service's processes. The log line of a call contains its worker.

Usage: .venv/bin/python -m benchmarks.workers [--rounds N] [--calls N]
"""

from __future__ import annotations

import argparse
import contextlib
import re
from collections import Counter
from statistics import median

from benchmarks.service import CLIENTS, SETTINGS, Server, posting, run_round
from benchmarks.stack import stack

PATH = "/v1/scrapers/retail-search-v4"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Two workers compared with one.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=800, help="calls per round")
    options = parser.parse_args()
    with contextlib.ExitStack() as stacks:
        servers: list[Server] = []
        for workers in (1, 2):
            running = stacks.enter_context(stack(**SETTINGS))
            port, pid = running.endpoint("--workers", str(workers))
            servers.append(Server(f"{workers} worker(s)", port, pid, posting(PATH, running.headers)))
            log = running.folder / f"scrapy-{port}.log"
        for number in range(options.rounds + 1):
            for server in servers:
                run_round(server, options.calls if number else 8 * CLIENTS)
        for server in servers:
            speed, cpu = median(server.calls_per_second[1:]), median(server.milliseconds[1:])
            print(f"{server.name}: {speed:6.1f} calls/s  {cpu:5.2f} ms of CPU time per call")
        one, two = (median(server.milliseconds[1:]) for server in servers)
        served = Counter(re.findall(r"event=call .*worker=(\d)", log.read_text()))
        shares = ", ".join(f"worker {worker}: {count / served.total():.0%}" for worker, count in sorted(served.items()))
        print(f"two workers: {two / one:.2f} times the CPU time per call; {shares}")


if __name__ == "__main__":
    main()
