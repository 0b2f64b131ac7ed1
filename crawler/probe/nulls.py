"""Which fields of a target's data came back empty, and whether that was to be expected."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crawler
from crawler.monitoring.fields import FieldCount, count_fields, values_of
from crawler.targets.target import Scraper

DOCS = Path(crawler.__file__).parents[1] / "docs/platforms"
"""The platforms' pages: in a checkout, not in an installed package."""
SECTION = "## Fields and nulls"
SAYS_EMPTY = re.compile(r"null|\"\"|\[\]|absent|(?<!never )empty|left out|none", re.IGNORECASE)
"""How documentation says that a field may have no value."""


@dataclass(frozen=True)
class Empty:
    """A field without a value in some rows."""

    path: str
    count: FieldCount
    promised: bool
    """Whether the platform's page, or the field's own sentence in the schema, says that this can be."""

    def __str__(self) -> str:
        missing = self.count.rows - self.count.filled
        return f"{self.path} ({missing} of {self.count.rows})" if self.count.rows > 1 else self.path


def empty_fields(scraper: Scraper, data: dict[str, Any]) -> tuple[list[Empty], int]:
    """The fields that are empty in some rows, in the data's order, and how many are filled in all rows."""
    counts: dict[str, FieldCount] = {}
    count_fields(data, scraper.data, counts)
    named = promised_names(scraper.platform)
    sentences = {each.path: each.field.sentence for each in values_of(data, scraper.data)}
    empty = [
        Empty(path, count, _is_promised(path, named) or bool(SAYS_EMPTY.search(sentences[path])))
        for path, count in counts.items()
        if count.filled < count.rows
    ]
    return empty, len(counts) - len(empty)


def promised_names(platform: str) -> set[str]:
    """The fields of which the platform's page says that they may be empty."""
    page = DOCS / f"{platform}.md"
    if not page.is_file():
        return set()
    section = page.read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|", 1) for line in section.splitlines() if line.startswith("|")]
    return {
        name.replace("[]", "")
        for row in rows
        if len(row) > 1 and SAYS_EMPTY.search(row[1])
        for name in re.findall(r"`([^`]+)`", row[0])
    }


def _is_promised(path: str, named: set[str]) -> bool:
    """Whether the path, its end, or what it is part of is named."""
    plain = f".{path.replace('[]', '')}."
    return any(f".{name}." in plain for name in named)
