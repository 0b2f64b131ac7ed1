"""``scrapy extract --explain``: finds the payload and the path from which each field of the data was read.

Page objects compute fields in Python code, so the origin is found by experiment: for each declared value, the pages are
read again with the value replaced by another one. The fields that change come from this value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from crawler.errors import ScrapeError
from crawler.logs import one_line
from crawler.reading.contract import C, Contract, Value, contracts, values
from crawler.reading.names import Names, declared, label, owners, variant

Record = Mapping[str, Any]

MAX_VALUE = 60


class Origin(NamedTuple):
    """The origin of a field."""

    field: str
    value: object
    """The first value that is not empty."""
    paths: tuple[str, ...]
    """The declared paths on which the field depends, each with its contract as in the file of ``PAYLOAD_NAMES``."""


class _Changing(Names):
    """A ``Names`` that replaces one declared value when pages are read, and records the contracts that are read."""

    def __init__(self, names: Names, owner: type[Contract] = Contract, name: str = "") -> None:
        super().__init__(names.lines)
        self._names, self._owner, self._name = names, owner, name
        self._made: dict[type[Contract], type[Contract]] = {}
        self.roots: dict[type[Contract], None] = {}

    def contract(self, kind: type[C]) -> type[C]:
        self.roots[kind] = None
        if kind not in self._made:
            made = variant(self._names.contract(kind), self._inside)
            if any(value.name == self._name and self._owner in owners(kind, value) for value in values(kind)):
                made = _with_other(made, self._name)
            self._made[kind] = made
        return cast("type[C]", self._made[kind])

    def old(self, kind: type[C], body: bytes) -> None:
        """Return None, so that pages are read by the careful pass, which alone replaces values."""

    def _inside(self, value: Value) -> Value:
        """Return a value whose type contains this object's variants of the contracts."""
        inside = tuple(map(self.contract, map(declared, value.contracts)))
        return replace(value, contracts=inside)


def _with_other(kind: type[C], name: str) -> type[C]:
    """Return a contract in whose instances the value of one attribute is replaced by another one."""

    class Changed(kind):  # type: ignore[valid-type,misc]  # used while the pages are read once
        change = staticmethod(_same)

        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes | {name: other(attributes.get(name))})

    return cast("type[C]", Changed)


def other(value: Any) -> Any:
    """Return a different value of the same type and form. None and values of other types are returned unchanged.

    >>> other("Az9-"), other(4), other(True), other(["a"]), other(None)
    ('Ba0-', 5, False, ['b'], None)
    """
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value.translate(_OTHER)
    return [other(each) for each in value] if isinstance(value, list) else value


_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789")
_OTHER = {ord(one): next_ for each in _ALPHABETS for one, next_ in zip(each, each[1:] + each[0], strict=True)}


def _same(value: Value) -> Value:
    return value


def origins(read: Callable[[Names], Record], names: Names) -> list[Origin]:
    """Return the origin of each field.

    Args:
        read: a function that reads the pages with the given names, and returns the data. It is called once without a
            replaced value, and once for each declared value.
        names: the names in force.

    Raises:
        ScrapeError: the pages have no data.
    """
    plain = _Changing(names)
    whole = fields(read(plain))
    found: dict[str, list[str]] = {field: [] for field in whole}
    for owner, value in _values(list(plain.roots)):
        try:
            changed = fields(read(_Changing(names, owner, value.name)))
        except (ScrapeError, LookupError, ValueError):  # the page object rejects the replaced value
            continue
        for field in whole:
            now = changed.get(field, [])
            if now != whole[field] and len(now) == len(whole[field]):  # otherwise the value decides which rows exist
                found[field].append(f"{label(owner)} {value.paths[0]}")
    return [Origin(field, _example(filled), tuple(found[field])) for field, filled in whole.items()]


def _values(roots: list[type[Contract]]) -> list[tuple[type[Contract], Value]]:
    """Return the values of the contracts and of the contracts inside them, each with the class that declares it."""
    kinds = dict.fromkeys(kind for root in roots for kind in contracts(root))
    found = {(list(owners(kind, value))[-1], value.name): value for kind in kinds for value in values(kind)}
    return [(owner, value) for (owner, _), value in found.items()]


def fields(record: Record) -> dict[str, list[Any]]:
    """Return the values of each field of the data, in all rows.

    >>> fields({"id": "a", "rows": [{"n": 1}, {"n": 2}]})
    {'id': ['a'], 'rows[].n': [1, 2]}
    """
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for path, value in _leaves(record, ""):
        found[path].append(value)
    return dict(found)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from _leaves(each, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value:
        for each in value:
            yield from _leaves(each, f"{path}[]")
    else:
        yield path, value


def _example(filled: list[Any]) -> object:
    return next((each for each in filled if each not in (None, "", [], {})), None)


def explanation(origin: Origin) -> str:
    """Return the line about a field: its name, its first value, and the paths that it depends on."""
    value = "empty" if origin.value is None else one_line(str(origin.value), MAX_VALUE)
    return f"{origin.field}\t{value}\t{', '.join(origin.paths) or 'no single path'}"
