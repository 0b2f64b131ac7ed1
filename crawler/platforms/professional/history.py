"""Reads positions and schools, complete, masked or from linked data, and returns a dict for each (specification 2.6).

A masked text is one in which the platform's server replaced each letter by an asterisk. It stays empty in the data:
neither logos nor the lengths of words are used to reconstruct it.
"""

from __future__ import annotations

import re
from typing import Any

from lxml import etree

from crawler.platforms.professional.markup import (
    DESCRIPTION,
    NO_SUBTITLE,
    Card,
    DateRange,
    clean_url,
    image,
    last_segment,
    line,
    link,
    plain,
)
from crawler.reading.json import dicts, nonempty_strings
from crawler.reading.markup import Node
from crawler.reading.values import count, text

EXPERIENCE = 'section[data-section="experience"]'
EDUCATION = 'section[data-section="educationsDetails"]'
MASKED_BLOCK = "section.experience-education"
EMPLOYER_PAGES = ("company", "school", "showcase")
SECOND_LINE = "h4 + p, h4 p, p.blur"
"""Selects a masked row's second line. HTML parsers move this paragraph from inside a heading to behind it."""

STRAY_WORD = "undefined"
"""The platform's script writes this word if a school's subject is missing."""
_MASK = re.compile(r"\*{3,}")
_NO_WORD = re.compile(rf"{STRAY_WORD}|\W|_")
_YEAR = re.compile(r"\b(1[89]|20)\d{2}\b")

Row = dict[str, Any]


def is_masked(value: str, *, in_block: bool = False) -> bool:
    """Whether a text is masked: only asterisks, and possibly a stray "undefined".

    ``in_block``: the text is in the masked block. There, even a single asterisk or the word "undefined" alone counts.

    >>> is_masked("******** *** ***"), is_masked("*** ****** undefined"), is_masked("*** Founder ***")
    (True, True, False)
    >>> is_masked("*** Founder ***", in_block=True), is_masked("undefined", in_block=True), is_masked("undefined")
    (True, True, False)
    """
    if in_block and (value == STRAY_WORD or _MASK.search(value)):
        return True
    return "*" in value and not _NO_WORD.sub("", value)


def experience(page: Node, top_card: Row) -> list[Row]:
    """Return the positions, in full or masked, in page order. ``top_card`` is the company in the profile's head."""
    rows = []
    for node in page.css(f"{EXPERIENCE} li.experience-item, {EXPERIENCE} li.experience-group-position"):
        row = _position(node)
        if row["masked"] or row["job_title"] or row["company_name"]:
            rows.append(row)
    return rows + [_masked_position(node, top_card) for node in _masked_rows(page) if not _is_school(node, page)]


def education(page: Node) -> list[Row]:
    """Return the schools, in full or masked, in page order."""
    rows = [_school(node, in_block=False) for node in page.css(f"{EDUCATION} li.education__list-item")]
    rows += [_school(node, in_block=True) for node in _masked_rows(page) if _is_school(node, page)]
    return [row for row in rows if row["masked"] or row["school_name"]]


# Rows that are not masked


def _position(node: Node) -> Row:
    dates = DateRange(node)
    group = node.ancestor('li[class*="experience-group"]')
    title = line(node, ".experience-item__title")
    company = line(node, ".experience-item__subtitle") or line(group, ".experience-group-header__company")
    url = (
        link(node, "h4 a")
        or link(node, "a.profile-section-card__image-link")
        or link(group, "a.experience-group-header__url")
    )
    places = [line(each) for each in node.css("p.experience-item__meta-item") if not each.css(".date-range, time")]
    return _experience_row(
        title=title,
        company=company,
        source="page",
        url=url,
        company_image=image(node),
        date_range=dates.text,
        start_date=dates.start,
        end_date=dates.end,
        duration=dates.duration,
        location=next(filter(None, places), ""),
        description=Card(node).description,
    )


def _school(node: Node, *, in_block: bool) -> Row:
    card, dates = Card(node), DateRange(node)
    places = _places(node)
    texts = places or [line(node, SECOND_LINE) if in_block else card.subtitle]
    hidden = [is_masked(each, in_block=in_block) for each in texts]
    clear = ["" if masked or each == NO_SUBTITLE else each for each, masked in zip(texts, hidden, strict=True)]
    degree, field, grade = (*clear, "", "", "")[:3]
    masked_name = is_masked(card.title, in_block=in_block)
    return {
        "date_range": dates.text,
        "degree": degree,
        "description": "\n".join(filter(None, [*_activities(node), card.description])),
        "field_of_study": field,
        "grade": grade,
        "end_date": _year(dates.times[1:2]),
        "start_date": _year(dates.times[:1]),
        "masked": masked_name or any(hidden),
        "school_image": None if masked_name else image(node),
        "school_name": "" if masked_name else card.title,
        "school_url": "" if masked_name else link(node, "h3 a, a.profile-section-card__image-link"),
    }


def _places(node: Node) -> list[str]:
    """Return degree, field of study and grade of a school, or [] if the page does not separate them.

    The page has an empty HTML comment in place of a missing value. If it has more or fewer than three values and
    comments, and some values have ``data-section``, then the value without it is the degree, and the others follow in
    the page's order.
    """
    heading = node.first("h4")
    found = [each for each in heading.children() if _is_place(each)] if heading else []
    spans = [each for each in found if each.element.tag == "span"]
    if len(found) == 3 or all(each.get("data-section") is None for each in spans):
        return [line(each) if each.element.tag == "span" else "" for each in found] if spans else []
    degrees = [each for each in spans if each.get("data-section") is None]
    others = [each for each in spans if each.get("data-section") is not None]
    return [line(degrees[0]) if degrees else "", *map(line, others)]


def _is_place(node: Node) -> bool:
    """Whether a part of a school's line is a value, or the empty comment in place of a missing value."""
    element = node.element
    return element.tag == "span" or (element.tag is etree.Comment and not element.text.strip(" \t\r\n"))


def _activities(node: Node) -> list[str]:
    """Return the paragraphs about clubs and societies, which come before a school's description."""
    found = (each for part in node.css("div.control-transition") for each in part.css("p"))
    return [text for text in (line(each) for each in found if not each.ancestor(DESCRIPTION)) if text]


def _year(times: list[str]) -> int | None:
    found = _YEAR.search(times[0]) if times else None
    return count(found[0]) if found else None


def _experience_row(*, title: str, company: str, source: str, url: str, in_block: bool = False, **fields: Any) -> Row:
    """Build a position with all of the contract's keys. Masked values are empty."""
    masked_title, masked_company = is_masked(title, in_block=in_block), is_masked(company, in_block=in_block)
    return {
        "company_image": None,
        "date_range": "",
        "start_date": "",
        "end_date": "",
        "duration": "",
        "location": "",
        "description": "",
        **fields,
        **({"company_image": None} if masked_company else {}),
        "company_name": "" if masked_company else company,
        "company_name_source": "masked" if masked_company else source,
        "company_slug": "" if masked_company else last_segment(url, *EMPLOYER_PAGES),
        "company_url": "" if masked_company else url,
        "employment_type": "",
        "job_title": "" if masked_title else title,
        "masked": masked_company or masked_title,
    }


# Masked rows: the page has positions and schools in one list


def _masked_rows(page: Node) -> list[Node]:
    found = page.css(f"{MASKED_BLOCK} .experience-education__list li.profile-section-card")
    return [node for node in found if line(node, "h3")]


def _is_school(node: Node, page: Node) -> bool:
    """Whether a masked row is a school: the profile's top section has it as the school, or the row has years."""
    name = line(node, "h3")
    if not is_masked(name, in_block=True):
        head = page.first("section.top-card-layout")
        if name == line(head, '[data-section="educationsDetails"] .top-card-link__description'):
            return True
        if name == line(head, '[data-section="currentPositionsDetails"] .top-card-link__description'):
            return False
    return bool(node.css("time"))


def _masked_position(node: Node, top_card: Row) -> Row:
    company = line(node, "h3")
    same = company == top_card["name"]
    return _experience_row(
        in_block=True,
        title=line(node, SECOND_LINE) or line(node, "h4"),
        company=company,
        source="top_card" if same else "page",
        url=(top_card["url"] if same else "") or link(node, "h3 a, a.profile-section-card__image-link"),
        company_image=(top_card["logo"] if same else None) or image(node),
    )


# Rows from the linked data, for a page that does not list them


def linked_experience(person: Row) -> list[Row]:
    """Return the positions in the page's linked data. Only present positions have titles."""
    present, past = flat(person.get("worksFor")), flat(person.get("alumniOf"))
    titles = nonempty_strings(person.get("jobTitle"))
    if len(titles) != len(present):  # titles cannot be matched to employers: keep only whether all are masked
        titles = titles[:1] * len(present) if titles and all(map(is_masked, titles)) else [""] * len(present)
    rows = [_linked_position(node, plain(title)) for node, title in zip(present, titles, strict=True)]
    return rows + [_linked_position(node, "") for node in past if node.get("@type") == "Organization"]


def linked_education(person: Row) -> list[Row]:
    """Return the schools in the page's linked data."""
    rows = []
    for node in flat(person.get("alumniOf")):
        name, role = plain(node.get("name")), _role(node)
        if node.get("@type") != "EducationalOrganization" or not name:
            continue
        rows.append(
            {
                "date_range": "",
                "degree": "",
                "description": plain(role.get("description")),
                "field_of_study": "",
                "grade": "",
                "end_date": _year([text(role.get("endDate"))]),
                "start_date": _year([text(role.get("startDate"))]),
                "masked": is_masked(name),
                "school_image": None,
                "school_name": "" if is_masked(name) else name,
                "school_url": "" if is_masked(name) else clean_url(node.get("url")),
            }
        )
    return rows


def _linked_position(node: Row, title: str) -> Row:
    role = _role(node)
    return _experience_row(
        title=title,
        company=plain(node.get("name")),
        source="json_ld",
        url=clean_url(node.get("url")),
        start_date=text(role.get("startDate")),
        end_date=text(role.get("endDate")),
        location=plain(node.get("location")),
        description=plain(role.get("description")),
    )


def _role(node: Row) -> Row:
    member = node.get("member")
    return member if isinstance(member, dict) else {}


def flat(value: Any) -> list[Row]:
    """Return those elements of a list that are dicts, without the dicts in nested lists.

    If the list's only element is another list, return the dicts in that list.
    """
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    return dicts([value] if isinstance(value, dict) else value)
