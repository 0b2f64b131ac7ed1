"""Professional network: all lists of a profile, from the page's sections or else from its linked data.

Each row of a section must give a row of the list. The rows that were not understood are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from crawler.platforms.professional import history, sections
from crawler.reading.markup import Node

Row = dict[str, Any]

_PERSON = '[class*="base-aside-card__title"]'
"""Selects the names of other members."""


def _outermost(section: Node) -> list[Node]:
    return section.outermost("li")


def _innermost(section: Node) -> list[Node]:
    return [row for row in section.css("li") if not row.has("li")]


def _posts(section: Node) -> list[Node]:
    return [row for row in section.outermost("li") if row.has('a[href*="/posts/"]')]


# The section of each list, and its rows: list items, except those of people and pictures within a row.
_ROWS: dict[str, tuple[str, Callable[[Node], list[Node]]]] = {
    "activity": ('section[data-section="posts"]', _posts),
    "articles": ('section[data-section="articles"]', _outermost),
    "awards": ('section[data-section="honors-and-awards"]', _outermost),
    "certifications": ('section[data-section="certifications"]', _outermost),
    "courses": ('section[data-section="courses"]', _outermost),
    "education": (history.EDUCATION, _outermost),
    "experience": (history.EXPERIENCE, _innermost),
    "languages": ('section[data-section="languages"]', _outermost),
    "organizations": ('section[data-section="organizations"]', _outermost),
    "people_also_viewed": ("section.browsemap", _outermost),
    "projects": ('section[data-section="projects"]', _outermost),
    "publications": ('section[data-section="publications"]', _outermost),
    "recommendations": ('section[data-section="recommendations"]', _outermost),
    "skills": ('section[data-section="skills"]', _outermost),
    "volunteer_experience": ('section[data-section="volunteering"]', _outermost),
}
_LINKED = {"awards": "Person.awards", "education": "Person.alumniOf", "languages": "Person.knowsLanguage"}
"""List -> its path in the linked data, for lists that ``unread_linked_rows`` checks."""
HISTORY = ("experience", "education")
"""The lists that a masked page has in one section."""


class Unread(NamedTuple):
    """The rows of a section that were not understood."""

    list_name: str
    section: str
    """The section's selector, or the list's path in the linked data."""
    number: int
    is_whole: bool
    """Whether no row of the section was understood."""


def shown_lists(page: Node, linked_posts: list[Row], top_card: Row) -> dict[str, list[Any]]:
    """Return all lists from the page's sections, by field name. ``top_card`` is the company in the profile's head."""
    return {
        "activity": sections.activity(page, linked_posts),
        "articles": sections.articles(page),
        "awards": sections.awards(page),
        "certifications": sections.certifications(page),
        "courses": sections.courses(page),
        "education": history.education(page),
        "experience": history.experience(page, top_card),
        "languages": sections.languages(page),
        "organizations": sections.organizations(page),
        "people_also_viewed": sections.people_also_viewed(page),
        "projects": sections.projects(page),
        "publications": sections.publications(page),
        "recommendations": sections.recommendations(page),
        "skills": sections.skills(page),
        "volunteer_experience": sections.volunteer_experience(page),
    }


def linked_lists(person: Row, articles: list[Row]) -> dict[str, list[Any]]:
    """Return the lists that the page's linked data has, by field name."""
    return {
        "articles": sections.linked_articles(articles),
        "awards": sections.linked_awards(person),
        "education": history.linked_education(person),
        "experience": history.linked_experience(person),
        "languages": sections.linked_languages(person),
    }


def unread_linked_rows(person: Row, linked: dict[str, list[Any]], absent: set[str]) -> list[Unread]:
    """Return the lists of the linked data in which rows were not understood.

    ``linked``: the lists that were read from the linked data. ``absent``: the names of the lists that no section of the
    page has. Other lists are not checked.
    """
    present = {
        "awards": person.get("awards"),
        "education": [node for node in history.flat(person.get("alumniOf")) if node.get("@type") != "Organization"],
        "languages": person.get("knowsLanguage"),
    }
    return [
        Unread(name, _LINKED[name], len(rows) - len(linked[name]), is_whole=False)
        for name, rows in present.items()
        if name in absent and isinstance(rows, list) and len(rows) > len(linked[name])
    ]


def has_rows(page: Node, name: str) -> bool:
    """Whether the page has rows of a list, whether or not they can be understood."""
    return _present(page, name) > 0 or (name in HISTORY and bool(page.css(f"{history.MASKED_BLOCK} li")))


def _present(page: Node, name: str) -> int:
    """Return the number of rows in a list's section, whether or not they can be understood."""
    section, rows = _ROWS[name]
    return sum(len(rows(each)) for each in page.css(section))


def unread_rows(page: Node, shown: dict[str, list[Any]]) -> list[Unread]:
    """Return the sections in which rows were not understood. ``shown`` are the lists from the page's sections."""
    found = [
        Unread(name, f"{section} li", present - len(shown[name]), not shown[name])
        for name, (section, _) in _ROWS.items()
        if (present := _present(page, name)) > len(shown[name])
    ]
    masked = sum(len(_outermost(block)) for block in page.css(history.MASKED_BLOCK))
    understood = sum(len(shown[name]) for name in HISTORY)
    if masked > understood:
        found.append(Unread("experience", f"{history.MASKED_BLOCK} li", masked - understood, not understood))
    people = _unknown_people(page)
    if people:
        found.append(Unread("people_also_viewed", "section.browsemap", people, not shown["people_also_viewed"]))
    several = page.css('[data-section="websites"] dd a')
    websites = len(sections.websites(page)) if several else 0
    if len(several) > websites:
        found.append(Unread("websites", '[data-section="websites"] dd', len(several) - websites, not websites))
    return found


def _unknown_people(page: Node) -> int:
    """Return the number of other members in lists that no function reads."""
    rows = [row for row in page.outermost("li") if not row.has(sections.SAME_NAME)]
    people = [person for row in rows if row.has(_PERSON) for person in row.css(_PERSON) if person.number != row.number]
    return sum(not person.is_inside("section.browsemap") for person in people)
