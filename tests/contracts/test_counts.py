"""The rules by which counts of recorded values change declarations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crawler.reading.contract import Contract, always, filled, identity, often, sometimes
from tests.contracts.counts import Count, wrong_lines


class Sample(Contract):
    id: str = identity("id")
    a: str | None = sometimes("a")
    b: str | None = sometimes("b", nulls=False)
    c: str | None = always("c")
    d: str | None = filled("d")
    e: str | None = often("e", "f.e")
    f: str | None = sometimes("f.f")
    g: str | None = sometimes("g")
    h: str | None = sometimes("h")


class Base(Contract):
    name: str | None = sometimes("name")
    nick: str | None = sometimes("nick")


class First(Base):
    pass


class Second(Base):
    pass


class Both(Contract):
    first: First | None = sometimes("first")
    second: Second | None = sometimes("second")


class Most(Contract):
    one: str | None = sometimes("one")
    two: str | None = sometimes("two")
    other: str | None = sometimes("other")


SEEN = Count(rows=10, present=10, filled=9)
NULL = Count(rows=10, present=10, null=1)
FILLED = Count(rows=10, present=10, filled=10)


def lines(root: type[Contract], **counts: Count) -> list[str]:
    """The lines to change. ``counts``: of the values, by class and name, such as ``Sample__a``."""
    keys = {f"{root.__module__}.{name.replace('__', '.')}": each for name, each in counts.items()}
    return [each.line.strip() for each in wrong_lines([root], keys)]


def whole(count: Count, *, present: int = 10, pages: int = 0, empty_pages: int = 0) -> Count:
    """The counts, with five whole payloads of ten rows."""
    more = {"pages": pages, "whole_pages": pages, "empty_pages": empty_pages}
    return replace(count, whole_payloads=5, whole_rows=10, whole_present=present, **more)


@pytest.mark.parametrize(
    ("name", "count", "expected"),
    [
        ("a", SEEN, ['a: str | None = sometimes("a", nulls=False)']),
        ("a", replace(SEEN, present=9), []),  # fewer than ten rows say nothing
        ("a", NULL, []),
        ("a", replace(FILLED, pages=1), ['a: str | None = often("a", nulls=False)']),
        ("a", FILLED, ['a: str | None = often("a", nulls=False)']),
        ("a", replace(FILLED, rows=11, pages=1), ['a: str | None = sometimes("a", nulls=False)']),
        ("b", SEEN, []),
        ("b", NULL, ['b: str | None = sometimes("b")']),
        ("b", replace(NULL, rows=1, present=1), ['b: str | None = sometimes("b")']),
        ("c", whole(SEEN), ['c: str | None = always("c", nulls=False)']),
        ("c", whole(NULL), []),
        ("c", whole(NULL, present=9), ['c: str | None = sometimes("c")']),
        ("c", whole(FILLED, pages=1), ['c: str | None = filled("c")']),
        ("c", SEEN, ['c: str | None = always("c", nulls=False)']),  # and without whole captures, a reason is named
        ("d", whole(FILLED, pages=1), []),
        ("d", whole(NULL), ['d: str | None = always("d", often=True)']),
        ("d", whole(SEEN, pages=1, empty_pages=1), ['d: str | None = always("d", nulls=False)']),
        ("e", whole(SEEN), ['e: str | None = often("e", "f.e", nulls=False)']),
        ("e", whole(NULL, pages=1, empty_pages=1), ['e: str | None = sometimes("e", "f.e")']),
    ],
)
def test_the_line_that_the_counts_support(name: str, count: Count, expected: list[str]) -> None:
    others = {"Sample__c": whole(NULL), "Sample__d": whole(FILLED), "Sample__e": whole(NULL), "Sample__id": whole(SEEN)}
    assert lines(Sample, **(others | {f"Sample__{name}": count})) == expected


def test_the_reason_and_the_place_of_a_wrong_line() -> None:
    wrong = wrong_lines([Base], {f"{__name__}.Base.name": SEEN})[0]
    assert str(wrong).partition(": ")[2].startswith("Base.name was recorded in 10 rows, never as null\n")
    assert Path(__file__).read_text().splitlines()[wrong.number - 1].strip() == 'name: str | None = sometimes("name")'
    assert wrong.file == Path(__file__)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (SEEN, SEEN, ['name: str | None = sometimes("name", nulls=False)']),
        (SEEN, Count(), ['name: str | None = sometimes("name", nulls=False)']),
        (SEEN, NULL, []),
        (SEEN, replace(SEEN, present=9), []),
    ],
)
def test_a_line_of_a_base_class_fits_all_classes_that_inherit_it(
    first: Count, second: Count, expected: list[str]
) -> None:
    assert lines(Both, First__name=first, Second__name=second) == expected


def test_a_class_of_which_most_values_are_never_null() -> None:
    found = lines(Most, Most__one=SEEN, Most__two=SEEN, Most__other=NULL)
    assert found == ["class Most(Contract, nulls=False):", 'other: str | None = sometimes("other", nulls=True)']


class Heir(Base):
    one: str | None = sometimes("one")


def test_a_class_that_inherits_a_nullable_value_keeps_its_nulls() -> None:
    """``nulls=False`` of a class is also for the values that it inherits."""
    found = lines(Heir, Heir__one=SEEN, Heir__name=NULL)
    assert found == ['one: str | None = sometimes("one", nulls=False)']
