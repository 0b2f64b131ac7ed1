"""Parses a profile page, and reads texts, links, images and dates from its elements."""

from __future__ import annotations

import html
import re
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode
from web_poet import HttpResponse

from crawler.platforms.professional import PLATFORM
from crawler.reading.contract import invalid_error
from crawler.reading.documents import MAX_ATTRIBUTES, has_many_attributes
from crawler.reading.values import absolute_url, count, text

ORIGIN = PLATFORM.origin
PLACEHOLDERS = ("https://static.licdn.com/", "http://static.licdn.com/")
"""The beginnings of URLs of the platform's own pictures: placeholders, default covers, icons."""
TRACKING = "trk="
REDIRECT_PATH = "/redir/redirect"
NO_SUBTITLE = "-"
"""The platform's placeholder for a missing second line of a card."""

MAX_TAGS = 10_000
"""Maximum number of opening tags, because parsing time is quadratic in the nesting. Real pages have about 2,300 opening
tags."""
MAX_DEPTH = 200
"""Maximum number of elements in one another, because reading sections in sections takes quadratic time. In real pages,
at most about 30 elements are in one another."""
FURNITURE = ":is(br, p button, .see-more-text button)"
"""Selects line breaks, and buttons inside texts.

Sign-in windows are not removed, because no selector of this project matches an element in them. Without ``:is``, some
elements would be selected several times.
"""
_TOO_DEEP = "html" + " > *" * MAX_DEPTH
"""Selects an element inside ``MAX_DEPTH`` others. On a real page, this takes 0.2 ms."""
_OPENING_TAG = re.compile(rb"<[a-zA-Z]")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_LINE = "\v"
"""The character that ``remove_furniture`` inserts before each ``<br>``. It counts as white space, except in ``lines``
and ``paragraphs``, which treat it as a line break."""
_YEAR = re.compile(r"\b(1[89]|20)\d{2}\b")
_DASHES = "-‐‑–—"
"""The dashes that may be between two dates, depending on the page's language."""
_BACKGROUND = re.compile(r"url\([\"']?((?:(?!url\()[^)\n])*?)[\"']?\)")
EMPLOYER_PAGES = ("company", "school", "showcase")
"""The first path segments in the URLs of companies and schools."""
_EMPLOYER_PAGE = re.compile(
    rf"https?://(?:[a-z]{{2,3}}\.)?{re.escape(PLATFORM.domain)}(/(?:{'|'.join(EMPLOYER_PAGES)})/[^/?#]+)/?"
)
ELLIPSES = ("…", "...")
NO_TEXT = "None"
"""The text that replaces a missing description in some of the linked data."""


def parse(response: HttpResponse) -> LexborHTMLParser:
    """Parse a page.

    Raises:
        ExtractionFailed: the page has so many tags or attributes, or is nested so deeply, that reading could take
            seconds.
    """
    body = bytes(response.body) if response.encoding == "utf-8" else response.text.encode(errors="replace")
    is_refused = _has_many_tags(body) or has_many_attributes(body, in_raw_text=True)
    tree = None if is_refused else LexborHTMLParser(body)
    if tree is None or tree.css_first(_TOO_DEEP):
        message = (
            f"The page has more than {MAX_TAGS:,} elements, more than {MAX_DEPTH} elements in one another, or an "
            f"element with more than {MAX_ATTRIBUTES} attributes. Real pages have about 2,300 elements."
        )
        raise invalid_error(message, ["html"], "Too many elements or attributes", "too_large", reason="too_large")
    return tree


def _has_many_tags(body: bytes) -> bool:
    number = body.count(b"<")  # the number of opening tags, closing tags and comments
    if number <= MAX_TAGS:
        return False
    return number > 2 * MAX_TAGS or len(list(islice(_OPENING_TAG.finditer(body), MAX_TAGS + 1))) > MAX_TAGS


def remove_furniture(tree: LexborHTMLParser) -> None:
    """Remove the buttons inside texts, and insert the character ``_LINE`` before each ``<br>``."""
    for each in reversed(tree.css(FURNITURE)):  # inner elements first: removing an element frees the elements in it
        if each.tag == "br":
            each.insert_before(_LINE)
        else:
            each.decompose()


def collapsed(value: str) -> str:
    """Return a text on one line, with each run of white space replaced by one space."""
    return " ".join(value.split())


def line(node: LexborNode | None) -> str:
    """Return the text of an element on one line, or "" if there is no element."""
    return collapsed(node.text()) if node else ""


def lines(node: LexborNode) -> str:
    """Return the text of an element. Only ``<br>`` counts as a line break, not the line breaks in the HTML source."""
    return with_breaks(node.text())


def with_breaks(value: str) -> str:
    """Return the text of elements, as ``lines`` does."""
    return _without_placeholder(_trimmed(part.replace("\n", " ") for part in _BREAK.sub(_LINE, value).split(_LINE)))


def paragraphs(node: LexborNode) -> str:
    """Return the text of an element whose line breaks in the HTML source count, too, because the page displays them."""
    return _trimmed(_BREAK.sub("\n", node.text()).replace(_LINE, "\n").split("\n"))


def plain(value: object) -> str:
    """Return a text from the linked data without the HTML line breaks and character references that it contains."""
    return _without_placeholder(html.unescape(_trimmed(_BREAK.sub("\n", text(value)).split("\n"))))


def uncut(shown: str, whole: str) -> str:
    """Return a text, or the whole text if ``shown`` is only the beginning of it.

    >>> uncut("Some words…", "Some words about boats"), uncut("Some words…", "Others"), uncut("Some words", "Others")
    ('Some words about boats', 'Some words…', 'Some words')
    """
    beginning = shown.rstrip("….").rstrip() if is_cut(shown) else None
    return whole if beginning is not None and collapsed(whole).startswith(collapsed(beginning)) else shown


def is_cut(text: str) -> bool:
    """Whether the platform has shortened a text."""
    return text.endswith(ELLIPSES)


def _without_placeholder(value: str) -> str:
    return "" if value == NO_TEXT else value


def _trimmed(parts: object) -> str:
    return "\n".join(map(collapsed, parts)).strip("\n")  # type: ignore[call-overload]


def href(node: LexborNode) -> str:
    """Return the clean URL of a link."""
    return clean_url(node.attributes.get("href"))


def clean_url(value: object) -> str:
    """Return an absolute URL without the platform's tracking parameter. A redirect is replaced by its destination.

    The URLs of companies and schools get one form, on the main site and without a slash at the end: a single page
    contains several forms of them.

    >>> clean_url("https://www.linkedin.com/redir/redirect?url=https%3A%2F%2Fa.example%2F%3Fx%3D1&urlhash=y&trk=z")
    'https://a.example/?x=1'
    >>> clean_url("https://a.example/?x=1&trk=public_profile"), clean_url("javascript:void(0)")
    ('https://a.example/?x=1', '')
    >>> clean_url("https://uk.linkedin.com/school/harbour/?trk=x"), clean_url("https://uk.linkedin.com/in/jane/?trk=x")
    ('https://www.linkedin.com/school/harbour', 'https://uk.linkedin.com/in/jane/')
    """
    url = absolute_url(ORIGIN, value)
    address, _, query = url.partition("?")
    employer = _EMPLOYER_PAGE.fullmatch(address)
    if employer:
        return f"{ORIGIN}{employer[1]}"
    if not query or (query.startswith(TRACKING) and "&" not in query):  # the common cases
        return address if query else url
    parts = urlsplit(url)
    if parts.path == REDIRECT_PATH:
        return absolute_url("", parse_qs(parts.query).get("url", [""])[0])
    query = "&".join(each for each in parts.query.split("&") if not each.startswith(TRACKING))
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def picture(value: object) -> str | None:
    """Return the URL of a picture with its signed query. Return None for the platform's own pictures and for values
    that are not URLs.

    >>> picture("https://static.licdn.com/aero-v1/sc/h/ghost") is None
    True
    """
    url = absolute_url(ORIGIN, value)
    return url if url and not url.startswith(PLACEHOLDERS) else None


def source(node: LexborNode) -> str:
    """Return the URL of the picture that an element shows, "" if it has none.

    In pages that a browser saved, the URL is in ``src`` or in the style; in others, it is in an attribute for lazy
    loading.
    """
    found = node.attributes
    delayed = found.get("data-delayed-url") or found.get("src") or found.get("data-delayed-background")
    style = None if delayed else _BACKGROUND.search(found.get("style") or "")
    return (style[1] if style else delayed) or ""


def image(node: LexborNode) -> str | None:
    """Return the URL of the picture that an element shows. None without one, and for the platform's own pictures."""
    return picture(source(node))


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


class Dates(NamedTuple):
    """A ``.date-range`` element of the page."""

    text: str
    """Both dates, as the page shows them."""
    times: tuple[str, ...]
    """The one or two dates in the range."""
    duration: str
    """The duration as the page shows it, "" if it shows none."""

    @property
    def start(self) -> str:
        """The first date, "" if absent."""
        return self.times[0] if self.times else ""

    @property
    def end(self) -> str:
        """The second date, or the word that the page shows instead, such as "Present". "" if absent."""
        if len(self.times) > 1:
            return self.times[1]
        after = self.text.partition(self.times[0])[2].strip() if self.times else ""
        return after.lstrip(_DASHES).strip() if after.startswith(tuple(_DASHES)) else ""


NO_DATES = Dates("", (), "")


def years(dates: Dates) -> dict[str, Any]:
    """Return the fields of a school with its dates."""
    start, end = (*dates.times, "", "")[:2]
    return {"date_range": dates.text, "start_date": year(start), "end_date": year(end)}


def year(date: str) -> int | None:
    """Return the year in a date."""
    found = _YEAR.search(date)
    return count(found[0]) if found else None


UNREADABLE = object()
"""The result of a cell's reader if the element exists but its value cannot be read."""


def dates(node: LexborNode) -> Any:
    """Read a date range, which consists of texts, ``<time>`` elements and a ``<span>`` with the duration.

    ``node``: the range, or a ``<time>`` in it, so that the class of the range need not be known. Return ``UNREADABLE``
    for a range without ``<time>``.
    """
    whole = node.parent if node.tag == "time" else node
    times: list[str] = []
    durations: list[str] = []
    for each in whole.iter() if whole else ():
        (times if each.tag == "time" else durations).append(line(each))
    if not any(times):
        return UNREADABLE
    duration = " ".join(filter(None, durations))
    return Dates(line(whole).removesuffix(duration).rstrip(), tuple(filter(None, times)), duration)


def date_range(node: LexborNode) -> Any:
    """Read the text of a date range, as ``dates`` does."""
    found = dates(node)
    return found if found is UNREADABLE else found.text
