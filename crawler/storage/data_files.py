"""Files in the project's ``.scrapy`` folder, which is the default folder for data that later runs need."""

from __future__ import annotations

from pathlib import Path

from scrapy.utils.project import data_path


def data_file(name: str) -> Path:
    """Return the path of a file in the ``.scrapy`` folder or below. Its folder is created if it is missing.

    Scrapy's ``data_path(name, createdir=True)`` would create a folder with this name instead.
    """
    path = Path(data_path("", createdir=True)) / name
    path.parent.mkdir(exist_ok=True)
    return path
