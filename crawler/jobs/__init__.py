"""Jobs: targets and their outcomes in a database, SQLite or PostgreSQL, which several processes may share.

To open them: the location of the store is the setting ``STORE``, or a file in the project's folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from crawler.errors import StoreUnavailable
from crawler.storage.files import data_file

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.jobs.lifecycle import Jobs

NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "lustre"}
"""File systems on which SQLite's write-ahead log does not work, because it needs memory that processes share."""


def store_location(settings: BaseSettings) -> str:
    """Return the path or URL of the store: ``STORE``, else ``default_file()``.

    Raises:
        UsageError: the file would be on a network file system, or on Scrapy Cloud, where it is deleted with the job, or
            there is no project folder.
    """
    location = str(settings["STORE"] or "")
    if "://" in location:
        return location
    if os.environ.get("SHUB_JOBKEY"):
        raise UsageError("Scrapy Cloud deletes the files of a job: set STORE to a postgresql:// URL.")
    path = location or str(default_file())
    if (kind := _file_system(path)) in NETWORK_FILE_SYSTEMS:
        raise UsageError(f"STORE={path} is on a network file system ({kind}): use a local file or a postgresql:// URL.")
    return path


def default_file() -> Path:
    """Return the path of the store in the project's ``.scrapy`` folder. A store of version 0.2 there is then refused.

    Raises:
        UsageError: there is no project folder.
    """
    path = data_file("store.sqlite3", instead="the setting STORE")
    earlier = path.with_name("service.sqlite3")
    return earlier if earlier.exists() and not path.exists() else path


def _file_system(path: str) -> str:
    """Return the type of the file system of a path, such as ``ext4``, or "" if it is not known."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:  # noqa: PTH123
            points = {fields[1]: fields[2] for fields in map(str.split, mounts)}
    except OSError:  # not Linux
        return ""
    folder = os.path.realpath(path)
    while folder not in points and folder != "/":
        folder = os.path.dirname(folder)  # noqa: PTH120
    return points.get(folder, "")


def open_jobs(settings: BaseSettings) -> Jobs:
    """Return the jobs of the store that the settings name.

    Raises:
        UsageError: the store cannot be used here, or PostgreSQL needs an extra that is not installed.
    """
    from crawler.jobs.lifecycle import Jobs  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

    location = store_location(settings)
    prepare(location)
    return Jobs(location)


def prepare(location: str, *, must_open: bool = False) -> None:
    """Create the missing tables of a store.

    If the store is unavailable, nothing is raised, unless ``must_open``: a later transaction creates the tables.

    Raises:
        UsageError: this version cannot use the store, or PostgreSQL needs an extra that is not installed. With
            ``must_open``, also if the store is unavailable.
    """
    from crawler.jobs.store import Store  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s
    from crawler.jobs.tables import StoreVersionError  # noqa: PLC0415  # imports SQLAlchemy, too

    try:
        store = Store(location)
    except ImportError:
        raise UsageError("A store on PostgreSQL needs psycopg: install the extra 'postgresql'.") from None
    try:
        store.transact_sync(lambda _: None, write=False)
    except StoreVersionError as error:
        raise UsageError(str(error)) from None
    except StoreUnavailable as error:
        if must_open:  # otherwise, the log line of the store suffices
            reason = str(error.__cause__).partition("\n")[0]
            raise UsageError(f"STORE cannot be opened: {reason}.") from None
    finally:
        store.disconnect()
