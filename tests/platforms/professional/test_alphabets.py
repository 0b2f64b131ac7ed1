"""A page whose words are in another alphabet gives the same record, except for the texts themselves."""

from __future__ import annotations

import asyncio
import re
import string
from typing import Any

import lxml.html
import pytest

from crawler.platforms.professional.pages import ContentPage, ProfilePage
from tests.mutations import Difference, differences
from tests.platforms.professional.test_unread import MEMBERS, WHOLE, body_of, needs_captures, page_of

CYRILLIC = str.maketrans(
    string.ascii_letters, "абцдефгхийклмнопярстувжызАБЦДЕФГХИЙКЛМНОПЯРСТУВЖЫЗЮю"[: len(string.ascii_letters)]
)
NUMBER = re.compile(r"([A-Z][a-z]{2} \d{1,2}, \d{4}|\d[\d.,]*[KMB]?\b|\bundefined\b|<br\s*/?>)")
"""Matches dates, numbers, line breaks, and "undefined", which a script of the platform writes in all languages.
"""
METAS = ("profile:first_name", "profile:last_name", "og:title", "og:description")
TEXTS = {
    *("about", "action", "author", "biography", "caption", "cause", "company_name", "connections", "date_range"),
    *("degree", "description", "display_name", "duration", "end_date", "field_of_study", "firstName", "followers"),
    *("fullName", "grade", "headline", "issuer", "job_title", "label", "lastName", "location", "name", "number"),
    *("organization", "position", "proficiency", "publisher", "role", "school_name", "skills", "contributors"),
    *("subscriber_count_text", "summary", "text", "title", "author_name", "hashtags", "mentions"),
}
"""The fields whose values are texts from the page. The values of all other fields must not change."""


def other_letters(text: str) -> str:
    """Replace the letters of a text with Cyrillic ones, except in numbers such as "41M"."""
    return "".join(part if NUMBER.fullmatch(part) else part.translate(CYRILLIC) for part in NUMBER.split(text))


def in_another_alphabet(body: bytes) -> bytes:
    """Replace the letters in all texts of a page, except in dates, scripts and the location."""
    root = lxml.html.document_fromstring(body, parser=lxml.html.HTMLParser(encoding="utf-8"))
    for each in root.iter():
        if not isinstance(each.tag, str):
            each.tail = other_letters(each.tail or "")
            continue
        if each.tag not in ("script", "style", "time") and not is_location(each):
            each.text = other_letters(each.text or "")
        if each.getparent() is not None:
            each.tail = other_letters(each.tail or "")
        if each.get("property") in METAS:
            each.set("content", other_letters(each.get("content")))
        if "face-pile__url" in (each.get("class") or ""):
            each.set("title", other_letters(each.get("title")))
    return b"<!DOCTYPE html>" + bytes(lxml.html.tostring(root, encoding="utf-8"))


def is_location(element: Any) -> bool:
    """Return whether an element is the member's location, whose letters are kept: its last part must name a country."""
    above = [element.getparent(), *([element.getparent().getparent()] if element.getparent() is not None else [])]
    classes = [(each.get("class") or "") for each in above if each is not None]
    return element.tag == "span" and any("profile-info-subheader" in each for each in classes)


def records(body: bytes) -> tuple[Any, list[str]]:
    pages = [page_of(body, kind) for kind in (ProfilePage, ContentPage)]
    return [asyncio.run(page.to_item()) for page in pages], [str(each) for page in pages for each in page.unread]


def is_text(found: Difference) -> bool:
    """Return whether only the letters of a text differ."""
    before, after = (re.sub(r"[^\W\d_]", "x", str(each)) for each in (found.before, found.after))
    return found.path.rpartition(".")[2] in TEXTS and before == after


def assert_same_record(name: str) -> None:
    body = lxml.html.tostring(
        lxml.html.document_fromstring(body_of(name), parser=lxml.html.HTMLParser(encoding="utf-8")), encoding="utf-8"
    )
    (before, unread), (after, unread_after) = records(b"<!DOCTYPE html>" + body), records(in_another_alphabet(body))
    assert (unread, unread_after) == ([], [])
    assert before != after
    assert [each for each in differences(before, after) if not is_text(each)] == []


@needs_captures
@pytest.mark.parametrize("name", [name for name in WHOLE if name != "0611a05b9ecb"])
def test_a_recorded_page_in_another_alphabet_gives_the_same_record(name: str) -> None:
    assert_same_record(name)


# The letters of the linked data are not replaced. It completes truncated texts ("forty-positions", "counts-hidden"),
# and masked rows by the names of their employers ("masked-linked").
COMPLETED = {"forty-positions", "counts-hidden", "masked-linked"}


@pytest.mark.parametrize("name", [name for name in MEMBERS if name not in COMPLETED])
def test_a_page_in_another_alphabet_gives_the_same_record(name: str) -> None:
    assert_same_record(name)
