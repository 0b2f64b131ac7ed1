"""A run of the benchmarks: its tables, when and on which machine they were measured, and its file."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from benchmarks.figures import Figure, Ratio, Table

LIBRARIES = ("Scrapy", "scrapyrt", "Twisted")


@dataclass
class Run:
    """A run, as ``python -m benchmarks --json`` stores it."""

    machine: str
    day: str
    """The day of the run, such as 2026-11-22."""
    rounds: int
    tables: list[Table] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write the run to a file."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Run:
        """Read a run from its file."""
        fields = json.loads(path.read_text())
        tables = [
            Table(
                each["title"],
                each["conditions"],
                [Figure(**figure) for figure in each["figures"]],
                [Ratio(**ratio) for ratio in each["ratios"]],
            )
            for each in fields.pop("tables")
        ]
        return cls(**fields, tables=tables)


def machine() -> str:
    """Return a line about this machine, its load and the versions of the libraries."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    cores = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the run"
    return f"Python {platform.python_version()}, {cores}, {libraries}"
