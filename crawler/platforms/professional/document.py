"""Reads a response into plain data. No node of the HTML parser is passed on to other modules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from selectolax.lexbor import LexborHTMLParser
from web_poet import HttpResponse

from crawler.platforms.professional.head import Head, read_head
from crawler.platforms.professional.markup import collapsed, line, parse, remove_furniture
from crawler.platforms.professional.payload import nodes_by_type
from crawler.platforms.professional.sections import TABLE
from crawler.platforms.professional.table import Sections, Table, read_sections

CANONICAL = 'link[rel="canonical"]'
WHOLE_PAGE = "pageKey"
"""The name of a meta element that whole pages have and saved parts of pages lack."""
_LINKED_DATA = 'script[type="application/ld+json"]'
_ABOVE_POSTS = '[data-section="posts"] > h3'


@dataclass(frozen=True)
class Document:
    """The content of a response."""

    canonical: str = ""
    """The URL in the canonical link."""
    meta: dict[str, str] = field(default_factory=dict)
    """The contents of the meta elements, by property or name."""
    head: Head = field(default_factory=Head)
    sections: Sections = field(default_factory=Sections)
    above_posts: str = ""
    """The page's text with the number of followers above the activity. "" if the top section shows two counts."""
    nodes: dict[str, Any] = field(default_factory=dict)
    """The nodes of the linked data, by type."""

    @property
    def is_whole(self) -> bool:
        """Whether the response is a whole page, and not a saved part of one."""
        return WHOLE_PAGE in self.meta


def read_document(response: HttpResponse, table: Table = TABLE) -> Document:
    """Read a page, or linked data that was saved without its page. ``table``: the table of section selectors.

    Raises:
        ExtractionFailed: parsing the page could take seconds.
    """
    is_markup = response.body[:100].lstrip().startswith(b"<")  # found without decoding the page
    if not is_markup and response.text.lstrip().startswith(("{", "[")):
        return Document(nodes=nodes_by_type([response.text]))
    return _read_tree(parse(response), table)


def _read_tree(tree: LexborHTMLParser, table: Table) -> Document:
    nodes = nodes_by_type(each.text() for each in tree.css(_LINKED_DATA))
    canonical = tree.css_first(CANONICAL)
    meta: dict[str, str] = {}
    for each in tree.head.css("meta[content]") if tree.head else ():
        found = each.attributes
        meta.setdefault(found.get("property") or found.get("name") or "", collapsed(found["content"] or ""))
    remove_furniture(tree)
    head = read_head(tree)
    are_counts_clear = len(head.counts) == 2
    return Document(
        canonical=(canonical.attributes.get("href") or "") if canonical else "",
        meta=meta,
        head=head,
        sections=read_sections(tree, table),
        above_posts="" if are_counts_clear else line(tree.css_first(_ABOVE_POSTS)),
        nodes=nodes,
    )
