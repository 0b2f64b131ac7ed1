"""Files and folders of this project: those that only their owner may read, those in ``.scrapy``, and temporary ones.

Only their owner may read stores, API keys, kept responses, and what is beside them. The modes do not depend on the
umask. A file or folder that already exists keeps its mode: an operator may have given it to a group. Outputs, such as
those of ``-O``, get the mode of the user's umask, as in all Scrapy projects, and so does the folder ``.scrapy``,
which Scrapy creates.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EISDIR
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
