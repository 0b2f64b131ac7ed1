"""Builds all lists of the record, from the page's sections or its linked data, and ``data_availability``
(specification 2.6).

A masked text is one in which the platform's server replaced each letter by an asterisk. Masked texts are empty in the
record: neither logos nor the lengths of words are used to reconstruct them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from crawler.platforms.model import Model, empty
from crawler.platforms.professional import posts, schema_rows
from crawler.platforms.professional.document import Document
from crawler.platforms.professional.markup import NO_DATES, Dates, clean_url, is_masked, last_segment, plain
from crawler.platforms.professional.payload import Employer, LinkedData, Person, School
from crawler.reading.values import count, text

Row = dict[str, Any]

HISTORY = ("experience", "education")
MASKED = "masked_history"
"""The field of the section (the *masked block*) that replaces positions and schools on a masked page."""
EMPLOYER_PAGES = ("company", "school", "showcase")
_YEAR = re.compile(r"\b(1[89]|20)\d{2}\b")

MEMBERS_ONLY = ("contact_info", "experience.employment_type")
"""Fields that the platform withholds from every visitor without an account."""
_UNREAD = "Parts of the page could not be read, and the warnings name them: the fields with these parts lack data."


def shown_lists(document: Document, activity: Iterable[Row]) -> dict[str, list[Any]]:
    """Return the lists from the page's sections, by field name. ``activity``: the cells of the activity's rows."""
    rows, head = document.sections.rows, document.head
    positions, schools = _masked_rows(rows.get(MASKED, []), head.company, head.school)
    unchanged = ("awards", "certifications", "courses", "languages", "publications", "recommendations")
    return {
        **{name: rows.get(name, []) for name in unchanged},
        "activity": [_cells(schema_rows.Activity, row) for row in activity],
        "articles": [_cells(schema_rows.Article, row) for row in rows.get("articles", [])],
        "education": [_school(**row) for row in rows.get("education", [])] + schools,
        "experience": [_position(**row, source="page") for row in rows.get("experience", [])] + positions,
        "organizations": [_organization(row) for row in rows.get("organizations", [])],
        "people_also_viewed": [_person(row, "summary") for row in rows.get("people_also_viewed", [])],
        "projects": [_dated(row) for row in rows.get("projects", [])],
        "same_name": [_namesake(row) for row in rows.get("same_name", [])],
        "skills": [row["name"] for row in rows.get("skills", [])],
        "volunteer_experience": [_volunteering(row) for row in rows.get("volunteer_experience", [])],
    }


def absent(document: Document) -> set[str]:
    """Return the names of the lists that are read from the linked data because the page has no section for them."""
    present = set(document.sections.rows)
    return {"articles", "awards", "languages", *HISTORY} - present - set(HISTORY if MASKED in present else ())


def linked_lists(linked: LinkedData) -> dict[str, list[Any]]:
    """Return the lists in the page's linked data, by field name."""
    person = linked.person
    articles = [_cells(schema_rows.Article, posts.linked_article(each)) for each in linked.articles]
    found: dict[str, list[Any]] = {name: [] for name in ("awards", "languages", *HISTORY)}
    return found | {"articles": articles} | (_of_person(person) if person else {})


def _of_person(person: Person) -> dict[str, list[Any]]:
    awards = filter(None, map(plain, person.awards))
    names = filter(None, (plain(each.name) for each in person.languages))
    return {
        "awards": [{**empty(schema_rows.Award), "title": title} for title in awards],
        "education": _linked_education(person),
        "experience": _linked_experience(person),
        "languages": [{**empty(schema_rows.Language), "name": name} for name in names],
    }


def _cells(model: type[Model], row: Row) -> Row:
    """Return the cells of a row that are fields of its model."""
    return {name: row[name] for name in model.model_fields}


def _dated(row: Row) -> Row:
    dates: Dates = row["dates"]
    return {name: value for name, value in row.items() if name != "dates"} | {"date_range": dates.text}


def _organization(row: Row) -> Row:
    found = _dated(row)
    written = "\n".join(found.pop("paragraphs"))
    return found | {"description": found["description"] or written}


def _volunteering(row: Row) -> Row:
    found = _dated(row)
    return found | {"cause": next(iter(found.pop("paragraphs")), "")}


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


# Positions and schools


def _position(  # noqa: PLR0913  # the cells of a row
    *,
    job_title: str,
    company_name: str,
    company_url: str,
    source: str,
    dates: Dates = NO_DATES,
    in_block: bool = False,
    **others: Any,
) -> Row:
    """Build a position from the cells of a row. Masked values become empty.

    ``source``: where the company's name was read. ``in_block``: the row is in the masked block.
    """
    masked_title, masked_company = is_masked(job_title, in_block=in_block), is_masked(company_name, in_block=in_block)
    return {
        **empty(schema_rows.Experience),
        "date_range": dates.text,
        "start_date": dates.start,
        "end_date": dates.end,
        "duration": dates.duration,
        **others,
        **({"company_image": None} if masked_company else {}),
        "company_name": "" if masked_company else company_name,
        "company_name_source": "masked" if masked_company else source,
        "company_slug": "" if masked_company else last_segment(company_url, *EMPLOYER_PAGES),
        "company_url": "" if masked_company else company_url,
        "job_title": "" if masked_title else job_title,
        "masked": masked_company or masked_title,
    }


def _school(  # noqa: PLR0913  # the cells of a row
    *,
    school_name: str,
    school_url: str,
    school_image: str | None,
    places: Sequence[str],
    dates: Dates,
    activities: Sequence[str] = (),
    description: str = "",
    in_block: bool = False,
) -> Row:
    """Build a school from the cells of a row. ``in_block``: the row is in the masked block."""
    hidden = [is_masked(each, in_block=in_block) for each in places]
    clear = ["" if masked else each for each, masked in zip(places, hidden, strict=True)]
    degree, field, grade = (*clear, "", "", "")[:3]
    masked_name = is_masked(school_name, in_block=in_block)
    return {
        "date_range": dates.text,
        "degree": degree,
        "description": "\n".join(filter(None, [*activities, description])),
        "field_of_study": field,
        "grade": grade,
        "end_date": _year(dates.times[1:2]),
        "start_date": _year(dates.times[:1]),
        "masked": masked_name or any(hidden),
        "school_image": None if masked_name else school_image,
        "school_name": "" if masked_name else school_name,
        "school_url": "" if masked_name else school_url,
    }


def _year(times: Iterable[str]) -> int | None:
    found = _YEAR.search(next(iter(times), ""))
    return count(found[0]) if found else None


def _masked_rows(rows: list[Row], company: Row, own_school: Row) -> tuple[list[Row], list[Row]]:
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


def _masked_position(row: Row, company: Row) -> Row:
    same = bool(row["name"]) and row["name"] == company["name"]
    return _position(
        job_title=row["second"],
        company_name=row["name"],
        company_url=(company["url"] if same else "") or row["url"],
        company_image=(company["logo"] if same else None) or row["image"],
        source="top_card" if same else "page",
        in_block=True,
    )


def _masked_school(row: Row) -> Row:
    return _school(
        school_name=row["name"],
        school_url=row["url"],
        school_image=row["image"],
        places=(row["second"],),
        dates=row["dates"],
        in_block=True,
    )


# Positions and schools in the linked data, for a page whose sections lack them


def _linked_experience(person: Person) -> list[Row]:
    """Return the positions in the page's linked data. Only present positions have titles."""
    present, titles = person.employers, [plain(each) for each in person.job_titles if each]
    if len(titles) != len(present):  # titles cannot be assigned to employers: only whether all are masked is used
        titles = titles[:1] * len(present) if titles and all(map(is_masked, titles)) else [""] * len(present)
    past = [each for each in person.past if isinstance(each, Employer)]
    rows = [_linked_position(each, title) for each, title in zip(present, titles, strict=True)]
    return rows + [_linked_position(each, "") for each in past]


def _linked_education(person: Person) -> list[Row]:
    """Return the schools in the page's linked data. If any employer or title is masked, all schools count as masked."""
    stated = [each.name for each in person.employers] + [each for each in person.job_titles if each]
    masked = any(map(is_masked, stated))
    return [_linked_school(each, masked=masked) for each in person.past if isinstance(each, School)]


def _linked_position(employer: Employer, title: str) -> Row:
    return _position(
        job_title=title,
        company_name=plain(employer.name),
        company_url=clean_url(employer.url),
        source="json_ld",
        start_date=text(employer.start),
        end_date=text(employer.end),
        location=plain(employer.location),
        description=plain(employer.description),
    )


def _linked_school(found: School, *, masked: bool) -> Row:
    name = plain(found.name)
    hidden = masked or is_masked(name)
    return {
        **empty(schema_rows.Education),
        "description": plain(found.description),
        "end_date": _year([text(found.end)]),
        "start_date": _year([text(found.start)]),
        "masked": hidden,
        "school_name": "" if hidden else name,
        "school_url": "" if hidden else clean_url(found.url),
    }


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
