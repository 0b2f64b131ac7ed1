"""Keeps responses in files if a part of them was unread or their extraction failed.

``scrapy extract --unread`` reads the files again. The folder of a source is ``<platform>/<source>/``. Each file is
compressed, and contains one line of JSON and then the response's body, without secrets. ``zcat FILE | tail -n +2``
prints the body.
"""

from __future__ import annotations

import gzip
import os
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import structlog
from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path

from crawler.logs import one_line
from crawler.storage.files import write_new
from crawler.storage.scrub import Scrubber

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = structlog.get_logger(__name__)

SUFFIX = ".gz"
MAX_BODY = 8_000_000
"""Size of the largest body that is kept, in bytes. The largest real page has 1.7 MB."""
MAX_SOURCE = 20_000_000
"""Maximum total size of a source's compressed files, in bytes. Beyond it, the oldest are deleted."""
MAX_DAYS = 30
"""Age in days from which a file is deleted, when another response is kept."""
DRAFT_SECONDS = 3600
"""Age in seconds from which an incomplete file is deleted: its process was killed."""
FIRST = 2
"""Number of responses of each source that a process keeps even during a pause."""
REST = 80
"""Length of the pause after a kept response, in CPU time: this multiple of the CPU time that keeping it took."""
WAITING = 4
"""Maximum number of responses that wait for the thread. While so many wait, no other response is kept."""


class Head(msgspec.Struct, frozen=True):
    """The line of JSON at the start of a file."""

    platform: str
    scraper: str
    source: str
    """The source of the page object class that has read the response."""
    url: str
    status: int
    content_type: str
    params: dict[str, Any]
    """The page params, without their secrets."""
    unread: list[str]
    """The unread parts of the response, or the error of its extraction."""
    at: str
    """The time at which the response was read, in ISO 8601 and UTC."""


class KeptResponse(NamedTuple):
    """A response, with the data that are needed to read it again."""

    head: Head
    body: bytes
    secrets: Callable[[], Iterable[tuple[str, str]]] = tuple
    """Returns the headers of the request and the response: their secret values are removed from the body."""


class KeptError(ValueError):
    """Raised for a file that cannot be read as a kept response. The message is one sentence."""


class Keeper:
    """Writes the responses that a process keeps, in a separate thread."""

    def __init__(self, keep: int, folder: Callable[[], Path]) -> None:
        """``keep``: maximum number of files of a source. ``folder``: returns the folder, called when a file is kept."""
        self.keep, self._folder = keep, folder
        self._kept: dict[tuple[str, str], int] = {}
        self._room = threading.Semaphore(WAITING)
        self._thread = ThreadPoolExecutor(1, "kept")
        self._rests_until = 0.0

    @classmethod
    def of(cls, settings: BaseSettings) -> Keeper:
        """Return the keeper for the setting ``UNREAD_KEEP``.

        On Scrapy Cloud, which deletes files, no files are written.
        """
        return cls(0 if "SHUB_JOBKEY" in os.environ else settings.getint("UNREAD_KEEP"), partial(folder_of, settings))

    def unread(self, response: KeptResponse) -> None:
        """Keep a response that was unread or failed, unless the thread pauses or too many responses wait for it."""
        source = response.head.platform, response.head.source
        number = self._kept.get(source, 0)
        if (number >= FIRST and time.process_time() < self._rests_until) or not self._room.acquire(blocking=False):
            return
        self._kept[source] = number + 1
        self._thread.submit(self._process, response).add_done_callback(_log_failure)

    def wait(self) -> None:
        """Wait until all responses that were passed to ``unread()`` are written."""
        self._thread.submit(int).result()

    def _process(self, response: KeptResponse) -> None:
        began = time.thread_time()
        try:
            self._write(response)
        except (OSError, NotConfigured) as error:
            logger.error("response_not_kept", source=response.head.source, reason=str(error))  # noqa: TRY400
        finally:
            self._rests_until = time.process_time() + REST * (time.thread_time() - began)
            self._room.release()

    def _write(self, response: KeptResponse) -> None:
        if len(response.body) > MAX_BODY:
            return
        clean = Scrubber()
        clean.learn(response.secrets())
        head, body = response.head, clean(response.body.decode(errors="replace"))
        params = msgspec.json.decode(clean(msgspec.json.encode(head.params).decode()))
        head = msgspec.structs.replace(head, url=clean(head.url), params=params)
        folder = self._folder() / head.platform / head.source
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{secrets.token_hex(4)}"
        draft = folder / f".{name}"
        write_new(draft, gzip.compress(msgspec.json.encode(head) + b"\n" + body.encode(), 1))
        draft.replace(folder / f"{name}{SUFFIX}")
        for source in self._folder().glob("*/*/"):
            _prune(source, self.keep)


def folder_of(settings: BaseSettings) -> Path:
    """Return the folder of kept responses in the project's ``.scrapy`` folder. The sandbox has a folder of its own.

    Raises:
        NotConfigured: there is no project folder.
    """
    folder = Path(data_path("unread"))
    return folder / "sandbox" if settings.getbool("SANDBOX") else folder


def _log_failure(future: Future[None]) -> None:
    if error := future.exception():
        logger.error("response_not_kept", exc_info=error)


def _prune(folder: Path, keep: int) -> None:
    """Delete the oldest files of a source beyond ``keep`` files, ``MAX_SOURCE`` bytes or ``MAX_DAYS`` days.

    Also delete old drafts. Other processes may delete the same files. Errors are ignored, such as those for
    another user's file.
    """
    size, oldest = 0, time.time() - MAX_DAYS * 86_400
    for number, path in enumerate(reversed(of_source(folder))):
        with suppress(OSError):
            found = path.lstat()
            size += found.st_size
            if number >= keep or (number > 0 and size > MAX_SOURCE) or found.st_mtime < oldest:
                path.unlink()
    for draft in folder.glob(".*-*"):
        with suppress(OSError):
            if draft.lstat().st_mtime < time.time() - DRAFT_SECONDS:
                draft.unlink()


def kept(folder: Path, platforms: Iterable[str]) -> Iterator[Path]:
    """Yield the files of the kept responses of platforms, by platform, source and time."""
    for platform in platforms:
        for source in sorted((folder / platform).glob("*/")):
            yield from of_source(source)


def of_source(folder: Path) -> list[Path]:
    """Return the files in the folder of a source, the oldest first."""
    return sorted(each for each in folder.glob(f"*{SUFFIX}") if not each.name.startswith("."))


def load(path: Path) -> KeptResponse:
    """Return a kept response.

    Raises:
        KeptError: the file is not a kept response, or is too large.
        OSError: the file cannot be read.
    """
    if not path.is_file():  # opening a pipe would wait for its writer
        raise KeptError(f"{path} is not a file.")
    try:
        with gzip.open(path) as file:
            line, body = file.readline(MAX_BODY), file.read(MAX_BODY * 2)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise KeptError(f"{path} is not a complete gzip file.") from None
    if len(line) == MAX_BODY or len(body) == MAX_BODY * 2:
        raise KeptError(f"{path} has more than {MAX_BODY:,} bytes.")
    try:
        return KeptResponse(msgspec.json.decode(line, type=Head), body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise KeptError(f"{path} does not begin with a line about a response: {one_line(str(error), 200)}.") from None
