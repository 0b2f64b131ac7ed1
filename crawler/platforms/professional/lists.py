"""Professional network: all lists of a profile, from the page's sections or else from its linked data.

Each row of a section must give a row of the list. The rows that were not understood are counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from parsel import Selector

from crawler.platforms.professional import history, sections

Row = dict[str, Any]

_OUTERMOST = ".//li[not(ancestor::li)]"
_INNERMOST = ".//li[not(.//li)]"
_POSTS = ".//li[.//a[contains(@href, '/posts/')]][not(ancestor::li[.//a[contains(@href, '/posts/')]])]"

_PEOPLE = "*[contains(@class, 'base-aside-card__title')][ancestor::li]"
"""Selects the names of other members."""
_KNOWN_PEOPLE = (
    f"//section[contains(concat(' ', @class, ' '), ' browsemap ')]//{_PEOPLE} | "
    f"//a[contains(@href, 'public_profile_samename')]/ancestor::li//{_PEOPLE}"
)
"""Selects the names of other members in known sections."""

# The section of each list, and its rows: list items, except those of people and pictures within a row.
_ROWS: dict[str, tuple[str, str]] = {
    "activity": ('section[data-section="posts"]', _POSTS),
    "articles": ('section[data-section="articles"]', _OUTERMOST),
    "awards": ('section[data-section="honors-and-awards"]', _OUTERMOST),
    "certifications": ('section[data-section="certifications"]', _OUTERMOST),
    "courses": ('section[data-section="courses"]', _OUTERMOST),
    "education": (history.EDUCATION, _OUTERMOST),
    "experience": (history.EXPERIENCE, _INNERMOST),
    "languages": ('section[data-section="languages"]', _OUTERMOST),
    "organizations": ('section[data-section="organizations"]', _OUTERMOST),
    "people_also_viewed": ("section.browsemap", _OUTERMOST),
    "projects": ('section[data-section="projects"]', _OUTERMOST),
    "publications": ('section[data-section="publications"]', _OUTERMOST),
    "recommendations": ('section[data-section="recommendations"]', _OUTERMOST),
    "skills": ('section[data-section="skills"]', _OUTERMOST),
    "volunteer_experience": ('section[data-section="volunteering"]', _OUTERMOST),
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


def shown_lists(page: Selector, linked_posts: list[Row], top_card: Row) -> dict[str, list[Any]]:
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


def has_rows(page: Selector, name: str) -> bool:
    """Whether the page has rows of a list, whether or not they can be understood."""
    section, rows = _ROWS[name]
    return bool(page.css(section).xpath(rows)) or (name in HISTORY and bool(page.css(f"{history.MASKED_BLOCK} li")))


def unread_rows(page: Selector, shown: dict[str, list[Any]]) -> list[Unread]:
    """Return the sections in which rows were not understood. ``shown`` are the lists from the page's sections."""
    found = [
        Unread(name, f"{section} li", present - len(shown[name]), not shown[name])
        for name, (section, rows) in _ROWS.items()
        if (present := len(page.css(section).xpath(rows))) > len(shown[name])
    ]
    masked, understood = (
        len(page.css(history.MASKED_BLOCK).xpath(_OUTERMOST)),
        sum(len(shown[name]) for name in HISTORY),
    )
    if masked > understood:
        found.append(Unread("experience", f"{history.MASKED_BLOCK} li", masked - understood, not understood))
    people = len(page.xpath(f"//{_PEOPLE}")) - len(page.xpath(_KNOWN_PEOPLE))
    if people:
        found.append(Unread("people_also_viewed", "section.browsemap", people, not shown["people_also_viewed"]))
    several = page.css('[data-section="websites"] dd a')
    websites = len(sections.websites(page)) if several else 0
    if len(several) > websites:
        found.append(Unread("websites", '[data-section="websites"] dd', len(several) - websites, not websites))
    return found
