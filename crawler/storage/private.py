"""Files and folders that only their owner may read: stores, API keys, kept responses, and what is beside them.

The modes do not depend on the umask. A file or folder that already exists keeps its mode: an operator may have given
it to a group. Outputs, such as those of ``-O``, get the mode of the user's umask, as in all Scrapy projects, and so
does the folder ``.scrapy``, which Scrapy creates.
"""

from __future__ import annotations

import os
from errno import EISDIR
from pathlib import Path

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
