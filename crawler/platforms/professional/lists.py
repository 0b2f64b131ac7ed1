"""Builds all lists of the record, from the page's sections or its linked data (specification 2.6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crawler.platforms.professional import history, posts
from crawler.platforms.professional.document import Document
from crawler.platforms.professional.markup import Dates, plain
from crawler.platforms.professional.payload import LinkedData, Person

Row = dict[str, Any]

HISTORY = ("experience", "education")
MASKED = "masked_history"
"""The name of the section that replaces positions and schools on a masked page."""


def shown_lists(document: Document, activity: Iterable[Row]) -> dict[str, list[Any]]:
    """Return the lists from the page's sections, by field name. ``activity``: the cells of the activity's rows."""
    rows, head = document.sections.rows, document.head
    positions, schools = history.masked_rows(rows.get(MASKED, []), head.company, head.school)
    return {
        **{
            name: rows.get(name, []) for name in ("awards", "certifications", "courses", "languages", "recommendations")
        },
        "activity": [posts.activity(row) for row in activity],
        "articles": [posts.article(row) for row in rows.get("articles", [])],
        "education": [history.school(row) for row in rows.get("education", [])] + schools,
        "experience": [history.position(row) for row in rows.get("experience", [])] + positions,
        "organizations": [_organization(row) for row in rows.get("organizations", [])],
        "people_also_viewed": [_person(row, "summary") for row in rows.get("people_also_viewed", [])],
        "projects": [_dated(row) for row in rows.get("projects", [])],
        "publications": rows.get("publications", []),
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
    articles = [posts.linked_article(each) for each in linked.articles]
    found: dict[str, list[Any]] = {"articles": [posts.article(row) for row in articles]}
    return found | (_of_person(person) if person else {name: [] for name in ("awards", "languages", *HISTORY)})


def _of_person(person: Person) -> dict[str, list[Any]]:
    awards = filter(None, map(plain, person.awards))
    names = filter(None, (plain(each.name) for each in person.languages))
    return {
        "awards": [{"title": title, "issuer": "", "date": "", "description": ""} for title in awards],
        "education": history.linked_education(person),
        "experience": history.linked_experience(person),
        "languages": [{"name": name, "proficiency": ""} for name in names],
    }


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
    """Return a member's card. ``line``: the record's key for the line below the name.

    If a card has two details, the first is the number of followers. A single detail is that number if it has a digit.
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
