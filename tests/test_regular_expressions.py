"""Regular expressions work alike in all versions of Python that the project supports."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")


@pytest.mark.parametrize("path", sorted((ROOT / "crawler").rglob("*.py")), ids=lambda path: path.stem)
def test_no_group_has_a_possessive_quantifier(path: Path) -> None:
    """Before Python 3.11.5, such groups can match too little (python/cpython#106052). Single characters are fine."""
    assert POSSESSIVE_GROUP.findall(path.read_text()) == []
