"""What is remembered of a run: how its targets ended, and how often each field was filled."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, ValidationError

from crawler.shapes import Fields, Many, shape_of_models

if TYPE_CHECKING:
    from crawler.items import Record
    from crawler.outcomes import Outcome

NOT_UNDERSTOOD = "EXTRACTION_FAILED"
KEPT = 100
"""Runs of a spider that are kept on disk."""


class FieldCount(BaseModel):
    """How a field did: of ``rows`` objects that have it, how many gave a value, and how many said null."""

    rows: int = 0
    filled: int = 0
    null: int = 0

    @property
    def coverage(self) -> float:
        """Share of the rows that have a value."""
        return self.filled / self.rows if self.rows else 0.0

    @property
    def null_rate(self) -> float:
        """Share of the rows that say null; the rest is empty text, an empty list or a key left out."""
        return self.null / self.rows if self.rows else 0.0


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
        _count(record.data, shape_of_models([scraper.data]), "", counts)

    def add_outcome(self, outcome: Outcome) -> None:
        """Counts how a target ended."""
        self.codes[outcome.code] += 1
        if outcome.error is not None and outcome.code == NOT_UNDERSTOOD:
            self.not_understood.update({_path(detail["loc"]) for detail in outcome.error.details})


def _count(value: dict[str, Any], shape: Fields, prefix: str, counts: dict[str, FieldCount]) -> None:
    for name, inner in shape.of.items():
        path, found = f"{prefix}{name}", value.get(name)
        count = counts.get(path)
        if count is None:
            count = counts[path] = FieldCount()
        count.rows += 1
        if found is None:
            count.null += name in value
        elif found not in ("", [], {}):
            count.filled += 1
        if isinstance(inner, Many) and isinstance(inner.of, Fields):
            for each in found or ():
                if each is not None:
                    _count(each, inner.of, f"{path}[].", counts)
        elif isinstance(inner, Fields) and found is not None:
            _count(found, inner, f"{path}.", counts)


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
