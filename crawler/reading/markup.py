"""Parses HTML documents of platforms, up to a number of tags."""

from __future__ import annotations

from parsel import Selector

from crawler.reading.contract import invalid_error

MAX_TAGS = 50_000
"""More than four times the tags of the largest recorded page: a retail page of 1.7 MB has 10,755 (capture
25d700b25e6f). Each search in a page of 2 MB with 300,000 elements takes 0.1 s, in which the event loop stands."""


def parsed_html(document: str | bytes) -> Selector:
    """Return a document as elements.

    Raises:
        ExtractionFailed: it has more than ``MAX_TAGS`` tags.
    """
    text = document if isinstance(document, str) else document.decode(errors="replace")
    if text.count("<") > MAX_TAGS:
        message = f"The page has more than {MAX_TAGS:,} tags."
        raise invalid_error(message, ["html"], "Too many tags", "too_many", reason="too_large")
    return Selector(text, type="html")
