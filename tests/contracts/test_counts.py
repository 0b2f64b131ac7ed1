"""The counts of recorded values that contradict a declaration."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.reading.contract import Contract, always, filled, identity, often, sometimes
from tests.contracts.counts import Count, contradictions


class Sample(Contract):
    id: str = identity("id")
    a: str | None = sometimes("a")
    b: str | None = sometimes("b", nulls=False)
    c: str | None = always("c")
    d: str | None = filled("d")
    e: str | None = often("e", "f.e")


class Base(Contract):
    name: str | None = sometimes("name")


class First(Base):
    pass


class Second(Base):
    pass


class Both(Contract):
    first: First | None = sometimes("first")
    second: Second | None = sometimes("second")


SEEN = Count(rows=10, present=10, filled=9)
NULL = Count(rows=10, present=10, null=1)
FILLED = Count(rows=10, present=10, filled=10)
NEVER_NULL = "was recorded in 10 rows, never as null"
RECORDED_AS_NULL = "was recorded as null in 1 of 10 rows"


def reasons(root: type[Contract], **counts: Count) -> list[str]:
    """Return the contradictions. ``counts``: of the values, by class and name, such as ``Sample__a``."""
    keys = {f"{root.__module__}.{name.replace('__', '.')}": each for name, each in counts.items()}
    return [each.partition(" ")[2] for each in contradictions([root], keys)]


def whole(count: Count, *, present: int = 10, pages: int = 0, empty_pages: int = 0) -> Count:
    """The counts, with five whole payloads of ten rows."""
    more = {"pages": pages, "whole_pages": pages, "empty_pages": empty_pages}
    return replace(count, whole_payloads=5, whole_rows=10, whole_present=present, **more)


@pytest.mark.parametrize(
    ("name", "count", "expected"),
    [
        ("a", SEEN, [NEVER_NULL]),
        ("a", replace(SEEN, present=9), []),  # fewer than ten rows say nothing
        ("a", NULL, []),
        ("a", replace(FILLED, pages=1), ["is filled in all 10 rows", NEVER_NULL]),
        ("a", replace(FILLED, rows=11, pages=1), [NEVER_NULL]),
        ("b", SEEN, []),
        ("b", NULL, [RECORDED_AS_NULL]),
        ("b", replace(NULL, rows=1, present=1), ["was recorded as null in 1 of 1 rows"]),
        ("c", whole(SEEN), [NEVER_NULL]),
        ("c", whole(NULL), []),
        ("c", whole(NULL, present=9), ["is always, but the key is in 9 of 10 rows of whole captures"]),
        ("c", whole(FILLED, pages=1), ["is filled in all 10 rows", NEVER_NULL]),
        ("c", SEEN, ["is always, but there are only 0 rows in 0 whole captures", NEVER_NULL]),
        ("d", whole(FILLED, pages=1), []),
        ("d", whole(NULL), [RECORDED_AS_NULL]),
        ("d", whole(SEEN, pages=1, empty_pages=1), ["is often, but it is empty in 1 of 1 pages of whole captures"]),
        ("e", whole(SEEN), [NEVER_NULL]),
        ("e", whole(NULL, pages=1, empty_pages=1), ["is often, but it is empty in 1 of 1 pages of whole captures"]),
    ],
)
def test_counts_that_contradict_a_declaration(name: str, count: Count, expected: list[str]) -> None:
    others = {"Sample__c": whole(NULL), "Sample__d": whole(FILLED), "Sample__e": whole(NULL), "Sample__id": whole(SEEN)}
    assert reasons(Sample, **(others | {f"Sample__{name}": count})) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (SEEN, Count(), [NEVER_NULL]),
        (SEEN, NULL, []),
        (SEEN, replace(SEEN, present=9), []),
    ],
)
def test_a_line_of_a_base_class_fits_all_classes_that_inherit_it(
    first: Count, second: Count, expected: list[str]
) -> None:
    assert reasons(Both, First__name=first, Second__name=second) == expected
