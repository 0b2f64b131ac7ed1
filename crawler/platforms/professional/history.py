"""Builds the record's positions and schools, from complete or masked sections or from linked data (specification 2.6).

A masked text is one in which the platform's server replaced each letter by an asterisk. Masked texts stay empty in the
data: neither logos nor the lengths of words are used to reconstruct it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from crawler.platforms.model import empty
from crawler.platforms.professional.markup import Dates, clean_url, last_segment, plain
from crawler.platforms.professional.payload import Employer, Person, School
from crawler.platforms.professional.schema_rows import Education, Experience
from crawler.reading.values import count, text

EMPLOYER_PAGES = ("company", "school", "showcase")
STRAY_WORD = "undefined"
"""The word that the platform's script writes if a school's subject is missing."""
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


# Rows of the page's sections


def position(cells: Row) -> Row:
    """Build a position from the cells of a row in the section with positions."""
    dates: Dates = cells["dates"]
    return _position(
        **{name: value for name, value in cells.items() if name != "dates"},
        source="page",
        in_block=False,
        date_range=dates.text,
        start_date=dates.start,
        end_date=dates.end,
        duration=dates.duration,
    )


def school(cells: Row, *, in_block: bool = False) -> Row:
    """Build a school from the cells of a row. ``in_block``: the row is in the masked block."""
    dates: Dates = cells["dates"]
    hidden = [is_masked(each, in_block=in_block) for each in cells["places"]]
    clear = ["" if masked else each for each, masked in zip(cells["places"], hidden, strict=True)]
    degree, field, grade = (*clear, "", "", "")[:3]
    masked_name = is_masked(cells["school_name"], in_block=in_block)
    return {
        "date_range": dates.text,
        "degree": degree,
        "description": "\n".join(filter(None, [*cells["activities"], cells["description"]])),
        "field_of_study": field,
        "grade": grade,
        "end_date": _year(dates.times[1:2]),
        "start_date": _year(dates.times[:1]),
        "masked": masked_name or any(hidden),
        "school_image": None if masked_name else cells["school_image"],
        "school_name": "" if masked_name else cells["school_name"],
        "school_url": "" if masked_name else cells["school_url"],
    }


def masked_rows(rows: list[Row], company: Row, own_school: Row) -> tuple[list[Row], list[Row]]:
    """Return the positions and the schools of the masked block. The block lists positions first, then schools.

    Nothing separates the two: the first row that is recognisable as a school, and all rows after it, are schools.

    Args:
        rows: the cells of the rows.
        company: the company at the top of the profile.
        own_school: the school there.
    """
    first = next((n for n, row in enumerate(rows) if _is_school(row, company, own_school)), len(rows))
    return [_masked_position(row, company) for row in rows[:first]], [_masked_school(row) for row in rows[first:]]


def _is_school(row: Row, company: Row, own_school: Row) -> bool:
    """Whether a row shows years, or the name or the logo of the school at the top of the profile."""
    if row["name"] == company["name"] or (row["image"] and _picture_id(row["image"]) == _picture_id(company["logo"])):
        return False
    if row["name"] == own_school["name"] or row["dates"].times:
        return True
    return bool(row["image"]) and _picture_id(row["image"]) == _picture_id(own_school["logo"])


def _picture_id(url: str | None) -> str:
    """Return the id of a picture in its URL, which is the same for all sizes: the segment after ``/image/``."""
    return last_segment(url or "", "v2", "image")


def _masked_position(row: Row, company: Row) -> Row:
    same = bool(row["name"]) and row["name"] == company["name"]
    return _position(
        in_block=True,
        job_title=row["second"],
        company_name=row["name"],
        source="top_card" if same else "page",
        company_url=(company["url"] if same else "") or row["url"],
        company_image=(company["logo"] if same else None) or row["image"],
    )


def _masked_school(row: Row) -> Row:
    return school(
        {
            "school_name": row["name"],
            "school_url": row["url"],
            "school_image": row["image"],
            "places": (row["second"],),
            "dates": row["dates"],
            "activities": [],
            "description": "",
        },
        in_block=True,
    )


def _year(times: Iterable[str]) -> int | None:
    found = _YEAR.search(next(iter(times), ""))
    return count(found[0]) if found else None


def _position(*, job_title: str, company_name: str, source: str, company_url: str, in_block: bool, **shown: Any) -> Row:
    """Build a position with all keys of the contract. ``shown`` are further values. Masked values become empty."""
    masked_title, masked_company = is_masked(job_title, in_block=in_block), is_masked(company_name, in_block=in_block)
    return {
        **empty(Experience),
        **shown,
        **({"company_image": None} if masked_company else {}),
        "company_name": "" if masked_company else company_name,
        "company_name_source": "masked" if masked_company else source,
        "company_slug": "" if masked_company else last_segment(company_url, *EMPLOYER_PAGES),
        "company_url": "" if masked_company else company_url,
        "job_title": "" if masked_title else job_title,
        "masked": masked_company or masked_title,
    }


# Rows from the linked data, for a page whose sections lack them


def linked_experience(person: Person) -> list[Row]:
    """Return the positions in the page's linked data. Only present positions have titles."""
    present, titles = person.employers, [plain(each) for each in person.job_titles if each]
    if len(titles) != len(present):  # titles cannot be assigned to employers: only whether all are masked is used
        titles = titles[:1] * len(present) if titles and all(map(is_masked, titles)) else [""] * len(present)
    past = [each for each in person.past if isinstance(each, Employer)]
    rows = [_linked_position(each, title) for each, title in zip(present, titles, strict=True)]
    return rows + [_linked_position(each, "") for each in past]


def linked_education(person: Person) -> list[Row]:
    """Return the schools in the page's linked data. Their names are empty if the page masks positions and schools."""
    masked = is_masked_person(person)
    return [_linked_school(each, masked=masked) for each in person.past if isinstance(each, School)]


def is_masked_person(person: Person) -> bool:
    """Whether the linked data belongs to the masked variant of a page, which masks positions and schools alike."""
    names = [each.name for each in person.employers]
    return any(map(is_masked, [*names, *(each for each in person.job_titles if each)]))


def _linked_position(employer: Employer, title: str) -> Row:
    return _position(
        job_title=title,
        company_name=plain(employer.name),
        source="json_ld",
        in_block=False,
        company_url=clean_url(employer.url),
        start_date=text(employer.start),
        end_date=text(employer.end),
        location=plain(employer.location),
        description=plain(employer.description),
    )


def _linked_school(found: School, *, masked: bool) -> Row:
    name = plain(found.name)
    hidden = masked or is_masked(name)
    return {
        **empty(Education),
        "description": plain(found.description),
        "end_date": _year([text(found.end)]),
        "start_date": _year([text(found.start)]),
        "masked": hidden,
        "school_name": "" if hidden else name,
        "school_url": "" if hidden else clean_url(found.url),
    }
