"""Regular expressions work alike in all versions of Python that the project supports."""

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
    """Before Python 3.11.5, such groups can match too little (python/cpython#106052). Single characters are fine."""
    modules = (ROOT / "crawler").rglob("*.py")
    assert [path.name for path in modules if POSSESSIVE_GROUP.search(path.read_text())] == []
