"""Builds all lists of the record, from the page's sections and its linked data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from crawler.platforms.model import Model, empty
from crawler.platforms.professional import posts, schema
from crawler.platforms.professional.document import Document
from crawler.platforms.professional.markup import (
    EMPLOYER_PAGES,
    Dates,
    clean_url,
    last_segment,
    plain,
    year,
    years,
)
from crawler.platforms.professional.masked import MASKED, Keyed, clear, is_masked, masked_rows, school_key
from crawler.platforms.professional.payload import Employer, LinkedData, Person, School
from crawler.reading.values import text

Row = dict[str, Any]

HISTORY = ("experience", "education")


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


def _history(document: Document, person: Person | None) -> dict[str, list[Row]]:
    """Return the positions and the schools.

    The linked data is used if the page has no section for them, and to complete the masked block: the block has only
    the first positions, and masks more than the linked data does.
    """
    rows = document.sections.rows
    positions, schools = masked_rows(rows.get(MASKED, []), document.head.company, document.head.school)
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
    return clear({**others, **_period(dates), "duration": dates.duration, "company_name_source": "page"})


def _period(dates: Dates) -> Row:
    return {"date_range": dates.text, "start_date": dates.start, "end_date": dates.end}


def _page_school(
    *, places: Sequence[str], dates: Dates, activities: Iterable[str], description: str, **others: Any
) -> Row:
    degree, field, grade = (*places, "", "", "")[:3]
    return clear(
        {
            **others,
            **years(dates),
            "degree": degree,
            "description": "\n".join(filter(None, [*activities, description])),
            "field_of_study": field,
            "grade": grade,
        }
    )


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
    return values["company_name"], clear(values)


def _linked_schools(person: Person) -> list[Keyed]:
    return [_linked_school(each) for each in person.past if isinstance(each, School)]


def _linked_school(found: School) -> Keyed:
    """Return a school in the linked data. Its dates are years, or texts with months ("2024-11")."""
    dates = [text(found.start), text(found.end)]
    stated = {"start_date": year(dates[0]), "end_date": year(dates[1])}
    values = {
        "school_name": plain(found.name),
        "school_url": clean_url(found.url),
        "date_range": " - ".join(filter(None, dates)) if any("-" in each for each in dates) else "",
        "description": plain(found.description),
    }
    return school_key(stated), clear({**stated, **values})
