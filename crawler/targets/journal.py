"""What a run has finished, kept on disk: a run that was killed goes on where it was, and shows nothing twice.

The ledger is a file of JSON Lines in the folder of ``-a resume=``, written as things happen:

- ``{"run": {...}}``: which targets it belongs to;
- ``{"feed": path, "size": n}``: a local feed is about to get its first line, and is n bytes long;
- ``{"done": row or id, "code": ..., "sizes": [[feed, n], ...]}``: a target is finished, and the feeds are so long now;
- ``{"done": ..., "in": [uri]}``: the same, but its line is in a file that counts only once it is closed;
- ``{"closed": uri}``: a local one of those is closed;
- ``{"ended": true}``: the run ended by itself.

What a killed run had written after its last note is cut off at the next start, and its target fetched again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import fsspec
import orjson
from filelock import FileLock, Timeout


class CannotResumeError(ValueError):
    """Raised when a run cannot go on from a folder: another run uses it, or it belongs to other targets."""


@dataclass
class _Earlier:
    """What the notes of earlier starts say."""

    run: dict[str, Any] | None = None
    feeds: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    held: list[dict[str, Any]] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    killed: bool = False


class Ledger:
    """The finished targets of a run: those of its list by row, those that others led to by id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()
        """Targets finished by earlier starts, by code."""
        self.further: dict[str, dict[str, Any]] = {}
        """Targets that earlier starts were led to and did not finish, by id."""
        self.met = 0
        """How many targets earlier starts were led to."""
        self.stored: set[str] = set()
        """Where earlier starts have stored complete files."""
        self._run: dict[str, Any] | None = None
        self._rows = bytearray()
        self._lock = FileLock(folder / "lock")
        self._file: IO[bytes] | None = None
        self._feeds: dict[str, int] = {}

    def __contains__(self, row: int | None) -> bool:
        """Whether the target of a row is finished."""
        return row is not None and row < len(self._rows) and bool(self._rows[row])

    def open(self) -> None:
        """Takes the folder, reads what earlier starts noted, and cuts off what the last one could not note.

        Raises:
            CannotResumeError: the folder is in use or cannot be written, or a feed was changed since.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(blocking=False)
            path = self.folder / "ledger.jsonl"
            earlier = _read(path) if path.exists() else _Earlier()
            if earlier.killed:
                for feed, size in earlier.sizes.items():
                    _cut(Path(feed), size)
            self._file = path.open("ab", buffering=0)  # last: what could not be cut must not be noted as ended
        except Timeout:
            raise CannotResumeError(f"another run is using {self.folder}") from None
        except OSError as error:
            raise CannotResumeError(f"cannot keep anything in {self.folder}: {error.strerror}") from error
        self._run = earlier.run
        self._feeds = {str(number): number for number in range(len(earlier.feeds))}  # their numbers are taken
        arrived = {uri for uri in _uris(earlier.held) if uri in earlier.closed or (_remote(uri) and _exists(uri))}
        self.stored = {uri for uri in arrived if _remote(uri)}
        for note in earlier.held:
            if arrived.issuperset(note.get("in", ())):
                self._take(note)

    def begin(self, run: dict[str, Any]) -> None:
        """Says which run it is.

        Raises:
            CannotResumeError: the folder belongs to another one.
        """
        if self._run is None:
            self._note({"run": run})
        for key, value in (self._run or run).items():
            if run.get(key) != value:
                raise CannotResumeError(
                    f"{self.folder} belongs to a run with other {key}: {value}, and not {run.get(key)}. "
                    "Give this run a folder of its own."
                )

    def close(self) -> None:
        """Gives the folder back."""
        if self._file:
            self._note({"ended": True})
            self._file.close()
            self._file = None
        self._lock.release()

    def feed(self, path: str, size: int) -> None:
        """A local feed gets its first line soon: what it holds by now stays."""
        self._feeds[path] = len(self._feeds)
        self._note({"feed": path, "size": size})

    def finish(self, key: int | str, code: str, further: list[dict[str, Any]], **where: Any) -> None:
        """A target is finished. ``sizes``: of the feeds that its line was flushed to; ``held``: URIs that hold it."""
        note: dict[str, Any] = {"done": key, "code": code}
        if further:
            note["then"] = further
        if sizes := where.get("sizes"):
            note["sizes"] = [[self._feeds[path], size] for path, size in sizes.items()]
        if held := where.get("held"):
            note["in"] = held
        self._note(note)

    def closed(self, uri: str) -> None:
        """A local feed that holds finished targets is complete."""
        self._note({"closed": uri})

    def _note(self, note: dict[str, Any]) -> None:
        assert self._file is not None, "open() comes first"
        self._file.write(orjson.dumps(note, option=orjson.OPT_APPEND_NEWLINE))

    def _take(self, note: dict[str, Any]) -> None:
        self.counts[note["code"]] += 1
        if isinstance(note["done"], str):
            self.further.pop(note["done"], None)
        else:
            self._rows.extend(bytes(max(0, note["done"] + 1 - len(self._rows))))
            self._rows[note["done"]] = 1
        for each in note.get("then", ()):
            self.met += 1
            self.further[each["id"]] = each


def _read(path: Path) -> _Earlier:
    _cut_torn_line(path)
    earlier = _Earlier()
    with path.open("rb") as file:
        for line in file:
            note = orjson.loads(line)
            earlier.killed = "ended" not in note
            match note:
                case {"run": run}:
                    earlier.run = run
                case {"feed": feed, "size": size}:
                    earlier.feeds.append(feed)
                    earlier.sizes[feed] = size
                case {"closed": uri}:
                    earlier.closed.add(uri)
                    earlier.sizes.pop(uri, None)
                case {"done": _}:
                    earlier.held.append(note)
                    for number, size in note.get("sizes", ()):
                        earlier.sizes[earlier.feeds[number]] = size
    return earlier


def _uris(notes: Iterable[dict[str, Any]]) -> set[str]:
    return {uri for note in notes for uri in note.get("in", ())}


def _cut_torn_line(path: Path) -> None:
    """Cuts what follows the last line break."""
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - 65_536)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        file.truncate(end)


def _cut(feed: Path, size: int) -> None:
    """Cuts what a killed run did not come to note. A feed that was taken away has nothing to cut."""
    if not feed.is_file():
        return
    if feed.stat().st_size < size:
        raise CannotResumeError(f"{feed} is shorter than the run left it: lines of finished targets are gone.")
    if size:
        os.truncate(feed, size)
    else:
        feed.unlink()


def _remote(uri: str) -> bool:
    return urlsplit(uri).scheme not in {"", "file"}


def _exists(uri: str) -> bool:
    """Whether a file that was being stored has arrived: storages show none before it is complete."""
    try:
        filesystem, path = fsspec.url_to_fs(uri)
        return bool(filesystem.exists(path))
    except (ImportError, ValueError, OSError) as error:
        raise CannotResumeError(f"cannot see whether {uri} was stored: {error}") from error
