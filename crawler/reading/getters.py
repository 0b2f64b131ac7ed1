"""Functions that read the value at a path below a decoded object.

Each path is compiled to one expression, which takes half as long as functions that call each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from crawler.reading.paths import ANY, EACH, Step, is_flat, steps

Getter = Callable[[Any], Any]


def getter(paths: Sequence[str]) -> Getter:
    """Return the function that reads the value at the first of several paths that has a value.

    If no path has a value, the function returns None, or [] if the paths contain ``[]`` or ``*``.
    """
    return _compiled(_first(paths))


def getter_of_keys(path: tuple[Step, ...]) -> Getter:
    """Return the function that reads the value at a path that has only keys, and on which no object is ever null."""
    return attrgetter(".".join(field_name(str(key)) for key in path))


def lacks_one_of(values: Sequence[Sequence[str]]) -> Getter | None:
    """Return the function that returns whether an object lacks any of several values, or None if no values are given.

    ``values``: the paths of each value.
    """
    tests = (f"({_first(paths)}) is None" if is_flat(paths[0]) else f"not ({_first(paths)})" for paths in values)
    return _compiled(" or ".join(tests)) if values else None


def _first(paths: Sequence[str]) -> str:
    expressions = [_expression(steps(path), "row") for path in paths]
    if not is_flat(paths[0]):
        return " or ".join(expressions)
    firsts = (f"found if (found := {each}) is not None else " for each in expressions[:-1])
    return "".join(firsts) + expressions[-1]


def _compiled(expression: str) -> Getter:
    getter: Getter = eval(f"lambda row: {expression}")  # noqa: S307  # the names are made by field_name
    return getter


def _expression(path: tuple[Step, ...], row: str, depth: int = 0, *, is_any: bool = False) -> str:
    """Return the expression for the value at a path below a variable. The variable is not null.

    ``depth``: the number of lists around the variable, for the names of further variables. ``is_any``: whether the
    variable may be a text, a number or a list, because it is a value below ``*``.
    """
    count = next((index for index, step in enumerate(path) if isinstance(step, int) or step in {EACH, ANY}), len(path))
    found = _chain([field_name(str(key)) for key in path[:count]], row, is_any=is_any) if count else row
    if count == len(path):
        return found
    step, below = path[count], path[count + 1 :]
    rows, entry, one, inside = (f"{name}{depth}" for name in ("rows", "entry", "one", "inside"))
    is_list = EACH in below or ANY in below
    value = _expression(below, entry, depth + 1, is_any=step == ANY) if below else entry
    if isinstance(step, int):
        is_short = f"len({rows}) <= {step}" if step >= 0 else f"len({rows}) < {-step}"
        missing = f"not ({rows} := {found}) or {is_short} or ({entry} := {rows}[{step}]) is None"
        return f"({'[]' if is_list else 'None'} if {missing} else {value})"
    each = f"for {entry} in {rows}{'.values()' if step == ANY else ''} if {entry} is not None"
    if not below:
        values = f"[{entry} {each}]" if step == ANY else f"{rows} if None not in {rows} else [{entry} {each}]"
    elif is_list:
        values = f"[{one} {each} and ({inside} := {value}) for {one} in {inside}]"
    else:
        values = f"[{one} {each} and ({one} := {value}) is not None]"
    return f"([] if not ({rows} := {found}) else {values})"


def _chain(names: list[str], row: str, *, is_any: bool) -> str:
    """Return the expression for an attribute of an attribute, and so on. Each object but the first may be null."""
    first = f"getattr({row}, {names[0]!r}, None)" if is_any else f"{row}.{names[0]}"
    inner = "".join(f"None if (part := part.{name}) is None else " for name in names[1:-1])
    return f"(None if (part := {first}) is None else {inner}part.{names[-1]})" if names[1:] else first


@cache
def field_name(key: str) -> str:
    """Return the name of the Struct's field for a key: an identifier that is not the name of a method or value."""
    return "key_" + "".join(each if each.isalnum() and each.isascii() else f"_{ord(each)}_" for each in key)
