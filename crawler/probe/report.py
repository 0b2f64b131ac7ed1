"""What ``scrapy probe`` prints: known targets as tables (``--all``), a target's empty fields, the budgets in effect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from scrapy.settings import BaseSettings

import crawler
from crawler.downloads.egress_setting import HOUR, egresses_of, platform_capacity
from crawler.errors import UpstreamBlocked, UpstreamRateLimited
from crawler.monitoring.fields import FieldCount, count_fields, values_of
from crawler.platforms.page import THROTTLING_STATUSES
from crawler.probe.recorder import Download, Recorder, read
from crawler.registry import scraper_names, scrapers
from crawler.targets.target import Scraper

Params = dict[str, Any]
TARGETS: TypeAdapter[dict[str, Params]] = TypeAdapter(dict[str, Params], config=ConfigDict(defer_build=True))
NOT_READ = "not read"
"""The table's name for requests whose response no page object has read: redirects, retries, failed downloads."""


def load_targets(path: Path | None, *, sandbox: bool) -> dict[str, Params]:
    """Return the params of one target per scraper, by scraper.

    The targets are read from the file ``path``. If ``path`` is None, they are the examples of the scrapers if
    ``sandbox``, else the known targets in ``targets.json``.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not an object of params by scraper, or names an unknown scraper.
    """
    if path is None and sandbox:
        return {scraper.name: dict(scraper.example) for scraper in scrapers().values()}  # aliases have the same name
    text = (path or files(__package__).joinpath("targets.json")).read_text(encoding="utf-8")
    try:
        found = TARGETS.validate_json(text)
    except ValidationError as error:
        raise ValueError(f"{path} must be a JSON object of params by scraper name: {error}") from None
    known = scraper_names()
    if unknown := [name for name in found if name not in known]:
        raise ValueError(f"{path} names the unknown scraper {unknown[0]!r}; known scrapers are {', '.join(known)}.")
    return found


def _sources(downloads: Iterable[Download]) -> Iterator[str]:
    """Yield for each source its requests, how many of the responses were blocks or rate limits, and their duration.

    The sources are in the order of their first requests.
    """
    by_source: dict[str, list[Download]] = {}
    for download in downloads:
        by_source.setdefault(download.page.source if download.page else NOT_READ, []).append(download)
    for source, found in (by_source or {"none": []}).items():
        blocks, seconds = sum(map(_is_block, found)), sum(each.seconds or 0.0 for each in found)
        yield f"{source:14}{len(found):3} requests  {blocks:3} blocks  {seconds:7.2f} s"


def _is_block(download: Download) -> bool:
    if download.response is not None and download.response.status in THROTTLING_STATUSES:
        return True
    return download.page is not None and isinstance(read(download.page).error, UpstreamBlocked | UpstreamRateLimited)


def table(recorder: Recorder) -> Iterator[str]:
    """Yield the lines about one target: its sources, and each field's null rate."""
    platform, name, outcome = recorder.scraper.platform, recorder.scraper.name, recorder.outcome
    code = outcome.code if outcome else "NO OUTCOME"
    through = f"{name} {recorder.egress.key}".rstrip()
    yield from (f"{platform:13}{through:28}{source}  {code}" for source in _sources(recorder.downloads))
    if outcome is None:
        return
    yield from (f"  STALE ID {name}: {reason}" for name, reason in recorder.stale_ids.items())
    if outcome.error is not None:
        yield f"  ERROR    {outcome.error.message}"
        return
    yield from (f"  WARNING  {warning}" for warning in outcome.warnings)
    counts: dict[str, FieldCount] = {}
    count_fields(outcome.data or {}, recorder.scraper.data, counts)
    yield from (f"  {path:60}{count.null_rate:4.0%} null of {count.rows:3}" for path, count in counts.items())


def is_good(recorder: Recorder) -> bool:
    """Whether a target succeeded without a warning."""
    outcome = recorder.outcome
    return outcome is not None and outcome.error is None and not outcome.warnings


DOCS = Path(crawler.__file__).parents[1] / "docs/platforms"
"""Folder of the platforms' documentation. The folder exists in a checkout of the project, but not in an installed
package."""
SECTION = "## Fields and nulls"
EMPTY_WORDS = re.compile(r"null|\"\"|\[\]|absent|(?<!never )empty|left out|none", re.IGNORECASE)
"""Matches the words by which the documentation says that a field may be empty."""


@dataclass(frozen=True)
class EmptyField:
    """A field that is empty in at least one row."""

    path: str
    count: FieldCount
    documented: bool
    """Whether the platform's documentation or the field's docstring says that the field may be empty.

    Always true for a list: ``docs/nulls.md`` documents that any list may be [].
    """

    def __str__(self) -> str:
        missing = self.count.rows - self.count.filled
        return f"{self.path} ({missing} of {self.count.rows})" if self.count.rows > 1 else self.path


def empty_fields(scraper: Scraper, data: dict[str, Any]) -> tuple[list[EmptyField], int]:
    """Return the fields that are empty in at least one row, and the number of fields that are filled in all rows."""
    counts: dict[str, FieldCount] = {}
    count_fields(data, scraper.data, counts)
    documented = documented_names(scraper.platform)
    fields = {each.path: each.field for each in values_of(data, scraper.data)}
    empty = [
        EmptyField(
            path,
            count,
            fields[path].is_list
            or _is_documented(path, documented)
            or bool(EMPTY_WORDS.search(fields[path].description)),
        )
        for path, count in counts.items()
        if count.filled < count.rows
    ]
    return empty, len(counts) - len(empty)


def documented_names(platform: str) -> set[str]:
    """Return the names of the fields that may be empty according to the platform's page in the documentation."""
    page = DOCS / f"{platform}.md"
    if not page.is_file():
        return set()
    section = page.read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|", 1) for line in section.splitlines() if line.startswith("|")]
    return {
        name.replace("[]", "")
        for row in rows
        if len(row) > 1 and EMPTY_WORDS.search(row[1])
        for name in re.findall(r"`([^`]+)`", row[0])
    }


def _is_documented(path: str, names: set[str]) -> bool:
    """Whether ``names`` contains the path, the last part of the path, or an object that contains the field."""
    plain = f".{path.replace('[]', '')}."
    return any(f".{name}." in plain for name in names)


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
