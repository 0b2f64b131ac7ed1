"""Reads a response into plain data: the top section of the profile, the other sections and the linked data.

The results contain no nodes of the HTML parser. No words in the top section are interpreted, because a page may be in
the language of the visitor or of the country edition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode
from web_poet import HttpResponse

from crawler.platforms.professional.markup import (
    collapsed,
    href,
    image,
    line,
    parse,
    remove_furniture,
    source,
)
from crawler.platforms.professional.masked import is_masked
from crawler.platforms.professional.payload import nodes_by_type
from crawler.platforms.professional.sections import TABLE, Sections, read_sections, unknown_names
from crawler.reading.contract import Unread
from crawler.reading.documents import is_json

HEAD = "section.top-card-layout"
HEAD_NAME = ".top-card-layout__title"
MAX_CONNECTIONS = 500
"""If a member has more connections, the page shows "500+"."""

_COMPANY, _SCHOOL, _WEBSITES = "currentPositionsDetails", "educationsDetails", "websites"
_KINDS = frozenset({_COMPANY, "pastPositionsDetails", _SCHOOL, _WEBSITES})
"""The values of ``data-section`` in the right part of the top section: present and past company, school, websites."""
_LABEL = ".top-card-link__description"
_SCALES = {"K": 1_000, "M": 1_000_000, "B": 1_000_000_000}
_ENGLISH = re.compile(r"\b(?:follower|connection)s?\b", re.IGNORECASE)
"""The words beside which a letter such as "B" has its English meaning."""
_NUMBER = re.compile(r"(\d+(?:[.,’'٬\s]\d{3})*|\d+)(?:[.,](\d{1,2})(?!\d))?(\s?[KMB]\b)?(\+)?(\S?)")


class Count(NamedTuple):
    """A number of people as the page shows it."""

    value: int | None
    """None if the number is shortened in another language than English: "1,2 mil", "12 B takipçi" (12 thousand)."""
    is_shortened: bool
    is_more: bool
    """Whether "+" is beside the number."""


def shown_count(text: str) -> Count | None:
    """Read a number of followers or connections. Return None for a text without a number.

    >>> shown_count("41M followers"), shown_count("500+ Kontakte")
    (Count(value=41000000, is_shortened=True, is_more=False), Count(value=500, is_shortened=False, is_more=True))
    >>> shown_count("12 B takipçi"), shown_count("3 M seguidores")
    (Count(value=None, is_shortened=True, is_more=False), Count(value=None, is_shortened=True, is_more=False))
    >>> shown_count("12.345 Follower:innen"), shown_count("1.2万 关注者"), shown_count("Contact Info")
    (Count(value=12345, is_shortened=False, is_more=False), Count(value=None, is_shortened=True, is_more=False), None)
    """
    found = _NUMBER.search(text)
    if found is None:
        return None
    digits, decimals, scale, plus, after = found.groups()
    more = plus or "+" in text[: found.start()]
    whole = int(re.sub(r"\D", "", digits))
    if scale:
        stated = round(float(f"{whole}.{decimals or 0}") * _SCALES[scale.strip()])
        return Count(stated if _ENGLISH.search(text) else None, is_shortened=True, is_more=bool(more))
    words = text[found.end() - len(after) :].split()
    if decimals or (after.strip() and not more):
        return Count(None, is_shortened=True, is_more=bool(more))
    # A number below 1,000 may be followed by a multiplier such as "mil". Then the text has at least two words.
    is_exact = whole >= 1_000 or bool(more) or len(words) <= 1
    return Count(whole if is_exact else None, is_shortened=False, is_more=bool(more))


def sorted_counts(texts: list[str], *, known_followers: str, number: int | None) -> tuple[str, str] | None:
    """Return the text about followers and the text about connections, or None if they cannot be distinguished.

    Of two texts, the first is about followers. A single text is about connections if "+" is beside its number,
    and about followers if its number is shortened or larger than ``MAX_CONNECTIONS``, or if the page states the same
    number of followers elsewhere. Otherwise, a single text is about connections if the page states another number of
    followers.

    Args:
        texts: the texts with numbers.
        known_followers: the text about followers above the activity, "" if there is none.
        number: the number of followers in the linked data, if any.

    >>> sorted_counts(["12.345 Follower:innen", "500+ Kontakte"], known_followers="", number=None)
    ('12.345 Follower:innen', '500+ Kontakte')
    >>> sorted_counts(["500+ 位好友"], known_followers="", number=None)
    ('', '500+ 位好友')
    >>> sorted_counts(["+ de 500 conexões"], known_followers="", number=None)
    ('', '+ de 500 conexões')
    >>> sorted_counts(["37 kişi"], known_followers="", number=None) is None
    True
    """
    if len(texts) == 2:
        return texts[0], texts[1]
    if not texts:
        return "", ""
    found = shown_count(texts[0]) if len(texts) == 1 else None
    if found is None:
        return None
    if found.is_more:
        return "", texts[0]
    is_large = found.is_shortened or found.value is None or found.value > MAX_CONNECTIONS
    if is_large or texts[0] == known_followers or (number is not None and found.value == number):
        return texts[0], ""
    return ("", texts[0]) if known_followers or number is not None else None


@dataclass
class Head:
    """The data in the top section of a profile page. Values that the page lacks are "" or None."""

    exists: bool = False
    name: str = ""
    headline: str = ""
    location: str = ""
    counts: list[str] = field(default_factory=list)
    """The texts about followers and connections."""
    cover: str = ""
    photo: str | None = None
    company: dict[str, Any] = field(default_factory=lambda: _affiliation(None))
    school: dict[str, Any] = field(default_factory=lambda: _affiliation(None))
    websites: list[dict[str, str]] = field(default_factory=list)
    links: int = 0
    """Number of companies, schools and lists of websites in the top section."""
    unread: list[Unread] = field(default_factory=list)


def read_head(tree: LexborHTMLParser) -> Head:
    """Read the top section of a page on which ``remove_furniture`` has been called."""
    node = tree.css_first(HEAD)
    name = (node.css_first(HEAD_NAME) if node else None) or tree.css_first(HEAD_NAME)
    head = Head(exists=node is not None, name=line(name))
    if node is None:
        return head
    _read_card(node, head)
    _read_subheader(node, head)
    _read_links(node, head)
    return head


def _read_card(node: LexborNode, head: Head) -> None:
    found = node.css_first(".top-card-layout__headline")
    headline = line(found)
    head.headline = "" if is_masked(headline) else headline
    if found is not None and not headline:
        head.unread.append(Unread("headline", "null"))
    if found is None and node.css_first(".top-card-layout__entity-info > h2") is not None:
        head.unread.append(Unread("headline", "unknown"))
    cover = node.css_first("img.cover-img__image")
    head.cover = (image(cover) if cover else None) or ""
    pictures = node.css('[data-section="picture"] img')
    head.photo = next(filter(None, map(image, pictures)), None)
    if not any(map(source, pictures)):
        head.unread.append(Unread("profile_photo", "missing"))
    if not source(cover) if cover else node.css_first("figure") is not None:
        head.unread.append(Unread("background_cover_image_url", "missing"))


def _read_subheader(node: LexborNode, head: Head) -> None:
    """Read the location, and the counts of followers and connections.

    Until 2026-01, the location was in the first of two groups of texts, next to the link to the contact data. Since
    2026-07, the location precedes the only group.
    """
    subheader = node.css_first(".profile-info-subheader")
    if subheader is None:
        head.unread += [Unread(name, "missing") for name in ("location", "followers", "connections")]
        return
    groups = subheader.css(".not-first-middot")
    before = [line(each) for each in subheader.iter() if each.tag == "span" and "data-modal" not in each.attributes]
    if any(group.css_first("[data-modal]") is not None for group in groups[:1]):
        before += _texts(groups.pop(0))
    head.location = next(filter(None, before), "")
    head.counts = [text for group in groups for text in _texts(group) if text]
    if not groups or (not head.counts and any(map(line, groups))):
        head.unread += [Unread(name, "missing") for name in ("followers", "connections")]


def _texts(group: LexborNode) -> list[str]:
    return [line(each) for each in group.css("span:not([data-modal])")]


def _read_links(node: LexborNode, head: Head) -> None:
    """Read the company, the school and the websites. Each is in an element with its own ``data-section``."""
    container = node.css_first(".top-card__links-container")
    if container is None:
        head.unread += [Unread(f"top_card.{name}", "missing") for name in ("company", "school", "websites")]
        return
    unknown = []
    for each in container.iter():
        kind = each.attributes.get("data-section") or ""
        head.links += kind in _KINDS
        if kind == _WEBSITES:
            _read_websites(each, head)
        elif kind in _KINDS:
            found = _affiliation(each)
            is_whole = {"name": found["name"], "logo": all(map(source, each.css("img")))}
            head.unread += [
                Unread(f"top_card[].{name}", "missing") for name, is_read in is_whole.items() if not is_read
            ]
            if kind == _COMPANY:
                head.company = found
            elif kind == _SCHOOL:
                head.school = found
        elif line(each):
            unknown.append(kind)
    if unknown:
        head.unread.append(unknown_names("top_card", unknown, of=len(unknown)))


def _affiliation(node: LexborNode | None) -> dict[str, Any]:
    if node is None:
        return {"logo": None, "name": "", "url": ""}
    link = node.css_first("a[href]")
    logo = next(filter(None, map(image, node.css("img"))), None)
    return {"logo": logo, "name": line(node.css_first(_LABEL)), "url": href(link) if link else ""}


def _read_websites(node: LexborNode, head: Head) -> None:
    """Read the member's websites. A single website is a link; several websites are a list in a dialog."""
    several = node.css("dl > *") or node.css(".websites-list__row")
    labels = (_LABEL,) if not several else ("dt",)
    rows = several or node.css("a[href]")
    found = [_website(each, labels[0]) for each in rows]
    head.websites = [row for row in found if row["url"]]
    lost = len(found) - len(head.websites)
    without_label = sum(not row["label"] for row in head.websites)
    if lost or (line(node) and not rows):
        head.unread.append(Unread("websites[]", "missing", max(lost, 1), max(len(found), 1), loses_rows=True))
    if without_label:
        head.unread.append(Unread("websites[].label", "missing", without_label, len(found)))


def _website(node: LexborNode, label: str) -> dict[str, str]:
    link = node if node.tag == "a" else node.css_first("a[href]")
    return {"label": line(node.css_first(label)), "url": href(link) if link else ""}


CANONICAL = 'link[rel="canonical"]'
WHOLE_PAGE = 'meta[name="pageKey"]'
"""Selects a meta element that whole pages have and saved parts of pages lack."""
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
    unread_nodes: list[Unread] = field(default_factory=list)
    """The parts of the linked data that could not be read."""
    is_whole: bool = False
    """Whether the response is a whole page, and not a saved part of one."""


def read_document(response: HttpResponse) -> Document:
    """Read a page, or linked data that was saved without its page.

    Raises:
        ExtractionFailed: parsing the page could take seconds.
    """
    if is_json(response.body):
        nodes, unread = nodes_by_type([response.text])
        return Document(nodes=nodes, unread_nodes=unread)
    return _read_tree(parse(response))


def _read_tree(tree: LexborHTMLParser) -> Document:
    nodes, unread = nodes_by_type(each.text() for each in tree.css(_LINKED_DATA))
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
        sections=read_sections(tree, TABLE),
        above_posts="" if are_counts_clear else line(tree.css_first(_ABOVE_POSTS)),
        nodes=nodes,
        unread_nodes=unread,
        is_whole=tree.css_first(WHOLE_PAGE) is not None,
    )
