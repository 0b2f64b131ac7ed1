"""Reads a member's articles and activity as content items (specification 2.4), with their figures and dates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from crawler.platforms.professional import sections
from crawler.platforms.professional.markup import clean_url, last_segment, line, plain
from crawler.reading.json import dicts, dig
from crawler.reading.markup import Node
from crawler.reading.values import count, stated_day, text, unix_time

Row = dict[str, Any]

ARTICLE, POSTING = "Article", "DiscussionForumPosting"
"""Types of nodes in the linked data."""

# "Liked by Jane Doe" in the layout with a list, "Jane Doe liked this" in the layout with tabs.
_VERB = re.compile(r"^(\w+)(?: on)? by |\b(\w+)(?: on)? this$")
_TYPES = {"liked": "like", "reacted": "like", "reposted": "share", "shared": "share"}
_POSTED = "posted"
_ACTIVITY_ID = re.compile(r"[-:](?:activity|share|ugcPost)[-:](\d+)")
_AUTHOR_PATHS = ("in", "company", "school", "showcase")
"""First path segments in the URLs of members, companies and schools. Their name is the second segment."""


class _Entry(NamedTuple):
    """An article or a post: its card, its link, and the fields that depend on where it was read."""

    card: Node | None
    """The card's HTML. None if only the linked data has the entry."""
    link: str
    image: str | None
    fields: Row


def content_items(page: Node, nodes: list[Row], articles: list[Row], *, author: Row) -> list[Row]:
    """Return the member's articles, then the activity. Entries whose link has no id are left out.

    Args:
        page: the profile's page.
        nodes: the nodes in its linked data. They have exact dates, and numbers that some cards lack.
        articles: the articles of the flat profile, for a page that has them only in the linked data.
        author: the member's ``author_name`` and ``author_username``.
    """
    linked = {clean_url(node.get("url")): node for node in nodes if node.get("@type") in {ARTICLE, POSTING}}
    entries = [*_articles(page, articles, author), *_activity(page, linked)]
    return [_item(entry, linked.get(entry.link, {})) for entry in entries if _id(entry.link)]


def _articles(page: Node, rows: list[Row], author: Row) -> Iterator[_Entry]:
    cards: list[tuple[Node | None, Row]] = [*sections.article_cards(page)] or [(None, row) for row in rows]
    for card, row in cards:
        fields = {**author, "caption": row["title"], "content_type": "article"}
        yield _Entry(card, row["link"], row["image"], fields)


def _activity(page: Node, linked: dict[str, Row]) -> Iterator[_Entry]:
    """Yield the cards of the activity, or the posts in the linked data if the page has no section with activity."""
    posts = {url: node for url, node in linked.items() if node["@type"] == POSTING}
    for card, row in sections.activity_cards(page, list(posts.values())):
        found = _VERB.search(row["action"])
        verb = (found[1] or found[2]).lower() if found else ""
        # In the layout with a list, the card names the member who acted, instead of the post's author.
        names_author = sections.is_slide(card) or verb == _POSTED
        author = _author(row["author"], row["author_url"]) if names_author else {}
        fields = {**author, "caption": row["text"], "content_type": _TYPES.get(verb, "post")}
        yield _Entry(card, row["link"], row["image"], fields)
    if page.css('section[data-section="posts"]'):
        return
    for url, node in posts.items():
        author = _author(plain(dig(node, "author", "name")), clean_url(dig(node, "author", "url")))
        yield _Entry(None, url, None, {**author, "caption": plain(node.get("text")), "content_type": "post"})


def _author(name: str, url: str) -> Row:
    return {"author_name": name, "author_username": last_segment(url, *_AUTHOR_PATHS)}


def _item(entry: _Entry, node: Row) -> Row:
    """Build a content item. ``node`` is the same article or post in the linked data, or {}."""
    card = entry.card
    reactions = _number(card, "data-num-reactions")
    day = stated_day(line(card, ".base-main-card__metadata"))
    published = unix_time(node.get("datePublished"))
    return {
        **_empty_item(),
        **entry.fields,
        "comment_count": _number(card, "data-num-comments"),
        "content_code": _id(entry.link),
        "content_id": _id(entry.link),
        "content_link": entry.link,
        "images": [entry.image] if entry.image else [],
        "like_count": _linked_likes(node) if reactions is None else reactions,
        "published_date": int(day.timestamp()) if published is None and day else published,
    }


def _number(card: Node | None, attribute: str) -> int | None:
    found = card.first(f"[{attribute}]") if card else None
    return count(found.get(attribute)) if found else None


def _id(link: str) -> str:
    """Return the activity's id in a link, else the last part of the link's path, "" without a path.

    >>> _id("https://www.linkedin.com/posts/jane_hello-activity-7400000000000000001-Xq_9")
    '7400000000000000001'
    >>> _id("https://www.linkedin.com/pulse/na%C3%AFve-questions-jane-doe/")
    'naïve-questions-jane-doe'
    """
    path = urlsplit(link).path.rstrip("/")
    found = _ACTIVITY_ID.search(path)
    return found[1] if found else unquote(path.rpartition("/")[2])


def _linked_likes(node: Row) -> int | None:
    """Return the number of likes in a node of the linked data, which has one statistic or a list of statistics."""
    statistics = node.get("interactionStatistic")
    found = (
        each for each in dicts([statistics, *dicts(statistics)]) if "LikeAction" in text(each.get("interactionType"))
    )
    return count(dig(next(found, None), "userInteractionCount"))


def _empty_item() -> Row:
    """Return a content item without data."""
    return {
        "age_restriction_status": None,
        "author_id": None,
        "author_name": "",
        "author_username": "",
        "caption": "",
        "comment_count": None,
        "content_code": "",
        "content_id": "",
        "content_language": None,
        "content_link": "",
        "content_type": "",
        "first_comment": None,
        "hashtags": [],
        "images": [],
        "like_count": None,
        "media_links": dict.fromkeys(("high", "low", "medium", "watermarked")),
        "mentions": [],
        "published_date": None,
        "slideshow_status": None,
        "subtitles": None,
        "thumbnail_image": "",
        "transcript": None,
        "video_duration_seconds": None,
        "video_link": None,
        "view_count": None,
    }
