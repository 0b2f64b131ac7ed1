"""Functions that read texts, links, images and list cards from the HTML of a profile page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from crawler.platforms.professional import PLATFORM
from crawler.platforms.professional.language import is_followers
from crawler.reading.markup import BREAK, Node, text_of
from crawler.reading.values import absolute_url, text

ORIGIN = PLATFORM.origin
PLACEHOLDER_HOST = "static.licdn.com"
"""The host of the platform's own pictures: placeholders, default covers, icons. Members' pictures have other hosts."""
TRACKING = "trk="
REDIRECT_PATH = "/redir/redirect"
NO_SUBTITLE = "-"
"""The platform's placeholder for a missing second line of a card."""

FURNITURE = 'button, code, script, style, svg, [class*="modal--sign-in"], [class*="modal--contextual-sign-in"]'
"""Selects elements whose text is not content: buttons, scripts, and the sign-in windows."""
DATES = 'time, [class*="date-range"]'
_DASHES = "-‐‑–—"
"""The dashes between two dates. Their kind depends on the page's language."""
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
DESCRIPTION = '[class*="show-more-less-text"]'
"""Selects descriptions. Of a long one, the page contains a shortened version, too."""


def collapsed(value: str) -> str:
    """Return a text on one line, with each run of white space replaced by one space."""
    return " ".join(value.split())


def line(node: Node | None, css: str = "", *, hidden: str = FURNITURE) -> str:
    """Return the text of an element, or of the first match in it, on one line; "" without such an element."""
    found = node.first(css) if css and node else node
    return collapsed("".join(each for each in found.pieces(hidden) if each is not BREAK)) if found else ""


def lines(node: Node | None) -> str:
    """Return the text of an element. Only ``<br>`` counts as a line break; other breaks are source formatting."""
    pieces = node.pieces(FURNITURE) if node else ()
    return _trimmed("".join(piece if piece is BREAK else re.sub(r"\s+", " ", piece) for piece in pieces))


def paragraphs(node: Node | None) -> str:
    """Return the text of an element with all line breaks in its HTML source, because the page displays them."""
    return _trimmed("".join(node.pieces(FURNITURE))) if node else ""


def _trimmed(value: str) -> str:
    """Trim each line of a text. A literal ``<br>`` counts as a line break: the platform escapes some of these tags."""
    return "\n".join(map(collapsed, _BREAK.sub("\n", value).split("\n"))).strip("\n")


def plain(value: object) -> str:
    """Return a text from the linked data without the HTML line breaks and character references that it contains."""
    return html.unescape(_trimmed(text(value)))


def clean_url(value: object) -> str:
    """Return an absolute URL without the platform's tracking parameter. A redirect is replaced by its destination.

    >>> clean_url("https://www.linkedin.com/redir/redirect?url=https%3A%2F%2Fa.example%2F%3Fx%3D1&urlhash=y&trk=z")
    'https://a.example/?x=1'
    >>> clean_url("https://a.example/?x=1&trk=public_profile"), clean_url("javascript:void(0)")
    ('https://a.example/?x=1', '')
    """
    url = absolute_url(ORIGIN, value)
    parts = urlsplit(url)
    if parts.path == REDIRECT_PATH:
        return clean_url_of(parse_qs(parts.query).get("url", [""])[0])
    query = "&".join(each for each in parts.query.split("&") if not each.startswith(TRACKING))
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, "")) if url else ""


def clean_url_of(value: str) -> str:
    """Return the clean form of a URL that is already absolute, "" for any other value."""
    return absolute_url("", value)


def link(node: Node | None, css: str) -> str:
    """Return the clean URL of the first link that matches, "" without a link."""
    found = node.first(css) if node else None
    return clean_url(found.get("href")) if found else ""


def picture(value: object) -> str | None:
    """Return the URL of a picture with its signed query. Return None for the platform's own pictures and other values.

    >>> picture("https://static.licdn.com/aero-v1/sc/h/ghost") is None
    True
    """
    url = absolute_url(ORIGIN, value)
    return url if url and urlsplit(url).netloc != PLACEHOLDER_HOST else None


def image(node: Node | None, css: str = "img") -> str | None:
    """Return the URL of the first member's picture in an element, or None. The platform's own pictures are skipped.

    Pages saved by a browser have the URL in ``src``, others in the attribute for lazy loading.
    """
    found = node.css(css) if node else []
    urls = (picture(each.get("data-delayed-url") or each.get("src")) for each in found)
    return next(filter(None, urls), None)


def last_segment(url: str, *kinds: str) -> str:
    """Return the decoded path segment after one of ``kinds``, such as ``/company/<segment>``; "" if absent.

    >>> last_segment("https://se.linkedin.com/in/j%C3%B6rg/sv", "in")
    'jörg'
    """
    segments = urlsplit(url).path.split("/")
    for kind in kinds:
        if kind in segments[:-1]:
            return unquote(segments[segments.index(kind) + 1])
    return ""


class DateRange:
    """A ``.date-range`` element of the page: its text, its dates, and its duration."""

    def __init__(self, node: Node) -> None:
        found = node.first(".date-range")
        self.text = collapsed("".join(_own_and_times(found))) if found else ""
        self.times = [time for time in (line(each) for each in found.css("time")) if time] if found else []
        spans = found.css(".date-range > span") if found else []
        self.duration = collapsed("".join(piece for span in spans for piece in span.pieces("time")))

    @property
    def start(self) -> str:
        """The first date, "" if absent."""
        return self.times[0] if self.times else ""

    @property
    def end(self) -> str:
        """The second date, or the word such as "Present" that the page has in its place. "" if absent."""
        if len(self.times) > 1:
            return self.times[1]
        after = self.text.partition(self.times[0])[2] if self.times else ""
        return after.strip().lstrip(_DASHES).strip() if after.strip().startswith(tuple(_DASHES)) else ""


def _own_and_times(node: Node) -> Iterator[str]:
    """Yield the texts that are directly in an element or in a ``<time>`` in it."""
    yield node.element.text or ""
    for child in node.element:
        yield from map(text_of, [child] if child.tag == "time" else child.iter("time"))
        yield child.tail or ""


class Card:
    """A row in most of the page's lists: a title, a line below it, dates, a text, and the people who took part."""

    def __init__(self, node: Node) -> None:
        self.node = node

    @cached_property
    def title(self) -> str:
        """The text of the heading."""
        return line(self.node, "h3")

    @property
    def title_url(self) -> str:
        """The URL that the heading links to."""
        return link(self.node, "h3 a")

    @cached_property
    def subtitle(self) -> str:
        """The line below the heading, without dates; "" if the card has none."""
        subtitle = line(self.node, "h4", hidden=f"{FURNITURE}, {DATES}")
        return "" if subtitle == NO_SUBTITLE else subtitle

    @property
    def subtitle_url(self) -> str:
        """The URL that the subtitle links to."""
        return link(self.node, "h4 a")

    @property
    def date_range(self) -> str:
        """The dates, as the page shows them."""
        return DateRange(self.node).text

    @property
    def date(self) -> str:
        """The first date, as the page shows it."""
        return line(self.node, "time")

    @property
    def description(self) -> str:
        """The description. If the page contains a shortened and a full version, it is the full version."""
        whole = self.node.first(".show-more-less-text__text--more")
        return lines(whole or self.node.first(".show-more-less-text__text--less, .show-more-less-text"))

    @cached_property
    def paragraphs(self) -> list[str]:
        """The paragraphs that are neither dates nor the description."""
        found = [
            each
            for each in self.node.css("p")
            if not each.has('[class*="date-range"]') and not each.is_inside(DESCRIPTION)
        ]
        return [text for text in map(line, found) if text]

    @property
    def contributors(self) -> list[str]:
        """Names of the people whose pictures the card shows."""
        names = (collapsed(each.get("title") or "") for each in self.node.css("a.face-pile__url"))
        return [name for name in names if name]


def cards(page: Node, section: str) -> list[Card]:
    """Return the cards with a title in a section. Rows inside a card are lists of people, not cards."""
    found = (row for each in page.css(f'section[data-section="{section}"]') for row in each.outermost("li"))
    return [card for card in map(Card, found) if card.title]


def person_card(node: Node) -> dict[str, Any]:
    """Return the fields in a small card about another member. ``line`` is the text under the name."""
    details = [line(each) for each in node.css(".base-aside-card__metadata > div")]
    followers = next((each for each in details if is_followers(each) or each[:1].isdigit()), "")
    return {
        "name": line(node, ".base-aside-card__title, h3"),
        "line": lines(node.first(".base-aside-card__subtitle, h4")).replace("\n", " "),
        "followers": followers,
        "location": next((each for each in details if each != followers), ""),
        "link": link(node, "a.base-card__full-link, a"),
        "image": image(node),
    }
