"""The cards of a member's articles and activity, and the content items made of them (specification 2.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from crawler.platforms.model import empty
from crawler.platforms.professional.markup import clean_url, is_cut, last_segment, picture, plain, uncut
from crawler.platforms.professional.payload import LIKE, Article, Posting, Statistic
from crawler.platforms.professional.schema import MemberItem
from crawler.reading.values import count, hashtags, mentions, stated_day, unix_time

Row = dict[str, Any]

_TAB = "public_profile__"
_REACTIONS, _POSTS, _COMMENTS = f"{_TAB}reactions", f"{_TAB}posts", f"{_TAB}comments"
TABS = frozenset({_REACTIONS, _POSTS, _COMMENTS})
"""The values of ``data-tracking-control-name`` in the links of cards. The value identifies the tab of a card."""
_POST = re.compile(
    r"(?:/posts/(?:(?P<owner>[^/_?#]+)_)?(?:[^/?#]*-)?|urn:li:)(?:activity|share|ugcPost)[-:](?P<id>\d{1,20})(?!\w)"
)
"""Matches the author's name and the post's id in the link of a post. Before the id, there may be words of the text."""
_ARTICLE = re.compile(r"/pulse/(?P<id>[^/?#]+)")
_ID_TIME_SHIFT = 22
"""Number of low bits in an activity's id. The bits above them are the milliseconds since 1970 (in 8 of 8 posts of
2026-06)."""
_AUTHOR_PATHS = ("in", "company", "school", "showcase")
"""First path segments in the URLs of members, companies and schools. The second segment is the name."""


def activity(cells: Iterable[Row], postings: Iterable[Posting], own_name: str) -> list[Row]:
    """Return the cards of the activity: their cells, with the author of the post and what the linked data has of it.

    In the layout with a list, a card names the member who acted, not the author of the post. The author is the member
    if the link or the linked data says so; of any other author, only the name in the link is known. An author that a
    card's link contradicts is left out.

    Args:
        cells: the cells of the cards.
        postings: the posts in the linked data.
        own_name: the member's name in URLs.
    """
    stated = {clean_url(each.url): each for each in postings}
    cards = [_card(row, stated.get(row["link"]), own_name.casefold()) for row in cells]
    own_labels = {card["label"] for card in cards if card["is_own"]}
    return [card | {"content_type": _content_type(card, own_labels)} for card in cards]


def _card(row: Row, node: Posting | None, own_name: str) -> Row:
    owner = _owner(row["link"])
    card = row | {"label": row["action"].replace(row["author"], ""), "node": node, "is_contradiction": False}
    if "kind" in row:
        # A card that frames another post has an author for each of the two posts. If the first one cannot be found,
        # the second one is read. On the recorded page since 2026-07, all ten cards show the author in their link.
        shown = last_segment(row["author_url"], *_AUTHOR_PATHS).casefold()
        card["is_contradiction"] = bool(row["shared"] and owner and shown) and shown != owner.casefold()
    if card["is_contradiction"] or ("kind" not in row and owner.casefold() != own_name):
        card |= {"author": plain(node.author) if node else "", "author_url": clean_url(node.author_url) if node else ""}
    name = last_segment(card["author_url"], *_AUTHOR_PATHS) or ("" if "kind" in row else owner)
    whole = plain(node.text) if node else ""
    return card | {"author_username": name, "is_own": name.casefold() == own_name, "text": uncut(row["text"], whole)}


def _content_type(card: Row, own_labels: set[str]) -> str:
    """Return the kind of the member's action, without interpreting words.

    In the layout with tabs, the tab of reactions contains likes. In the tab of posts, another author's post, and a post
    that frames another post, is a share. All other cards are posts. In the layout with a list, the member's own posts
    are posts. Another author's post is a share if one of the member's own posts has the same line about the action;
    else it is a like.
    """
    if "kind" in card:
        if card["kind"] == _REACTIONS:
            return "like"
        return "share" if card["kind"] == _POSTS and (card["shared"] or not card["is_own"]) else "post"
    if card["is_own"]:
        return "post"
    return "share" if card["label"] in own_labels else "like"


def linked_activity(postings: Iterable[Posting]) -> list[Row]:
    """Return the cards of the posts in the linked data, for a page without a section with the activity."""
    return [
        {
            "author": plain(each.author),
            "author_username": last_segment(clean_url(each.author_url), *_AUTHOR_PATHS),
            "content_type": "post",
            "link": clean_url(each.url),
            "node": each,
            "text": plain(each.text),
        }
        for each in postings
    ]


def _owner(link: str) -> str:
    """Return the author's name in a post's link, "" if the link has none.

    >>> _owner("https://www.linkedin.com/posts/jane-doe_hello-activity-7400000000000000001-Xq_9")
    'jane-doe'
    >>> _owner("https://www.linkedin.com/posts/hello-activity-7400000000000000001-Xq_9")
    ''
    """
    found = _POST.search(unquote(link))
    return (found["owner"] or "") if found else ""


# Articles


def linked_article(found: Article) -> Row:
    """Return the cells for an article that is only in the linked data."""
    return {
        "image": picture(found.image) or "",
        "link": clean_url(found.url),
        "title": plain(found.title),
    }


def articles(cells: Iterable[Row], nodes: Iterable[Article], own: Row) -> list[Row]:
    """Return the cards of the member's articles.

    ``nodes``: the articles in the linked data, which have exact times. ``own``: the member as ``author`` and
    ``author_username``.
    """
    stated = {clean_url(each.url): each for each in nodes}
    return [
        {**row, **own, "content_type": "article", "node": stated.get(row["link"]), "text": row["title"]}
        for row in cells
    ]


# Content items


def item(card: Row) -> Row:
    """Return the content item of a card."""
    found, node, text = content_id(card["link"]), card["node"], card["text"]
    reactions, image = card.get("reactions"), card.get("image")
    published = unix_time(node.published) if node else None
    if published is None:
        published = _time_of_id(found) if found.isdigit() else _day(card.get("day") or "")
    words = text.rpartition(" ")[0] if is_cut(text) else text  # the word at which a text is cut may be cut, too
    return {
        **empty(MemberItem),
        "author_name": card["author"],
        "author_username": card["author_username"],
        "caption": text,
        "comment_count": card.get("comments"),
        "content_code": found,
        "content_id": found,
        "content_link": card["link"],
        "content_type": card["content_type"],
        "hashtags": hashtags(words),
        "images": [image] if image else [],
        "like_count": statistic(node.statistics, LIKE) if node and reactions is None else reactions,
        "mentions": mentions(words),
        "published_date": published,
        "thumbnail_image": image or "",
    }


def statistic(statistics: list[Statistic], kind: str) -> int | None:
    """Return the number in the first statistic of a kind, or None."""
    return next((count(each.number) for each in statistics if (each.kind or "").endswith(kind)), None)


def content_id(link: str) -> str:
    """Return the number of a post, or the last part of an article's URL, from its link. "" for any other link.

    >>> content_id("https://www.linkedin.com/posts/jane_hello-activity-7400000000000000001-Xq_9")
    '7400000000000000001'
    >>> content_id("https://www.linkedin.com/posts/jane_activity-7400000000000000001-Xq_9")
    '7400000000000000001'
    >>> content_id("https://www.linkedin.com/feed/update/urn%3Ali%3Aactivity%3A7400000000000000001")
    '7400000000000000001'
    >>> content_id("https://www.linkedin.com/pulse/na%C3%AFve-questions-jane-doe/")
    'naïve-questions-jane-doe'
    >>> content_id("https://www.linkedin.com/posts/jane_hello-Xq_9")
    ''
    """
    found = _POST.search(unquote(link)) or _ARTICLE.search(link)
    return unquote(found["id"]) if found else ""


def _time_of_id(found: str) -> int | None:
    """Return the time that an activity's id contains, in Unix seconds. Shorter ids, of before 2012, contain no time.

    >>> _time_of_id("7468440836972625921"), _time_of_id("12345")
    (1780615052, None)
    """
    seconds = (int(found) >> _ID_TIME_SHIFT) // 1000 if len(found) == 19 else 0
    return seconds or None


def _day(text: str) -> int | None:
    day = stated_day(text)
    return int(day.timestamp()) if day else None
