"""A member's articles and activity: their cells, and content items with counts and dates (specification 2.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from crawler.platforms.model import empty
from crawler.platforms.professional.markup import clean_url, last_segment, picture, plain
from crawler.platforms.professional.payload import LIKE, Article, LinkedData, Posting, Statistic
from crawler.platforms.professional.schema import MemberItem
from crawler.reading.values import count, stated_day, unix_time

Row = dict[str, Any]

_CUT = "…"
_TAB = "public_profile__"
_REACTIONS, _POSTS, _COMMENTS = f"{_TAB}reactions", f"{_TAB}posts", f"{_TAB}comments"
TABS = frozenset({_REACTIONS, _POSTS, _COMMENTS})
"""The values of ``data-tracking-control-name`` in the links of cards. The value identifies the tab of a card."""
_ACTIVITY_ID = re.compile(r"[-:](?:activity|share|ugcPost)[-:](\d+)")
_ID_TIME_SHIFT = 22
"""Number of low bits in an activity's id. The bits above them are the milliseconds since 1970 (in 8 of 8 posts of
2026-06)."""
_OWNER = re.compile(r"/posts/([^/_?#]+)_")
_AUTHOR_PATHS = ("in", "company", "school", "showcase")
"""First path segments in the URLs of members, companies and schools. The second segment is the name."""


def completed(rows: list[Row], postings: Iterable[Posting]) -> list[Row]:
    """Return the activity, with texts that the page shortens replaced by complete texts from the linked data."""
    whole = {clean_url(each.url): plain(each.text) for each in postings}
    return [row | {"text": _uncut(row["text"], whole.get(row["link"], ""))} for row in rows]


def _uncut(shown: str, whole: str) -> str:
    cut = shown.endswith(_CUT) and " ".join(whole.split()).startswith(shown.removesuffix(_CUT).rstrip())
    return whole if cut else shown


def is_author_wrong(row: Row) -> bool:
    """Whether a card shows another author than its link.

    A card that frames another post has an author for each of the two posts. If the first one cannot be found, the
    author of the framed post is read instead. On the recorded page since 2026-07, the links of all ten cards, two of
    them with a framed post, name the author that the card shows.
    """
    owner = _owner(row["link"]).casefold() if row.get("shared") else ""
    return bool(owner and row["author_url"]) and last_segment(row["author_url"], *_AUTHOR_PATHS).casefold() != owner


def linked_article(found: Article) -> Row:
    """Return the cells for an article that is only in the linked data."""
    return {"image": picture(found.image) or "", "link": clean_url(found.url), "title": plain(found.title), "day": ""}


# Content items


def content_items(articles: list[Row], cards: list[Row] | None, linked: LinkedData, author: Row) -> list[Row]:
    """Return the member's articles, then the activity. Entries whose link has no id are left out.

    Args:
        articles: the cells of the articles.
        cards: the cells of the activity, None if the page has no section with it.
        linked: the linked data, which contains exact dates, and counts that some cards lack.
        author: the member's ``author_name`` and ``author_username``.
    """
    nodes: dict[str, Article | Posting] = {clean_url(each.url): each for each in linked.postings}
    nodes |= {clean_url(each.url): each for each in linked.articles}
    items = [
        _item(row, nodes.get(row["link"]), {**author, "caption": row["title"], "content_type": "article"})
        for row in articles
    ]
    if cards is None:
        items += [_item({"link": clean_url(each.url)}, each, _posting_fields(each)) for each in linked.postings]
    else:
        items += _activity_items(cards, nodes, author)
    return [item for item in items if item["content_id"]]


def _activity_items(cards: list[Row], nodes: dict[str, Article | Posting], author: Row) -> Iterator[Row]:
    own_name = author["author_username"].casefold()
    owners = [_owner(row["link"]) for row in cards]
    own = [owner.casefold() == own_name for owner in owners]
    own_labels = {_label(row) for row, is_own in zip(cards, own, strict=True) if is_own}
    for row, owner, is_own in zip(cards, owners, own, strict=True):
        fields = _author(row, author if is_own else {"author_name": "", "author_username": owner})
        fields |= {"caption": row["text"], "content_type": _content_type(row, own_labels, is_own=is_own)}
        yield _item(row, nodes.get(row["link"]), fields)


def _content_type(row: Row, own_labels: set[str], *, is_own: bool) -> str:
    """Return the kind of the member's action, without interpreting words.

    In the layout with tabs, the tab of reactions contains likes. In the tab of posts, another author's post, and a post
    that frames another post, is a share. All other cards are posts. In the layout with a list, the member's own posts
    are posts. Another author's post is a share if one of the member's own posts has the same line about the action;
    else it is a like.
    """
    if "kind" in row:
        if row["kind"] == _REACTIONS:
            return "like"
        return "share" if row["kind"] == _POSTS and (row["shared"] or not is_own) else "post"
    if is_own:
        return "post"
    return "share" if _label(row) in own_labels else "like"


def _label(row: Row) -> str:
    return str(row["action"].replace(row["author"], ""))


def _author(row: Row, owner: Row) -> Row:
    """Return the author of a post: in the layout with tabs, the author on the card, else ``owner``."""
    if "kind" not in row:
        return dict(owner)
    return {"author_name": row["author"], "author_username": last_segment(row["author_url"], *_AUTHOR_PATHS)}


def _owner(link: str) -> str:
    """Return the author's handle from a post's link, "" if the link has none.

    >>> _owner("https://www.linkedin.com/posts/jane-doe_hello-activity-7400000000000000001-Xq_9")
    'jane-doe'
    >>> _owner("https://www.linkedin.com/posts/hello-activity-7400000000000000001-Xq_9")
    ''
    """
    found = _OWNER.search(link)
    return unquote(found[1]) if found and not _ACTIVITY_ID.search(found[1]) else ""


def _posting_fields(found: Posting) -> Row:
    username = last_segment(clean_url(found.author_url), *_AUTHOR_PATHS)
    return {
        "author_name": plain(found.author),
        "author_username": username,
        "caption": plain(found.text),
        "content_type": "post",
    }


def _item(row: Row, node: Article | Posting | None, fields: Row) -> Row:
    """Build a content item. ``node``: the linked data of the same article or post, or None."""
    found = _id(row["link"])
    reactions, image = row.get("reactions"), row.get("image")
    published = unix_time(node.published) if node else None
    if published is None:
        published = _time_of_id(found) if found.isdigit() else _day(row.get("day") or "")
    return {
        **empty(MemberItem),
        **fields,
        "comment_count": row.get("comments"),
        "content_code": found,
        "content_id": found,
        "content_link": row["link"],
        "images": [image] if image else [],
        "like_count": statistic(node.statistics, LIKE) if node and reactions is None else reactions,
        "published_date": published,
    }


def statistic(statistics: list[Statistic], kind: str) -> int | None:
    """Return the number in the first statistic of a kind, or None."""
    return next((count(each.number) for each in statistics if (each.kind or "").endswith(kind)), None)


def _id(link: str) -> str:
    """Return the activity's id in a link, else the last segment of the link's path, "" if there is no path.

    >>> _id("https://www.linkedin.com/posts/jane_hello-activity-7400000000000000001-Xq_9")
    '7400000000000000001'
    >>> _id("https://www.linkedin.com/pulse/na%C3%AFve-questions-jane-doe/")
    'naïve-questions-jane-doe'
    """
    found = _ACTIVITY_ID.search(link)
    return found[1] if found else unquote(urlsplit(link).path.rstrip("/").rpartition("/")[2])


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
