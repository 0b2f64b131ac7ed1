"""The table of the sections of a profile page, and of the values in their rows (specification 2.6); the classes with
which they are declared, and the functions that read them.

The kinds of the cells (``always``, ``often`` ...) follow recorded pages of 2024-03 to 2026-07
(``docs/platforms/professional.md``). Sections are found by name, never by their headings, which depend on the page's
language. A section with an unknown name, a known section without rows, and rows without a required cell become
``Unread``. An absent section is not reported, because members fill in different sections.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawler.platforms.professional.markup import (
    NO_DATES,
    NO_SUBTITLE,
    UNREADABLE,
    collapsed,
    date_range,
    dates,
    href,
    image,
    line,
    lines,
    paragraphs,
    source,
    with_breaks,
)
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


def _place(node: LexborNode | None, places: dict[int, T]) -> T | None:
    """Return the entry in ``places`` for an element or its nearest ancestor that has one. Keys are ids in memory.

    The elements on the way to the entry get it, too, because most elements of a row share ancestors.
    """
    passed: list[int] = []
    while node is not None:
        key = node.mem_id
        found = places.get(key)
        if found is not None:
            places.update(dict.fromkeys(passed, found))
            return found
        passed.append(key)
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
    """Return the ``Unread`` for unknown names of sections or elements. ``of``: the number of all names at the path."""
    listed = list(names)
    shown = tuple(dict.fromkeys(" ".join(each.split())[:MAX_NAME_LENGTH] for each in listed))[:MAX_NAMES]
    return Unread(f"{path}[].…unknown", "unknown", len(listed), max(of, len(listed)), loses_rows=True, names=shown)


_QUOTES = "“”„‟«»\"' \n\xa0"


# Readers of cells


def shown(node: LexborNode) -> str | None:
    """Read a text on one line: "" for the platform's placeholder for a missing text, None for an empty text."""
    return _value(line(node))


def _value(text: str) -> str | None:
    return "" if text == NO_SUBTITLE else text or None


def undated(node: LexborNode) -> str | None:
    """Read the text of an element on one line, without the dates in it."""
    parts = (each.text() for each in node.iter(include_text=True) if not _is_date(each))
    return _value(collapsed("".join(parts)))


def _is_date(node: LexborNode) -> bool:
    return node.tag == "time" or (node.tag == "span" and node.css_first("time") is not None)


def described(node: LexborNode) -> Any:
    """Read a description. ``node``: the element with the description's versions, or one of these versions.

    If the page contains a shortened and a full version, the full version is read.
    """
    if _is_version(node) and node.parent is not None:
        node = node.parent
    versions = [each for each in node.iter() if _is_version(each)]
    return lines(versions[-1] if versions else node) or UNREADABLE  # no recorded element is empty


def _is_version(node: LexborNode) -> bool:
    return "show-more-less-text__text" in (node.attributes.get("class") or "")


def places(node: LexborNode) -> Any:
    """Read the degree, the field of study and the grade of a school, each in an element.

    The page has an empty HTML comment in place of a missing value, and no empty element. If the number of values and
    comments is not three, and some values have the attribute ``data-section``, then the value without the attribute is
    the degree, and the others follow in page order.
    """
    found = [each for each in node.iter(include_text=True) if _is_element(each) or _is_empty_comment(each)]
    values = [each for each in found if _is_element(each)]
    if not values:
        text = shown(node)
        return None if text is None else (text,)
    if not all(map(line, values)):
        return UNREADABLE
    marked = [each for each in values if "data-section" in each.attributes]
    if len(found) == 3 or not marked:
        return tuple(line(each) if _is_element(each) else "" for each in found)
    degrees = [line(each) for each in values if "data-section" not in each.attributes]
    return (degrees[0] if degrees else "", *map(line, marked))


def _is_element(node: LexborNode) -> bool:
    return not (node.tag or "").startswith("-")


def _is_empty_comment(node: LexborNode) -> bool:
    return node.tag == "-comment" and not (node.comment_content or "").strip(" \t\r\n")


def link(node: LexborNode) -> str | None:
    """Read the URL of a link."""
    return href(node) or None


def shown_image(node: LexborNode) -> Any:
    """Read the URL of a picture, "" for the platform's placeholder. Each picture of the recorded pages has a URL."""
    return (image(node) or "") if source(node) else UNREADABLE


def quoted(node: LexborNode) -> str | None:
    """Read a recommendation, without the quotation marks around it."""
    return paragraphs(node).strip(_QUOTES) or None


def title(node: LexborNode) -> Any:
    """Read the title of a link, which names a person."""
    return collapsed(node.attributes.get("title") or "") or UNREADABLE


def one_line(node: LexborNode) -> str | None:
    """Read a text that may contain line breaks as one line."""
    return _value(collapsed(lines(node)))


def before_window(node: LexborNode) -> str | None:
    """Read the text of an element, without the sign-in window that follows the text in the same element."""
    parts = (each.text() for each in node.iter(include_text=True) if each.tag != "div")
    return with_breaks("".join(parts)) or None


def details(node: LexborNode) -> list[str] | None:
    """Read the lines below a member's name on a card. A line is an element of its own, or the whole text."""
    listed = [line(each) for each in node.iter()]
    return [each for each in listed if each] or ([line(node)] if line(node) else None)


def number(what: str) -> Cell:
    """Declare a cell with the number of a post's reactions or comments. A post without any has no element for them.

    On the four recorded pages since 2026-07, all 52 elements for reactions and all 47 for comments have the number.
    """
    attribute = f"data-num-{what}"

    def read(node: LexborNode) -> Any:
        return count(node.attributes.get(attribute)) if attribute in node.attributes else UNREADABLE

    return Cell(f'[{attribute}], [data-test-id="social-actions__{what}"]', read, empty=None, often=10)


def _attribute(name: str) -> Any:
    return lambda node: collapsed(node.attributes.get(name) or "") or None


# Cells of several sections

TITLE = Cell("h3", shown, "identity")
TITLE_URL = Cell("h3 a[href]", link)
SUBTITLE = Cell("h4", shown, "always")
DATED = Cell(".date-range", dates, empty=NO_DATES, often=3, fallback="time")
DATE_RANGE = replace(DATED, read=date_range, empty="")
DATE = Cell("time", shown, often=3)
DESCRIPTION = Cell(":is(.show-more-less-text, .show-more-less-text__text--less)", described)
LOGO = Cell("img", shown_image, "always", None)
CONTRIBUTORS = Cell("li li a", title, every=True)
_PARAGRAPH = 'p:not([class*="show-more-less"]):not(:has(time))'
_CONTENTS = ".core-section-container__content"
FULL_LINK = "a.base-card__full-link"
POST_LINK = f'{FULL_LINK}[href*="/posts/"]'
_CONTENT = ".profile-activity-content-card"
TAB_LINK = f":not({_CONTENT}) > {POST_LINK}"
"""Selects the links to a post whose text describes the member's action, but not the links around pictures."""
REACTIONS, COMMENTS = number("reactions"), number("comments")
_AUTHOR, _ROOT = ".profile-activity-original-author", ".profile-activity-root-author"
"""Select the author of a post, and the author of another post inside it."""
_NAME = ".base-main-card__title"
_AFTER_DATES = "p:has(time) + p"
_LOGO_LINK = "a.profile-section-card__image-link[href]"


def _rows(css: str = OUTERMOST, *, mark: str = "", filled: str = "", needed: str = "", **cells: Cell) -> Layout:
    return Layout(css, cells, mark, filled, needed)


def _people(mark: str, link_css: str, image_of: Cell, *, often: int = 10) -> Layout:
    """Declare a layout of cards about other members. ``often``: of the line below the name."""
    return _rows(
        mark=mark,
        name=Cell(".base-aside-card__title", shown, "identity"),
        summary=Cell(".base-aside-card__subtitle", one_line, often=often),
        details=Cell(".base-aside-card__metadata", details, empty=(), often=3),
        link=Cell(f"{link_css}[href]", link, "always"),
        image=image_of,
    )


_BACKGROUND = Cell("[data-delayed-background]", shown_image, "always", None, fallback="img")
PEOPLE = (
    # 2026-01: on the recorded page, none of the ten cards has a line below the name.
    _people("div.base-aside-card [data-delayed-background]", FULL_LINK, _BACKGROUND, often=0),
    _people("div.base-aside-card", FULL_LINK, LOGO),  # 2026-07
    _people("a.base-aside-card", "a.base-aside-card", _BACKGROUND),  # 2024, and namesakes in 2026-01
)


def _section(field: str, *layouts: Layout, names: str = "", mark: str = "", **cells: Cell) -> Section:
    """Declare a section.

    ``names``: its names on the page, by default that of the field. ``cells``: the cells of its single layout, a list
    with one item per row.
    """
    return Section(tuple((names or field).split()), field, layouts or (Layout(OUTERMOST, cells),), mark)


TABLE = Table(
    (
        _section(
            "about",
            _rows(f"{_CONTENTS} > p", text=Cell(f"{_CONTENTS} > p", lambda node: lines(node) or None, "identity")),
            _rows(f"{_CONTENTS} > div", text=Cell(f"{_CONTENTS} > div", before_window, "identity")),  # masked
            names="summary",
        ),
        _section(
            "articles",
            title=TITLE,
            link=Cell(f"{FULL_LINK}[href]", link, "identity"),
            image=Cell(".base-main-card__media img", shown_image, "always"),
            day=Cell(".base-main-card__metadata", shown, often=3),
            reactions=REACTIONS,
            comments=COMMENTS,
        ),
        _section(
            "activity",
            _rows(  # the layout with tabs, since 2026-07
                "li.slide-list__item",
                filled=".slide-list",
                link=Cell(TAB_LINK, link, "identity"),
                action=Cell(TAB_LINK, shown, "always"),
                kind=Cell(TAB_LINK, _attribute("data-tracking-control-name")),
                author=Cell(f"{_AUTHOR} {_NAME}", shown, "always", fallback=f"{_ROOT} {_NAME}"),
                author_url=Cell(f"{_AUTHOR} {FULL_LINK}", link, "always", fallback=f"{_ROOT} {FULL_LINK}"),
                image=Cell(f"{_CONTENT} img", shown_image, empty=None, fallback="img.object-contain"),
                text=Cell(".see-more-text", lambda node: paragraphs(node) or None, often=10),
                shared=Cell(_ROOT, lambda _: True, empty=False),
                reactions=REACTIONS,
                comments=COMMENTS,
            ),
            _rows(  # the layout with a list, since 2024
                link=Cell(POST_LINK, link, "identity"),
                action=Cell("h4", shown, "always"),
                author=Cell("h4 a", shown, "always"),
                author_url=Cell("h4 a[href]", link, "always"),
                image=Cell("img.main-activity-card__img", shown_image, "always", None),
                text=Cell("h3", shown, "always"),
            ),
            names="posts activities",
        ),
        _section(
            "experience",
            _rows(
                INNERMOST,
                job_title=Cell(".experience-item__title", shown, "identity"),
                company_name=Cell(".experience-item__subtitle", shown, "identity"),
                company_url=Cell("h4 a[href]", link, fallback=_LOGO_LINK),
                company_image=LOGO,
                dates=replace(DATED, kind="always"),
                location=Cell(
                    ":is(p, span).experience-item__meta-item:not(:has(time))", shown, often=10, fallback=_AFTER_DATES
                ),
                description=DESCRIPTION,
            ),
        ),
        _section(
            "education",
            names="educationsDetails education",
            school_name=TITLE,
            school_url=Cell("h3 a[href]", link, fallback=_LOGO_LINK),
            school_image=LOGO,
            places=Cell("h4", places, "always", ()),
            dates=replace(DATED, often=10),
            activities=Cell('div.control-transition p:not([class*="show-more-less"])', shown, every=True),
            description=DESCRIPTION,
        ),
        _section(  # the positions and schools of a masked profile
            "masked_history",
            _rows(
                filled=".visible-list, .blurred-content",
                needed=".visible-list",
                name=Cell('h3:not([class*="blurred"])', shown, "identity"),
                second=Cell("h4", shown, "always", fallback="h4 + p"),  # some HTML parsers move the text after the h4
                url=Cell("h3 a[href]", link, fallback=_LOGO_LINK),
                image=LOGO,
                dates=replace(DATED, often=0),
            ),
            names="experience-education",
        ),
        _section(
            "certifications",
            name=TITLE,
            issuer=SUBTITLE,
            issued=DATE,
            credential_url=Cell('a[data-tracking-control-name$="see-credential"]', link, fallback="a.btn-md[href]"),
            url=TITLE_URL,
        ),
        _section(
            "volunteer_experience",
            names="volunteering",
            role=TITLE,
            organization=SUBTITLE,
            organization_url=Cell("h4 a[href]", link),
            cause=Cell(_PARAGRAPH, shown),
            date_range=DATE_RANGE,
            description=DESCRIPTION,
        ),
        _section("awards", names="honors-and-awards", title=TITLE, issuer=SUBTITLE, date=DATE, description=DESCRIPTION),
        _section(
            "projects",
            title=TITLE,
            url=TITLE_URL,
            date_range=DATE_RANGE,
            description=DESCRIPTION,
            contributors=CONTRIBUTORS,
        ),
        _section(
            "publications",
            title=TITLE,
            publisher=Cell("h4", undated),
            date=DATE,
            url=TITLE_URL,
            description=DESCRIPTION,
            contributors=CONTRIBUTORS,
        ),
        _section("languages", name=TITLE, proficiency=SUBTITLE),
        _section("courses", name=TITLE, number=Cell("h4", shown)),
        _section(
            "organizations",
            name=TITLE,
            position=Cell("h4", shown),
            date_range=DATE_RANGE,
            description=replace(DESCRIPTION, fallback=_PARAGRAPH),
        ),
        _section(
            "recommendations",
            name=TITLE,
            url=Cell("a[href]", link),
            text=Cell(".endorsement-card__content", quoted, "always"),
        ),
        _section("skills", name=Cell("li", shown, "identity")),
        _section("people_also_viewed", *PEOPLE, names="browsemap"),
        _section("same_name", *PEOPLE, names="samename", mark='a[href*="public_profile_samename"]'),
    ),
    not_read=(
        "instructor-courses",  # courses that the member taught
        "patents",
        "test-scores",
        "groups",
        "contributions",
        "bottom-cta-banner",  # a call to sign in
        "related-posts",
        "course-recommendations",
    ),
)
