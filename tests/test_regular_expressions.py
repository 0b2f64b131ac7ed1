"""Regular expressions take linear time, and behave the same in all Python versions that the project supports."""

import re
from pathlib import Path

import pytest

from tests.expressions import Expression, Pumped, expressions, pumped

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


SHORTEST, LENGTH = 16, 60_000
FLOOR = 0.004
"""Seconds: shorter times say nothing about their ratio."""
MAX_RATIO = 2.6
"""Maximum ratio of the times for a text and for one of half the length."""
EXPONENTIAL = 50.0
LONGEST = 0.3
"""Seconds: the search for a length at which the ratio settles ends here."""


def settled_ratio(expression: Expression, text: Pumped) -> float:
    """Return the ratio of the times for a text and for one of half the length, 0 if the times are too short.

    The length is doubled until the ratio is at most ``MAX_RATIO`` for two lengths in a row, such as when the limit of a
    bounded repetition is reached, up to ``LENGTH``.
    """
    length, former, ratio, settled = SHORTEST, 0.0, 0.0, 0
    while length < 2 * LENGTH and former < LONGEST:
        given = text.of(length)
        seconds = min(expression.seconds(given) for _ in range(1 if former > FLOOR * 10 else 3))
        ratio = seconds / former if former and seconds > FLOOR else 0.0
        settled = settled + 1 if 0 < ratio <= MAX_RATIO else 0
        if settled == 2 or ratio > EXPONENTIAL:
            return ratio
        length, former = 2 * length, seconds
    return ratio


def slowness(expression: Expression, text: Pumped) -> tuple[int, float]:
    """Return a sort key: the slowest texts have the lowest."""
    length = SHORTEST
    while (seconds := expression.seconds(text.of(length))) < FLOOR and length < 32 * SHORTEST:
        length *= 2
    return length, -seconds


def superlinear(expression: Expression) -> tuple[float, Pumped] | None:
    """Return a text for which an expression takes more than linear time, with the ratio. None: there is none."""
    for text in sorted(pumped(expression), key=lambda text: slowness(expression, text))[:4]:
        if settled_ratio(expression, text) > MAX_RATIO and (ratio := settled_ratio(expression, text)) > MAX_RATIO:
            return ratio, text
    return None


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
    assert superlinear(Expression("", pattern, 0, is_searched))


@pytest.mark.parametrize(
    ("pattern", "is_searched"), [(r"\s*+x", False), (r"a{1,60}b", True), (r"(?<!a)a++b", True), (r"\s*x", False)]
)
def test_a_linear_expression_passes(pattern: str, *, is_searched: bool) -> None:
    assert not superlinear(Expression("", pattern, 0, is_searched))


def test_all_expressions_are_found() -> None:
    assert len(list(expressions())) > 200


ROOMS = sorted(path.name for path in (ROOT / "crawler").iterdir() if path.name not in {"__pycache__", "sandbox"})


@pytest.mark.parametrize("room", ROOMS)
def test_the_times_of_the_expressions_are_linear(room: str) -> None:
    own = [each for each in expressions() if re.split("[/:]", each.place)[0] == room]
    assert {each.place: found for each in own if (found := superlinear(each))} == {}
