"""Two workers of the endpoint compared with one: CPU time per call, memory, and the distribution of the calls."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.callers import Callers, Job, callers
from benchmarks.endpoint import COSTS, RATES, Measured, Workload, expected_products, measure
from benchmarks.figures import Figure, Ratio, Table, ratio
from benchmarks.opponents.pages import LIGHT
from benchmarks.servers import Lineup, in_turn, lineup, pages
from benchmarks.stack import pss_megabytes

ONE, TWO = "1 worker", "2 workers"
WORKLOAD = Workload(LIGHT, 8)
CONDITIONS = """\
`scrapy serve --workers 1` and `--workers 2` on the light page, with 8 callers, as in the benchmark of the endpoint. CPU
time is that of all processes of the endpoint, and memory is their proportional set size (PSS) after the calls: what
several processes share is divided among them, also if some of them belong to other programs. The share is that of the
worker with the most calls, from the log: 0.5 is an equal distribution."""


def shares(log: str) -> list[float]:
    """Return each worker's share of the calls in a log, the largest first."""
    served = Counter(re.findall(r"event=call .*worker=(\d)", log))
    return [count / served.total() for _, count in served.most_common()]


def measure_all(
    lines: Lineup, calling: Callers, rounds: int
) -> tuple[dict[str, Measured], dict[str, list[float]], list[float]]:
    """Run the rounds. Return the figures and the memory by server, and the share of the busiest worker by round."""
    servers = [lines.endpoint(name, "--workers", name[0]) for name in (ONE, TWO)]
    expected = expected_products(LIGHT)
    results = {server.name: Measured() for server in servers}
    memory: dict[str, list[float]] = {server.name: [] for server in servers}
    busiest = []
    for server in servers:
        calling.run(Job(server.port, server.request(LIGHT).decode(), 8, 0.5, expected))
    for number in range(rounds):
        before = len(lines.log(servers[1]))
        for server in in_turn(servers, number):
            measure(server, calling, WORKLOAD, expected, results[server.name])
            memory[server.name].append(pss_megabytes(server.pid))
        busiest.append(shares(lines.log(servers[1])[before:])[0])
    return results, memory, busiest


def run(rounds: int) -> Table:
    """Measure one and two workers."""
    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "certificate.pem"
        with pages(certificate) as origins, lineup(origins.plain, certificate) as lines, callers() as calling:
            results, memory, busiest = measure_all(lines, calling, rounds)
    rates = {name: Figure(name, RATES, each.calls_per_second) for name, each in results.items()}
    costs = {name: Figure(name, COSTS, each.milliseconds) for name, each in results.items()}
    share = Figure("the busiest of 2 workers", "share of the calls", busiest)
    ratios = [
        ratio(f"calls/s: {TWO} to {ONE}", rates[TWO], rates[ONE]),
        ratio(f"CPU time per call: {TWO} to {ONE}", costs[TWO], costs[ONE], at_most=1.05),
        Ratio(f"memory of {TWO} in MB", "", memory[TWO], at_most=160),
    ]
    sizes = [Figure(f"{name}, memory", "MB", values) for name, values in memory.items()]
    return Table("Two workers", CONDITIONS, [*rates.values(), *costs.values(), *sizes, share], ratios)
