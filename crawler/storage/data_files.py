"""Where what outlives a run is kept, unless a setting says otherwise: the project's ``.scrapy`` folder."""

from __future__ import annotations

from pathlib import Path

from scrapy.utils.project import data_path


def data_file(name: str) -> Path:
    """A file of that folder: ``data_path("name", createdir=True)`` would make a folder of that name."""
    return Path(data_path("", createdir=True)) / name
