"""Compares two records of a scraper, value by value.

The data models declare how a value is compared, one mark beside each field that is not compared exactly:

===================  ===================================================================================
``Mark.KEY``         identifies an entry of a list, such as a product: entries with the same key are compared
``Mark.COUNT``       changes if it moves by more than ``SHARE``, because platforms round their counts
``Mark.NEVER``       is not compared: a signed URL, a cursor, what a page shows by chance
``Mark.ADVERTISED``  is not compared, and neither is an entry for which it is true
``Mark.NULL``        null is a statement of the platform, such as "no price"
``Mark.PARTIAL``     is not compared if one value may be only a part of the other, such as a shortened text
``Mark.WITHHELD``    names the fields of the record that the platform withheld: they are not compared
===================  ===================================================================================

A value *was read* if it is neither null (without ``Mark.NULL``), nor empty in a record with a warning, nor a part of
the other record's value (``Mark.PARTIAL``). All other lists and objects are compared as a whole, without the values in
them that are never compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from crawler.outputs.columns import ColumnType, ListOf, Struct, value_at, without_lists
from crawler.platforms.model import Mark
from crawler.reading.values import stated_count

SHARE = 0.1
"""A count is unchanged if it moves by at most this share of the larger number: lists round counts down to two digits,
so that an exact 10,999 and a rounded 10,000 may be the same."""
ALLOWANCE = 2
"""A count is unchanged if it moves by at most this number: the servers of a platform differ by a few."""
LONG = 200
"""Minimum number of characters of a text that may be the beginning of a longer one although it has no "…" at its end.
The microblog shortens long posts in this way."""
ELLIPSES = ("…", "...")
NOT_COMPARED = frozenset({Mark.NEVER, Mark.ADVERTISED})
_UNSTABLE = NOT_COMPARED | {Mark.COUNT}
"""The marks of values that do not make lists different."""


class Difference(NamedTuple):
    """A value that two records do not have in common."""

    path: tuple[str, ...]
    old: Any
    new: Any
    mark: Mark | None

    def was_read(self, old_is_whole: bool, new_is_whole: bool) -> bool:  # noqa: FBT001  # as the values
        """Whether both values were read. A record is whole if it has no warning about a missing part."""
        values = self.old, self.new
        if self.mark is Mark.PARTIAL and None not in values and is_part(*values):
            return False
        return all(
            self.mark is Mark.NULL and is_whole if value is None else is_whole or value not in ("", [])
            for value, is_whole in zip(values, (old_is_whole, new_is_whole), strict=True)
        )


def differences(fields: Struct, old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[Difference]:
    """Yield the differences between two objects of a type, without the entries of lists that have keys."""
    for name, kind in fields.of.items():
        mark = fields.marks.get(name)
        if mark in NOT_COMPARED or is_keyed(kind):
            continue
        before, after = (_value(each, name, kind) for each in (old, new))
        if isinstance(kind, Struct) and before is not None and after is not None:
            yield from differences(kind, before, after, (*path, name))
        elif not same(mark, _significant(before, kind), _significant(after, kind)):
            yield Difference((*path, name), before, after, mark)


def same(mark: Mark | None, old: Any, new: Any) -> bool:
    """Whether two values are the same by the mark of their field.

    >>> same(None, 10_000, 10_999), same(Mark.COUNT, 10_000, 10_999), same(Mark.COUNT, 10_000, 11_999)
    (False, True, False)
    >>> same(Mark.COUNT, None, 0), same(Mark.COUNT, 1, 3)
    (False, True)
    >>> same(Mark.COUNT, "41M followers", "42M followers"), same(Mark.COUNT, "500+ connections", "480 connections")
    (True, False)
    """
    if mark is Mark.COUNT:
        one, other = (stated_count(each, r"\w+") if isinstance(each, str) else each for each in (old, new))
        if one is not None and other is not None:
            return bool(abs(one - other) <= max(ALLOWANCE, SHARE * max(one, other)))
    return bool(old == new)


def is_part(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether one of two texts or lists may be a part of the other.

    It is, if it is the beginning of the other, or if exactly one of two texts ends with an ellipsis: the texts of a
    shortened value and of a whole one cannot be compared.

    >>> is_part("Boats…", "Boats and lakes"), is_part("Trains…", "Boats"), is_part("", "Boats"), is_part([], ["a"])
    (True, True, True, True)
    >>> is_part("Boats…", "Trains…"), is_part("Boats", "Boats and lakes"), is_part(["b"], ["a", "b"])
    (False, False, False)
    >>> is_part("Boats. " * 30, "Boats. " * 31), is_part("Boats. " * 31, "Boats. " * 30 + "Trains.")
    (True, False)
    """
    shorter, longer = sorted((one, other), key=len)
    if not (isinstance(shorter, str) and isinstance(longer, str)):
        return longer[: len(shorter)] == shorter
    is_cut = shorter.endswith(ELLIPSES)
    if is_cut != longer.endswith(ELLIPSES):
        return True
    begins = longer.startswith(shorter.rstrip("….") if is_cut else shorter)
    return begins and (is_cut or not shorter or len(shorter) >= LONG)


def withheld(fields: Struct, record: dict[str, Any]) -> set[str]:
    """Return the names of the fields that the platform withheld. A dotted name is a field of a list's entries."""
    return {name for path in fields.marked(Mark.WITHHELD) for name in value_at(record, path) or ()}


def is_keyed(kind: ColumnType) -> bool:
    """Whether a type is that of a list whose entries have keys."""
    inner = without_lists(kind)
    return isinstance(kind, ListOf) and isinstance(inner, Struct) and bool(inner.marked(Mark.KEY))


def _value(data: dict[str, Any], name: str, kind: ColumnType) -> Any:
    """Return a value. A key that is absent because the object has no such value counts as an empty value."""
    empty: Any = [] if isinstance(kind, ListOf) else "" if kind == "text" else None
    return data.get(name, empty)


def _significant(value: Any, kind: ColumnType) -> Any:
    """Return the entries of a list, and the objects in them, without the values that are never compared."""
    if isinstance(kind, ListOf) and value is not None:
        return [_significant(each, kind.of) for each in value]
    if isinstance(kind, Struct) and value is not None:
        compared = {name: each for name, each in kind.of.items() if kind.marks.get(name) not in _UNSTABLE}
        return {name: _significant(value.get(name), each) for name, each in compared.items()}
    return value
