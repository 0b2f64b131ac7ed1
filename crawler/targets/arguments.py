"""The ``-a`` arguments that all spiders of platforms accept, and what ``-a since=`` means: a run reads only the pages
of a listing that contain new entries.

``SinceDate`` compares the time of the entries with a day. For ``since=last``, ``crawler.jobs.seen`` stores which
entries of a listing earlier runs have seen.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from crawler.configuration.names import description, hint
from crawler.jobs.options import CRAWL, Int, LimitedOptions, ListingOptions
from crawler.targets.files.text import check_encoding
from crawler.targets.target import Outcome, Scraper, Target


class Since:
    """The base class of classes that decide which entries of a listing are new."""

    async def load(self, target: Target) -> None:
        """Prepare for a page before the page is read, such as by reading from a store."""

    def has_new_below(self, target: Target, data: dict[str, Any]) -> bool:
        """Whether the pages after this page may contain new entries."""
        raise NotImplementedError

    def new_entries(self, target: Target, data: dict[str, Any]) -> frozenset[str] | None:
        """Return the ids of the page's new entries, or None if the scraper has no entries to compare."""
        raise NotImplementedError

    def completed(self, outcome: Outcome) -> None:
        """Handle the outcome of a page."""

    async def close(self) -> None:
        """Complete pending work at the end of the run, such as writes to a store."""


class SinceDate(Since):
    """Selects entries that are from a day (in UTC) or later. An entry without a known time is new."""

    def __init__(self, day: date) -> None:
        self._start = datetime.combine(day, time(), UTC).timestamp()

    def has_new_below(self, target: Target, data: dict[str, Any]) -> bool:
        """Whether the pages after this page may contain new entries.

        Only the page's last entry with a time is compared: the first entries may be pinned posts, which are older.
        """
        entries = target.scraper.entries
        times = [row[entries.time] for row in entries.of(data)] if entries else []
        known = [each for each in times if each is not None]
        return not known or bool(known[-1] >= self._start)

    def new_entries(self, target: Target, data: dict[str, Any]) -> frozenset[str] | None:
        entries = target.scraper.entries
        if entries is None:
            return None
        rows = [(row[entries.key], row[entries.time]) for row in entries.of(data)]
        return frozenset(id_ for id_, seconds in rows if seconds is None or seconds >= self._start)


A = TypeVar("A", bound="CrawlArguments")

JOB = "_job"
"""An argument that Scrapyd adds to the user's arguments."""
REPLACED = {
    "resume": "scrapy collect FILE -O OUT continues an interrupted job, as does scrapy crawl SPIDER -a job=NAME",
    "queue": "scrapy jobs push NAME FILE, then scrapy work or scrapy crawl SPIDER -a job=NAME, with STORE=postgresql://...",
    "wait": "scrapy work waits for further targets",
}
"""Argument of an earlier version -> its replacement."""
OBJECTS = frozenset({"source", "shared"})
"""Arguments that only the project's own code passes, as objects. Users can pass only text."""

OF_TARGETS_FILES = {"shard": "selects a part of targets files", "encoding": "is that of targets files"}
"""Argument that requires ``targets`` -> its meaning."""


class CrawlArguments(ListingOptions):
    """The ``-a`` arguments that every spider accepts. ``with_params`` adds the params of the scrapers, as text."""

    model_config = ConfigDict(extra="ignore")

    params: ClassVar[frozenset[str]] = frozenset()
    """The arguments that are params of a scraper."""

    scraper: str | None = None
    """The scraper's name. Without it, the params identify the scraper; if they fit several, the first of these."""
    targets: str | None = Field(default=None, json_schema_extra=CRAWL)
    """Path, glob or URL of files with targets (JSON, CSV, Excel or a plain list), instead of the params."""
    encoding: str | None = Field(default=None, json_schema_extra=CRAWL)
    """Encoding of targets files without a byte order mark, such as cp1252. By default, UTF-8."""
    explode: str | None = Field(default=None, json_schema_extra=CRAWL)
    """Name of a list in the data (products, posts). The feeds get one line per row of the list, not one per target."""
    shard: str | None = Field(default=None, json_schema_extra=CRAWL)
    """The part of the targets file that this run scrapes: 3/16 is the third of sixteen equal parts."""
    job: str | None = Field(default=None, min_length=1, json_schema_extra=CRAWL)
    """Name of a job in the store, from which several workers take targets. ``scrapy collect`` and ``scrapy jobs push``
    make jobs."""
    run: Int | None = Field(default=None, ge=1, json_schema_extra=CRAWL)
    """Number of a run of the job. By default, the newest run."""
    fields: str | None = Field(default=None, json_schema_extra=CRAWL)
    """The fields to write to the feeds, in this order, with commas between them: ``item_id,price.current_price``."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        for name in REPLACED.keys() & arguments.keys():
            raise ValueError(f"the argument {name} was replaced by jobs: {REPLACED[name]}")
        known = sorted(cls.model_fields, key=LimitedOptions.model_fields.__contains__)  # the options of jobs last
        objects = {name for name in OBJECTS & arguments.keys() if not isinstance(arguments[name], str)}
        for unknown in sorted(arguments.keys() - set(known) - objects - {JOB}):
            others = f"the arguments are {', '.join(known)}"
            raise ValueError(f"no argument is called {unknown}; {hint(unknown, known, others)}")
        return arguments

    @field_validator("encoding")
    @classmethod
    def _validate_encoding(cls, encoding: str | None) -> str | None:
        return None if encoding is None else check_encoding(encoding)

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        if self.shard is not None:
            parse_shard(self.shard)
        for name, meaning in OF_TARGETS_FILES.items():
            if getattr(self, name) is not None and self.targets is None:
                raise ValueError(f"{name} {meaning}: add targets=, or remove {name}=")
        if self.targets is not None and (both := sorted(self.model_fields_set & self.params)):
            raise ValueError(f"targets files have the params of their targets: remove {both[0]}=, or remove targets=")
        if self.run is not None and self.job is None:
            raise ValueError("run is the number of a run of a job: add job=, or remove run=")
        beside = sorted(self.model_fields_set - {"job", "run"})
        if self.job is not None and beside:
            raise ValueError(f"a job has its own targets and arguments: remove {beside[0]}=, or remove job=")
        return self


def parse_shard(text: str) -> range:
    """Return the numbers of the rows of a shard. The rows of all files are numbered together, starting with 0.

    >>> parse_shard("3/16")[0], parse_shard("3/16")[1]
    (2, 18)

    Raises:
        ValueError: the text is not a shard.
    """
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise ValueError(f"{text!r} is not a shard: write 3/16 for the third of sixteen parts")
    return range(int(found[1]) - 1, sys.maxsize, int(found[2]))


def with_params(model: type[A], scrapers: Iterable[Scraper]) -> type[A]:
    """Return a subclass of the arguments model, with the params of scrapers as additional text fields.

    If several scrapers have the same param, its first description is used. A param with the name of an existing field
    is not added.
    """
    added: dict[str, Any] = {}
    for scraper in scrapers:
        for name in scraper.params.model_fields:
            if name not in model.model_fields:
                added.setdefault(
                    name, (str | None, Field(default=None, json_schema_extra=partial(_describe, scraper.params, name)))
                )
    made: type[A] = create_model(model.__name__, __base__=model, **added)
    made.params = model.params | frozenset(added)
    return made


def _describe(params: type[BaseModel], name: str, schema: dict[str, Any]) -> None:
    schema["description"] = description(params, name)
