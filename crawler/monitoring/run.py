"""What is remembered of a run: how its targets ended, and how often each field was filled."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, ValidationError

from crawler.monitoring.fields import FieldCount, count_fields

if TYPE_CHECKING:
    from crawler.targets.target import Outcome, Record

NOT_UNDERSTOOD = "EXTRACTION_FAILED"
KEPT = 100
"""Runs of a spider that are kept on disk."""


class Run(BaseModel):
    """One batch run of a spider, as it is kept for the next ones to be compared with."""

    spider: str
    started: datetime = Field(default_factory=lambda: datetime.now(UTC))
    reason: str = ""
    """Why it ended; ``finished`` is the ordinary end."""
    codes: Counter[str] = Field(default_factory=Counter)
    """Targets by outcome code."""
    fields: dict[str, dict[str, FieldCount]] = Field(default_factory=dict)
    """By scraper and path (``products[].price.current_price``)."""
    not_understood: Counter[str] = Field(default_factory=Counter)
    """Paths in the pages at which the extraction failed, and how often."""

    @property
    def targets(self) -> int:
        """How many targets it had."""
        return self.codes.total()

    def add_record(self, record: Record) -> None:
        """Counts the fields of a target's data."""
        scraper = record.target.scraper
        counts = self.fields.setdefault(scraper.name, {})
        count_fields(record.data, scraper.data, counts)

    def add_outcome(self, outcome: Outcome) -> None:
        """Counts how a target ended."""
        self.codes[outcome.code] += 1
        if outcome.error is not None and outcome.code == NOT_UNDERSTOOD:
            self.not_understood.update({_path(detail["loc"]) for detail in outcome.error.details})


def _path(loc: list[str | int]) -> str:
    """A path without the numbers of its rows.

    >>> _path(["products", 3, "name"])
    'products[].name'
    """
    path = ""
    for part in loc:
        path += "[]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path


class History:
    """The runs of a spider on disk: a JSON file each, with the reports beside it."""

    def __init__(self, folder: Path, spider: str) -> None:
        self.folder = folder / spider

    def last(self, number: int) -> list[Run]:
        """The last runs that ended by themselves, the oldest first. A file that is none of ours is passed over."""
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
        """Writes a run and its reports (text by suffix), forgets the oldest ones, and returns the path of the run."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{run.started:%Y%m%dT%H%M%S.%f}.json"
        for suffix, text in reports.items():
            path.with_suffix(suffix).write_text(text, encoding="utf-8")
        path.write_text(run.model_dump_json(), encoding="utf-8")
        for old in sorted(self.folder.glob("*.json"))[:-KEPT]:
            for suffix in (".json", *reports):
                old.with_suffix(suffix).unlink(missing_ok=True)
        return path
