"""Files in the project's ``.scrapy`` folder, which is the default folder for data that later runs need."""

from __future__ import annotations

from pathlib import Path

from scrapy.exceptions import NotConfigured, UsageError
from scrapy.utils.project import data_path

from crawler.storage.private import create_folder


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
