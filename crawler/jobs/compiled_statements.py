"""Executes statements of SQLAlchemy Core on the connection of a driver.

SQLAlchemy only compiles each statement, once. If it also executed them, this would take as much CPU time as all other
work of a worker: 5 µs for each value, and 100 µs for each statement.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlalchemy as sa


@dataclass(frozen=True, slots=True)
class Compiled:
    """The text of a statement in the SQL of a database."""

    text: str
    positions: tuple[str, ...] | None
    """The names of the values in the order of the placeholders. None: the placeholders in the text have names."""
    lists: Mapping[str, tuple[str, ...]]
    """Name of a list of values -> the names of its members."""
    fixed: Mapping[str, Any]
    """Values that are part of the statement."""

    def arguments(self, values: Mapping[str, Any]) -> Any:
        """Return the values as the driver expects them."""
        named = {**self.fixed, **values}
        for name, members in self.lists.items():
            given = list(named.pop(name)) or [None]  # an empty list becomes NULL, which equals no value
            named.update(zip(members, given + given[-1:] * (len(members) - len(given)), strict=True))
        return named if self.positions is None else [named[name] for name in self.positions]


def compiled(dialect: sa.Dialect, statement: sa.Executable, values: Mapping[str, Any]) -> Compiled:
    """Return a compiled statement for values.

    The length of a list is rounded up to a power of two, so that few different statements are compiled.
    """
    form = [(name, _places(value) if isinstance(value, list | tuple) else 0) for name, value in values.items()]
    return _compiled(dialect, statement, tuple(form))


def _places(values: Sequence[Any]) -> int:
    return 1 << (max(len(values), 1) - 1).bit_length()


@lru_cache(maxsize=1024)
def _compiled(dialect: sa.Dialect, statement: Any, form: tuple[tuple[str, int], ...]) -> Compiled:
    keys = [name for name, _ in form] if statement.is_insert else None
    found = statement.compile(dialect=dialect, column_keys=keys)
    state = found.construct_expanded_state({name: [b""] * n if n else None for name, n in form}, escape_names=False)
    lists = {name: tuple(members) for name, members in state.parameter_expansion.items()}
    given = {name for name, _ in form}.union(*lists.values())
    fixed = {name: value for name, value in state.parameters.items() if name not in given}
    positions = None if state.positiontup is None else tuple(state.positiontup)
    return Compiled(state.statement, positions, lists, fixed)


def named_rows(cursor: Any) -> Callable[..., Any]:
    """Return the function that converts a row of a cursor to a named tuple."""
    return _row_type(tuple(column[0] for column in cursor.description or ()))


@lru_cache(maxsize=256)
def _row_type(names: tuple[str, ...]) -> Callable[..., Any]:
    of_names: Any = namedtuple  # noqa: PYI024  # the names are known at run time only
    make: Callable[..., Any] = of_names("row", names, rename=True)._make
    return make
