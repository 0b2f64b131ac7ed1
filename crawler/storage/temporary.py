"""A folder for the temporary files of a process. The files of a process that was killed are removed by the next one."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

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
