"""The counts of a run (its outcomes and how often its fields are filled), and the history of runs on disk."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crawler.monitoring.fields import FieldCount, count_fields
from crawler.targets.warning import unread_paths

if TYPE_CHECKING:
    from crawler.targets.target import Outcome

EXTRACTION_FAILED = "EXTRACTION_FAILED"
MAX_RUNS = 100
"""Number of runs per spider that are kept on disk."""


class Run(BaseModel):
    """The counts of one batch run of a spider, which are stored for comparison with later runs."""

    model_config = ConfigDict(defer_build=True)

    spider: str
    started: datetime = Field(default_factory=lambda: datetime.now(UTC))
    reason: str = ""
    """Scrapy's close reason; ``finished`` for a complete run."""
    codes: Counter[str] = Field(default_factory=Counter)
    """Outcome code -> number of targets."""
    failed_sources: Counter[str] | None = None
    """Source -> number of targets for which this optional source failed, or whose listing from it is incomplete. None
    in runs of versions that did not count this."""
    unread: Counter[str] | None = None
    """Unread path with its source -> number of targets. None in runs of versions that did not count this."""
    fields: dict[str, dict[str, FieldCount]] = Field(default_factory=dict)
    """Scraper -> path of a field (such as ``products[].price.current_price``) -> how often it is filled."""
    not_understood: Counter[str] = Field(default_factory=Counter)
    """Path in a platform's payload at which extraction failed -> number of targets."""

    @property
    def targets(self) -> int:
        """The number of completed targets."""
        return self.codes.total()

    def add_outcome(self, outcome: Outcome) -> None:
        """Count the outcome of a target, and the fields of its data."""
        if outcome.record is not None:
            scraper = outcome.record.target.scraper
            count_fields(outcome.record.data, scraper.data, self.fields.setdefault(scraper.name, {}))
        self.codes[outcome.code] += 1
        self.failed_sources = self.failed_sources or Counter()
        self.failed_sources.update({each.source for each in outcome.warnings if each.unread is None})
        self.unread = self.unread or Counter()
        self.unread.update(f"{path} of {source}" for source, path in unread_paths(outcome.warnings))
        if outcome.error is not None and outcome.code == EXTRACTION_FAILED:
            self.not_understood.update({_path(detail["loc"]) for detail in outcome.error.details})


def _path(loc: list[str | int]) -> str:
    """Convert the location of a value to a path without list indexes.

    >>> _path(["products", 3, "name"])
    'products[].name'

    The path of a whole list has no brackets at its end, although contracts declare it with them:

    >>> _path(["searchResult", "itemStacks[]"])
    'searchResult.itemStacks'
    """
    path = ""
    for part in loc:
        path += "[]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path.removesuffix("[]")


class History:
    """The stored runs of a spider: one JSON file per run, in the same folder as the reports of the run."""

    def __init__(self, folder: Path, spider: str) -> None:
        self.folder = folder / spider

    def last(self, number: int) -> list[Run]:
        """Return the last ``number`` complete runs, the oldest first. Files that are not valid runs are skipped."""
        found: list[Run] = []
        for path in sorted(self.folder.glob("*.json"), reverse=True):
            if len(found) == number:
                break
            try:
                run = Run.model_validate_json(path.read_bytes())
            except ValidationError:
                continue
            if run.reason == "finished":
                found.append(run)
        return found[::-1]

    def add(self, run: Run, reports: dict[str, str]) -> Path:
        """Write a run and its reports, and delete the runs beyond ``MAX_RUNS``. Return the path of the run's file.

        ``reports``: suffix of the report's file -> its text.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{run.started:%Y%m%dT%H%M%S.%f}.json"
        for suffix, text in reports.items():
            path.with_suffix(suffix).write_text(text, encoding="utf-8")
        path.write_text(run.model_dump_json(), encoding="utf-8")
        for old in sorted(self.folder.glob("*.json"))[:-MAX_RUNS]:
            for suffix in (".json", *reports):
                old.with_suffix(suffix).unlink(missing_ok=True)
        return path
