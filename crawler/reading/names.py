"""Additional paths for declared values, tried before the declared paths, so that a changed payload can be read.

The additional paths come from the file of the setting ``PAYLOAD_NAMES``, so that no code need change. A *line* of this
file names a contract, a path that the contract declares, and a *further* path for the same value: ``Row``,
``imageInfo``, ``media.image``. A line applies to all values of the contract whose paths begin with the declared path.
The further path is tried first, and then the declared path, because platforms change their pages one by one. For values
in HTML, a line names a table of selectors, one of the table's paths, and a further selector.

``Names.contract`` returns a subclass of the contract with the further paths. So the strict pass, the careful pass and
all other users of ``values`` read the same paths. ``Names.table`` returns a table with the further selectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast

from crawler.reading.contract import C, Contract, Value, contracts, values
from crawler.reading.paths import ANY, EACH, is_flat, joined, steps


class SelectorTable(ABC):
    """Selectors of a platform's HTML, to which lines may add further selectors. Instances are immutable."""

    label: ClassVar[str]
    """The name of the table in the file: the platform and a word, such as ``professional.sections``."""

    @property
    @abstractmethod
    def paths(self) -> list[str]:
        """The paths that a line may name: the paths of the page's sections, of their rows and of the values in rows."""

    @abstractmethod
    def check(self, line: Line) -> None:
        """Check a line whose path exists. Raises ``WrongLineError`` for an invalid line."""

    @abstractmethod
    def named(self, lines: Sequence[Line]) -> Self:
        """Return the table with the selectors of the lines added. Added selectors are tried before declared ones."""


T = TypeVar("T", bound=SelectorTable)


class Line(NamedTuple):
    """A further path of a contract's values, or a further selector of a table."""

    contract: type[Contract] | SelectorTable
    declared: str
    """A declared path, or its beginning."""
    further: str
    """The additional path or selector, which is tried first."""


class Names:
    """The lines in force. Instances are immutable, and a target reads all of its pages with one instance."""

    def __init__(self, lines: tuple[Line, ...] = ()) -> None:
        self.lines = lines
        self._of: dict[type[Contract] | SelectorTable, list[Line]] = {}
        for line in lines:
            self._of.setdefault(line.contract, []).append(line)
        self._named: dict[type[Contract], type[Contract]] = {}
        self._tables: dict[SelectorTable, SelectorTable] = {}

    def contract(self, kind: type[C]) -> type[C]:
        """Return the contract with the further paths, or itself if no line applies to it or to a contract inside it."""
        if not self.lines:
            return kind
        if kind not in self._named:
            is_named = any(base in self._of for each in contracts(kind) for base in each.__mro__)
            self._named[kind] = variant(kind, partial(self._value, kind)) if is_named else kind
        return cast("type[C]", self._named[kind])

    def old(self, kind: type[C], body: bytes) -> type[C] | None:
        """Return the contract without the further paths if the document contains no further path of any contract.

        Return None if the contract has no further paths, or if the document contains all keys of a further path. Such a
        document must be read with the further paths: otherwise its renamed values could seem to be absent.
        """
        if self.contract(kind) is kind:
            return None
        lines = (each for each in self.lines if not isinstance(each.contract, SelectorTable))
        return None if any(_has_keys(body, each.further) for each in lines) else kind

    def table(self, table: T) -> T:
        """Return the table with the further selectors, or the table itself if no line applies to it."""
        if table not in self._tables:
            self._tables[table] = table.named(self._of[table]) if table in self._of else table
        return cast("T", self._tables[table])

    def _value(self, kind: type[Contract], value: Value) -> Value:
        further = tuple(dict.fromkeys(self._further(kind, value)))
        inside = tuple(map(self.contract, value.contracts))
        return replace(value, paths=tuple(dict.fromkeys((*further, *value.paths))), contracts=inside)

    def _further(self, kind: type[Contract], value: Value) -> Iterator[str]:
        for owner in owners(kind, value):
            for line in self._of.get(owner, ()):
                yield from (path for each in value.paths if (path := renamed(each, line)))


def _has_keys(body: bytes, path: str) -> bool:
    """Whether a JSON document contains all keys of a path anywhere. Keys that may be escaped count as present."""
    keys = (each for each in steps(path) if isinstance(each, str) and each not in {EACH, ANY} and each.isascii())
    return all(f'"{key}"'.encode() in body for key in keys)


NO_NAMES = Names()


def variant(kind: type[C], change: Any) -> type[C]:
    """Return a subclass of a contract with changed values. ``change``: maps a declared value to the changed value."""
    named = {"change": staticmethod(change), "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return cast("type[C]", type(kind.__name__, (kind,), named))


def declared(kind: type[Contract]) -> type[Contract]:
    """Return the contract as it was declared: the original of a variant, or the contract itself."""
    while kind.change is not None:
        kind = kind.__mro__[1]
    return kind


def owners(kind: type[Contract], value: Value) -> Iterator[type[Contract]]:
    """Yield a contract and its base classes, up to the class that declares the value."""
    for each in kind.__mro__:
        yield each
        if value.name in vars(each):
            return


def renamed(path: str, line: Line) -> str | None:
    """Return a path with the line's declared path at its beginning replaced by the further path.

    Return None if the path does not begin with the declared path.

    >>> line = Line(Contract, "info.images[]", "media.photos[]")
    >>> renamed("info.images[].url", line), renamed("info.image", line)
    ('media.photos[].url', None)
    """
    declared, own = steps(line.declared), steps(path)
    return joined((*steps(line.further), *own[len(declared) :])) if own[: len(declared)] == declared else None


def label(kind: type[Contract] | SelectorTable) -> str:
    """Return the name of a contract or table in files. For a contract: platform and class (``retail.Row``)."""
    return kind.label if isinstance(kind, SelectorTable) else f"{kind.__module__.split('.')[-2]}.{kind.__name__}"


class WrongLineError(ValueError):
    """Raised for an invalid line. The message contains the reason."""


def check_line(line: Line) -> None:
    """Check that the further path or selector of a line can be read in place of the declared one.

    Raises:
        WrongLineError: it cannot be read, such as a path to a list for a single value.
    """
    if isinstance(line.contract, SelectorTable):
        line.contract.check(line)
        return
    found = [(value, path) for value in values(line.contract) for each in value.paths if (path := renamed(each, line))]
    for value, path in found:
        if is_flat(path) == value.many:
            has, needs = ("a list of values", "one value") if not value.many else ("one value", "a list of values")
            raise WrongLineError(f"{path} leads to {has}, but {value.name} needs {needs}")
        if not isinstance(steps(path)[0], str) or steps(path)[0] in {"[]", "*"}:
            raise WrongLineError(f"{path} does not begin with a key")
        other = next((each for each in values(line.contract) if path in each.paths and each.name != value.name), None)
        if other is not None:
            raise WrongLineError(f"{path} is the declared path of another value, {other.name}")


def beginnings(kind: type[Contract] | SelectorTable) -> list[str]:
    """Return the paths that lines may name: a contract's declared paths and their beginnings, or a table's paths."""
    if isinstance(kind, SelectorTable):
        return kind.paths
    paths = [steps(path) for value in values(kind) for path in value.paths]
    return list(dict.fromkeys(joined(path[:length]) for path in paths for length in range(1, len(path) + 1)))
