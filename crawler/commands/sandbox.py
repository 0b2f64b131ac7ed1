"""``scrapy sandbox``: serves the simulated platforms on loopback until it is interrupted."""

from __future__ import annotations

import argparse
from math import inf
from pathlib import Path

import orjson

from crawler.configuration.command import CheckedCommand
from crawler.runtime.event_loop import installed_reactor


class Command(CheckedCommand):
    """Serve the simulated platforms on loopback.

    Prints their origins as one line of JSON: ``{"origins": {platform: origin}}``. The inner object is a value for the
    setting ``PLATFORM_ORIGINS``.
    """

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--port", type=int, default=0, help="first port (default is any free port)")
        parser.add_argument("--seed", type=int, default=1, help="seed of the simulated data (default 1)")
        parser.add_argument("--latency", type=float, default=0.0, help="seconds before each response")
        parser.add_argument(
            "--light", action="store_true", help="small pages, for benchmarks of everything but extraction"
        )

        parser.add_argument("--tls", action="store_true", help="serve https, with a self-signed certificate")
        parser.add_argument(
            "--limit",
            nargs=2,
            type=_positive,
            metavar=("REQUESTS", "SECONDS"),
            help="refuse further requests of a client as each platform does (--limit 50 900 allows 50 in 15 minutes)",
        )
        parser.add_argument("--log", type=Path, metavar="FILE", help="write one line of JSON for each request")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        reactor = installed_reactor()
        from crawler.sandbox.server import Sandbox  # noqa: PLC0415  # it needs the reactor

        sandbox = Sandbox(
            opts.seed,
            latency=opts.latency,
            light=opts.light,
            tls=opts.tls,
            log=opts.log,
            limit=opts.limit,
        )
        print(orjson.dumps({"origins": sandbox.start(opts.port)}).decode(), flush=True)
        reactor.run()


def _positive(text: str) -> float:
    number = float(text)
    if not 1 <= number < inf:
        raise ValueError(text)
    return number
