"""Parses HTML documents of platforms, up to a number of tags and of attributes."""

from __future__ import annotations

from typing import Any

from lxml import etree
from parsel import Selector

from crawler.reading.contract import invalid_error

MAX_TAGS = 50_000
"""More than four times the tags of the largest recorded page: a retail page of 1.7 MB has 10,755 (capture
25d700b25e6f). Each search in a page of 2 MB with 300,000 elements takes 0.1 s, in which the event loop stands."""
MAX_ATTRIBUTES = 500
"""Maximum number of attributes of an element, because building a tree takes quadratic time in them: 24 s for 80,000.
Elements of recorded pages have at most 25."""


class _MostAttributes:
    """Receives the events of a parser, and returns the largest number of attributes of an element."""

    def __init__(self) -> None:
        self._most = 0

    def start(self, _: str, attributes: dict[str, str]) -> None:
        self._most = max(self._most, len(attributes))

    def close(self) -> int:
        return self._most


def has_many_attributes(document: bytes) -> bool:
    """Whether an element has more than ``MAX_ATTRIBUTES``, found in linear time: no tree is built.

    ``document``: in UTF-8. Texts of elements such as ``title`` are not searched, although a browser finds elements in
    them within ``svg`` or ``math``.
    """
    parser: Any = etree.HTMLParser(target=_MostAttributes(), encoding="utf-8", huge_tree=True)
    return bool(etree.fromstring(document, parser) > MAX_ATTRIBUTES)


def parsed_html(document: str | bytes) -> Selector:
    """Return a document as elements.

    Raises:
        ExtractionFailed: it has more than ``MAX_TAGS`` tags, or an element with more than ``MAX_ATTRIBUTES``.
    """
    text = document if isinstance(document, str) else document.decode(errors="replace")
    if text.count("<") > MAX_TAGS or has_many_attributes(text.encode(errors="replace")):
        message = f"The page has more than {MAX_TAGS:,} tags, or an element with more than {MAX_ATTRIBUTES} attributes."
        raise invalid_error(message, ["html"], "Too many tags or attributes", "too_many", reason="too_large")
    return Selector(text, type="html")
