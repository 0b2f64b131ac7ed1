"""Files and folders of this project: those that only their owner may read, those in ``.scrapy``, SQLite files that
several processes may share, and temporary ones.

Only their owner may read stores, API keys, kept responses, and what is beside them. The modes do not depend on the
umask. A file or folder that already exists keeps its mode: an operator may have given it to a group. Outputs, such as
those of ``-O``, get the mode of the user's umask, as in all Scrapy projects, and so does the folder ``.scrapy``,
which Scrapy creates.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from errno import EACCES, EISDIR, ENOTDIR
from pathlib import Path

from scrapy.exceptions import NotConfigured, UsageError
from scrapy.utils.project import data_path

FILE_MODE, FOLDER_MODE = 0o600, 0o700


def create_folder(path: Path) -> None:
    """Create a folder and its missing parents.

    Raises:
        OSError: a folder cannot be created, or the path is that of a file.
    """
    for folder in (*reversed(path.absolute().parents), path):
        if not folder.is_dir():
            folder.mkdir(FOLDER_MODE, exist_ok=True)


def create_file(path: Path) -> None:
    """Create an empty file in a folder that may be missing. A file that exists is not opened.

    SQLite gives the files beside a database (``-wal``, ``-shm``, ``-journal``) the mode of the database. To open and
    close a database would release all locks that SQLite has on it in this process (POSIX), and lose data.

    Raises:
        OSError: the file or its folder cannot be created, or the path is that of a folder.
    """
    create_folder(path.parent)
    try:
        os.close(os.open(path.resolve(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
    except FileExistsError:
        if path.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path)) from None


def write_new(path: Path, content: bytes) -> None:
    """Write a new file in a folder that may be missing.

    Raises:
        OSError: the file exists, or cannot be written.
    """
    create_folder(path.parent)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb") as file:
        file.write(content)


def check_writable(path: Path, *, replaced: bool = False) -> None:
    """Check that a file can be written. Missing folders are to be created. Nothing is opened or created.

    ``replaced``: whether a new file takes the place of a former one, so that only the folder needs to be writable.

    Raises:
        OSError: the path is that of a folder, or the file or its folder is not writable.
    """
    if path.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path))
    is_kept = path.exists() and not replaced
    existing = path if is_kept else next(each for each in path.absolute().parents if each.exists())
    if not is_kept and not existing.is_dir():
        raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(existing))
    if not os.access(existing, os.W_OK if is_kept else os.W_OK | os.X_OK):
        raise PermissionError(EACCES, os.strerror(EACCES), str(existing))


def data_file(name: str, *, instead: str) -> Path:
    """Return the path of a file in the ``.scrapy`` folder or below. Its folder is created if it is missing.

    ``instead``: the setting or option that the error message names, with which a user can choose another file.

    Raises:
        UsageError: there is no project folder. Commands print the message, and end with exit code 2.
    """
    try:
        path = Path(data_path("")) / name
    except NotConfigured:
        raise UsageError(
            f"No scrapy.cfg in {Path.cwd()} or above: run the command in the project's folder, or use {instead}."
        ) from None
    create_folder(path.parent)
    return path


PREFIX = "social-retail-crawler-"


@contextmanager
def own_temporary_files() -> Iterator[Path]:
    """Let ``tempfile`` create files in a folder of this process, which is removed at the end.

    First, remove the folders of processes that were killed: a process holds a lock on its folder as long as it runs.
    """
    parent = tempfile.gettempdir()
    for former in Path(parent).glob(f"{PREFIX}*"):
        with suppress(OSError), _locked(former):  # another process or user has it
            shutil.rmtree(former, ignore_errors=True)
    with ExitStack() as stack:
        folder = _create(parent, stack)
        tempfile.tempdir = str(folder)
        try:
            yield folder
        finally:
            tempfile.tempdir = parent
            shutil.rmtree(folder, ignore_errors=True)


def _create(parent: str, stack: ExitStack) -> Path:
    """Create a folder, and hold its lock until ``stack`` is closed."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        with suppress(OSError):  # another process removes the folder before it is locked here
            stack.enter_context(_locked(folder))
            if folder.exists():
                return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock on a folder.

    Raises:
        OSError: another process holds it, or the folder is missing, a link, or not accessible.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


BUSY_TIMEOUT = 30.0
"""The default of ``SqliteFile.busy_timeout``, in seconds."""


@dataclass(frozen=True)
class SqliteFile:
    """An SQLite file and its schema: statements that create missing tables, and run each time the file is opened."""

    path: Path
    schema: tuple[str, ...]
    many_writes: bool = False
    """Whether many rows are written and deleted.

    The file has a write-ahead log, which makes small writes fast: its modification time no longer shows whether the
    data has changed. In a file that was created with this option, ``PRAGMA incremental_vacuum`` frees the disk space
    of deleted rows.
    """
    busy_timeout: float = BUSY_TIMEOUT
    """Maximum seconds for which a statement waits for the lock of another connection."""

    def connect(self) -> sqlite3.Connection:
        """Open the file, or create it for its owner only. Use ``transaction()`` for writes.

        The connection may be used in another thread.

        Raises:
            sqlite3.Error: the file or its folder cannot be created, opened or read.
        """
        try:
            create_file(self.path)
        except OSError as error:
            raise sqlite3.OperationalError(str(error)) from error
        connection = sqlite3.connect(
            self.path, timeout=self.busy_timeout, isolation_level=None, check_same_thread=False
        )
        try:
            if self.many_writes:
                if not connection.execute("PRAGMA page_count").fetchone()[0]:
                    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # needs the write lock
                self._log_ahead(connection)
                # No transaction is lost if the process is killed. A power cut may lose the last transactions.
                connection.execute("PRAGMA synchronous = NORMAL")
            for statement in self.schema:
                connection.execute(statement)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _log_ahead(self, connection: sqlite3.Connection) -> None:
        """Use a write-ahead log.

        While another process creates the log, SQLite raises an error at once, without waiting for ``busy_timeout``.
        """
        end = time.monotonic() + self.busy_timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                    raise
                time.sleep(0.01)
            else:
                return

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Open the file, run the ``with`` block in a transaction, and close the file."""
        with closing(self.connect()) as connection, transaction(connection):
            yield connection


@contextmanager
def transaction(connection: sqlite3.Connection, *, write: bool = True) -> Iterator[None]:
    """Run the ``with`` block in a transaction, which is committed at the end and rolled back if the block raises.

    The write lock is taken at the start, because a transaction that starts with a read may later fail to get it.
    """
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    with connection:
        yield
