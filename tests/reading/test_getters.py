"""The compiled functions that read values by their paths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from crawler.reading.strict import field_name, getter, lacks_one_of


def part(**keys: Any) -> SimpleNamespace:
    """Return a decoded object with an attribute for each key of the payload."""
    return SimpleNamespace(**{field_name(key): value for key, value in keys.items()})


ROWS = [part(text="a", tags=["x"], deep=None), part(text=None, tags=None, deep=part(value=1, of=[2]))]
ROW = part(
    text="t",
    null=None,
    inner=part(text="i", null=None, rows=ROWS, empty=[]),
    rows=ROWS,
    full=["a", "b"],
    empty=[],
    grid=[[part(n=1)], [], [part(n=2)]],
)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["text"], "t"),
        (["null"], None),
        (["inner.text"], "i"),
        (["inner.null"], None),
        (["null.text"], None),
        (["null.a.b"], None),
        (["inner.null.text"], None),
        (["full[]"], ["a", "b"]),
        (["empty[]"], []),
        (["null[]"], []),
        (["null.rows[]"], []),
        (["inner.rows[]"], ROWS),
        (["rows[].text"], ["a"]),
        (["rows[].deep.value"], [1]),
        (["rows[].tags[]"], ["x"]),
        (["rows[].deep.of[]"], [2]),
        (["grid[][].n"], [1, 2]),
        (["grid[0][].n"], [1]),
        (["grid[1][].n"], []),
        (["grid[-1][0].n"], 2),
        (["rows[0].text"], "a"),
        (["rows[1].text"], None),
        (["rows[1].deep.value"], 1),
        (["rows[0].deep.value"], None),
        (["rows[2].text"], None),
        (["rows[-2].text"], "a"),
        (["rows[-3].text"], None),
        (["rows[1].deep.of[0]"], 2),
        (["empty[0]"], None),
        (["null[0].text"], None),
        (["null", "inner.text"], "i"),
        (["rows[1].text", "rows[0].text"], "a"),
        (["text", "inner.text"], "t"),
        (["null", "inner.null"], None),
        (["empty[]", "rows[].text"], ["a"]),
        (["empty[]", "null[]"], []),
    ],
)
def test_a_getter_reads_the_first_path_with_a_value(paths: list[str], expected: object) -> None:
    assert getter(paths)(ROW) == expected


def test_an_object_lacks_a_value_without_any_of_its_paths() -> None:
    assert lacks_one_of([]) is None
    for values, expected in (
        ([["text"], ["null", "inner.text"]], False),
        ([["text"], ["null", "inner.null"]], True),
        ([["null.a", "rows[1].text"]], True),
        ([["empty[]", "full[]"]], False),
        ([["empty[]", "null[]"]], True),
    ):
        lacks = lacks_one_of(values)
        assert lacks is not None
        assert lacks(ROW) is expected
