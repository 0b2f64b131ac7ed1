"""Finds the empty fields in a target's data, and whether the documentation says that they may be empty."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crawler
from crawler.monitoring.fields import FieldCount, count_fields, values_of
from crawler.targets.target import Scraper

DOCS = Path(crawler.__file__).parents[1] / "docs/platforms"
"""Folder of the platforms' documentation. The folder exists in a checkout of the project, but not in an installed
package."""
SECTION = "## Fields and nulls"
EMPTY_WORDS = re.compile(r"null|\"\"|\[\]|absent|(?<!never )empty|left out|none", re.IGNORECASE)
"""Matches the words by which the documentation says that a field may be empty."""


@dataclass(frozen=True)
class EmptyField:
    """A field that is empty in at least one row."""

    path: str
    count: FieldCount
    documented: bool
    """Whether the platform's documentation or the field's docstring says that the field may be empty.

    Always true for a list: ``docs/nulls.md`` documents that any list may be [].
    """

    def __str__(self) -> str:
        missing = self.count.rows - self.count.filled
        return f"{self.path} ({missing} of {self.count.rows})" if self.count.rows > 1 else self.path


def empty_fields(scraper: Scraper, data: dict[str, Any]) -> tuple[list[EmptyField], int]:
    """Return the fields that are empty in at least one row, and the number of fields that are filled in all rows."""
    counts: dict[str, FieldCount] = {}
    count_fields(data, scraper.data, counts)
    documented = documented_names(scraper.platform)
    fields = {each.path: each.field for each in values_of(data, scraper.data)}
    empty = [
        EmptyField(
            path,
            count,
            fields[path].is_list
            or _is_documented(path, documented)
            or bool(EMPTY_WORDS.search(fields[path].description)),
        )
        for path, count in counts.items()
        if count.filled < count.rows
    ]
    return empty, len(counts) - len(empty)


def documented_names(platform: str) -> set[str]:
    """Return the names of the fields that may be empty according to the platform's page in the documentation."""
    page = DOCS / f"{platform}.md"
    if not page.is_file():
        return set()
    section = page.read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|", 1) for line in section.splitlines() if line.startswith("|")]
    return {
        name.replace("[]", "")
        for row in rows
        if len(row) > 1 and EMPTY_WORDS.search(row[1])
        for name in re.findall(r"`([^`]+)`", row[0])
    }


def _is_documented(path: str, names: set[str]) -> bool:
    """Whether ``names`` contains the path, the last part of the path, or an object that contains the field."""
    plain = f".{path.replace('[]', '')}."
    return any(f".{name}." in plain for name in names)
