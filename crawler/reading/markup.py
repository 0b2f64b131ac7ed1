"""Parses HTML documents of platforms, up to a number of tags and of attributes."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree
from parsel import Selector

from crawler.reading.contract import invalid_error

MAX_TAGS = 50_000
"""More than four times the tags of the largest recorded page: a retail page of 1.7 MB has 10,755 (capture
25d700b25e6f). Each search in a page of 2 MB with 300,000 elements takes 0.1 s, in which the event loop stands."""
MAX_ATTRIBUTES = 200
"""Maximum number of attributes of an element, because building a tree takes quadratic time in them: 0.5 s for 20,000 of
one element, 0.4 s for a page of 2 MB whose elements have 500, 0.2 s if they have 200. Elements of recorded pages have
at most 25."""
_SPACE, _NAME = rb"[ \n\r\t\f]", rb'[^ \n\r\t\f"<>=/]'
_UNUSUAL_TAG = re.compile(
    rb'<[a-zA-Z](?!%b*+(?:%b++%b++(?:="[^"]*+")?+){0,%d}+%b*+/?+>)' % (_NAME, _SPACE, _NAME, MAX_ATTRIBUTES, _SPACE)
)
"""Matches a tag with too many attributes, or one that is not written as usual: a space before each attribute, values in
double quotes. Names contain neither quotation marks nor "<", so that at most two such tags overlap, one in a value of
the other, and the search is linear."""
_RAW_TEXT = re.compile(
    rb"<(?=title|textarea|style|script|xmp|iframe|noembed|noframes|noscript|plaintext)", re.IGNORECASE
)


class _MostAttributes:
    """Receives the events of a parser, and returns the largest number of attributes of an element."""

    def __init__(self) -> None:
        self._most = 0

    def start(self, _: str, attributes: dict[str, str]) -> None:
        self._most = max(self._most, len(attributes))

    def close(self) -> int:
        return self._most


def has_many_attributes(document: bytes, *, in_raw_text: bool = False) -> bool:
    """Whether an element has more than ``MAX_ATTRIBUTES``, found in linear time: no tree is built.

    ``document``: in UTF-8. ``in_raw_text``: also in the texts of elements such as ``title``, in which a browser finds
    elements if they are within ``svg`` or ``math``.

    Each "<" before a letter is first read as a tag, wherever it is. Only if one of them is not written as usual, as in
    18 of 76 recorded pages, a parser counts, which takes five times as long.
    """
    if not _UNUSUAL_TAG.search(document):
        return False
    readings = (document, _RAW_TEXT.sub(b"<x-", document)) if in_raw_text else (document,)
    parser: Any = etree.HTMLParser(target=_MostAttributes(), encoding="utf-8", huge_tree=True)
    return any(etree.fromstring(each, parser) > MAX_ATTRIBUTES for each in readings)


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
