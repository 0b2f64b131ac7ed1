"""Builds all lists of the record, from the page's sections and its linked data, and ``data_availability``
(specification 2.6).

A masked text is one in which the platform's server replaced each letter by an asterisk. Masked texts are empty in the
record: neither logos nor the lengths of words are used to reconstruct them. What the page states in clear elsewhere,
in its linked data or its top section, is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from crawler.platforms.model import Model, empty
from crawler.platforms.professional import posts, schema
from crawler.platforms.professional.document import Document
from crawler.platforms.professional.markup import (
    EMPLOYER_PAGES,
    Dates,
    clean_url,
    is_masked,
    last_segment,
    plain,
)
from crawler.platforms.professional.payload import Employer, LinkedData, Person, School
from crawler.reading.values import count, text

Row = dict[str, Any]

HISTORY = ("experience", "education")
MASKED = "masked_history"
"""The field of the section (the *masked block*) that replaces positions and schools on a masked page."""
_YEAR = re.compile(r"\b(1[89]|20)\d{2}\b")

MEMBERS_ONLY = ("contact_info", "experience.employment_type")
"""Fields that the platform withholds from every visitor without an account."""
_UNREAD = "Parts of the page could not be read, and the warnings name them: the fields with these parts lack data."


def record_lists(document: Document, linked: LinkedData, activity: Iterable[Row]) -> dict[str, list[Any]]:
    """Return all lists of the record, by field name. ``activity``: the cards of the activity.

    The linked data is used for a list without a section, and for what the masked block withholds.
    """
    rows, person = document.sections.rows, linked.person
    found: dict[str, list[Any]] = {
        **{name: rows.get(name, []) for name in _AS_READ},
        "activity": [_cells(schema.Activity, card) for card in activity],
        "articles": [_cells(schema.Article, row) for row in article_cells(document, linked)],
        "people_also_viewed": [_person(row, "summary") for row in rows.get("people_also_viewed", [])],
        "same_name": [_namesake(row) for row in rows.get("same_name", [])],
        "skills": [row["name"] for row in rows.get("skills", [])],
    }
    if person and "awards" not in rows:
        titles = filter(None, map(plain, person.awards))
        found["awards"] = [{**empty(schema.Award), "title": title} for title in titles]
    if person and "languages" not in rows:
        names = filter(None, (plain(each.name) for each in person.languages))
        found["languages"] = [{**empty(schema.Language), "name": name} for name in names]
    return found | _history(document, person)


_AS_READ = (
    *("awards", "certifications", "courses", "languages", "organizations", "projects", "publications"),
    *("recommendations", "volunteer_experience"),
)
"""The lists whose rows have the keys of the record."""


def article_cells(document: Document, linked: LinkedData) -> list[Row]:
    """Return the cells of the articles: from the page's section, or else from the linked data."""
    rows = document.sections.rows
    return rows["articles"] if "articles" in rows else list(map(posts.linked_article, linked.articles))


def _cells(model: type[Model], row: Row) -> Row:
    """Return the cells of a row that are fields of its model."""
    return {name: row[name] for name in model.model_fields}


def _person(row: Row, line: str) -> Row:
    """Return the record's row for a card about another member. ``line``: the key for the line below the name.

    If a card has two details, the first is the number of followers. A single detail is the number of followers if it
    has a digit, else the location.
    """
    details = row["details"]
    is_count = len(details) > 1 or any(each.isdigit() for text in details for each in text)
    followers, location = (*details, "", "")[:2] if is_count else ("", *details, "")[:2]
    return {
        "followers": followers,
        "image": row["image"],
        "link": row["link"],
        "location": location,
        "name": row["name"],
        line: row["summary"],
    }


def _namesake(row: Row) -> Row:
    found = _person(row, "headline")
    del found["followers"]
    return found


# Positions and schools: first the values of a row that a source has in clear, then rows of several sources in one


Keyed = tuple[str, Row]
"""A row with its key, by which the row of another source is found. "": the row has no key."""


def _history(document: Document, person: Person | None) -> dict[str, list[Row]]:
    """Return the positions and the schools.

    The linked data is used if the page has no section for them, and to complete the masked block: the block has only
    the first positions, and masks more than the linked data does.
    """
    rows = document.sections.rows
    positions, schools = _masked_rows(rows.get(MASKED, []), document.head.company, document.head.school)
    linked = _linked_positions(person) if person and "experience" not in rows else []
    linked_schools = _linked_schools(person) if person and "education" not in rows else []
    return {
        "education": [_school(_page_school(**row)) for row in rows.get("education", [])]
        + [_school(*pair) for pair in _pairs(schools, linked_schools)],
        "experience": [_position(_page_position(**row)) for row in rows.get("experience", [])]
        + [_position(*pair) for pair in _pairs(positions, linked)],
    }


def _pairs(shown: Iterable[Keyed], linked: Iterable[Keyed]) -> Iterator[tuple[Row, Row]]:
    """Yield each row of the page with its row in the linked data, then the other rows of the linked data.

    Both sources have the same order. Of several rows with the same key, the first ones are taken together.
    """
    rest = list(linked)
    for key, row in shown:
        found = next((each for each in rest if key and each[0] == key), None)
        if found:
            rest.remove(found)
        yield row, found[1] if found else {}
    yield from (({}, row) for _, row in rest)


def _clear(row: Row, *, in_block: bool = False) -> Row:
    """Return the values of a row that are in clear, and the names of the masked values as ``masked``."""
    masked = {name for name, value in row.items() if isinstance(value, str) and is_masked(value, in_block=in_block)}
    if "company_name" in masked:
        masked.add("company_name_source")
    return {name: value for name, value in row.items() if value and name not in masked} | {"masked": masked}


def _position(shown: Row, linked: Row | None = None) -> Row:
    """Build a position from its values in clear on the page and in the linked data."""
    row = {**empty(schema.Experience), **(linked or {}), **shown}
    is_hidden = {name: name in row["masked"] and not row[name] for name in ("company_name", "job_title")}
    if is_hidden["company_name"]:
        row |= {"company_image": None, "company_name_source": "masked", "company_url": ""}
    slug = last_segment(row["company_url"], *EMPLOYER_PAGES)
    return row | {"company_slug": slug, "masked": any(is_hidden.values())}


def _school(shown: Row, linked: Row | None = None) -> Row:
    """Build a school from its values in clear on the page and in the linked data, which may have months, too."""
    row = {**empty(schema.Education), **(linked or {}), **shown}
    if "school_name" in row["masked"] and not row["school_name"]:
        row |= {"school_image": None, "school_url": ""}
    dates = (linked or {}).get("date_range") or row["date_range"]
    return row | {"date_range": dates, "masked": any(not row[name] for name in row["masked"])}


def _page_position(*, dates: Dates, **others: Any) -> Row:
    return _clear({**others, **_period(dates), "duration": dates.duration, "company_name_source": "page"})


def _period(dates: Dates) -> Row:
    return {"date_range": dates.text, "start_date": dates.start, "end_date": dates.end}


def _page_school(
    *, places: Sequence[str], dates: Dates, activities: Iterable[str], description: str, **others: Any
) -> Row:
    degree, field, grade = (*places, "", "", "")[:3]
    return _clear(
        {
            **others,
            **_years(dates),
            "degree": degree,
            "description": "\n".join(filter(None, [*activities, description])),
            "field_of_study": field,
            "grade": grade,
        }
    )


def _years(dates: Dates) -> Row:
    start, end = (*dates.times, "", "")[:2]
    return {"date_range": dates.text, "start_date": _year(start), "end_date": _year(end)}


def _year(text: str) -> int | None:
    found = _YEAR.search(text)
    return count(found[0]) if found else None


def _masked_rows(rows: list[Row], company: Row, own_school: Row) -> tuple[list[Keyed], list[Keyed]]:
    """Return the positions and the schools of the masked block. The block lists positions first, then schools.

    Nothing separates them: the first row that is recognisable as a school, and all rows after it, count as schools.

    Args:
        rows: the cells of the rows.
        company: the company at the top of the profile.
        own_school: the school at the top of the profile.
    """
    first = next((n for n, row in enumerate(rows) if _is_school(row, company, own_school)), len(rows))
    return [_masked_position(row, company) for row in rows[:first]], [_masked_school(row) for row in rows[first:]]


def _is_school(row: Row, company: Row, own_school: Row) -> bool:
    """Whether a row shows years, or the name or the logo of the school at the top of the profile.

    A row with the name or the logo of the company at the top is a position.
    """
    if row["name"] == company["name"] or (row["image"] and _picture_id(row["image"]) == _picture_id(company["logo"])):
        return False
    if row["name"] == own_school["name"] or row["dates"].times:
        return True
    return bool(row["image"]) and _picture_id(row["image"]) == _picture_id(own_school["logo"])


def _picture_id(url: str | None) -> str:
    """Return the id of a picture, which all sizes share: the segment after ``/image/v2/`` or ``/image/`` in a URL."""
    return last_segment(url or "", "v2", "image")


def _masked_position(row: Row, company: Row) -> Keyed:
    """Return a position of the masked block. Its key is its employer's name, masked or in clear."""
    same = bool(row["name"]) and row["name"] == company["name"]
    values = {
        "job_title": row["second"],
        "company_name": row["name"],
        "company_url": (company["url"] if same else "") or row["url"],
        "company_image": (company["logo"] if same else None) or row["image"],
        "company_name_source": "top_card" if same else "page",
    }
    return row["name"], _clear(values, in_block=True)


def _masked_school(row: Row) -> Keyed:
    """Return a school of the masked block. Its key is its years."""
    years = _years(row["dates"])
    values = {
        "school_name": row["name"],
        "school_url": row["url"],
        "school_image": row["image"],
        "degree": row["second"],
    }
    return _key(years), _clear({**years, **values}, in_block=True)


def _key(years: Row) -> str:
    start, end = years["start_date"], years["end_date"]
    return f"{start}-{end}" if start or end else ""


def _linked_positions(person: Person) -> list[Keyed]:
    """Return the positions in the page's linked data. Only present positions have titles."""
    present, titles = person.employers, [plain(each) for each in person.job_titles if each]
    if len(titles) != len(present):  # titles cannot be assigned to employers: only whether all are masked is used
        titles = titles[:1] * len(present) if titles and all(map(is_masked, titles)) else [""] * len(present)
    past = [each for each in person.past if isinstance(each, Employer)]
    rows = [_linked_position(each, title) for each, title in zip(present, titles, strict=True)]
    return rows + [_linked_position(each, "") for each in past]


def _linked_position(employer: Employer, title: str) -> Keyed:
    values = {
        "job_title": title,
        "company_name": plain(employer.name),
        "company_url": clean_url(employer.url),
        "company_name_source": "json_ld",
        "start_date": text(employer.start),
        "end_date": text(employer.end),
        "location": plain(employer.location),
        "description": plain(employer.description),
    }
    return values["company_name"], _clear(values)


def _linked_schools(person: Person) -> list[Keyed]:
    return [_linked_school(each) for each in person.past if isinstance(each, School)]


def _linked_school(found: School) -> Keyed:
    """Return a school in the linked data. Its dates are years, or texts with months ("2024-11")."""
    dates = [text(found.start), text(found.end)]
    years = {"start_date": _year(dates[0]), "end_date": _year(dates[1])}
    values = {
        "school_name": plain(found.name),
        "school_url": clean_url(found.url),
        "date_range": " - ".join(filter(None, dates)) if any("-" in each for each in dates) else "",
        "description": plain(found.description),
    }
    return _key(years), _clear({**years, **values})


# The fields that the platform withheld


def availability(found: Row, *, masked: bool, source: str, locale: str, is_unread: bool) -> Row:
    """Build the contract's ``data_availability`` object.

    Args:
        found: the fields about, about_truncated, education, experience, headline and skills of the profile.
        masked: whether the platform served the masked variant of the page, in which asterisks replace texts.
        source: the part of the page that the fields were read from.
        locale: the page's language and country, such as "en_US".
        is_unread: whether parts of the page could not be read.
    """
    positions = found["experience"]
    return {
        "about_truncated": found["about_truncated"],
        "authenticated": False,
        "education_found": len(found["education"]),
        "fields_withheld_by_linkedin": sorted([*MEMBERS_ONLY, *(_masked_fields(found) if masked else ())]),
        "note": _note(found, masked=masked, source=source, is_unread=is_unread) + _language_note(locale),
        "positions_found": len(positions),
        "positions_masked_by_linkedin": sum(row["masked"] for row in positions),
        "positions_with_job_title": sum(bool(row["job_title"]) for row in positions),
        "source": source,
    }


def _masked_fields(found: Row) -> list[str]:
    positions = found["experience"]
    withheld = {
        "about": not found["about"] or found["about_truncated"],
        "education": any(row["masked"] for row in found["education"]),
        "experience.company_name": any(not row["company_name"] for row in positions),
        "experience.date_range": bool(positions)
        and not any(row["date_range"] or row["start_date"] for row in positions),
        "experience.job_title": any(not row["job_title"] for row in positions),
        "headline": not found["headline"],
        "skills": not found["skills"],
    }
    return [name for name, is_withheld in withheld.items() if is_withheld]


def _language_note(locale: str) -> str:
    return f" Its language is {locale}: texts are in this language." if locale and not locale.startswith("en") else ""


def _note(found: Row, *, masked: bool, source: str, is_unread: bool) -> str:
    positions = found["experience"]
    if masked:
        hidden = sum(row["masked"] for row in positions)
        return (
            "The platform served the masked variant of this profile: "
            f"{hidden} of {len(positions)} positions have no readable title or company."
        ) + (f" {_UNREAD}" if is_unread else "")
    if is_unread:
        return _UNREAD
    if not positions and not found["education"] and not found["about"]:
        return "The public page of this profile shows neither positions nor schools nor a text about the member."
    if source == "json_ld":
        return "Only the page's linked data was available, which has no past titles and no lists of skills or activity."
    return "The platform served this profile in full, as far as it is shown to visitors without an account."
