"""Reads a profile page's lists, except positions and schools, and returns a dict for each row (specification 2.6)."""

from __future__ import annotations

import re
from typing import Any

from crawler.platforms.professional.markup import (
    cards,
    clean_url,
    collapsed,
    image,
    line,
    link,
    paragraphs,
    person_card,
    picture,
    plain,
)
from crawler.reading.json import dig
from crawler.reading.markup import Node

Rows = list[dict[str, Any]]
Card = tuple[Node, dict[str, Any]]
"""A card's HTML and its data."""

_ACTION = re.compile(r" (?:shared|reposted|liked|reacted on|commented on) this$")
_QUOTES = "“”„‟«»\"' \n\xa0"
_CUT = "…"
SAME_NAME = 'a[href*="public_profile_samename"]'
"""Selects the links to other members with the same name, by a tracking mark."""

# Matches the parts that follow the text about the member in the page's meta description.
_DESCRIPTION_END = re.compile(
    r"(?:^| · )(?:(?:Experience|Education|Location): |[^·]{0,40}\b(?:connections?|followers?) on |View ).*$", re.DOTALL
)


def described(description: str, headline: str) -> str:
    """Return the text about the member from the page's meta description, where it follows the headline.

    >>> described("CEO · I write. · Experience: A · 8 connections on LinkedIn. View Jo’s profile on LinkedIn.", "CEO")
    'I write.'
    """
    return _DESCRIPTION_END.sub("", description.removeprefix(headline).removeprefix(" · "))


# Recent activity: a page has one of two layouts


def activity(page: Node, linked: Rows) -> Rows:
    """Return the activity from either layout, in page order.

    The member's comments in the layout with tabs are skipped, because they lack an author.
    """
    return [row for _, row in activity_cards(page, linked)]


def activity_cards(page: Node, linked: Rows) -> list[Card]:
    """Return the HTML and the data of each card in the activity.

    Texts that the page cuts are completed from ``linked``: the posts in the page's linked data.
    """
    whole = {clean_url(node.get("url")): plain(node.get("text")) for node in linked}
    found = []
    for node in page.css('section[data-section="posts"] li'):
        if is_slide(node):
            row = _tab_card(node)
        elif node.is_child("ul[data-test-id='activities__list']"):
            row = _list_card(node)
        else:
            continue
        row["text"] = _uncut(row["text"], whole.get(row["link"], ""))
        if row["link"] or row["text"]:
            found.append((node, row))
    return found


def is_slide(node: Node) -> bool:
    """Whether a card of the activity belongs to the layout with tabs."""
    return "slide-list__item" in node.classes


def _list_card(node: Node) -> dict[str, Any]:
    return {
        "action": line(node, "h4.base-main-card__subtitle"),
        "author": line(node, "h4.base-main-card__subtitle a"),
        "author_url": link(node, "h4.base-main-card__subtitle a"),
        "image": image(node, "img.main-activity-card__img"),
        "link": link(node, "a.base-card__full-link"),
        "text": line(node, "h3.base-main-card__title"),
    }


def _tab_card(node: Node) -> dict[str, Any]:
    # A card has two to five links of this class: to the author, to the post (twice in a reaction), to shared content.
    links = [
        (collapsed("".join(span.text for span in each.outermost("span"))), each)
        for each in node.css("a.base-card__full-link")
    ]
    actions = [(label, each) for label, each in links if _ACTION.search(label)]
    action, post = next(
        iter(actions or [each for each in links if "/posts/" in (each[1].get("href") or "")]), ("", None)
    )
    author = node.first(".profile-activity-original-author") or node.first(".profile-activity-root-author")
    return {
        "action": action,
        "author": line(author, ".base-main-card__title"),
        "author_url": link(author, "a.base-card__full-link"),
        "image": image(node, ".profile-activity-content-card img") or image(node, "img.object-contain"),
        "link": clean_url(post.get("href")) if post else "",
        "text": paragraphs(node.first(".see-more-text")),
    }


def _uncut(shown: str, whole: str) -> str:
    """Return the full text from the linked data if the page shows only its beginning, else the shown text."""
    cut = shown.endswith(_CUT) and " ".join(whole.split()).startswith(shown.removesuffix(_CUT).rstrip())
    return whole if cut else shown


# Articles, skills, and people


def articles(page: Node) -> Rows:
    """Return the articles from the page's section."""
    return [row for _, row in article_cards(page)]


def article_cards(page: Node) -> list[Card]:
    """Return the HTML and the data of each card in the page's section with articles."""
    found = [
        (
            node,
            {
                "image": image(node, ".base-main-card__media img") or "",
                "link": link(node, "a.base-card__full-link"),
                "title": line(node, "h3.base-main-card__title"),
            },
        )
        for node in page.css('section[data-section="articles"] li .base-main-card')
    ]
    return [(node, row) for node, row in found if row["title"] or row["link"]]


def linked_articles(nodes: Rows) -> Rows:
    """Return the articles from the linked data."""
    rows = [
        {
            "image": picture(dig(node, "image", "url")) or "",
            "link": clean_url(node.get("url")),
            "title": plain(node.get("headline") or node.get("name")),
        }
        for node in nodes
    ]
    return [row for row in rows if row["title"] or row["link"]]


def skills(page: Node) -> list[str]:
    """Return the names of the skills."""
    return [
        name for name in (line(node) for node in page.css('section[data-section="skills"] li.skills__item')) if name
    ]


def recommendations(page: Node) -> Rows:
    """Return the texts in which other people recommend the member, without the quotation marks around them."""
    rows = [
        {
            "name": line(node, "h3"),
            "url": link(node, "a"),
            "text": paragraphs(node.first(".endorsement-card__content")).strip(_QUOTES),
        }
        for node in page.css('section[data-section="recommendations"] .endorsement-card')
    ]
    return [row for row in rows if row["name"]]


def people_also_viewed(page: Node) -> Rows:
    """Return other members that the page links to. The section is found by its class, because its heading varies."""
    rows = []
    for node in page.css("section.browsemap li .base-aside-card"):
        person = person_card(node)
        if person["name"]:
            person["summary"] = person.pop("line")
            rows.append(person)
    return rows


def same_name(page: Node) -> Rows:
    """Return other members with the same name. Their cards are found by a tracking mark in the links."""
    rows = []
    marked = [each for each in page.css("li") if each.has(SAME_NAME)] if page.has(SAME_NAME) else []
    for node in marked:
        if any(each.has(SAME_NAME) for each in node.css("li")[1:]):
            continue
        person = person_card(node)
        if person["name"]:
            del person["followers"]
            person["headline"] = person.pop("line")
            rows.append(person)
    return rows


def websites(page: Node) -> Rows:
    """Return the websites from the top section. A single website is a link there; several are a list in a dialog."""
    found = page.css('[data-section="websites"]')
    several = [row for section in found for row in section.css(".websites-list__row")]
    if several:
        rows = [{"label": line(node, "dt"), "url": link(node, "dd a")} for node in several]
    else:
        single = [each for section in found for each in section.css("a")]
        label = ".top-card-link__description"
        rows = [{"label": line(node, label), "url": clean_url(node.get("href"))} for node in single]
    return [row for row in rows if row["url"]]


# Lists whose rows are cards


def awards(page: Node) -> Rows:
    """Return the honours from the page's section."""
    return [
        {"title": card.title, "issuer": card.subtitle, "date": card.date, "description": card.description}
        for card in cards(page, "honors-and-awards")
    ]


def linked_awards(person: dict[str, Any]) -> Rows:
    """Return the honours from the linked data, which has only their titles."""
    return [
        {"title": plain(title), "issuer": "", "date": "", "description": ""}
        for title in _list(person.get("awards"))
        if plain(title)
    ]


def certifications(page: Node) -> Rows:
    """Return the licences and certificates."""
    return [
        {
            "name": card.title,
            "issuer": card.subtitle,
            "issued": card.date,
            "credential_url": link(
                card.node, 'a[data-tracking-control-name$="see-credential"], a[href*="see-credential"]'
            ),
            "url": card.title_url,
        }
        for card in cards(page, "certifications")
    ]


def courses(page: Node) -> Rows:
    """Return the courses that the member took. Courses that the member taught are in another section."""
    return [{"name": card.title, "number": card.subtitle} for card in cards(page, "courses")]


def languages(page: Node) -> Rows:
    """Return the languages from the page's section."""
    return [{"name": card.title, "proficiency": card.subtitle} for card in cards(page, "languages")]


def linked_languages(person: dict[str, Any]) -> Rows:
    """Return the languages from the linked data, which has only their names."""
    return [
        {"name": plain(dig(node, "name")), "proficiency": ""}
        for node in _list(person.get("knowsLanguage"))
        if plain(dig(node, "name"))
    ]


def organizations(page: Node) -> Rows:
    """Return the memberships in organizations."""
    return [
        {
            "name": card.title,
            "position": card.subtitle,
            "date_range": card.date_range,
            "description": card.description or "\n".join(card.paragraphs),
        }
        for card in cards(page, "organizations")
    ]


def projects(page: Node) -> Rows:
    """Return the projects."""
    return [
        {
            "title": card.title,
            "url": card.title_url,
            "date_range": card.date_range,
            "description": card.description,
            "contributors": card.contributors,
        }
        for card in cards(page, "projects")
    ]


def publications(page: Node) -> Rows:
    """Return the publications."""
    return [
        {
            "title": card.title,
            "publisher": card.subtitle,
            "date": card.date,
            "url": card.title_url,
            "description": card.description,
            "contributors": card.contributors,
        }
        for card in cards(page, "publications")
    ]


def volunteer_experience(page: Node) -> Rows:
    """Return the member's unpaid positions."""
    return [
        {
            "role": card.title,
            "organization": card.subtitle,
            "organization_url": card.subtitle_url,
            "cause": next(iter(card.paragraphs), ""),
            "date_range": card.date_range,
            "description": card.description,
        }
        for card in cards(page, "volunteering")
    ]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
