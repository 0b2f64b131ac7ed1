"""The linked data of the simulated profile pages: a part of the profile, in the schema.org vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.sandbox.professional.section import masked

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member, Position, Study

Node = dict[str, Any]


def linked_data(member: Member) -> Node:
    """Build the page's ``@graph``: articles, posts, the page itself, and at the end the member."""
    author = {"@type": "Person", "name": member.name, "url": member.url}
    articles = [
        {
            "@type": "Article",
            "author": author,
            "dateModified": "",
            "datePublished": "2026-05-02T00:35:55.000+00:00",
            "headline": row["title"],
            "image": {"@type": "ImageObject", **({"url": row["image"]} if row["image"] else {})},
            "interactionStatistic": _statistic("http://schema.org/LikeAction", 3694),
            "url": row["link"],
        }
        for row in member.rows["articles"]
    ]
    posts = [
        {
            "@context": "https://schema.org",
            "@type": "DiscussionForumPosting",
            "author": author,
            "datePublished": "2026-06-04T23:17:32.437Z",
            "headline": "",
            "interactionStatistic": _statistic("http://schema.org/LikeAction", 1609),
            "mainEntityOfPage": row["link"],
            "text": row["text"],
            "url": row["link"],
        }
        for row in member.rows["activity"]
        if row["author"] == member.name and row["action"].startswith(("Posted", member.name))
    ]
    page = {"@type": "WebPage", "reviewedBy": {"@type": "Person", "name": member.name}, "url": member.url}
    return {"@context": "http://schema.org", "@graph": [*articles, *posts, page, _person(member)]}


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
