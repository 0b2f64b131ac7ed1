"""Contracts of payloads, which declare the values in a platform's JSON, one line per value.

::

    class Product(Contract, tag=("__typename", "Product")):
        id: str = identity("usItemId")
        name: str | None = always("name")
        rating: float | None = always("averageRating", often=True)
        image: str | None = sometimes("imageInfo.allImages[0].url")

    class Listing(Contract):
        products: list[Product] = always("searchResult.itemStacks[].items[]")

    listing, unread = read(Listing, body, what="__NEXT_DATA__")  # page objects: self.payload(Listing, body, what=...)

A value has a name, a type, a kind and a path. There are four kinds:

- ``identity``: the value identifies its row and is never null. A row without this value is left out.
- ``always``: the key is in every row. Its value may be null.
- ``often``: the value is neither null nor empty in at least one row of a page with ten rows or more.
  ``always(..., often=True)`` declares an ``always`` value that also meets this condition.
- ``sometimes``: any other value.

With ``nulls=False``, a value is never null. ``filled`` declares an ``always`` value that is also often and never null.

The kind of a value, and whether it may be null, is counted in recorded payloads, never guessed (``docs/contracts.md``).

``careful.read`` decodes the payload in one strict pass, in which a missing key is an error that costs nothing to find.
Only if this pass fails, the careful pass decodes the payload to plain data, and reports each path that could not be
read as ``Unread``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from crawler.errors import ExtractionFailed

Step = str | int
"""One step of a path: a key, an index or ``EACH``."""

EACH = "[]"
"""The step from a list to each of its entries."""

_PATH = re.compile(r"(?P<index>\[(?P<number>-?\d+)?\])|(?P<key>[^.\[\]]+)|\.")


@cache
def steps(path: str) -> tuple[Step, ...]:
    """Split a path into its steps.

    >>> steps("metadata.rows[].text"), steps("sources[-1].url")
    (('metadata', 'rows', '[]', 'text'), ('sources', -1, 'url'))

    Raises:
        ValueError: the path is empty or malformed.
    """
    found: list[Step] = []
    position = 0
    while position < len(path):
        step = _PATH.match(path, position)
        if step is None:
            break
        position = step.end()
        if step["key"]:
            found.append(step["key"])
        elif step["index"]:
            found.append(EACH if step["number"] is None else int(step["number"]))
    if not found or position < len(path) or path.strip(".") != path or ".." in path:
        raise ValueError(f"{path!r} is not a path: expected keys, [] and [0], joined by dots")
    return tuple(found)


def is_flat(path: str) -> bool:
    """Whether a path leads to at most one value. A path with ``[]`` leads to a list of values.

    >>> is_flat("sources[-1].url"), is_flat("rows[].text")
    (True, False)
    """
    return EACH not in steps(path)


def join(parent: str, path: str) -> str:
    """Return the path from the root for a path that is relative to its parent.

    >>> join("rows[]", "title.text"), join("", "rows[]"), join("rows[]", "[0].text")
    ('rows[].title.text', 'rows[]', 'rows[][0].text')
    """
    return f"{parent}{path}" if path.startswith("[") else f"{parent}.{path}".lstrip(".")


def joined(path: Iterable[Step]) -> str:
    """Return the text of a path: the inverse of ``steps``.

    >>> joined(("sources", -1, "url")), joined(("rows", "[]", "text"))
    ('sources[-1].url', 'rows[].text')
    """
    text = ""
    for step in path:
        text = f"{text}[{step}]" if isinstance(step, int) else join(text, step)
    return text


Cause = Literal["missing", "type", "null", "unknown", "contradiction", "unproven", "limit"]

MAX_NAMES = 5
MAX_NAME_LENGTH = 60


class Unread(NamedTuple):
    """A path of a payload that could not be read, with the number of rows. Each path is reported once per cause.

    A page object collects its unread paths in ``PlatformPage.unread``. The target stays OK: its record lacks only these
    values or rows. If nothing can be read, the page object raises ``ExtractionFailed`` instead.
    """

    path: str
    """The path in the payload, as its contract declares it: ``itemStacks[].items[].averageRating``.

    The path contains no text of the page: unknown names are in ``names``, and their path ends in ``…unknown``.
    """
    cause: Cause
    """Why the path could not be read.

    ``missing``: the key is absent, although every known payload has it. ``null``: the value is null where known
    payloads never contain null, or is null or empty in every row of a page, which never occurs in known payloads.
    ``type``: the value has another type than declared. ``unknown``: the platform sent a name, such as the type of a
    row, that this project does not know. ``contradiction``: the payload contradicts itself, such as a repost without
    the original post. ``unproven``: the payload does not confirm a requested param, whose name is in ``names``.
    ``limit``: the value or row was left out because of a limit.
    """
    rows: int = 1
    """Number of rows (or objects) in which the path could not be read."""
    of: int = 1
    """Number of rows of the same kind in the payload. 1 if the value is not part of a row."""
    loses_rows: bool = False
    """Whether the data lacks these rows. False: the rows are in the data, without this value."""
    names: tuple[str, ...] = ()
    """Unknown names from the platform, at most five, each at most 60 characters long."""

    def __str__(self) -> str:
        """Describe the unread path in one line for people.

        >>> str(Unread("rows[].rating", "missing", 40, 40)), str(Unread("user.name", "type"))
        ('rows[].rating: missing in 40 of 40', 'user.name: type')
        >>> str(Unread("rows[].…unknown", "unknown", 2, 30, loses_rows=True, names=("adRow",)))
        'rows[].…unknown: unknown in 2 of 30 (adRow), not collected'
        """
        where = f" in {self.rows} of {self.of}" if self.of > 1 else ""
        names = f" ({', '.join(self.names)})" if self.names else ""
        return f"{self.path}: {self.cause}{where}{names}{', not collected' if self.loses_rows else ''}"


def invalid_error(
    message: str, place: Sequence[str | int], problem: str, kind: str, *, reason: str
) -> ExtractionFailed:
    """Create the error for a part of a payload that is present but cannot be used.

    ``place``: the path of the part. ``problem`` and ``kind``: the message and the type in the error's details.
    """
    return ExtractionFailed(message, details=[{"loc": list(place), "msg": problem, "type": kind}], reason=reason)


Kind = Literal["identity", "always", "often", "sometimes"]

NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]
"""The type of texts that are never empty, such as ids. An empty text is reported as a value of a wrong type."""
Count = int | Annotated[float, msgspec.Meta(multiple_of=1)] | Annotated[str, msgspec.Meta(pattern=r"\A-?[\d,]*\Z")]
"""The type of counts, which may be texts: 12, 12.0, "12", "1,234" and "". "1.2M" and 1.5 are reported as values of a
wrong type."""
Number = int | float | Annotated[str, msgspec.Meta(pattern=r"\A(-?\d+(\.\d+)?)?\Z")]
"""The type of numbers, which may have decimals and may be texts: 4.5, "4.5" and "". Any other text is reported as a
value of a wrong type."""
_YEAR_2100 = 4_102_444_800
Seconds = (
    Annotated[int, msgspec.Meta(ge=1, lt=_YEAR_2100)]
    | Annotated[float, msgspec.Meta(ge=1, lt=_YEAR_2100, multiple_of=1)]
    | Annotated[str, msgspec.Meta(pattern=r"\A[1-9]\d{0,9}\Z")]
)
"""The type of times in Unix seconds, which may be texts. A time in milliseconds is reported as a value of a wrong type.
"""

OFTEN_ROWS = 10
"""On a page with at least this number of rows, an ``often`` value that is null or empty in all of them is reported."""
EMPTY: tuple[object, ...] = (None, [], "")
"""The values that count as null or empty in the check of ``often`` values. A platform once emptied texts instead of
removing their keys."""


@dataclass(frozen=True)
class Declared:
    """The right side of a declaration: the kind and the paths of a value."""

    kind: Kind
    paths: tuple[str, ...]
    """The paths of the value, in order. The first path with a value that is neither null nor an empty list is read."""
    often: bool = False
    """Whether the value is neither null nor empty in at least one row of a page with ``OFTEN_ROWS`` rows or more."""
    nulls: bool | None = None
    """Whether the payload may have null in place of the value, or of an object on its path. None: as for the class."""


def identity(*paths: str) -> Any:
    """Declare a value that identifies a row: a row without it is left out."""
    return Declared("identity", paths, nulls=False)


def filled(*paths: str) -> Any:
    """Declare a value whose key is in every row, and which is never null.

    In at least one row of a page with ten rows or more, the value is also not an empty text or list.
    """
    return Declared("always", paths, often=True, nulls=False)


def always(*paths: str, often: bool = False, nulls: bool | None = None) -> Any:
    """Declare a value whose key is in every row.

    Args:
        paths: the paths of the value.
        often: the value is also neither null nor empty in at least one row of a page with ten rows or more.
        nulls: whether the payload may have null in place of the value. Default: as for the class.
    """
    return Declared("always", paths, often, nulls)


def often(*paths: str, nulls: bool | None = None) -> Any:
    """Declare a value that is neither null nor empty in at least one row of a page with ten rows or more.

    ``nulls``: whether the payload may have null in place of the value. Default: as for the class.
    """
    return Declared("often", paths, often=True, nulls=nulls)


def sometimes(*paths: str, nulls: bool | None = None) -> Any:
    """Declare a value that may be absent. The absence of the value is never reported.

    ``nulls``: whether the payload may have null in place of the value. Default: as for the class.
    """
    return Declared("sometimes", paths, nulls=nulls)


class Contract:
    """The base class of contracts. An instance has one attribute per declared value.

    Class arguments:
        tag: the key and the value by which a payload marks objects of this class: ``("__typename", "Product")``. All
            classes of a union (``list[Product | Placeholder]``) have tags with the same key. An object with another tag
            is unread. In a union, an object without the key is read as the first class, and the key is reported.
        one_of: the object has the key of at least one declared value, such as a row with one key for its renderer.
            An object with none of these keys is unread. An empty object that is not an entry of a list is read as an
            object without values: platforms send it in place of a deleted object.
        nulls: whether real objects of this class contain null. If not, null in place of a declared value, or of an
            object on its path, is reported. A value may be declared otherwise.

    An attribute is declared as ``T | None``, as ``list[T]`` if its path contains ``[]``, and as ``T`` if it is an
    identity. A list is never null: the list is empty if the payload has no value.
    """

    tag: ClassVar[tuple[str, str] | None] = None
    one_of: ClassVar[bool] = False
    nulls: ClassVar[bool] = True

    def __init__(self, **attributes: Any) -> None:
        """Make an instance with the given values. All other attributes are None, or [] for lists."""
        others = (value for value in values(type(self)) if value.name not in attributes)
        vars(self).update({value.name: [] if value.many else None for value in others}, **attributes)

    def __init_subclass__(
        cls, *, tag: tuple[str, str] | None = None, one_of: bool = False, nulls: bool = True, **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.tag, cls.one_of, cls.nulls = tag or cls.tag, one_of or cls.one_of, nulls and cls.nulls


C = TypeVar("C", bound=Contract)
R = TypeVar("R")


PLAIN = frozenset({str, int, float, bool})


@dataclass(frozen=True)
class Value:
    """A declared value of a contract."""

    name: str
    """The name of the attribute."""
    kind: Kind
    paths: tuple[str, ...]
    often: bool
    many: bool
    """Whether the attribute is a list."""
    nullable: bool
    """Whether the payload may have null in place of the value."""
    type: Any
    """The type of the value without null; for a list, the type of an entry."""
    contracts: tuple[type[Contract], ...]
    """The contracts in the type: one, several of a union, or none."""
    classes: frozenset[Any]
    """The plain classes, such as ``str``, of which the type allows every value, and ``NoneType`` if the attribute may
    be None. Values of these classes need neither a check nor a conversion."""

    @cached_property
    def required(self) -> bool:
        """Whether the key must be in every row."""
        return self.kind in {"identity", "always"}

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the first path."""
        return steps(self.paths[0])

    @cached_property
    def key(self) -> str | None:
        """The path, if the value has only one path and this path is a single key, else None."""
        return self.paths[0] if len(self.paths) == len(self.steps) == 1 else None


def per_contract(function: Callable[[type[Contract]], R]) -> Callable[[type[Contract]], R]:
    """Cache a function's results per contract. Type checkers would reject classes as arguments of ``cache`` itself."""
    return cache(function)  # type: ignore[return-value]  # classes are hashable


@per_contract
def values(kind: type[Contract]) -> tuple[Value, ...]:
    """Return the declared values of a contract and of its base classes.

    Raises:
        TypeError: a declaration contradicts itself. This is a mistake in the project, not in a payload.
    """
    declaring = [each for each in kind.__mro__ if any(isinstance(value, Declared) for value in vars(each).values())]
    declared = {name: each for owner in reversed(declaring) for name, each in vars(owner).items()}
    hints = get_type_hints(declaring[0], include_extras=True) if declaring else {}
    return tuple(_value(kind, name, each, hints[name]) for name, each in declared.items() if isinstance(each, Declared))


def _value(owner: type[Contract], name: str, declared: Declared, hint: Any) -> Value:
    where = f"{owner.__name__}.{name}"
    if any(not isinstance(steps(path)[0], str) or steps(path)[0] == EACH for path in declared.paths):
        raise TypeError(f"{where}: a path begins with a key of the object")
    flat = {is_flat(path) for path in declared.paths}
    if len(flat) != 1:
        raise TypeError(f"{where}: give one path, or several paths that all contain [] or that all do not")
    many = flat == {False}
    if many != (get_origin(hint) is list):
        raise TypeError(f"{where}: a path with [] needs a list as the type, and a list needs such a path")
    options = _alternatives(get_args(hint)[0] if many else hint)
    if not many and (declared.kind == "identity") == (NoneType in options):
        raise TypeError(f"{where}: an identity is never null; any other value that is not a list may be null")
    options = [each for each in options if each is not NoneType]
    contracts = tuple(each for each in options if isinstance(each, type) and issubclass(each, Contract))
    if contracts and len(contracts) != len(options):
        raise TypeError(f"{where}: a union of contracts contains contracts only")
    keys = {each.tag[0] if each.tag else None for each in contracts}
    if len(contracts) > 1 and (len(keys) > 1 or None in keys):
        raise TypeError(f"{where}: all contracts of a union need a tag with the same key")
    nullable = owner.nulls if declared.nulls is None else declared.nulls
    classes = PLAIN.intersection(options) | ({NoneType} if not many and nullable else set())
    entry: Any = Union[tuple(options)]  # noqa: UP007  # Union, because the alternatives are in a variable
    return Value(name, declared.kind, declared.paths, declared.often, many, nullable, entry, contracts, classes)


def _alternatives(hint: Any) -> list[Any]:
    return list(get_args(hint)) if get_origin(hint) in {Union, UnionType} else [hint]


def contracts(kind: type[Contract]) -> Iterator[type[Contract]]:
    """Yield a contract and the contracts of its values, at any depth, each once."""
    found, waiting = {kind}, [kind]
    while waiting:
        each = waiting.pop()
        yield each
        for value in values(each):
            waiting += (other for other in value.contracts if other not in found)
            found.update(value.contracts)
