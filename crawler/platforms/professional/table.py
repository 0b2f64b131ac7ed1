"""The classes with which the sections of a page are declared, and the functions that read all declared sections.

A section is found by its name, its rows by a selector, and each value of a row by a cell. A section with an unknown
name, a known section without rows, and rows without a required cell become ``Unread``. An absent section is not
reported, because members fill in different sections.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.platforms.professional.markup import UNREADABLE, line
from crawler.reading.contract import MAX_NAME_LENGTH, MAX_NAMES, Unread
from crawler.reading.values import count

T = TypeVar("T")
Row = dict[str, Any]
Kind = Literal["identity", "always", "sometimes"]

OUTERMOST = "li:not(li li)"
"""Selects the items of a section's list, but not the lists of people inside an item."""
INNERMOST = "li:not(:has(li))"
"""Selects the items of a section in which the items are grouped."""

_CORE = "core-section-container"
_ASIDE = "aside-section-container"
_SECTIONS = f"section:not([aria-modal]), div.{_CORE}, div.{_ASIDE}"
_PERSON = ".base-aside-card"
"""Selects cards about members. Of the sections at the right of the page, only those with such cards are read."""
_MORE = ".show-more-less__more-button"
_SHOWN_FIRST = "[data-max-num-to-show]"


@dataclass(frozen=True)
class Cell:
    """A value in a row. The value is read from the first matching element that has one."""

    css: str
    read: Callable[[LexborNode], Any]
    """Reads an element. Returns None if the element contains no value, "" for the platform's placeholder for a missing
    value, and ``UNREADABLE`` if the value cannot be read."""
    kind: Kind = "sometimes"
    """``identity``: a row is left out if it has none of the layout's ``identity`` cells. ``always``: every row on the
    recorded pages has the cell. If a row lacks a cell of these kinds, the cell is reported as unread."""
    empty: Any = ""
    """The value if a row lacks the cell."""
    often: int = 0
    """In a section with at least this many rows, at least one row must have the cell. 0: all rows may lack it."""
    fallback: str = ""
    """A second selector, for rows in which ``css`` finds no value."""
    every: bool = False
    """Whether the cell is the list of the values of all matching elements."""

    @cached_property
    def selectors(self) -> tuple[str, ...]:
        """All selectors, in the order in which they are tried."""
        return (self.css, *filter(None, [self.fallback]))

    def is_read(self, name: str, rows: Sequence[Row]) -> bool:
        """Whether the next selectors need not be tried, because all rows have the cell. With ``every``: any row."""
        return any(name in row for row in rows) if self.every else all(name in row for row in rows)


@dataclass(frozen=True)
class Layout:
    """How to find and read the rows of a section in one layout of the page."""

    rows: str
    cells: Mapping[str, Cell]
    mark: str = ""
    """Selects an element that only sections in this layout contain. "": the layout is recognised by its rows."""
    filled: str = ""
    """Selects elements each of which must contain a row."""
    needed: str = ""
    """Selects an element that every section in this layout contains."""

    def hollow(self, node: LexborNode) -> int:
        """Return the number of elements in a section that should contain rows, but are missing or contain no row."""
        filled = node.css(self.filled) if self.filled else []
        is_missing = bool(self.needed) and node.css_first(self.needed) is None
        return sum(each.css_first("li") is None for each in filled) + is_missing


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    names: tuple[str, ...]
    """The values of ``data-section`` and the classes by which the section is found."""
    field: str
    """The key of the section's rows in ``Sections.rows``."""
    layouts: tuple[Layout, ...]
    """The layouts, newest first. The first layout that finds rows is used."""
    mark: str = ""
    """For a section whose name is not proven: selects an element that only this section contains."""

    def rows(self, node: LexborNode) -> tuple[Layout | None, list[LexborNode]]:
        """Return the layout of a section, and its rows. For an unknown layout, return None and no rows."""
        for layout in self.layouts:
            rows = [] if layout.mark and node.css_first(layout.mark) is None else node.css(layout.rows)
            if rows:
                return layout, rows
        return None, []


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """The sections of a page."""

    sections: tuple[Section, ...]
    not_read: tuple[str, ...]
    """Names of known sections that are not part of the record."""

    @cached_property
    def _by_name(self) -> dict[str, Section]:
        return {name: each for each in self.sections for name in each.names}

    def section(self, node: LexborNode) -> Section | None:
        """Return the section of an element, or None for an unknown section."""
        known = next((self._by_name[name] for name in _names(node) if name in self._by_name), None)
        return known or next((each for each in self.sections if each.mark and node.css_first(each.mark)), None)

    def is_known(self, node: LexborNode) -> bool:
        """Whether an element is a known section that is not read, or a section at the right without members."""
        names = _names(node)
        is_aside = _ASIDE in names and node.css_first(_PERSON) is None
        return is_aside or not set(self.not_read).isdisjoint(names)

    def find(self, tree: LexborHTMLParser) -> list[LexborNode]:
        """Return all sections of a page in page order, including those with unknown names."""
        return [each for each in tree.css(_SECTIONS) if self._is_section(each)]

    def _is_section(self, node: LexborNode) -> bool:
        is_named = any(name in self._by_name or name in (_CORE, _ASIDE) for name in _names(node))
        return is_named or "data-section" in node.attributes


@dataclass
class Sections:
    """The result of reading the sections of a page."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    """The rows, by their section's field. The dict has a field if the page has the section."""
    unread: list[Unread] = field(default_factory=list)
    known: int = 0
    """Number of sections with a known name, not counting those at the right of the page."""
    unknown: list[str] = field(default_factory=list)
    """The names of the sections with an unknown name."""

    def lost(self, name: str) -> bool:
        """Whether the page has a section, but none of its rows could be read."""
        return name in self.rows and not self.rows[name]


def read_sections(tree: LexborHTMLParser, table: Table) -> Sections:
    """Read all sections of a page on which ``remove_furniture`` has been called."""
    found, inside = Sections(), 0
    nodes = table.find(tree)
    places = {each.mem_id: True for each in nodes}
    parts: dict[str, list[Unread]] = defaultdict(list)
    for node in nodes:
        section = table.section(node)
        inside += section is not None and _place(node.parent, places) is True
        if section is not None:
            found.known += _ASIDE not in _names(node)
            rows, read = read_rows(node, section)
            found.rows[section.field] += rows
            parts[section.field] += read
        elif not table.is_known(node):
            names = _names(node)
            found.unknown.append(names[0] or names[-1])
    if found.unknown:
        found.unread.append(unknown_names("sections", found.unknown, of=len(nodes)))
    if inside:  # no real page has a section inside another one, and their rows could not be distinguished
        found.unread.append(Unread("sections[]", "contradiction", inside, len(nodes)))
    for each in parts.values():
        found.unread += _summed(each)
    return found


def _names(node: LexborNode) -> list[str]:
    """Return the possible names of a section: its ``data-section`` (or ""), and its classes."""
    found = node.attributes
    return [found.get("data-section") or "", *(found.get("class") or "").split()]


def read_rows(node: LexborNode, section: Section) -> tuple[list[Row], list[Unread]]:
    """Read the rows of a section. Return the rows with their cells, and the unread parts."""
    path = f"{section.field}[]"
    layout, rows = section.rows(node)
    if layout is None:
        return [], [Unread(path, "missing", loses_rows=True)]
    read: list[Row] = [{} for _ in rows]
    places = dict(zip((row.mem_id for row in rows), read, strict=True))
    parts, outside = [], 0
    for name, cell in layout.cells.items():
        for css in cell.selectors:
            if cell.is_read(name, read):
                break
            outside += _read_cell(node, name, cell, css, places)
        missing = _missing(name, cell, read)
        if missing:
            parts.append(Unread(f"{path}.{name}", "missing", missing, len(rows)))
    identities = [name for name, cell in layout.cells.items() if cell.kind == "identity"]
    kept = [row for row in read if any(row.get(name) for name in identities)]
    lost = len(rows) - len(kept)
    if lost or outside:
        parts.append(Unread(path, "unknown", max(lost, outside), len(rows) + outside, loses_rows=True))
    hollow = layout.hollow(node)
    if hollow:
        parts.append(Unread(path, "missing", hollow, len(rows) + hollow, loses_rows=True))
    stated = _stated_rows(node)
    if stated and len(rows) not in stated:
        parts.append(Unread(path, "contradiction", loses_rows=True))
    empty = {name: cell.empty for name, cell in layout.cells.items() if not cell.every}
    every = [name for name, cell in layout.cells.items() if cell.every]
    for row in kept:
        row.update({name: [] for name in every if name not in row})
        row.update({name: value for name, value in empty.items() if row.get(name) in (None, "")})
    return kept, parts


def _read_cell(section: LexborNode, name: str, cell: Cell, css: str, places: dict[int, Row]) -> int:
    """Read one cell of all rows. Return the number of elements that should identify a row, but are outside all rows."""
    outside = 0
    for each in section.css(css):
        row = _place(each, places)
        if row is None:
            outside += cell.kind == "identity"
        elif cell.every or row.get(name) in (None, ""):
            value = cell.read(each)
            if value is None or row.get(name) is UNREADABLE:
                continue
            if cell.every and value is not UNREADABLE:
                row.setdefault(name, []).append(value)
            else:
                row[name] = value
    return outside


def _place(node: LexborNode | None, places: Mapping[int, T]) -> T | None:
    """Return the entry in ``places`` for an element or its nearest ancestor that has one. Keys are ids in memory."""
    while node is not None:
        found = places.get(node.mem_id)
        if found is not None:
            return found
        node = node.parent
    return None


def _missing(name: str, cell: Cell, rows: list[Row]) -> int:
    """Return the number of rows whose cell is unreadable, or missing although they should have it.

    Unreadable values are removed from their rows.
    """
    unreadable = [row for row in rows if row.get(name) is UNREADABLE]
    for row in unreadable:
        del row[name]
    missing = sum(name not in row for row in rows)
    is_gone = 0 < cell.often <= len(rows) == missing
    return missing if cell.kind != "sometimes" or is_gone else len(unreadable)


def _stated_rows(section: LexborNode) -> set[int]:
    """Return the numbers of rows that would agree with the button below a list ("Show 14 more" or "Show all 26")."""
    button = section.css_first(_MORE)
    number = re.search(r"\d{1,4}", line(button)) if button else None
    if number is None:
        return set()
    shown = section.css_first(_SHOWN_FIRST)
    first = (count(shown.attributes.get("data-max-num-to-show")) if shown else None) or 0
    return {int(number[0]), int(number[0]) + first}


def _summed(parts: Iterable[Unread]) -> Iterable[Unread]:
    """Combine the unread parts of all sections of one name into one entry per path and cause."""
    found: dict[tuple[str, str], Unread] = {}
    for part in parts:
        key = part.path, part.cause
        known = found.get(key)
        found[key] = part if known is None else known._replace(rows=known.rows + part.rows, of=known.of + part.of)
    return found.values()


def unknown_names(path: str, names: Iterable[str], *, of: int) -> Unread:
    """Return the unread part for unknown names at a path. ``of``: the number of all names there."""
    listed = list(names)
    shown = tuple(dict.fromkeys(" ".join(each.split())[:MAX_NAME_LENGTH] for each in listed))[:MAX_NAMES]
    return Unread(f"{path}[].…unknown", "unknown", len(listed), max(of, len(listed)), loses_rows=True, names=shown)
