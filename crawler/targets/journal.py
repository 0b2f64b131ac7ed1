"""The journal of ``-a resume=``: a file that lists the targets that a run has stored, so that the run can be resumed.

A run may be started several times: the first start creates the journal, and later starts continue it. The journal is a
JSON Lines file in the folder that ``resume=`` names. Its entries:

- ``{"run": {...}, "feeds": [[path, n], ...]}``, the first entry: the targets that the journal is for, and its feeds;
- ``{"feed": path, "size": n}``: a start retains n bytes of this local feed, and writes after them;
- ``{"done": row or id, "code": ..., "then": [...], "sizes": [[feed, end], ...]}``: a target is stored. ``then``: its
  follow-ups. ``sizes``: for each local feed that has the target's line, the index of the feed (among all local feeds
  that the journal has named so far) and the byte at which the line ends. It is empty if the target has no line.
  ``note``: what the spider needs of the target in a later start;
- the same with ``"in": [path or uri]``: the line is in a file that is not complete yet;
- ``{"closed": path or uri, "size": n}``: the file is complete (a local file: with n bytes). All of its targets are
  stored. If a run is killed, it may have uploaded a file without writing this entry.

Earlier versions also wrote ``{"ended": true}``, ``closed`` without the size, and ``run`` without the feeds.

An entry is valid only if the feed still contains the target's line. If a power cut removes the end of the journal or of
a feed, the affected targets are scraped again, and the feed is truncated after the last valid entry. Entries of targets
therefore need no sync to disk. Only ``run`` and ``feed`` entries are synced, before the feed is changed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import fsspec
import orjson
import structlog
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from crawler.outputs.feed_files import end_of_last_line, is_local, truncate
from crawler.targets.journal_feeds import FilePool, JournalFeed
from crawler.targets.target import SavedTarget

logger = structlog.get_logger(__name__)

IsLines = Callable[[str], bool | None]
"""Returns True if a path is a JSON Lines feed of this run, False if it is another feed of this run, else None."""

_Offset = Annotated[int, Field(ge=0, lt=2**62)]


class CannotResumeError(ValueError):
    """Raised when a run cannot be resumed from a folder: it is in use, damaged, or belongs to other targets."""


class _Entry(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Run(_Entry):
    run: dict[str, Any]
    feeds: list[tuple[str, _Offset]] = []


class _Feed(_Entry):
    feed: str
    size: _Offset


class _Done(_Entry):
    done: Annotated[int, Field(ge=0, lt=2**32)] | str
    code: str
    then: list[SavedTarget] = []
    note: dict[str, Any] | None = None
    sizes: list[tuple[_Offset, _Offset]] = []
    uris: list[str] = Field(default=[], alias="in")


class _Closed(_Entry):
    closed: str
    size: _Offset | None = None


class _Ended(_Entry):
    ended: bool


_ENTRY: TypeAdapter[_Run | _Feed | _Done | _Closed | _Ended] = TypeAdapter(_Run | _Feed | _Done | _Closed | _Ended)


class Journal:
    """Reads and writes the journal of a run. Targets of the source are identified by row, and follow-ups by id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "ledger.jsonl"
        self.counts: Counter[str] = Counter()
        """Outcome code -> number of targets that earlier starts have stored with it."""
        self.pending: dict[str, SavedTarget] = {}
        """Target id -> a follow-up that an earlier start has discovered and no start has stored."""
        self.discovered = 0
        """Number of follow-ups that earlier starts discovered."""
        self.notes: list[tuple[str, dict[str, Any]]] = []
        """(Code, note) of each stored target that has a note, in the order of the journal."""
        self.arrived: set[str] = set()
        """URIs of the remote files whose upload by earlier starts is complete."""
        self._run: dict[str, Any] | None = None
        self._rows = bytearray()
        self._ids: set[str] = set()
        self._files = FilePool()
        self._incomplete: dict[str, list[_Done]] = {}
        """Path or URI of a file that is not complete yet -> the entries of the targets in it."""
        self._feeds: dict[str, JournalFeed] = {}
        self._paths: list[str] = []
        """The paths of all local feeds. The position of a path identifies the feed in ``sizes``."""
        self._numbers: dict[str, int] = {}
        self._lock = FileLock(folder / "lock")
        self._file: IO[bytes] | None = None
        self._torn = False
        """Whether the journal may end with a partial entry. No further entry may then be written."""

    def __contains__(self, row: int | None) -> bool:
        """Whether the target with this row number is stored."""
        return row is not None and row < len(self._rows) and bool(self._rows[row])

    @property
    def feeds(self) -> list[JournalFeed]:
        """The local feeds that earlier starts have written, and which part of each is valid."""
        return list(self._feeds.values())

    def open(self, is_lines: IsLines) -> None:
        """Lock the folder, and read which targets are stored. This does not change the journal or the feeds.

        Raises:
            CannotResumeError: the folder is in use or cannot be written, or the journal is damaged.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(blocking=False)
            if self.path.exists():
                self._read(is_lines)
        except Timeout:
            raise CannotResumeError(f"another run is using {self.folder}") from None
        except OSError as error:
            raise CannotResumeError(f"cannot write to {self.folder}: {error}") from error
        finally:
            self._files.close()

    def begin(self, run: dict[str, Any], feeds: Callable[[], list[tuple[str, int]]]) -> None:
        """Check that the journal belongs to this run, and truncate its feeds after their last valid line.

        ``feeds`` is called for a new journal. It returns the path of each local feed, and how many bytes are kept.

        Raises:
            CannotResumeError: the journal belongs to another run, or a file cannot be written.
        """
        for key, value in (self._run or run).items():
            if run.get(key) != value:
                raise CannotResumeError(
                    f"{self.folder} belongs to a run with other {key}: {value}, not {run.get(key)}. "
                    "Give this run a folder of its own."
                )
        try:
            if self._run is None:
                self._create(run, feeds())
            self._resume()
        except OSError as error:
            raise CannotResumeError(f"cannot write to {self.folder}: {error}") from error

    def _create(self, run: dict[str, Any], feeds: list[tuple[str, int]]) -> None:
        """Create the journal with its first entry, atomically: a journal without this entry could not be resumed."""
        draft = self.path.with_suffix(".new")
        with draft.open("wb") as file:
            file.write(orjson.dumps({"run": run, "feeds": feeds}, option=orjson.OPT_APPEND_NEWLINE))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
        _sync_folder(self.folder)
        self._paths = [path for path, _ in feeds]
        self._numbers = {path: number for number, path in enumerate(self._paths)}

    def _resume(self) -> None:
        with self.path.open("ab+") as file:
            end = end_of_last_line(file)
            if end < file.seek(0, os.SEEK_END):
                file.truncate(end)
        self._file = self.path.open("ab", buffering=0)
        for path, feed in self._feeds.items():
            if feed.void:
                self.feed(path, feed.end)
        for path, feed in self._feeds.items():
            if feed.length > feed.end and not feed.moved:
                logger.warning("feed_cut", feed=path, bytes=feed.length - feed.end)
                truncate(feed.path, feed.end)

    def close(self) -> None:
        """Release the folder."""
        if self._file:
            self._file.close()
            self._file = None
        self._lock.release()

    # Entries

    def feed(self, path: str, size: int) -> None:
        """Add an entry: the first ``size`` bytes of a local feed are kept. It is synced before the feed is written."""
        self._numbers[path] = len(self._paths)
        self._paths.append(path)
        self._write({"feed": path, "size": size})
        assert self._file is not None
        os.fsync(self._file.fileno())

    def store(
        self,
        key: int | str,
        code: str,
        followups: list[dict[str, Any]],
        ends: list[tuple[str, int]] | None = None,
        note: dict[str, Any] | None = None,
    ) -> None:
        """Add an entry: a target is stored. ``ends``: the offsets after its line in local feeds."""
        entry = _done(key, code, followups, note)
        if ends:
            entry["sizes"] = [[self._numbers[path], end] for path, end in ends]
        self._write(entry)

    def buffer(
        self,
        key: int | str,
        code: str,
        followups: list[dict[str, Any]],
        uris: list[str],
        note: dict[str, Any] | None = None,
    ) -> None:
        """Add an entry: a target will be stored when these files are complete."""
        self._write({**_done(key, code, followups, note), "in": uris})

    def complete(self, uri: str, size: int | None) -> None:
        """Add an entry: a file is complete. ``size``: the size of a local file."""
        self._write({"closed": uri} if size is None else {"closed": uri, "size": size})

    def _write(self, entry: dict[str, Any]) -> None:
        assert self._file is not None, "begin() comes first"
        if self._torn:
            raise OSError(f"an earlier entry of {self.path} was not written")
        line = orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE)
        self._torn = True
        while line:
            line = line[self._file.write(line) :]  # a nearly full disk may accept only a part of the line
        self._torn = False

    # Entries of earlier starts

    def _entries(self) -> Iterator[tuple[int, _Run | _Feed | _Done | _Closed | _Ended]]:
        """Yield each entry with its line number. The last line is ignored if it has no newline."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield number, _ENTRY.validate_json(line)
                except ValidationError:
                    raise CannotResumeError(f"{self.path}, line {number}, is not an entry of a journal") from None

    def _read(self, is_lines: IsLines) -> None:
        self.arrived = {uri for uri in self._scan(is_lines) if _exists(uri)}
        for number, entry in self._entries():
            self._replay(number, entry)
        for feed in self._feeds.values():
            if feed.lines is None and feed.length > feed.end:
                raise CannotResumeError(
                    f"{feed.path} contains lines after the last stored target, and is not a feed of this run: "
                    "add it as a feed, or give this run a folder of its own"
                )
            if feed.void:
                logger.warning("feed_lines_missing", feed=str(feed.path), hint="their targets are scraped again")

    def _scan(self, is_lines: IsLines) -> set[str]:
        """Collect the local feeds. Return the URIs of the remote files that have no ``closed`` entry."""
        uris: set[str] = set()
        for number, entry in self._entries():
            match entry:
                case _Feed(feed=path, size=size):
                    self._declare(number, path, size, is_lines)
                case _Run(run=run, feeds=feeds):
                    self._run = self._run or run
                    for path, size in feeds:
                        self._declare(number, path, size, is_lines)
                case _Closed(closed=uri):
                    uris.discard(uri)
                case _Done():
                    uris.update(uri for uri in entry.uris if not is_local(uri))
                    if any(feed >= len(self._paths) for feed, _ in entry.sizes):
                        raise CannotResumeError(f"{self.path}, line {number}, is not an entry of a journal")
        if self._run is None:
            raise CannotResumeError(f"{self.path}, line 1, is not an entry of a journal")
        return uris

    def _declare(self, number: int, path: str, size: int, is_lines: IsLines) -> None:
        self._paths.append(path)
        if path not in self._feeds:
            self._feeds[path] = JournalFeed(path, self._files, lines=is_lines(path))
        self._feeds[path].starts.append((number, size))

    def _replay_start(self, number: int, path: str, size: int) -> None:
        self._incomplete.pop(path, None)  # this start has truncated the incomplete file
        feed = self._feeds[path]
        if feed.contains(number, size):
            feed.end = size
        elif number == feed.starts[0][0]:
            raise CannotResumeError(f"{path} had {size} bytes before the run, and is shorter now or was changed")
        else:
            feed.invalidate(number, size)

    def _replay(self, number: int, entry: object) -> None:
        if isinstance(entry, _Feed):
            self._replay_start(number, entry.feed, entry.size)
        elif isinstance(entry, _Run):
            for path, size in entry.feeds:
                self._replay_start(number, path, size)
        elif isinstance(entry, _Closed):
            self._replay_closed(number, entry)
        elif isinstance(entry, _Done):
            self._replay_done(number, entry)

    def _replay_done(self, number: int, entry: _Done) -> None:
        ends = [(self._feeds[self._paths[feed]], end) for feed, end in entry.sizes]
        if not all(feed.contains(number, end) for feed, end in ends):
            for feed, end in ends:
                feed.invalidate(number, end)
            return
        for feed, end in ends:
            feed.end = end
        entry.uris = [uri for uri in entry.uris if uri not in self.arrived]
        for uri in entry.uris:
            self._incomplete.setdefault(uri, []).append(entry)
        if not entry.uris:
            self._take(entry)

    def _replay_closed(self, number: int, entry: _Closed) -> None:
        feed = self._feeds.get(entry.closed)
        if feed is not None:
            size = feed.length if entry.size is None else entry.size
            if not feed.contains(number, size):
                feed.invalidate(number, size)
                return
            feed.end = size
        for each in self._incomplete.pop(entry.closed, ()):
            each.uris.remove(entry.closed)
            if not each.uris:
                self._take(each)

    def _take(self, entry: _Done) -> None:
        key = entry.done
        if key in self._ids if isinstance(key, str) else key in self:
            return
        self.counts[entry.code] += 1
        if entry.note is not None:
            self.notes.append((entry.code, entry.note))
        if isinstance(key, str):
            self._ids.add(key)
            self.pending.pop(key, None)
        else:
            self._rows.extend(bytes(max(0, key + 1 - len(self._rows))))
            self._rows[key] = 1
        for each in entry.then:
            self.discovered += 1
            if each.id not in self._ids:
                self.pending[each.id] = each


def _done(key: int | str, code: str, followups: list[dict[str, Any]], note: dict[str, Any] | None) -> dict[str, Any]:
    return {"done": key, "code": code} | ({"then": followups} if followups else {}) | ({"note": note} if note else {})


def _sync_folder(folder: Path) -> None:
    """Sync a folder and its parent, so that a power cut cannot remove a new file's name."""
    for each in (folder, folder.absolute().parent):
        number = os.open(each, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _exists(uri: str) -> bool:
    """Whether a remote file exists. Remote storages show a file only after its upload is complete."""
    try:
        filesystem, path = fsspec.url_to_fs(uri)
        return bool(filesystem.exists(path))
    except (ImportError, ValueError, OSError) as error:
        raise CannotResumeError(f"cannot check whether {uri} was stored: {error}") from error
