"""The changelog has a row for each name of version 0.2 that went, and for no other name."""

from __future__ import annotations

import re

import pytest

from tests.crawls import ROOT
from tests.surface import Surface, surface, version_0_2

PAGE = ROOT / "CHANGELOG.md"
HEADINGS = {
    "commands": "#### Commands",
    "settings": "#### Settings",
    "routes": "#### Routes",
    "formats": "#### Formats",
    "metrics": "#### Metrics",
}


def gone(before: list[str], after: list[str]) -> set[str]:
    """Return the names that went. An option of a command that went is not named on its own."""
    removed = set(before) - set(after)
    return {name for name in removed if name.partition(" ")[0] not in removed - {name}}


def documented(kind: str) -> set[str]:
    """Return the names in the first column of a section's table."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n{HEADINGS[kind]}\n")[2].partition("\n#")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


@pytest.fixture(scope="module")
def today() -> Surface:
    return surface()


@pytest.mark.parametrize("kind", HEADINGS)
def test_each_name_that_went_has_a_row(kind: str, today: Surface) -> None:
    assert documented(kind) == gone(version_0_2()[kind], today[kind])
