"""``scrapy probe --all``: one known target per scraper, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from crawler.errors import UpstreamBlocked, UpstreamRateLimited
from crawler.monitoring.fields import FieldCount, count_fields
from crawler.platforms.page import THROTTLING_STATUSES
from crawler.probe.recorder import Download, Recorder
from crawler.probe.reread import read
from crawler.registry import scraper_names, scrapers

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
