"""``scrapy egress``: checks the operator's egresses, and prints how many targets per hour they allow."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import orjson
from scrapy.exceptions import UsageError

from crawler import platforms
from crawler.commands.exit_codes import ALL_HAVE_DATA, SOME_FAILED
from crawler.configuration.command import CheckedCommand
from crawler.downloads.breaker import CONNECTION, PLATFORM, Blocks, BreakerKey, suspension_seconds
from crawler.downloads.egress_setting import Egress, egresses_of, platform_capacity
from crawler.downloads.tunnel import check
from crawler.errors import StoreUnavailable
from crawler.jobs.location import store_location

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


TABLE_WIDTH = 160
"""Width of the table, in characters, if the output is not a terminal."""


@dataclass(frozen=True)
class Suspension:
    """A source for which an egress is suspended."""

    source: str
    """The name of the source. ``(connection)``: the egress itself has failed. ``(platform)``: the whole platform is
    suspended."""
    until: float
    """Unix time of the end of the suspension."""
    reason: str
    """Why the egress is suspended, such as ``challenge``."""


@dataclass(frozen=True)
class Row:
    """The output for one egress and one platform."""

    egress: str
    platform: str
    problem: str
    """Why the platform cannot be reached through the egress; empty if it can."""
    latency_ms: int | None
    tls: str
    concurrency: int
    delay: float
    resting_until: float | None
    """Unix time at which a source may be requested again. None: at least one source may be requested now, or
    processes share no limits."""
    rests: list[Suspension]
    """The sources for which the egress is suspended, even if other sources may be requested."""
    targets_per_hour: float

    @property
    def usable(self) -> bool:
        """Whether the platform can be reached through the egress, and the egress is not suspended."""
        return not self.problem and self.resting_until is None


class Command(CheckedCommand):
    """Check the egresses, and show how many targets per hour they allow.

    Opens a connection to each platform through each of its egresses, and sends no request. Suspensions by running
    processes are shown only if these processes share limits through STORE.

    Exit codes: 0 if all egresses work, 4 if one does not work or is suspended, 2 for wrong use.
    """

    arguments = "check [<platform> ...]"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--json", action="store_true", help="print one line of JSON instead of tables")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        names = args[1:] or list(platforms.platforms())
        unknown = set(names) - platforms.platforms().keys()
        if args[:1] != ["check"] or unknown:
            raise UsageError(f"{self.wrong_arguments()}; platforms are {', '.join(platforms.platforms())}")
        rows = asyncio.run(check_all(names, self.settings))
        if opts.json:
            print(orjson.dumps({"egresses": [asdict(row) for row in rows], "targets_per_hour": sums(rows)}).decode())
        else:
            print_tables(rows, sys.stdout, width=None if sys.stdout.isatty() else TABLE_WIDTH)
        self.exitcode = ALL_HAVE_DATA if all(row.usable for row in rows) else SOME_FAILED


async def check_all(names: list[str], settings: BaseSettings) -> list[Row]:
    """Check each egress of each of these platforms. All checks run concurrently."""
    breakers = await asyncio.to_thread(_shared_breakers, names, settings)
    return await asyncio.gather(
        *(_check(egress, name, settings, breakers) for name in names for egress in egresses_of(name, settings))
    )


async def _check(egress: Egress, name: str, settings: BaseSettings, breakers: Mapping[BreakerKey, Suspension]) -> Row:
    origins = platforms.origins(name, settings)
    origin = origins if isinstance(origins, str) else origins["page"]
    result = await check(egress, origin, verify=settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"))
    budget = egress.budget(name, settings)
    own = {
        key.source: breaker
        for key, breaker in breakers.items()
        if key.platform == name and (key.egress == egress.key or key.source == PLATFORM)
    }
    now = time.time()
    left = suspension_seconds({source: max(0.0, each.until - now) for source, each in own.items()})
    rests = [each for _, each in sorted(own.items()) if each.until > now]
    return Row(
        egress=egress.name,
        platform=name,
        problem=result.problem,
        latency_ms=None if result.problem else round(result.seconds * 1_000),
        tls=result.tls,
        concurrency=budget["concurrency"],
        delay=budget["delay"],
        resting_until=now + left if left else None,
        rests=rests,
        targets_per_hour=round(platform_capacity(name, budget), 1),
    )


def _shared_breakers(names: list[str], settings: BaseSettings) -> Mapping[BreakerKey, Suspension]:
    """Return the suspensions by circuit breakers of platforms that processes share through ``STORE``.

    Empty without a store. Also empty if the store is unavailable, which is reported on stderr.
    """
    with suppress(UsageError):  # no file can be the store here, such as on Scrapy Cloud
        location = store_location(settings)
        if "://" in location or Path(location).exists():
            from crawler.jobs.shared_facts import stored_facts  # noqa: PLC0415  # imports SQLAlchemy

            try:
                found, now = stored_facts(location, Blocks, names)
            except StoreUnavailable as error:
                print(f"Suspended egresses are not known, because the store is unavailable: {error}", file=sys.stderr)
                return {}
            return {
                (key := BreakerKey.parse(name)): Suspension(
                    key.source, time.time() + max(0.0, blocks.open_until - now), blocks.reason or ""
                )
                for name, blocks in found.items()
            }
    return {}


def sums(rows: list[Row]) -> dict[str, float]:
    """Return the targets per hour of each platform: the sum over its usable egresses."""
    names = dict.fromkeys(row.platform for row in rows)
    return {name: sum(row.targets_per_hour for row in rows if row.platform == name and row.usable) for name in names}


def print_tables(rows: list[Row], file: TextIO, width: int | None) -> None:
    """Print a table with a row for each egress and platform, and a table with the sum of each platform."""
    from rich import box  # noqa: PLC0415  # Scrapy imports this module for every command, and rich takes 30 ms
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table("egress", "platform", "reachable", box=box.SIMPLE)
    for heading in ("latency", "TLS", "budget", "suspended until", "targets per hour"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.egress,
            row.platform,
            row.problem or "yes",
            "" if row.latency_ms is None else f"{row.latency_ms} ms",
            row.tls,
            f"{row.concurrency} at once, {row.delay:g} s apart",
            "\n".join(_suspension_text(each) for each in row.rests),
            f"{row.targets_per_hour:,.0f}",
        )
    total = Table("platform", box=box.SIMPLE)
    total.add_column("targets per hour, all usable egresses", justify="right")
    for name, number in sums(rows).items():
        total.add_row(name, f"{number:,.0f}")
    Console(file=file, width=width).print(table, total)


def _suspension_text(each: Suspension) -> str:
    until = datetime.fromtimestamp(each.until, UTC).strftime("%H:%M:%S UTC")
    about = {CONNECTION: "", PLATFORM: "all egresses: "}.get(each.source, f"{each.source}: ")
    return f"{about}{until}" + (f" ({each.reason})" if each.reason else "")
