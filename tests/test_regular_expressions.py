"""Regular expressions take linear time, and behave the same in all Python versions that the project supports."""

import re
from pathlib import Path

import pytest

from tests.expressions import Expression, Pumped, expressions, pumped
from tests.linear import FLOOR, SHORTEST, superlinear

pytestmark = pytest.mark.meta

ROOT = Path(__file__).parents[1]
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")


def test_no_group_has_a_possessive_quantifier() -> None:
    """Before Python 3.11.5, possessive groups (not single characters) can match too little (python/cpython#106052)."""
    modules = (ROOT / "crawler").rglob("*.py")
    assert [path.name for path in modules if POSSESSIVE_GROUP.search(path.read_text())] == []


def slowness(expression: Expression, text: Pumped) -> tuple[int, float]:
    """Return a sort key: the slowest texts have the lowest."""
    length = SHORTEST
    while (seconds := expression.seconds(text.of(length))) < FLOOR and length < 32 * SHORTEST:
        length *= 2
    return length, -seconds


def slowest(expression: Expression) -> list[Pumped]:
    """Return the texts for which an expression takes longest, and for which its time may not be linear."""
    return sorted(pumped(expression), key=lambda text: slowness(expression, text))[:4]


@pytest.mark.parametrize(
    ("pattern", "is_searched"),
    [
        (r"\s*\s*x", False),
        (r"a+b", True),
        (r"(\w+)\s*=\s*\"[^\"]*\"", True),
        (rb"\A(?:\xef\xbb\xbf)?\s*(?:for \(;;\);)?\s*(?=[\[{])", False),
        (r"<title>.*?</title>", True),
        (r"(?:a|aa)+$", False),
    ],
)
def test_an_expression_that_is_not_linear_is_found(pattern: str | bytes, *, is_searched: bool) -> None:
    expression = Expression("", pattern, 0, is_searched)
    assert superlinear(expression, slowest(expression))


def test_all_expressions_are_found() -> None:
    assert len(list(expressions())) > 200


ROOMS = sorted(path.name for path in (ROOT / "crawler").iterdir() if path.name not in {"__pycache__", "sandbox"})


@pytest.mark.parametrize("room", ROOMS)
def test_the_times_of_the_expressions_are_linear(room: str) -> None:
    own = [each for each in expressions() if re.split("[/:]", each.place)[0] == room]
    assert {each.place: found for each in own if (found := superlinear(each, slowest(each)))} == {}
