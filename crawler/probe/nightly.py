"""``scrapy probe --all``: one known target per scraper, as a table, compared with the last run of each target."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from crawler.errors import UpstreamBlocked, UpstreamRateLimited
from crawler.monitoring.compare import FieldChange
from crawler.monitoring.fields import FieldCount, count_fields
from crawler.platforms.page import THROTTLING_STATUSES
from crawler.probe.recorder import Download, Recorder
from crawler.probe.reread import read
from crawler.registry import scraper_names, scrapers

Params = dict[str, Any]
Fields = dict[str, FieldCount]
"""How often each field is filled, by its path."""
TARGETS: TypeAdapter[dict[str, Params]] = TypeAdapter(dict[str, Params], config=ConfigDict(defer_build=True))
NOT_READ = "not read"
"""The table's name for requests whose response no page object has read: redirects, retries, failed downloads."""


LAST: TypeAdapter[dict[str, Fields]] = TypeAdapter(dict[str, Fields], config=ConfigDict(defer_build=True))


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


def target_key(scraper: str, params: Mapping[str, Any]) -> str:
    """Return the key of a target in the file of last runs."""
    return f"{scraper} {json.dumps(params, sort_keys=True)}"


def load_last(path: Path) -> dict[str, Fields]:
    """Return the field counts of each target's last run, {} before the first run.

    Raises:
        ValueError: the file is damaged.
    """
    if not path.exists():
        return {}
    try:
        return LAST.validate_json(path.read_bytes())
    except ValidationError:
        raise ValueError(f"{path} is not a file of last runs: delete it to start without a comparison.") from None


def save_last(path: Path, runs: dict[str, Fields]) -> None:
    """Write the field counts of each target's last run to the file, in place of its old content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_bytes(LAST.dump_json(runs, indent=1))
    draft.replace(path)


def fields_of_run(recorder: Recorder) -> Fields:
    """Return how often each field was filled in a run, or {} if the target has no data."""
    counts: Fields = {}
    if recorder.outcome and recorder.outcome.error is None:
        count_fields(recorder.outcome.data or {}, recorder.scraper.data, counts)
    return counts


def changes(before: Fields, now: Fields) -> dict[str, str]:
    """Return the fields that are no longer filled ("vanished"), or less often than in the last run ("dropped")."""
    found: dict[str, str] = {}
    for path, count in before.items():
        current = now.get(path, FieldCount())
        if count.filled and not current.filled:
            found[path] = "vanished"
        elif FieldChange("", path, count, current).change:
            found[path] = "dropped"
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


def table(recorder: Recorder, before: Fields) -> Iterator[str]:
    """Yield the lines about one target: its sources, and each field's null rate in this run and in the last run."""
    platform, name, outcome = recorder.scraper.platform, recorder.scraper.name, recorder.outcome
    code = outcome.code if outcome else "NO OUTCOME"
    yield from (f"{platform:13}{name:28}{source}  {code}" for source in _sources(recorder.downloads))
    if outcome is None:
        return
    yield from (f"  STALE ID {name}: {reason}" for name, reason in recorder.stale_ids.items())
    if outcome.error is not None:
        yield f"  ERROR    {outcome.error.message}"
        return
    yield from (f"  WARNING  {warning}" for warning in outcome.warnings)
    now = fields_of_run(recorder)
    changed = changes(before, now)
    for path in dict.fromkeys((*now, *changed)):
        count = now.get(path, FieldCount())
        earlier = f"{before[path].null_rate:4.0%} before" if path in before else "new"
        yield f"  {path:60}{count.null_rate:4.0%} null of {count.rows:3}  {earlier}  {changed.get(path, '')}".rstrip()


def is_good(recorder: Recorder, before: Fields) -> bool:
    """Whether a target succeeded without a warning, and without a field that vanished or dropped."""
    outcome = recorder.outcome
    if outcome is None or outcome.error is not None or outcome.warnings:
        return False
    return not changes(before, fields_of_run(recorder))
