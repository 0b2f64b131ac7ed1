"""The contracts of a profile page's linked data: the member, articles and posts in schema.org's vocabulary.

The kinds of values were counted over 13 recorded blocks of 2024-04 to 2026-08. The data is optional: on some pages it
does not contain the member, and saved pages often lack it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crawler.reading.contract import Contract, always, identity, sometimes
from crawler.reading.json import linked_data

FOLLOW, LIKE = "FollowAction", "LikeAction"
"""The endings of the type names of statistics about followers and about likes."""


class Statistic(Contract):
    """A number of followers or of likes."""

    kind: str | None = always("interactionType")
    number: int | float | str | None = always("userInteractionCount")


class Affiliation(Contract):
    """An employer or a school, with dates."""

    name: str = identity("name")
    url: str | None = sometimes("url")
    description: str | None = sometimes("member.description")
    start: int | str | None = sometimes("member.startDate")
    end: int | str | None = sometimes("member.endDate")


class Employer(Affiliation, tag=("@type", "Organization")):
    """A present or past employer."""

    location: str | None = sometimes("location")


class School(Affiliation, tag=("@type", "EducationalOrganization")):
    """A school with years. Schools without years are not in the linked data."""


class Language(Contract):
    """A language that the member speaks."""

    name: str = identity("name")


class Person(Contract):
    """The member whose profile the page shows."""

    name: str = identity("name")
    url: str | None = always("url")
    description: str | None = sometimes("description")
    image: str | None = sometimes("image.contentUrl")
    country: str | None = sometimes("address.addressCountry")
    locality: str | None = sometimes("address.addressLocality")
    statistics: list[Statistic] = sometimes("interactionStatistic[]")
    job_titles: list[str | None] = sometimes("jobTitle[]")
    employers: list[Employer] = sometimes("worksFor[]")
    past: list[Employer | School] = sometimes("alumniOf[]")
    awards: list[str] = sometimes("awards[]")
    languages: list[Language] = sometimes("knowsLanguage[]")


class Article(Contract):
    """An article by the member. Until 2024, its title was under ``name``."""

    url: str = identity("url")
    title: str | None = always("headline", "name")
    image: str | None = sometimes("image.url")
    published: str | None = sometimes("datePublished")
    statistics: list[Statistic] = sometimes("interactionStatistic[]")


class Posting(Contract):
    """A post by the member."""

    url: str = identity("url")
    text: str | None = sometimes("text")
    author: str | None = sometimes("author.name")
    author_url: str | None = sometimes("author.url")
    published: str | None = sometimes("datePublished")
    statistics: list[Statistic] = sometimes("interactionStatistic[]")


class LinkedData(Contract):
    """The nodes in the page's linked data that are used for the record, by type."""

    person: Person | None = sometimes("Person")
    articles: list[Article] = sometimes("Article[]")
    postings: list[Posting] = sometimes("DiscussionForumPosting[]")


_LISTS = ("interactionStatistic", "worksFor", "alumniOf", "jobTitle", "awards", "knowsLanguage")
"""Keys whose value is a list, or a single entry without a list around it."""


def nodes_by_type(blocks: Iterable[str | bytes]) -> dict[str, Any]:
    """Return the nodes in the page's linked data in the structure of ``LinkedData``. Broken blocks are skipped."""
    found: dict[str, Any] = {"Article": [], "DiscussionForumPosting": []}
    for node in linked_data(blocks):
        kind = node.get("@type")
        if kind == "Person":
            if isinstance(node.get("name"), str) and node["name"]:
                found.setdefault("Person", _with_lists(node))
        elif kind in ("Article", "DiscussionForumPosting"):
            found[kind].append(_with_lists(node))
    return found


def _with_lists(node: dict[str, Any]) -> dict[str, Any]:
    return node | {key: _as_list(node[key]) for key in _LISTS if key in node}


def _as_list(value: Any) -> list[Any]:
    """Return a value as a list: wrap a single value, and unwrap a list that is the only entry of another list."""
    if not isinstance(value, list):
        return [] if value is None else [value]
    return value[0] if len(value) == 1 and isinstance(value[0], list) else value
