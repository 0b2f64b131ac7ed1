"""The empty fields of a target's data, and whether their emptiness is documented."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crawler
from crawler.monitoring.fields import FieldCount, count_fields, values_of
from crawler.targets.target import Scraper

DOCS = Path(crawler.__file__).parents[1] / "docs/platforms"
"""The pages of the platforms; they exist in a checkout, not in an installed package."""
SECTION = "## Fields and nulls"
EMPTY_WORDS = re.compile(r"null|\"\"|\[\]|absent|(?<!never )empty|left out|none", re.IGNORECASE)
"""Words with which the documentation describes a field that may be empty."""


@dataclass(frozen=True)
class EmptyField:
    """A field without a value in some rows."""

    path: str
    count: FieldCount
    documented: bool
    """Whether the platform's page or the field's docstring in the schema documents that it may be empty."""

    def __str__(self) -> str:
        missing = self.count.rows - self.count.filled
        return f"{self.path} ({missing} of {self.count.rows})" if self.count.rows > 1 else self.path


def empty_fields(scraper: Scraper, data: dict[str, Any]) -> tuple[list[EmptyField], int]:
    """The fields that are empty in some rows, in the data's order, and the number of fields filled in all rows."""
    counts: dict[str, FieldCount] = {}
    count_fields(data, scraper.data, counts)
    documented = documented_names(scraper.platform)
    descriptions = {each.path: each.field.description for each in values_of(data, scraper.data)}
    empty = [
        EmptyField(path, count, _is_documented(path, documented) or bool(EMPTY_WORDS.search(descriptions[path])))
        for path, count in counts.items()
        if count.filled < count.rows
    ]
    return empty, len(counts) - len(empty)


def documented_names(platform: str) -> set[str]:
    """The names of the fields that may be empty according to the platform's page."""
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
    """Whether the names contain the path, a suffix of it, or an object that it is part of."""
    plain = f".{path.replace('[]', '')}."
    return any(f".{name}." in plain for name in names)
