"""Files in the project's ``.scrapy`` folder, which is the default folder for data that later runs need."""

from __future__ import annotations

from pathlib import Path

from scrapy.exceptions import NotConfigured, UsageError
from scrapy.utils.project import data_path


def data_file(name: str, *, instead: str) -> Path:
    """Return the path of a file in the ``.scrapy`` folder or below. Its folder is created if it is missing.

    ``instead``: the setting or option that the error message names, with which a user can choose another file. Scrapy's
    ``data_path(name, createdir=True)`` is not used, because it would create a folder called ``name``.

    Raises:
        UsageError: there is no project folder. Commands print the message, and end with exit code 2.
    """
    try:
        path = Path(data_path("", createdir=True)) / name
    except NotConfigured:
        raise UsageError(
            f"No scrapy.cfg in {Path.cwd()} or above: run the command in the project's folder, or use {instead}."
        ) from None
    path.parent.mkdir(exist_ok=True)
    return path
