"""The budgets in effect: those of each platform, egress and source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scrapy.settings import BaseSettings

from crawler.downloads.egress_setting import HOUR, egresses_of, platform_capacity

HEAD = ("platform", "egress", "source", "at once", "delay", "burst", "gap", "in an hour", "targets an hour")


def budget_lines(names: Iterable[str], settings: BaseSettings) -> list[str]:
    """Return the lines of a table: what may be sent to the platforms ``names`` through each of their egresses.

    ``in an hour`` is the most downloads in any hour; it is empty for a budget without a delay.

    Raises:
        ValueError: a budget or an egress is wrong.
    """
    if settings.getbool("SANDBOX"):
        return ["The sandbox has no budgets."]
    rows = [HEAD, *(row for name in names for row in _rows(name, settings))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _rows(name: str, settings: BaseSettings) -> Iterator[tuple[str, ...]]:
    for egress in egresses_of(name, settings):
        budget = egress.budget(name, settings)
        yield (name, egress.name, "", *_limits(budget), f"{platform_capacity(name, budget):,.0f}")
        for source, limits in sorted(budget["sources"].items()):
            yield (name, egress.name, source, *_limits(limits), "")


def _limits(budget: Mapping[str, Any]) -> tuple[str, ...]:
    delay, burst, gap = budget.get("delay", 0), budget.get("burst", 1), budget.get("gap", 0)
    hourly = f"{burst + HOUR / delay:,.0f}" if delay else ""
    return str(budget["concurrency"]), f"{delay:g} s", str(burst), f"{gap:g} s", hourly
