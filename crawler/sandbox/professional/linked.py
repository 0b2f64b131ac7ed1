"""The linked data of the simulated profile pages, which contains a part of the profile in schema.org's vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from crawler.sandbox.professional.figures import figures
from crawler.sandbox.professional.section import masked

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member, Position, Study
    from crawler.sandbox.professional.words import Row

Node = dict[str, Any]


def linked_data(member: Member) -> Node:
    """Build the page's ``@graph``: articles, posts, the page itself, and last the member."""
    author = {"@type": "Person", "name": member.name, "url": member.url}
    articles = [
        {
            "@type": "Article",
            "author": author,
            "dateModified": "",
            "datePublished": figures(row).time_text,
            "headline": row["title"],
            "image": {"@type": "ImageObject", **({"url": row["image"]} if row["image"] else {})},
            "interactionStatistic": _statistic("http://schema.org/LikeAction", figures(row).reactions),
            "url": row["link"],
        }
        for row in member.rows["articles"]
    ]
    posts = [
        {
            "@context": "https://schema.org",
            "@type": "DiscussionForumPosting",
            "author": author,
            "datePublished": figures(row).time_text.replace("+00:00", "Z"),
            "headline": "",
            "interactionStatistic": _statistic("http://schema.org/LikeAction", figures(row).reactions),
            "mainEntityOfPage": row["link"],
            "text": row["text"],
            "url": row["link"],
        }
        for row in member.rows["activity"]
        if is_own(member, row)
    ]
    page = {"@type": "WebPage", "reviewedBy": {"@type": "Person", "name": member.name}, "url": member.url}
    return {"@context": "http://schema.org", "@graph": [*articles, *posts, page, _person(member)]}


def is_own(member: Member, row: Row) -> bool:
    """Whether an activity row is the member's own post. The linked data contains only these rows of the activity."""
    return f"/posts/{quote(member.slug)}_" in row["link"]


def _person(member: Member) -> Node:
    present = [position for position in member.positions if position.end == "Present"]
    past = [position for position in member.positions if position.end != "Present"]
    address = {"addressLocality": member.location} if member.location else {}
    return {
        "@context": "http://schema.org",
        "@type": "Person",
        "address": {"@type": "PostalAddress", "addressCountry": member.country, **address},
        "alumniOf": [_employer(member, each) for each in past]
        + [_school(study) for study in member.studies if study.start],
        "awards": [row["title"] for row in member.rows["awards"]],
        "disambiguatingDescription": "Creator, Top Voice",
        "image": {"@type": "ImageObject", **({"contentUrl": member.photo} if member.photo else {})},
        "jobTitle": [masked(each.title) if member.masked else each.title for each in present],
        "knowsLanguage": [{"@type": "Language", "name": row["name"]} for row in member.rows["languages"]],
        "memberOf": [],
        "name": member.name,
        "sameAs": member.url,
        "url": member.url,
        "worksFor": [_employer(member, each) for each in present],
        "interactionStatistic": {**_statistic("https://schema.org/FollowAction", member.followers), "name": "Follows"},
        "description": member.cut_about if member.masked else member.about.replace("\n", "<br>"),
    }


def _employer(member: Member, position: Position) -> Node:
    role: Node = {"@type": "OrganizationRole"}
    if member.masked and position is not member.positions[0]:
        return {"@type": "Organization", "name": masked(position.at.name), "member": role}
    if position.start and not member.masked:
        role["startDate"] = int(position.start) if position.start.isdecimal() else "2021-07"
    url = {"url": position.at.url} if position.at.url else {}
    return {"@type": "Organization", "name": f"{position.at.name} ", **url, "member": role}


def _school(study: Study) -> Node:
    role = {"@type": "OrganizationRole", "startDate": study.start, **({"endDate": study.end} if study.end else {})}
    return {"@type": "EducationalOrganization", "name": study.at.name, "url": study.at.url, "member": role}


def _statistic(kind: str, number: int) -> Node:
    return {"@type": "InteractionCounter", "interactionType": kind, "userInteractionCount": number}
