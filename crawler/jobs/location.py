"""The store of jobs that the settings name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from crawler.storage.data_files import data_file

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawler.jobs.lifecycle import Jobs

NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "lustre"}
"""File systems on which SQLite's write-ahead log does not work, because it needs memory that processes share."""


def jobs_location(settings: BaseSettings) -> str:
    """Return the path or URL of the store of jobs: ``STORE``, else a file in the project's ``.scrapy`` folder.

    Raises:
        UsageError: the file would be on Scrapy Cloud's disk, which goes with the job, or on a network file system.
    """
    location = str(settings["STORE"] or "")
    if "://" in location:
        return location
    if os.environ.get("SHUB_JOBKEY"):
        raise UsageError("Scrapy Cloud deletes the files of a job: set STORE to a postgresql:// URL.")
    path = location or str(data_file("jobs.sqlite3", instead="the setting STORE"))
    if (kind := _file_system(path)) in NETWORK_FILE_SYSTEMS:
        raise UsageError(f"STORE={path} is on a network file system ({kind}): use a local file or a postgresql:// URL.")
    return path


def _file_system(path: str) -> str:
    """Return the type of the file system of a path, "" if it is not known."""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:  # noqa: PTH123
            points = {fields[1]: fields[2] for fields in map(str.split, mounts)}
    except OSError:  # not Linux
        return ""
    folder = os.path.realpath(path)
    while folder not in points and folder != "/":
        folder = os.path.dirname(folder)  # noqa: PTH120
    return points.get(folder, "")


def is_of_sandbox(options: dict[str, Any]) -> bool:
    """Whether the options of a job are those of a job of the simulated platforms."""
    return bool(options.get("sandbox"))


def job_options(settings: BaseSettings, arguments: dict[str, str]) -> dict[str, Any]:
    """Return what a job keeps: the spider arguments that change its records, and whether it is of the sandbox."""
    return {"arguments": arguments, "sandbox": settings.getbool("SANDBOX")}


def open_jobs(settings: BaseSettings) -> Jobs:
    """Return the store of jobs that the settings name.

    Raises:
        UsageError: the store cannot be used here, or PostgreSQL needs an extra that is not installed.
    """
    from crawler.jobs.lifecycle import Jobs  # noqa: PLC0415  # imports SQLAlchemy, which takes 0.1 s

    try:
        return Jobs(jobs_location(settings))
    except ImportError:
        raise UsageError("A store on PostgreSQL needs psycopg: install the extra 'postgresql'.") from None
