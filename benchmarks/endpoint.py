"""The endpoint, compared with scrapyrt, with a bare Twisted server and with an asyncio server.

A call is one page of search results: from the request of a caller to the last byte of the response. ``servers.py``
starts the servers, ``opponents/`` has what they run, ``callers.py`` makes the calls.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.callers import Callers, Job, Products, callers
from benchmarks.figures import Figure, Ratio, Table, ratio
from benchmarks.opponents.pages import LARGE, LIGHT
from benchmarks.servers import (
    AGAIN,
    BARE,
    CALLERS,
    ENDPOINT,
    FLOOR,
    ORDINARY,
    OUR_PROJECT,
    WITH_PAGE_OBJECT,
    Server,
    in_turn,
    lineup,
    pages,
)
from benchmarks.stack import cpu_seconds
from crawler.sandbox.retail.site import Site

SECONDS = 1.0
"""Duration of each measurement."""
WARM_UP_SECONDS = 0.4
PERCENTILES = (50, 95, 99)
RATES, COSTS = "calls/s", "ms of CPU time per call"


@dataclass(frozen=True)
class Workload:
    """Calls for one page with a number of callers."""

    query: str
    callers: int
    tls: bool = False
    servers: tuple[str, ...] = ()
    """The names of the servers that are measured. Empty: all."""


LATENCY = (ORDINARY, ENDPOINT, BARE)
LIGHT_PAGE, LARGE_PAGE = Workload(LIGHT, 8), Workload(LARGE, 8)
LIGHT_TLS, LARGE_TLS = Workload(LIGHT, 8, tls=True), Workload(LARGE, 8, tls=True)
SINGLE, CROWD = Workload(LIGHT, 1, servers=LATENCY), Workload(LIGHT, CALLERS, servers=LATENCY)
WORKLOADS = (LIGHT_PAGE, LARGE_PAGE, LIGHT_TLS, LARGE_TLS, SINGLE, CROWD)


@dataclass
class Measured:
    """The figures of a server with a workload, by round."""

    calls_per_second: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    """CPU time of the server per call."""
    percentiles: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Percentile -> milliseconds of a call."""


Results = dict[tuple[Workload, str], Measured]
"""What was measured of each server, by workload and name."""


def percentile(ascending: list[float], share: int) -> float:
    """Return the smallest value that at least ``share`` percent of the values do not exceed."""
    return ascending[math.ceil(len(ascending) * share / 100) - 1]


@contextlib.contextmanager
def running() -> Iterator[dict[bool, list[Server]]]:
    """Run all servers. The key is whether their pages come with TLS and gzip."""
    with contextlib.ExitStack() as stacks:
        certificate = Path(stacks.enter_context(tempfile.TemporaryDirectory())) / "certificate.pem"
        origins = stacks.enter_context(pages(certificate))
        plain = stacks.enter_context(lineup(origins.plain, certificate))
        tls = stacks.enter_context(lineup(origins.tls, certificate))
        common = {
            each: [
                each.scrapyrt(ORDINARY, "default"),
                each.endpoint(ENDPOINT),
                each.module(BARE, "bare"),
                each.module(FLOOR, "floor"),
                each.endpoint(AGAIN),
            ]
            for each in (plain, tls)
        }
        further = [
            plain.scrapyrt(WITH_PAGE_OBJECT, "with_page_object"),
            plain.scrapyrt_with_our_project(OUR_PROJECT),
        ]
        yield {False: common[plain] + further, True: common[tls]}


def expected_products(query: str) -> Products:
    """Return the products that the sandbox states for a query."""
    record = Site(light=query == LIGHT).expected_record({"query": query})
    return [(each["item_id"], each["name"]) for each in record["products"]]


def measure(server: Server, calling: Callers, workload: Workload, expected: Products, into: Measured) -> None:
    """Run a workload on a server once."""
    request = server.request(workload.query).decode()
    before = cpu_seconds(server.pid)
    result = calling.run(Job(server.port, request, workload.callers, SECONDS, expected))
    used = cpu_seconds(server.pid) - before
    calls = len(result.latencies)
    into.calls_per_second.append(calls / result.seconds)
    into.milliseconds.append(used / calls * 1000)
    for share in PERCENTILES:
        into.percentiles[share].append(percentile(result.latencies, share))


def measure_all(rounds: int) -> Results:
    """Run the rounds. In each round, all servers are measured with all workloads, each time beginning with another."""
    results: Results = defaultdict(Measured)
    expected = {query: expected_products(query) for query in (LIGHT, LARGE)}
    with running() as servers, callers() as calling:
        for own in servers.values():
            for server in own:
                for query, listed in expected.items():
                    request = server.request(query).decode()
                    calling.run(Job(server.port, request, 8, WARM_UP_SECONDS, listed))
        for number in range(rounds):
            for workload in WORKLOADS:
                own = [each for each in servers[workload.tls] if not workload.servers or each.name in workload.servers]
                for server in in_turn(own, number):
                    measured = results[workload, server.name]
                    measure(server, calling, workload, expected[workload.query], measured)
    return results


def rate(results: Results, workload: Workload, name: str) -> Figure:
    """Return the calls per second of a server."""
    return Figure(name, RATES, results[workload, name].calls_per_second)


def cost(results: Results, workload: Workload, name: str) -> Figure:
    """Return the CPU time of a server per call."""
    return Figure(name, COSTS, results[workload, name].milliseconds)


def per_second(name: str, other: str, rates: dict[str, Figure], at_least: float | None = None) -> Ratio:
    """Return the ratio of two servers' calls per second: above 1, the first one is faster."""
    return ratio(f"calls/s: {name} to {other}", rates[name], rates[other], at_least=at_least)


def processor(name: str, other: str, costs: dict[str, Figure], at_least: float | None = None) -> Ratio:
    """Return the ratio of two servers' CPU time per call: above 1, the second one is faster."""
    return ratio(f"CPU time per call: {name} to {other}", costs[name], costs[other], at_least=at_least)


def speed_table(
    title: str, conditions: str, results: Results, workload: Workload, goals: dict[str, float] | None = None
) -> Table:
    """Return the figures of a page. ``goals`` are for the ratios to the ordinary spider and to the bare server."""
    names = [name for each, name in results if each == workload]
    rates = {name: rate(results, workload, name) for name in names}
    costs = {name: cost(results, workload, name) for name in names}
    goals = goals or {}
    ratios = [
        per_second(ENDPOINT, ORDINARY, rates, at_least=goals.get(ORDINARY)),
        processor(ORDINARY, ENDPOINT, costs),
        *(per_second(ENDPOINT, each, rates) for each in (WITH_PAGE_OBJECT, OUR_PROJECT) if each in names),
        processor(BARE, ENDPOINT, costs, at_least=goals.get(BARE)),
        per_second(ENDPOINT, BARE, rates),
        processor(FLOOR, ENDPOINT, costs),
        processor(FLOOR, BARE, costs),
        processor(AGAIN, ENDPOINT, costs),
        per_second(ENDPOINT, AGAIN, rates),
    ]
    return Table(title, conditions, [*rates.values(), *costs.values()], ratios)


def latency_table(results: Results) -> Table:
    """Return the latencies on the light page with few and many callers."""
    figures: dict[tuple[str, int, int], Figure] = {}
    for workload in (SINGLE, LIGHT_PAGE, CROWD):
        for name in LATENCY:
            for share, values in results[workload, name].percentiles.items():
                callers = f"{workload.callers} caller{'s' if workload.callers > 1 else ''}"
                figures[name, workload.callers, share] = Figure(f"{name}, {callers}, p{share}", "ms", values)
    ratios: list[Ratio] = [
        ratio(
            f"p{share}, callers: {callers}: {ENDPOINT} to {ORDINARY}",
            figures[ENDPOINT, callers, share],
            figures[ORDINARY, callers, share],
        )
        for callers in (1, 8, CALLERS)
        for share in (50, 99)
    ]
    return Table("Latency of a call, light page", LATENCY_CONDITIONS, list(figures.values()), ratios)


def run(rounds: int) -> list[Table]:
    """Measure the endpoint and its opponents."""
    results = measure_all(rounds)
    return [
        speed_table("A call, light page", CONDITIONS, results, LIGHT_PAGE, {ORDINARY: 8, BARE: 0.5}),
        speed_table("A call, page of 0.66 MB", AS_ABOVE, results, LARGE_PAGE, {ORDINARY: 5, BARE: 0.85}),
        speed_table("A call, light page with TLS and gzip", TLS_CONDITIONS, results, LIGHT_TLS),
        speed_table("A call, page of 0.66 MB with TLS and gzip", TLS_CONDITIONS, results, LARGE_TLS),
        latency_table(results),
    ]


CONDITIONS = f"""\
A call of each server fetches a page of search results (57 kB of HTML, 6 products) over plain HTTP and returns its
products. 8 callers in a process of their own call each server for {SECONDS:g} s per round. A web server with ready
pages is a third process, so that a server waits for no rendering. Every response must contain the same products. All
of them share the machine's cores, so CPU time per call is the more exact figure.

- *{ORDINARY}*: an ordinary project (`benchmarks/opponents/ordinary`) without anything of this project.
  scrapyrt creates a crawler for each call. It runs as for production: `DEBUG = False`, logs at INFO instead of DEBUG,
  no delay, no cookies, no telnet console, no `robots.txt`.
- *{WITH_PAGE_OBJECT}*: the same project with the endpoint's page object and validation.
- *{OUR_PROJECT}*: scrapyrt opens this project's whole crawler for each call. It is not made for that.
- *{BARE}*: a Twisted server and client with the endpoint's page object and validation, on uvloop, without Scrapy,
  queue, retries, throttle, API keys and log.
- *{FLOOR}*: the same with protocols of asyncio on uvloop instead of Twisted, and no more HTTP than this needs.
- *{AGAIN}*: another process of the endpoint. Its distance from 1 is the error of the comparison."""
AS_ABOVE = "As above, with a page of real size (0.66 MB of HTML, 50 products)."
TLS_CONDITIONS = """\
As above, but the pages come with TLS and gzip. The endpoint and the bare servers keep their connections. scrapyrt makes
a new one for each call, and by Scrapy's default does not verify the certificate."""
LATENCY_CONDITIONS = f"""\
Milliseconds from a call's request to the last byte of its response, on the light page over plain HTTP, with 1, 8 and
{CALLERS} callers at once. With many callers, a call waits for the others: all servers use one core."""
