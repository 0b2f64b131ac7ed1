"""``scrapy sandbox``: serves the simulated platforms on loopback until it is interrupted."""

from __future__ import annotations

import argparse
import shlex
from importlib import import_module
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from scrapy.exceptions import UsageError

from crawler.configuration.command import CheckedCommand
from crawler.service.workers import installed_reactor

if TYPE_CHECKING:
    from crawler.sandbox.protocol import FakeSite


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
        parser.add_argument("--list", metavar="PLATFORM", help="print a platform's targets and faults, and exit")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        reactor = installed_reactor()
        from crawler.sandbox.server import PLATFORMS, Sandbox  # noqa: PLC0415  # they need the reactor

        if opts.list:
            if opts.list not in PLATFORMS:
                raise UsageError(f"--list: a platform ({', '.join(PLATFORMS)}) is expected, not {opts.list!r}.")
            module = import_module(f"crawler.sandbox.{opts.list}.site")
            print(listed(module.Site(opts.seed)))
            return
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


def listed(site: FakeSite) -> str:
    """Return a site's targets, then its faults, one per line: arguments of a crawl, the outcome, and what it is."""
    catalogue = site.catalogue()
    lines = [(each["params"], "OK", each["about"]) for each in catalogue["targets"]]
    lines += [(each["params"], each["code"], f"{name}: {each['about']}") for name, each in catalogue["faults"].items()]
    return "\n".join(
        f"{shlex.join(part for name, value in params.items() for part in ('-a', f'{name}={value}'))}\t{code}\t{about}"
        for params, code, about in lines
    )


def _positive(text: str) -> float:
    number = float(text)
    if not 1 <= number < inf:
        raise ValueError(text)
    return number
