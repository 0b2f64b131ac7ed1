"""Functions that read texts, links, images and list cards from the HTML of a profile page."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from lxml import etree
from parsel import Selector, SelectorList

from crawler.platforms.professional import PLATFORM
from crawler.platforms.professional.language import is_followers
from crawler.reading.values import absolute_url, text

ORIGIN = PLATFORM.origin
PLACEHOLDER_HOST = "static.licdn.com"
"""The host of the platform's own pictures: placeholders, default covers, icons. Members' pictures have other hosts."""
TRACKING = "trk="
REDIRECT_PATH = "/redir/redirect"
NO_SUBTITLE = "-"
"""The platform's placeholder for a missing second line of a card."""

# Elements whose text is not content: buttons, scripts, and the sign-in windows.
_FURNITURE = {"button", "code", "script", "style", "svg"}
_SIGN_IN = re.compile("modal--sign-in|modal--contextual-sign-in")
_is_in_furniture = etree.XPath(
    f"boolean(ancestor::*[{' or '.join(f'self::{tag}' for tag in sorted(_FURNITURE))}"
    " or contains(@class, 'modal--sign-in') or contains(@class, 'modal--contextual-sign-in')])"
)
_DASHES = "-‐‑–—"
"""The dashes between two dates. Their kind depends on the page's language."""
BREAK = "<br>"
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_OWN_PARAGRAPHS = (
    ".//p[not(.//*[contains(@class, 'date-range')])][not(ancestor-or-self::*[contains(@class, 'show-more-less-text')])]"
)

Node = Selector | SelectorList[Selector]
Element = Any
"""An element of lxml, which has no types."""


def collapsed(value: str) -> str:
    """Return a text on one line, with each run of white space replaced by one space."""
    return " ".join(value.split())


def is_furniture(element: Element) -> bool:
    """Whether the text of an element is not content: it belongs to a button, a script or a sign-in window."""
    return element.tag in _FURNITURE or _SIGN_IN.search(element.get("class", "")) is not None


def is_date(element: Element) -> bool:
    """Whether an element is a date or a range of dates."""
    return element.tag == "time" or "date-range" in element.get("class", "")


def pieces(node: Node, without: Callable[[Element], bool] = is_furniture) -> Iterator[str]:
    """Yield the texts of elements, and each line break as ``<br>``.

    One walk through the elements takes a third of the time of an XPath expression that tests the ancestors of each
    text. ``without``: returns whether to leave out an element with its content.
    """
    for selector in [node] if isinstance(node, Selector) else node:
        root = selector.root
        if without(root) or _is_in_furniture(root):
            continue
        walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        for event, element in walk:
            if event != "start":  # the text after an element, or after a comment
                if element is not root and element.tail:
                    yield element.tail
            elif without(element):
                walk.skip_subtree()
            elif element.tag == "br":
                yield BREAK
            elif element.text:
                yield element.text


def line(node: Node, css: str = "") -> str:
    """Return the text of the first element that matches, on one line; "" if no element matches."""
    found = node.css(css)[:1] if css else node
    return collapsed("".join(piece for piece in pieces(found) if piece is not BREAK))


def lines(node: Node) -> str:
    """Return the text of an element. Only ``<br>`` counts as a line break; other breaks are source formatting."""
    return _trimmed("".join(piece if piece is BREAK else re.sub(r"\s+", " ", piece) for piece in pieces(node)))


def paragraphs(node: Node) -> str:
    """Return the text of an element with all line breaks in its HTML source, because the page displays them."""
    return _trimmed("".join(pieces(node)))


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


def link(node: Node, css: str) -> str:
    """Return the clean URL of the first link that matches, "" without a link."""
    return clean_url(node.css(css).attrib.get("href"))


def picture(value: object) -> str | None:
    """Return the URL of a picture with its signed query. Return None for the platform's own pictures and other values.

    >>> picture("https://static.licdn.com/aero-v1/sc/h/ghost") is None
    True
    """
    url = absolute_url(ORIGIN, value)
    return url if url and urlsplit(url).netloc != PLACEHOLDER_HOST else None


def image(node: Node, css: str = "img") -> str | None:
    """Return the URL of the first member's picture in an element, or None. The platform's own pictures are skipped.

    Pages saved by a browser have the URL in ``src``, others in the attribute for lazy loading.
    """
    urls = (picture(each.attrib.get("data-delayed-url") or each.attrib.get("src")) for each in node.css(css))
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
        found = node.css(".date-range")[:1]
        self.text = collapsed("".join(found.xpath("./text() | .//time//text()").getall()))
        self.times = [time for time in (line(each) for each in found.css("time")) if time]
        self.duration = collapsed("".join(found.xpath("./span//text()[not(ancestor::time)]").getall()))

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


class Card:
    """A row in most of the page's lists: a title, a line below it, dates, a text, and the people who took part."""

    def __init__(self, node: Selector) -> None:
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
        found = pieces(self.node.css("h4")[:1], lambda element: is_furniture(element) or is_date(element))
        subtitle = collapsed("".join(piece for piece in found if piece is not BREAK))
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
        whole = self.node.css(".show-more-less-text__text--more")[:1]
        return lines(whole or self.node.css(".show-more-less-text__text--less, .show-more-less-text")[:1])

    @cached_property
    def paragraphs(self) -> list[str]:
        """The paragraphs that are neither dates nor the description."""
        return [text for text in (line(each) for each in self.node.xpath(_OWN_PARAGRAPHS)) if text]

    @property
    def contributors(self) -> list[str]:
        """Names of the people whose pictures the card shows."""
        return [
            name
            for name in (collapsed(each) for each in self.node.css("a.face-pile__url::attr(title)").getall())
            if name
        ]


def cards(page: Selector, section: str) -> list[Card]:
    """Return the cards with a title in a section. Rows inside a card are lists of people, not cards."""
    found = page.css(f'section[data-section="{section}"]').xpath(".//li[not(ancestor::li)]")
    return [card for card in map(Card, found) if card.title]


def person_card(node: Selector) -> dict[str, Any]:
    """Return the fields in a small card about another member. ``line`` is the text under the name."""
    details = [line(each) for each in node.css(".base-aside-card__metadata > div")]
    followers = next((each for each in details if is_followers(each) or each[:1].isdigit()), "")
    return {
        "name": line(node, ".base-aside-card__title, h3"),
        "line": lines(node.css(".base-aside-card__subtitle, h4")[:1]).replace("\n", " "),
        "followers": followers,
        "location": next((each for each in details if each != followers), ""),
        "link": link(node, "a.base-card__full-link, a"),
        "image": image(node),
    }
