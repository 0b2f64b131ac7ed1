"""Jobs, their owners and their targets: names, states, keys, and the stored form of a target."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import orjson
import structlog

from crawler.errors import ServiceError, StoreUnavailable
from crawler.jobs.options import JobOptions
from crawler.jobs.store import utc_text
from crawler.jobs.tables import STATES, JobState

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from crawler.jobs.store import Session

logger = structlog.get_logger(__name__)

JobKind: TypeAlias = Literal["job", "removed"]
"""``removed``: a job that is being deleted."""
Key: TypeAlias = tuple[int, bytes]
"""The id of a job, and the key of one of its targets."""
AlsoStore: TypeAlias = "Callable[[Session, Sequence[Stored]], None]"
"""Stores rows about finished targets in other tables, such as bills, in the transaction that stores the outcomes."""

ACCOUNT = "JOB_ACCOUNT"
"""The setting with the ``Account``, for a crawl that works on a client's job."""
MAX_NAME_LENGTH = 200
COMPRESSION = zstd.ZstdCompressor(level=1)
"""Compresses a record of 8 kB in 16 µs (zlib: 49 µs) to a third. Creating a compressor takes another 10 µs, so all
calls share one; each call compresses a frame of its own. Higher levels make records 2 % smaller, and take twice as
long."""


class JobError(Exception):
    """Raised when a job cannot be created or changed. The message contains the reason and the remedy."""


@contextmanager
def logged(failed: str, **facts: Any) -> Iterator[None]:
    """Log an exception of the ``with`` block, and continue after the block.

    ``failed``: the event to log, with ``facts``. ``StoreUnavailable`` is not logged here, because the store itself logs
    that it is unavailable. A ``JobError``, such as for a job that was removed meanwhile, is logged as its sentence.
    """
    try:
        yield
    except StoreUnavailable:
        pass
    except JobError as error:
        logger.warning(failed, error=str(error), **facts)
    except Exception:
        logger.exception(failed, **facts)


def checked_name(what: str, text: str) -> str:
    """Return the name or the owner of a job.

    Raises:
        JobError: the text has a character that is not printable, such as NUL or a lone surrogate, is blank or too long.
    """
    if len(text) > MAX_NAME_LENGTH or not text.isprintable() or text.isspace():
        raise JobError(
            f"The {what} {text!r} must have printable characters only, at most {MAX_NAME_LENGTH}, not blank."
        )
    return text


@dataclass(frozen=True, slots=True)
class Job:
    """A run of a job as it is stored. ``counts``: the number of its targets by state."""

    id: int
    """Identifies the run."""
    name: str
    owner: str
    run: int
    """The number of the run among those of the same name and owner, starting with 1."""
    revision: int
    """How often the run has become done: again after each retry."""
    key: str | None
    """The ``Idempotency-Key`` of the request that made the run."""
    kind: JobKind
    state: JobState
    whole_roots: bool
    """Whether the same worker must scrape a target and all its follow-ups.

    True if the spider keeps state between them, and for clients' jobs with spider arguments.
    """
    options: JobOptions
    created: float
    loaded: float
    """When lines were pushed to the run for the last time."""
    ended: float | None
    seq: int
    """The sequence number of the last stored outcome. The new outcome of a retried target has a new number."""
    counts: dict[str, int]

    @classmethod
    def of(cls, row: Any) -> Job:
        """Return the job in a row of the table ``jobs``."""
        counts: dict[str, int] = {state: int(getattr(row, state)) for state in STATES}
        own = (row.id, row.name, row.owner, row.run, row.revision, row.key, row.kind, row.state, bool(row.whole_roots))
        return cls(
            *own, JobOptions.model_validate_json(row.options), row.created, row.loaded, row.ended, row.seq, counts
        )

    def described(self) -> dict[str, Any]:
        """Return what a description of the run for its client and an event about it have in common."""
        counts: dict[str, int] = {state: n for state, n in self.counts.items() if state != "paused"}  # only of commands
        return {
            "job_id": str(self.id),
            "name": self.name,
            "run": self.run,
            "revision": self.revision,
            "state": self.state,
            "idempotency_key": self.key,
            "targets": {"total": sum(counts.values()), **counts},
            "created_at": utc_text(self.created),
            "ended_at": None if self.ended is None else utc_text(self.ended),
        }


@dataclass(frozen=True)
class Account:
    """The client that owns a job, and its bills."""

    owner: str
    also_store: AlsoStore
    """Stores the bills."""
    waits: bool = True
    """Whether the crawl stays open while other workers still scrape targets of the job, which may have follow-ups."""


@dataclass(frozen=True, slots=True)
class InputLine:
    """A line of the user's input. Lines with the same key are one target."""

    row: int
    """Position of the line in the input, starting with 0."""
    id: str
    key: bytes
    platform: str
    work: Any
    """The target as JSON data, for the worker that scrapes it."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """The user's own columns."""
    line: int | None = None
    """Line number in the file, starting with 1."""
    note: str = ""
    """The note of the line's params, as in ``Target.note``."""
    error: Mapping[str, Any] | None = None
    """Why the line is not a target. Such a line has the platform "", and its outcome from the start."""


@dataclass(frozen=True, slots=True)
class Followup:
    """A follow-up target, such as the next page of a listing."""

    key: bytes
    platform: str
    work: Any


@dataclass(frozen=True, slots=True)
class Claim:
    """A target that a worker holds. ``tries`` is a fencing token: a later claim of the target has a higher number."""

    job: int
    key: bytes
    tries: int
    platform: str
    work: Any
    row: int | None
    """Position of the input line that led to the target."""
    root: bytes | None
    """The key of the input line's target, in a job of whole roots. None in other jobs."""
    owner: str = ""
    """The owner of the job."""

    @property
    def target(self) -> Key:
        """Identifies the target."""
        return self.job, self.key


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of a claimed target.

    ``paused``: a limit was reached. The job is paused, and the target is scraped again when the job is resumed.
    """

    claim: Claim
    state: Literal["done", "failed", "paused"]
    code: str = "OK"
    outcome: Mapping[str, Any] = field(default_factory=dict)
    """The parts of the outcome other than the data, as JSON data, such as ``error`` and ``warnings``."""
    record: Mapping[str, Any] | orjson.Fragment | None = None
    """The data, as JSON data. None: the target failed, or succeeded without new data."""
    followups: tuple[Followup, ...] = ()
    note: Mapping[str, Any] | None = None
    """State of the spider after this target, for the worker that continues the root. With ``since=last``: the ids of
    the page's entries."""
    tallies: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(kind, name) -> how much to add to the job's tally."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A finished target in its stored form, as bytes."""

    finished: Finished
    outcome: bytes
    record: bytes
    note: bytes | None
    works: tuple[bytes, ...]

    @classmethod
    def of(cls, finished: Finished) -> Stored:
        """Serialise a finished target. If a value is not JSON data, return a failure that names the value's path."""
        try:
            return cls(
                finished,
                orjson.dumps(finished.outcome),
                b"" if finished.record is None else pack(finished.record),
                None if finished.note is None else orjson.dumps(finished.note),
                tuple(orjson.dumps(each.work) for each in finished.followups),
            )
        except (TypeError, ValueError) as error:
            return cls.failure(finished, f"{_place(finished)} cannot be stored: {error}.")

    @classmethod
    def failure(cls, finished: Finished, message: str) -> Stored:
        """Return the outcome ``INTERNAL_ERROR`` for a target whose result cannot be stored, or which is dead."""
        error = ServiceError(message.encode(errors="backslashreplace").decode())
        failed = Finished(finished.claim, "failed", ServiceError.code)
        return cls(failed, orjson.dumps({"error": error.as_dict()}), b"", None, ())


def pack(data: Any) -> bytes:
    """Return JSON data as compressed bytes."""
    return COMPRESSION.compress(orjson.dumps(data), zstd.ZstdCompressor.FLUSH_FRAME)


def unpack(data: bytes) -> Any:
    """Return the JSON data in compressed bytes."""
    return orjson.loads(zstd.decompress(data))


def _place(finished: Finished) -> str:
    """Return the path of the first value that is not JSON data: ``data.products.3.title``."""
    followups = [each.work for each in finished.followups]
    parts = {"outcome": finished.outcome, "data": finished.record, "note": finished.note, "followups": followups}
    return _path(parts)


def _path(value: Any) -> str:
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, child in pairs:
        try:
            orjson.dumps({key: child} if isinstance(key, str) else child)
        except (TypeError, ValueError):
            inner = _path(child)
            return f"{key}.{inner}" if inner else str(key)
    return ""
