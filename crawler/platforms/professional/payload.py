"""The contracts of a profile page's linked data: the member, articles and posts in schema.org's vocabulary.

The kinds of values were counted over 13 recorded blocks of 2024-04 to 2026-08. The data is optional: on some pages it
does not contain the member, and saved pages often lack it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from crawler.platforms.professional.sections import unknown_names
from crawler.reading.contract import Contract, Unread, always, filled, identity, sometimes
from crawler.reading.documents import linked_data
from crawler.reading.values import text

FOLLOW, LIKE = "FollowAction", "LikeAction"
"""The endings of the type names of statistics about followers and about likes."""


class Statistic(Contract):
    """A number of followers or of likes."""

    kind: str | None = filled("interactionType")
    number: int | float | str | None = filled("userInteractionCount")


class Affiliation(Contract, nulls=False):
    """An employer or a school, with dates."""

    name: str = identity("name")
    url: str | None = sometimes("url")
    description: str | None = sometimes("member.description", nulls=True)
    start: int | str | None = sometimes("member.startDate")
    end: int | str | None = sometimes("member.endDate")


class Employer(Affiliation, tag=("@type", "Organization"), nulls=False):
    """A present or past employer."""

    location: str | None = sometimes("location")


class PastEmployer(Employer):
    """A past employer."""

    start: int | str | None = always("member.startDate")
    end: int | str | None = always("member.endDate")


class School(Affiliation, tag=("@type", "EducationalOrganization"), nulls=False):
    """A school with years. Schools without years are not in the linked data."""

    start: int | str | None = always("member.startDate")


class Language(Contract, nulls=False):
    """A language that the member speaks."""

    name: str = identity("name")


class Person(Contract, nulls=False):
    """The member whose profile the page shows."""

    name: str = identity("name")
    url: str | None = always("url")
    description: str | None = sometimes("description")
    image: str | None = always("image.contentUrl")
    """The platform's placeholder for a member without a picture."""
    country: str | None = always("address.addressCountry")
    locality: str | None = always("address.addressLocality")
    statistics: list[Statistic] = always("interactionStatistic[]")
    job_titles: list[str | None] = sometimes("jobTitle[]")
    employers: list[Employer] = always("worksFor[]")
    past: list[PastEmployer | School] = always("alumniOf[]")
    awards: list[str] = sometimes("awards[]")
    languages: list[Language] = always("knowsLanguage[]")


class Article(Contract, nulls=False):
    """An article by the member. Until 2024, its title was under ``name``."""

    url: str = identity("url")
    title: str | None = filled("headline", "name")
    image: str | None = sometimes("image.url")
    published: str | None = sometimes("datePublished")
    statistics: list[Statistic] = sometimes("interactionStatistic[]")


class Posting(Contract, nulls=False):
    """A post by the member."""

    url: str = identity("url")
    text: str | None = filled("text")
    author: str | None = filled("author.name")
    author_url: str | None = filled("author.url")
    published: str | None = filled("datePublished")
    statistics: list[Statistic] = sometimes("interactionStatistic[]")


class LinkedData(Contract, nulls=False):
    """The nodes in the page's linked data that are used for the record, by type."""

    person: Person | None = sometimes("Person")
    articles: list[Article] = sometimes("Article[]")
    postings: list[Posting] = sometimes("DiscussionForumPosting[]")


_LISTS = ("interactionStatistic", "worksFor", "alumniOf", "jobTitle", "awards", "knowsLanguage")
"""Keys whose value is a list, or a single object without a list around it."""


_TOGETHER = {"Person": {"awards", "jobTitle", "memberOf"}, "Article[]": {"datePublished", "headline"}}
"""Path of nodes -> keys of which each recorded node has all or, in a form without them, none (14 members, 44
articles)."""


def nodes_by_type(blocks: Iterable[str | bytes]) -> tuple[dict[str, Any], list[Unread]]:
    """Return the nodes in the page's linked data in the structure of ``LinkedData``, and what could not be read.

    Unread are broken blocks, nodes of an unknown type, and keys that a node lacks although it has a key that stands
    together with them. A description of the page itself, which all recorded pages have, is left out.
    """
    found: dict[str, Any] = {"Article": [], "DiscussionForumPosting": []}
    unknown = []
    nodes, broken = linked_data(blocks)
    unread = [Unread("linked_data[]", "type", broken, loses_rows=True)] if broken else []
    for node in nodes:
        kind = node["@type"]
        if kind == "Person":
            found.setdefault("Person", _with_lists(node))
        elif kind in ("Article", "DiscussionForumPosting"):
            found[kind].append(_with_lists(node))
        elif kind != "WebPage":
            unknown.append(text(kind))
    if unknown:
        unread.append(unknown_names("linked_data", unknown, of=1))
    for path, keys in _TOGETHER.items():
        of_kind = [node.keys() for node in nodes if node["@type"] == path.removesuffix("[]")]
        lacking = Counter(key for node in of_kind if not keys.isdisjoint(node) for key in keys - node)
        unread += (Unread(f"{path}.{key}", "missing", number, len(of_kind)) for key, number in sorted(lacking.items()))
    return found, unread


def _with_lists(node: dict[str, Any]) -> dict[str, Any]:
    return node | {key: _as_list(node[key]) for key in _LISTS if key in node}


def _as_list(value: Any) -> Any:
    """Wrap a single object in a list, and unwrap a list that is the only entry of another list."""
    if isinstance(value, dict):
        return [value]
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) else value
