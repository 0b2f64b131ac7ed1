"""Scrapers, their targets, and the outcomes of targets.

A *target* is a params object, its scraper, and an id. It has exactly one *outcome*: a record or an error.
``sources.py`` provides targets; ``tracker.py`` tracks those in progress.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from crawler.errors import Detail, InvalidRequest, ScrapeError, ScraperNotFound
from crawler.platforms.model import validation_details

if TYPE_CHECKING:
    from crawler.platforms.page import PlatformPage


@dataclass(frozen=True)
class Entries:
    """The entries of a listing in its record, newest first: the list's dotted path, and the key of their id."""

    path: str
    key: str


@dataclass(frozen=True)
class Scraper:
    """A named endpoint: its params, its data model, and an example that works in the sandbox."""

    name: str
    platform: str
    summary: str
    params: type[BaseModel]
    data: type[BaseModel]
    example: dict[str, Any]
    aliases: tuple[str, ...] = ()
    pages: tuple[type[PlatformPage], ...] = ()
    """The page classes that read this scraper's responses, in request order."""
    entries: Entries | None = None
    """The entries that ``since=last`` compares; None if the listing is not sorted by time."""

    @property
    def class_name(self) -> str:
        """The name in CamelCase: ``RetailCategoryV4`` for ``retail-category-v4``."""
        return "".join(word.capitalize() for word in self.name.split("-"))

    @cached_property
    def item_class(self) -> type[Record]:
        """The class of this scraper's items, so that rules by item class can distinguish scrapers."""
        doc = f"An item of {self.name}."
        return type(f"{self.class_name}Item", (Record,), {"__doc__": doc, "__module__": "crawler.items"})


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to scrape. It has exactly one outcome."""

    id: str
    scraper: Scraper
    params: BaseModel
    parent: str | None = None
    """The id of the target that this one follows (as its next page, or a slice of its listing)."""
    depth: int = 0
    """Number of follow-ups between this target and the requested one."""
    deadline: float | None = None
    """Time of the event loop's clock at which the target times out."""
    line: int | None = None
    """Line number in the targets file, from 1."""
    row: int | None = None
    """Position in its source, from 0. A resumed run identifies the target by it."""
    batch: bool = False
    """Whether it belongs to a list, so that its feed line must contain its id and params."""
    root: str | None = None
    """The id of the requested target, if all lines of its follow-ups must name it."""

    def followup(self, **changes: Any) -> Target:
        """Return a follow-up target: the same scraper, other params."""
        return Target(
            id=new_id(),
            scraper=self.scraper,
            params=self.params.model_copy(update=changes),
            parent=self.id,
            depth=self.depth + 1,
            batch=self.batch,
            root=self.root,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that identify the target in a feed line."""
        return {
            "id": self.id,
            **({} if self.root is None else {"root": self.root}),
            "scraper": self.scraper.name,
            "params": self.params.model_dump(mode="json", exclude_none=True),
        }

    def dump(self) -> dict[str, Any]:
        """Return the target as JSON data for journals and queues. ``TargetParser.load`` reads it."""
        return {**self.as_dict(), "parent": self.parent, "hop": self.depth, "line": self.line, "batch": self.batch}


class SavedTarget(BaseModel):
    """A target as written by ``Target.dump``. A wire format: the keys keep their names."""

    model_config = ConfigDict(strict=True)

    id: str
    scraper: str
    params: dict[str, Any]
    parent: str | None = None
    hop: int = 0
    line: int | None = None
    batch: bool = True
    root: str | None = None


class Record(dict[str, Any]):
    """A target's data as a Scrapy item: a mapping that any pipeline can change and any exporter can write.

    The attributes are for this project's own pipelines. A copy of the mapping (``dict(record)``, ``record.copy()``)
    does not have them; ``tracker.record_in_progress`` restores them.
    """

    def __init__(self, data: Mapping[str, Any], target: Target, fetched_at: datetime, *, is_line: bool = False) -> None:
        super().__init__(data)
        self.target = target
        self.fetched_at = fetched_at
        """When the scraper finished reading the target (UTC)."""
        self.is_line = is_line
        """Whether the mapping is the target's line in a batch feed, with the data under the key ``data``."""

    @property
    def data(self) -> dict[str, Any]:
        """The data in the shape of the scraper's data model."""
        data: dict[str, Any] = self["data"] if self.is_line else self
        return data

    def as_line(self) -> Record:
        """Return the line of a batch feed: ``id``, ``scraper``, ``params``, ``fetched_at`` (ISO 8601) and ``data``."""
        line = {**self.target.as_dict(), "fetched_at": self.fetched_at.isoformat(), "data": dict(self)}
        return type(self)(line, self.target, self.fetched_at, is_line=True)


@dataclass(frozen=True, slots=True)
class InvalidTarget:
    """An invalid target: a malformed line, an unknown scraper, or invalid params. Its outcome is its error."""

    id: str
    error: ScrapeError
    scraper: str | None = None
    raw: Any = None
    """The params, or the raw line if it could not be parsed."""
    line: int | None = None
    row: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that identify the target in a feed line."""
        return {"id": self.id, "scraper": self.scraper, "params": self.raw}


class FailedSource(NamedTuple):
    """An optional source that failed: the record is valid, but lacks the data of this source."""

    source: str
    """The source's name, from its page class."""
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a target ended: its record, or its error."""

    target: Target | InvalidTarget
    record: Record | None
    """The item as the pipelines returned it. None without an error: the target has nothing new, and no line."""
    error: ScrapeError | None
    duration_ms: int
    followups: tuple[Target, ...] = ()
    """The follow-up targets: the next page, the slices of a listing."""
    warnings: tuple[FailedSource, ...] = ()
    """The optional sources that failed."""
    note: dict[str, Any] | None = None
    """What the spider needs of this target if the run is resumed."""

    @property
    def data(self) -> dict[str, Any] | None:
        """The data in the shape of the scraper's data model, None if the target failed."""
        return None if self.record is None else self.record.data

    @property
    def code(self) -> str:
        """``OK`` or the error's code."""
        return self.error.code if self.error else "OK"


def new_id() -> str:
    """Return an id for a target without one."""
    return uuid.uuid4().hex


def check_params(scraper: Scraper, params: Mapping[str, Any], *, text: bool = False) -> BaseModel:
    """Validate params with the scraper's strict model. ``text`` converts strings (``-a`` arguments, CSV cells).

    Raises:
        InvalidRequest: with one detail for each invalid field.
    """
    nulls: list[Detail] = [
        {"loc": [key], "msg": "null is not a valid value; omit the key", "type": "null"}
        for key, value in params.items()
        if value is None
    ]
    if nulls:
        raise _invalid(scraper, nulls)
    try:
        if text:
            return scraper.params.model_validate_strings(params)
        return scraper.params.model_validate(params)
    except ValidationError as error:
        raise _invalid(scraper, validation_details(error)) from error


def _invalid(scraper: Scraper, details: list[Detail]) -> InvalidRequest:
    where = ".".join(map(str, details[0]["loc"])) or "params"
    return InvalidRequest(f"{scraper.name}: {where}: {details[0]['msg']}", details=details)


@dataclass(frozen=True)
class TargetParser:
    """Parses raw params to a target of one spider's scrapers, or to an ``InvalidTarget`` with the error."""

    scrapers: tuple[Scraper, ...]
    default: str | None = None
    """The scraper of targets that do not name one (``-a scraper=``)."""
    sliced: bool = False
    """Whether a target has many lines, its own and those of its slices, which all name it."""

    def scraper(self, name: str | None, params: Mapping[str, Any]) -> Scraper:
        """Return the scraper by name or alias. Without a name, return the only scraper that accepts the params.

        Raises:
            ScraperNotFound: no scraper of this spider has the name.
            InvalidRequest: no name was given, and not exactly one scraper accepts the params.
        """
        name = name or self.default
        if name:
            for scraper in self.scrapers:
                if name == scraper.name or name in scraper.aliases:
                    return scraper
            known = ", ".join(s.name for s in self.scrapers)
            raise ScraperNotFound(f"Unknown scraper {name!r}: this spider has {known}.")
        if len(self.scrapers) == 1:
            return self.scrapers[0]
        keys = set(params)
        fitting = [s for s in self.scrapers if keys <= set(s.params.model_fields)]
        needed = [s for s in fitting if keys >= _required(s)]
        if len(needed) != 1:
            forms = "; ".join(f"{s.name}: {', '.join(s.params.model_fields)}" for s in self.scrapers)
            raise InvalidRequest(
                f"The params do not identify a scraper. Name it with 'scraper', or give the params of one of: {forms}."
            )
        return needed[0]

    def parse(
        self,
        raw: Mapping[str, Any],
        *,
        text: bool = False,
        line: int | None = None,
        row: int | None = None,
        batch: bool = False,
    ) -> Target | InvalidTarget:
        """Parse flat params with an optional ``scraper`` and ``id``."""
        params = {k: v for k, v in raw.items() if k not in {"scraper", "id"}}
        target_id = str(raw.get("id") or new_id())
        name = raw.get("scraper")
        try:
            if name is not None and not isinstance(name, str):
                raise InvalidRequest("'scraper' must be a string: the name of a scraper.")
            scraper = self.scraper(name, params)
            model = check_params(scraper, params, text=text)
        except ScrapeError as error:
            named = name if isinstance(name, str) else None
            return InvalidTarget(target_id, error, scraper=named, raw=params, line=line, row=row)
        root = target_id if self.sliced else None
        return Target(target_id, scraper, model, line=line, row=row, batch=batch or self.sliced, root=root)

    def load(self, saved: SavedTarget, *, row: int | None = None) -> Target | InvalidTarget:
        """Load a target of a journal or a queue. It may be invalid: another version may have written it."""
        try:
            scraper = self.scraper(saved.scraper, saved.params)
            params = check_params(scraper, saved.params)
        except ScrapeError as error:
            return InvalidTarget(saved.id, error, saved.scraper, saved.params, saved.line, row)
        position = {"line": saved.line, "row": row}
        return Target(
            saved.id, scraper, params, saved.parent, saved.hop, batch=saved.batch, root=saved.root, **position
        )


def _required(scraper: Scraper) -> set[str]:
    """Return the required keys of a scraper."""
    return {name for name, info in scraper.params.model_fields.items() if info.is_required()}
