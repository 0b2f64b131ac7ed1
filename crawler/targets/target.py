"""Scrapers, their targets, and the outcomes of targets.

A *target* consists of an id, a scraper and params. It has exactly one *outcome*: a record, an error, or with ``since``
the fact that nothing is new.
``sources.py`` provides targets, and ``tracker.py`` tracks the targets that are in flight.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel, ConfigDict

from crawler.errors import ScrapeError
from crawler.logs import one_line
from crawler.platforms.model import Params
from crawler.targets.warning import OutcomeWarning

if TYPE_CHECKING:
    from crawler.downloads.lane import Lane
    from crawler.platforms.page import PlatformPage

# The lines of targets in feeds of batches, in the files of jobs and in the endpoint's downloads. The models
# ``RecordLine`` and ``FailureLine`` describe them in the OpenAPI document.

ERROR_KEYS = ("code", "message", "retryable", "details", "upstream")
FAILURE_KEYS = ("id", "root", "scraper", "params", "parent", "line", *ERROR_KEYS)
"""The columns of failures in tables. ``root`` has a value only in exhaustive crawls."""


def identity_keys(
    target_id: str, root: str | None, scraper: str | None, params: Any, columns: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the keys that identify a target in a line.

    ``root``: the id of the requested target, if lines must contain it. ``columns``: the user's own columns.
    """
    return {
        "id": target_id,
        **({} if root is None else {"root": root}),
        "scraper": scraper,
        "params": params,
        **({"columns": columns} if columns else {}),
    }


def provenance_keys(target: Mapping[str, Any], fetched_at: str, warnings: list[Any], note: str) -> dict[str, Any]:
    """Return the keys that precede the data in the line of a record. ``target``: as ``identity_keys()`` returns it."""
    return {**target, "fetched_at": fetched_at, "warnings": warnings, "note": note}


def failure_keys(
    target: Mapping[str, Any], parent: str | None, line: int | None, error: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the line of a failed target, with its error, and with the id and params that are needed to repeat it.

    ``target``: as ``identity_keys()`` returns it. ``parent``: the id of the target that led to it. ``line``: its line
    number in the targets file. ``error``: the error as JSON data, with the key ``retryable``.
    """
    return {**target, "parent": parent, "line": line, **{key: error.get(key) for key in ERROR_KEYS}}


OWN_KEYS = ("id", "scraper")
"""The keys and columns of a target that are not params."""
KEY_BYTES = 16
"""Length of the key that identifies a target's data."""


@dataclass(frozen=True)
class Entries:
    """Where a record contains the entries of a listing, newest first.

    ``path``: dotted path of the list. ``key``: the key under which an entry has its id. ``time``: the key under which
    an entry has its time, in Unix seconds or None. ``more``: dotted path of a value that is false or
    empty on the last page.
    """

    path: str
    key: str
    time: str
    more: str
    in_order: bool = False
    """Whether the entries are always in the order of their times. Otherwise, a pinned entry may come first, and the
    platform may sort by popularity."""
    source: str = ""
    """The source whose failure leaves the record with the entries of other sources, which may lack any of them."""

    def of(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the entries of a page in the order of the page.

        >>> Entries("posts.main", "id", "at", "more").of({"posts": {"main": [{"id": "7", "at": 2}]}})
        [{'id': '7', 'at': 2}]
        """
        rows: Any = data
        for key in self.path.split("."):
            rows = rows[key]
        return list(rows)


@dataclass(frozen=True)
class Scraper:
    """A named kind of target: the models of its params and data, and example params that work in the sandbox."""

    name: str
    platform: str
    summary: str
    params: type[Params]
    data: type[BaseModel]
    example: dict[str, Any]
    item: type[Record] = field(default_factory=lambda: Record)
    """The class of the items. Each scraper of this project has its own, so that feeds can select items by class."""
    aliases: tuple[str, ...] = ()
    pages: tuple[type[PlatformPage], ...] = ()
    """The page object classes that read the responses for this scraper, in the order of the requests."""
    entries: Entries | None = None
    """The entries that ``-a since=`` compares. None if the scraper has no listing that is sorted by time."""
    requests: int | None = None
    """Maximum number of pages that a target requests, without repeats after failures. None: it depends on the pages.

    A page that a browser loads counts as one.
    """

    @cached_property
    def contract(self) -> str:
        """Identifies the code that reads the platform's pages: values that different code has read may differ."""
        package = Path(inspect.getfile(self.data)).parent
        code = b"".join(file.read_bytes() for file in sorted(package.glob("*.py")))
        return hashlib.blake2b(code, digest_size=4).hexdigest()


class ReleaseEnded(Exception):  # not a ScrapeError, because scrape() may catch a ScrapeError and use another source
    """Raised to end ``scrape()``, because the target already has its outcome, or was started again on another lane."""


@dataclass(slots=True, eq=False)
class Release:
    """The state of one attempt at a target on one lane, from its release by the tracker to its outcome.

    If the egress of the lane fails, the target is *released again*: it gets a new attempt on another lane, with a
    ``Target`` object of its own. All requests of an attempt have its object in their ``meta``. A target that meets a
    rate limit is released again on the same lane.
    """

    failed: Lane | None = None
    """The lane of the earlier release, whose egress has failed. The target does not use it again."""
    limit: ScrapeError | None = None
    """The rate limit that ended the earlier release."""
    not_before: float = 0.0
    """When the first request may be sent, on the event loop's clock."""
    lane: Lane | None = None
    """The lane of all requests. None: none has been sent."""
    is_sent: bool = False
    """Whether a request has got a download slot. If not, the platform is not the reason for a passed deadline."""
    is_refused: bool = False
    """Whether the platform has refused a request. The target then keeps its lane."""
    ended: bool = False
    """Whether the target has its outcome, or was released again."""
    successor: Target | None = None
    """The target of the next release, if the target was released again."""
    since: float = 0.0
    """When the tracker released the target for the first time, by ``time.monotonic()``."""
    timer: asyncio.TimerHandle | None = None
    """Ends the target at its deadline."""
    fetched_at: datetime | None = None
    """When the data was complete."""
    followups: list[Target] = field(default_factory=list)
    warnings: list[OutcomeWarning] = field(default_factory=list)
    note: dict[str, Any] | None = None
    new_entries: frozenset[str] | None = None
    """``followups``, ``warnings``, ``note`` and this attribute become those of the outcome."""

    def check(self) -> None:
        """Raise ``ReleaseEnded`` if no further request may be sent."""
        if self.ended:
            raise ReleaseEnded

    def end(self) -> None:
        """End the release: no further request is sent."""
        if not self.ended and self.lane:
            self.lane.leave(self)
        self.ended = True


@dataclass(frozen=True, slots=True)
class Target:
    """A page or listing to scrape: a scraper and its params. It has exactly one outcome."""

    id: str
    scraper: Scraper
    params: Params
    parent: str | None = None
    """The id of the target that led to this follow-up target; None if it is not a follow-up."""
    depth: int = 0
    """Number of follow-up steps from the target in the source to this target; 0 for targets in the source."""
    deadline: float | None = None
    """When the target times out, on the event loop's clock. None: it has no deadline of its own."""
    line: int | None = None
    """Line number in the targets file, starting with 1."""
    row: int | None = None
    """Position in the source, starting with 0."""
    batch: bool = False
    """Whether the target belongs to a list of targets, so that its feed line must contain its id and params."""
    root: str | None = None
    """The id of the requested target (this one, or the one that led to it), if the feed lines must contain that id."""
    background: bool = False
    """Whether the downloads of all other targets have priority over the target's downloads."""
    columns: dict[str, Any] = field(default_factory=dict)
    """The user's own columns of the target's row in a file, which are written to the outputs."""
    note: str = ""
    """Sentences about params that were reduced to their limits or that no response proves. "": there are none."""
    release: Release = field(default_factory=Release, init=False, repr=False, compare=False)

    def followup(self, **changes: Any) -> Target:
        """Return a follow-up target of the same scraper. ``changes``: the params that differ from this target's."""
        return Target(
            id=new_id(),
            scraper=self.scraper,
            params=self.params.model_copy(update=changes),
            parent=self.id,
            depth=self.depth + 1,
            batch=self.batch,
            root=self.root,
            columns=self.columns,
            note=self.note,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that identify the target in a feed line."""
        params = self.params.model_dump(mode="json", exclude_none=True)
        return identity_keys(self.id, self.root, self.scraper.name, params, self.columns)

    @property
    def seconds_left(self) -> float | None:
        """The seconds until the deadline, negative after it. None: the target has no deadline of its own."""
        return None if self.deadline is None else self.deadline - asyncio.get_running_loop().time()

    @property
    def identity(self) -> dict[str, Any]:
        """The params as JSON data.

        A link is replaced by the params of the linked page, so that equal targets have equal data.
        """
        return self.params.identity()

    @property
    def key(self) -> bytes:
        """Identifies the target's data. Targets of a scraper with equal ``identity`` have the same key."""
        return target_key(self.scraper.name, self.identity)

    @property
    def label(self) -> str:
        """A short text with the params that differ from their defaults: ``cat_id=4044 page=2``."""
        return label_of(self.params.model_dump(mode="json", exclude_none=True, exclude_defaults=True))

    def dump(self) -> dict[str, Any]:
        """Return the target as JSON data for jobs. ``TargetParser.load`` reads it."""
        place = {"parent": self.parent, "hop": self.depth, "line": self.line, "batch": self.batch}
        return {**self.as_dict(), **place, "note": self.note}


class SavedTarget(BaseModel):
    """A target in a job, as ``Target.dump`` writes it.

    Other versions of the project must be able to read such targets, so the keys must not be renamed.
    """

    model_config = ConfigDict(strict=True, defer_build=True)

    id: str
    scraper: str
    params: dict[str, Any]
    parent: str | None = None
    hop: int = 0
    line: int | None = None
    batch: bool = True
    root: str | None = None
    columns: dict[str, Any] = {}
    note: str = ""


class Record(dict[str, Any]):
    """A target's data as a Scrapy item. It is a dict, which all item pipelines and exporters support.

    This project's own pipelines also use its attributes. A copy (``dict(record)``, ``record.copy()``) does not have the
    attributes; ``tracker.record_in_progress`` restores them.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        target: Target,
        fetched_at: datetime,
        warnings: tuple[OutcomeWarning, ...] = (),
        *,
        is_line: bool = False,
    ) -> None:
        super().__init__(data)
        self.target = target
        self.fetched_at = fetched_at
        """When the scraper finished reading the target (UTC)."""
        self.warnings = warnings
        """The parts that the data lacks, and why."""
        self.is_line = is_line
        """Whether this is the line of a batch feed, which contains the data under the key ``data``."""

    @property
    def data(self) -> dict[str, Any]:
        """The data in the shape of the scraper's data model."""
        data: dict[str, Any] = self["data"] if self.is_line else self
        return data

    def provenance(self) -> dict[str, Any]:
        """Return the keys that precede the data in the line of a batch.

        ``fetched_at`` is an ISO 8601 time, ``warnings`` a list of objects, empty for a complete record.
        """
        warnings = [each.as_dict() for each in self.warnings]
        return provenance_keys(self.target.as_dict(), self.fetched_at.isoformat(), warnings, self.target.note)

    def as_line(self) -> Record:
        """Return the line of a batch feed: the keys of ``provenance()``, and ``data``."""
        line = {**self.provenance(), "data": dict(self)}
        return type(self)(line, self.target, self.fetched_at, self.warnings, is_line=True)


@dataclass(frozen=True, slots=True)
class InvalidTarget:
    """A malformed line, an unknown scraper or invalid params. Its outcome is ``error``, and no request is made."""

    id: str
    error: ScrapeError
    scraper: str | None = None
    raw: Any = None
    """The params, or the text of the line if it could not be parsed."""
    line: int | None = None
    row: int | None = None
    columns: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that identify the target in a feed line."""
        return identity_keys(self.id, None, self.scraper, self.raw, self.columns)

    @property
    def label(self) -> str:
        """The params, or the malformed line, as short text for people."""
        return label_of(self.raw)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a target: a record, an error, or neither if nothing is new."""

    target: Target | InvalidTarget
    record: Record | None
    """The item that the last pipeline returned. None if the target failed.

    If the error is also None, the target succeeded without new data, and no line is written.
    """
    error: ScrapeError | None
    duration_ms: int
    followups: tuple[Target, ...] = ()
    """The targets that this target led to, such as the next page or the slices of a listing."""
    warnings: tuple[OutcomeWarning, ...] = ()
    """The parts that the record lacks, and why."""
    note: dict[str, Any] | None = None
    """For jobs: data from which the next worker that takes a target of the same ``root`` restores the spider's state.
    """
    new_entries: frozenset[str] | None = None
    """The ids of the listing's entries that ``-a since=`` selects. None: all entries."""

    @property
    def data(self) -> dict[str, Any] | None:
        """The data in the shape of the scraper's data model, None if the outcome has no record."""
        return None if self.record is None else self.record.data

    @cached_property
    def code(self) -> str:
        """``OK``, or the code of the error."""
        return self.error.code if self.error else "OK"

    @property
    def is_partial(self) -> bool:
        """Whether the target succeeded with a warning."""
        return self.error is None and bool(self.warnings)


def new_id() -> str:
    """Return a new random id for a target."""
    return uuid.uuid4().hex


def target_key(scraper: str, params: Mapping[str, Any]) -> bytes:
    """Return the key of a target. Equal params of the same scraper give the same key, in any order of the params."""
    return _digest(orjson.dumps([scraper, params], option=orjson.OPT_SORT_KEYS))


def followup_key(parent: bytes, part: str) -> bytes:
    """Return the key of a follow-up. ``part``: text that differs for each follow-up of a parent, such as its params."""
    return _digest(parent + part.encode())


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()


def label_of(params: object) -> str:
    """Return params, or a malformed line, as short text for people."""
    if not isinstance(params, Mapping):
        return one_line(str(params))
    texts = [
        f"{name}={each if isinstance(each, str) else orjson.dumps(each).decode()}" for name, each in params.items()
    ]
    return one_line(" ".join(texts))
