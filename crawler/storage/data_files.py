"""Data files in the project's ``.scrapy`` folder, the default place of files that outlive a run."""

from __future__ import annotations

from pathlib import Path

from scrapy.utils.project import data_path


def data_file(name: str) -> Path:
    """Return the path of a data file. ``data_path(name, createdir=True)`` would create a folder of that name."""
    return Path(data_path("", createdir=True)) / name
