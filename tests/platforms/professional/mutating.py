"""Makes changed copies of profile pages. Each copy has one section name, class, heading, container or cell changed.

The changes are derived from the table of sections, so a section or cell that is added to the table is covered too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import lxml.html
from selectolax.lexbor import LexborHTMLParser, LexborNode
from web_poet import HttpResponse, PageParams

from crawler.errors import ScrapeError
from crawler.platforms.professional.content import ContentPage
from crawler.platforms.professional.pages import ProfilePage
from crawler.platforms.professional.sections import TABLE

MARK = "data-mark"
SUFFIX = "Renamed"
HEAD_ALWAYS = (
    "section.top-card-layout",
    ".top-card-layout__title",
    ".profile-info-subheader",
    ".profile-info-subheader .not-first-middot",
    ".top-card__links-container",
    '.top-card-layout [data-section="picture"]',
)
"""CSS selectors of those parts of the top section that every recorded page has."""
HEAD_SOMETIMES = (
    ".top-card-layout__headline",
    ".top-card__links-container > [data-section]",
    ".top-card-link__description",
    "img.cover-img__image",
    "img.top-card-layout__entity-image",
)
"""CSS selectors of optional parts. A page may lack them, but if they are renamed, data is lost."""
Element = Any
"""An lxml element. lxml has no type annotations."""
Edit = Callable[[list[Element]], None]
"""A function that changes the given elements."""


class Reading(NamedTuple):
    """The result of reading a page: the records of both page objects or an error, and the unread parts."""

    data: Any
    unread: frozenset[str]


class Change(NamedTuple):
    """A labelled change: the function ``edit`` is applied to the elements with the given marks."""

    label: str
    marks: list[str]
    edit: Edit


def reading(body: bytes) -> Reading:
    """Read a page with both page objects."""
    response = HttpResponse("https://www.linkedin.com", body, headers={"Content-Type": "text/html; charset=utf-8"})
    found, unread = [], set()
    for kind in (ProfilePage, ContentPage):
        page = kind(response=response, page_params=PageParams({}))
        try:
            item = asyncio.run(page.to_item())
        except ScrapeError as error:
            return Reading(None, frozenset({str(error)}))
        found.append({name: value for name, value in item.items() if name != "data_availability"})
        unread |= set(map(str, page.unread))
    return Reading(found, frozenset(unread))


def is_silent(before: Reading, after: Reading) -> bool:
    """Return whether the data changed although there was no error and no new unread part."""
    return after.data is not None and _rows(after.data) != _rows(before.data) and after.unread <= before.unread


def _rows(data: Any) -> Any:
    """Return records with all lists sorted, because a moved section yields the same rows in another order."""
    if isinstance(data, dict):
        return {name: _rows(value) for name, value in data.items()}
    return sorted(map(_rows, data), key=str) if isinstance(data, list) else data


# The page, in which each element that can be changed is marked


class Marked:
    """A page whose sections, containers and required cells are marked, and the changes that can be made to it."""

    def __init__(self, body: bytes) -> None:
        self.tree = LexborHTMLParser(body)
        self.changes: list[Change] = []
        self._number = 0
        for number, node in enumerate(TABLE.find(self.tree)):
            self._add_section(f"{number} {node.attributes.get('data-section') or _last_class(node)}", node)
        self._add_head()
        html = self.tree.html or ""
        self.root = lxml.html.document_fromstring(html.encode(), parser=lxml.html.HTMLParser(encoding="utf-8"))

    @property
    def unchanged(self) -> bytes:
        """The unchanged page, serialized in the same way as the changed copies."""
        return self._body(self.root)

    def changed(self, change: Change) -> bytes:
        """A changed copy of the page."""
        root = deepcopy(self.root)
        wanted = set(change.marks)
        change.edit([each for each in root.iter() if isinstance(each.tag, str) and each.get(MARK) in wanted])
        return self._body(root)

    @staticmethod
    def _body(root: Element) -> bytes:
        return b"<!DOCTYPE html>" + bytes(lxml.html.tostring(root, encoding="utf-8"))

    def _mark(self, *nodes: LexborNode) -> list[str]:
        marks = []
        for node in nodes:
            if node.attributes.get(MARK) is None:
                self._number += 1
                node.attrs[MARK] = str(self._number)
            marks.append(node.attributes[MARK] or "")
        return marks

    def _add(self, label: str, edit: Edit, *nodes: LexborNode) -> None:
        self.changes.append(Change(label, self._mark(*nodes), edit))

    def _add_section(self, label: str, node: LexborNode) -> None:
        section = TABLE.section(node)
        if section is None:
            return
        self._add_names(label, node, "data-section")
        self._add(f"{label}: element renamed", _rename_element, node)
        self._add(f"{label}: moved to the end", _move_to_end, node)
        self._add(f"{label}: moved into the next section", _move_into_next, node)
        heading = node.css_first("h2")
        if heading:
            self._add(f"{label}: heading renamed", _rename_element, heading)
            self._add(f"{label}: heading removed", _remove, heading)
            self._add(f"{label}: heading translated", _translate, heading)
        layout, rows = section.rows(node)
        if layout is None:
            return
        containers = {each.parent.mem_id: each.parent for each in rows if each.parent}
        for number, container in enumerate(containers.values()):
            name = f"{label}: container {number}"
            self._add_names(name, container, *(each for each in container.attributes if each not in ("class", MARK)))
            for what, edit in (
                ("element renamed", _rename_element),
                ("removed", _remove),
                ("unwrapped", _unwrap),
                ("moved", _move_to_end),
            ):
                self._add(f"{name} {what}", edit, container)
        for name, cell in layout.cells.items():
            if cell.kind == "sometimes":
                continue
            found = [cells[0] for cells in ([*row.css(cell.css)] for row in rows) if cells]
            # Nothing tells that a list has a row less. A name of skills is the whole row.
            for which, nodes in (("first", [] if cell.css == "li" else found[:1]), ("all", found)):
                self._add_cell(f"{label}: {name} of {which}", nodes)

    def _add_head(self) -> None:
        for css in (*HEAD_ALWAYS, *HEAD_SOMETIMES):
            for number, node in enumerate(self.tree.css(css)[:3]):
                self._add_names(f"head {css} {number}", node, "data-section")
                if css in HEAD_ALWAYS:
                    self._add(f"head {css} {number} removed", _remove, node)
                    self._add(f"head {css} {number} moved", _move_to_end, node)

    def _add_cell(self, label: str, nodes: list[LexborNode]) -> None:
        if not nodes:
            return
        for what, edit in (("removed", _remove), ("element renamed", _rename_element), ("moved", _move_to_end)):
            self._add(f"{label} {what}", edit, *nodes)
        self._add_names(label, nodes[0], "href", among=nodes)

    def _add_names(self, label: str, node: LexborNode, *attributes: str, among: list[LexborNode] | None = None) -> None:
        """Add changes of an element's attributes and classes."""
        nodes = among or [node]
        for name in attributes:
            if name in node.attributes:
                self._add(f"{label}: {name} removed", _without(name), *nodes)
                self._add(f"{label}: {name} renamed", _with_suffix(name), *nodes)
        for token in dict.fromkeys((node.attributes.get("class") or "").split()):
            self._add(f"{label}: class {token} renamed", _renamed_class(token), *nodes)


def _last_class(node: LexborNode) -> str:
    return (node.attributes.get("class") or "").split()[-1]


def changes(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the label and the body of each changed copy of a page."""
    page = Marked(body)
    for change in page.changes:
        yield change.label, page.changed(change)


# Edits


def _remove(found: list[Element]) -> None:
    for each in found:
        each.drop_tree()


def _unwrap(found: list[Element]) -> None:
    for each in found:
        each.drop_tag()


def _rename_element(found: list[Element]) -> None:
    for each in found:
        each.tag = "span" if each.tag in ("h3", "h4", "a", "span", "p") and each.tag != "span" else "div"


def _move_to_end(found: list[Element]) -> None:
    for each in found:
        tail, each.tail = each.tail, None
        if tail:
            previous = each.getprevious()
            if previous is not None:
                previous.tail = (previous.tail or "") + tail
        each.getroottree().getroot().body.append(each)


def _move_into_next(found: list[Element]) -> None:
    for each in found:
        following = each.xpath("following-sibling::section")
        if following:
            each.tail = None
            following[0].append(each)


def _translate(found: list[Element]) -> None:
    for each in found:
        each.text, each[:] = "Заголовок", []


def _without(name: str) -> Edit:
    def edit(found: list[Element]) -> None:
        for each in found:
            each.attrib.pop(name, None)

    return edit


def _with_suffix(name: str) -> Edit:
    def edit(found: list[Element]) -> None:
        for each in found:
            if name in each.attrib:
                each.set(f"{name}-{SUFFIX.lower()}" if name == "href" else name, f"{each.attrib.pop(name)}{SUFFIX}")

    return edit


def _renamed_class(token: str) -> Edit:
    def edit(found: list[Element]) -> None:
        for each in found:
            tokens = (each.get("class") or "").split()
            each.set("class", " ".join(f"{one}{SUFFIX}" if one == token else one for one in tokens))

    return edit
