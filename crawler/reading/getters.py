"""Functions that read the value at a path below a decoded object. Each path is compiled once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

from crawler.reading.paths import ANY, EACH, Step, is_flat, steps

Getter = Callable[[Any], Any]


def getter(path: tuple[Step, ...], *, is_inside: bool = False, never_null: bool = False) -> Getter:
    """Return a function that reads the value at a path below an object. It returns None or [] if there is no value.

    ``never_null``: whether the path consists of keys only, and no object on it is ever null.
    """
    if never_null:
        return _read(path)
    count = next((index for index, step in enumerate(path) if isinstance(step, int) or step in {EACH, ANY}), len(path))
    keys, rest = path[:count], path[count:]
    start = _chain(keys, is_inside=is_inside) if keys else lambda part: part
    if not rest:
        return start
    if rest == (EACH,) and keys and not is_inside:
        found = _expression([field_name(str(key)) for key in keys])
        present = "found if None not in found else [each for each in found if each is not None]"
        return _compiled_getter(f"[] if not (found := {found}) else {present}")
    inner = getter(rest[1:], is_inside=True) if rest[1:] else None
    is_list = EACH in rest[1:] or ANY in rest[1:]
    if isinstance(rest[0], int):
        return _at(start, rest[0], inner, is_list=is_list)
    return _each(start, inner, is_list=is_list)


def _read(keys: tuple[Step, ...]) -> Getter:
    return attrgetter(".".join(field_name(str(key)) for key in keys))


def _chain(keys: tuple[Step, ...], *, is_inside: bool) -> Getter:
    names = [field_name(str(key)) for key in keys]
    if is_inside:
        return _lenient(attrgetter(".".join(names)))
    if len(names) == 1:
        return attrgetter(names[0])
    return _compiled_getter(_expression(names))


def _expression(names: list[str]) -> str:
    """Return the expression for an attribute at the end of a path. An object on the path may be null."""
    inner = "".join(f"None if (part := part.{name}) is None else " for name in names[1:-1])
    first, last = names[0], names[-1]
    return f"(None if (part := row.{first}) is None else {inner}part.{last})" if names[1:] else f"row.{first}"


def has_only_keys(path: str) -> bool:
    """Whether all steps of a path are keys, and none is an index, ``[]`` or ``*``."""
    return is_flat(path) and not any(isinstance(step, int) for step in steps(path))


def first_of(paths: tuple[str, ...]) -> Getter:
    """Return the function that reads the value at the first path that has one. The paths consist of keys only."""
    expressions = [_expression([field_name(str(key)) for key in steps(path)]) for path in paths]
    firsts = (f"found if (found := {each}) is not None else " for each in expressions[:-1])
    return _compiled_getter("".join(firsts) + expressions[-1])


def _compiled_getter(expression: str) -> Getter:
    """Return a function of ``row`` from an expression. One expression for all keys takes half as long as a loop."""
    getter: Getter = eval(f"lambda row: {expression}")  # noqa: S307  # the names are made by field_name
    return getter


def _lenient(read: Getter) -> Getter:
    def read_if_present(part: Any) -> Any:
        try:
            return read(part)
        except AttributeError:  # an object on the path is null, or a text or list below "*"
            return None

    return read_if_present


def _at(start: Getter, index: int, inner: Getter | None, *, is_list: bool) -> Getter:
    default: Callable[[], Any] = list if is_list else lambda: None

    def at(part: Any) -> Any:
        entries = start(part)
        if not entries or not -len(entries) <= index < len(entries) or entries[index] is None:
            return default()
        return entries[index] if inner is None else inner(entries[index])

    return at


def _each(start: Getter, inner: Getter | None, *, is_list: bool) -> Getter:
    def entries(part: Any) -> Any:
        found = start(part)
        if not found:
            return ()
        return found.values() if isinstance(found, dict) else found

    def plain(part: Any) -> list[Any]:
        found = start(part)
        if not found:
            return []
        if type(found) is list and None not in found:  # the usual case
            return found
        return [entry for entry in entries(part) if entry is not None]

    def each(part: Any) -> list[Any]:
        assert inner is not None
        return [one for entry in entries(part) if entry is not None and (one := inner(entry)) is not None]

    def each_of_each(part: Any) -> list[Any]:
        assert inner is not None
        return [one for entry in entries(part) if entry is not None for one in inner(entry) or ()]

    if inner is None:
        return plain
    return each_of_each if is_list else each


@cache
def field_name(key: str) -> str:
    """Return the name of the Struct's field for a key: an identifier that differs from all methods and values."""
    return "key_" + "".join(each if each.isalnum() and each.isascii() else f"_{ord(each)}_" for each in key)
