"""The latency of the endpoint's calls at 80 % of the calls that it can do."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.callers import Job, callers
from benchmarks.endpoint import expected_products, percentile
from benchmarks.figures import Figure, Table, ratio
from benchmarks.opponents.pages import LIGHT
from benchmarks.servers import ENDPOINT, lineup, pages

CALLERS = 8
"""Callers of which each waits for its response: so many calls per second can the endpoint do."""
SHARE = 0.8
SECONDS = 3.0
CONDITIONS = f"""\
Calls of the endpoint on the light page, evenly spaced at {SHARE:.0%} of the calls per second that it does for {CALLERS}
callers, which are measured before, in the same round, for 1 s. Each call is sent when it is due, also if earlier ones
have no response yet, and its latency is counted from then. {SECONDS:g} s per round. Callers, pages and endpoint share
the machine's cores."""


def run(rounds: int) -> Table:
    """Measure the capacity and the latencies."""
    rates, middle, high = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "certificate.pem"
        with pages(certificate) as origins, lineup(origins.plain, certificate) as lines, callers() as calling:
            server, expected = lines.endpoint(ENDPOINT), expected_products(LIGHT)
            request = server.request(LIGHT).decode()
            calling.run(Job(server.port, request, CALLERS, 1.0, expected))
            for _ in range(rounds):
                full = calling.run(Job(server.port, request, CALLERS, 1.0, expected))
                rate = SHARE * len(full.latencies) / full.seconds
                paced = calling.run(Job(server.port, request, CALLERS, SECONDS, expected, rate=rate))
                rates.append(rate)
                middle.append(percentile(paced.latencies, 50))
                high.append(percentile(paced.latencies, 99))
    p50, p99 = Figure("p50", "ms", middle), Figure("p99", "ms", high)
    return Table(
        "Latency of a call at 80 % load",
        CONDITIONS,
        [Figure("calls", "calls/s", rates), p50, p99],
        [ratio("p99 to p50", p99, p50, at_most=4)],
    )
