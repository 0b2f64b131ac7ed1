"""Regular expressions behave the same in all Python versions that the project supports."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")


@pytest.mark.parametrize(
    ("pattern", "found"), [("(ab)++", True), ("(?>ab)", True), ("(ab){2}+", True), ("a++(b)+", False)]
)
def test_a_possessive_group_is_found(pattern: str, *, found: bool) -> None:
    assert bool(POSSESSIVE_GROUP.search(pattern)) == found


def test_no_group_has_a_possessive_quantifier() -> None:
    """Before Python 3.11.5, possessive groups (not single characters) can match too little (python/cpython#106052)."""
    modules = (ROOT / "crawler").rglob("*.py")
    assert [path.name for path in modules if POSSESSIVE_GROUP.search(path.read_text())] == []
