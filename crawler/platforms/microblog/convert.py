"""Microblog: converts users and posts in any format to the data model's profile fields and posts.

A field is None if the format lacks it. Contradictions between values, which contracts cannot express, are collected.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from typing import Any

from crawler.platforms.microblog import PLATFORM
from crawler.platforms.microblog.payload import ApiPost, Article, Holder, Link, Media, Note, Post, User, Withheld
from crawler.platforms.microblog.schema import Demographics
from crawler.platforms.microblog.text import (
    caption,
    date_text,
    is_cut,
    is_link_only,
    lacks_hashtags,
    moment,
    qualities,
    seconds,
    unlisted_links,
)
from crawler.reading.contract import Cause, Unread, join, values
from crawler.reading.values import count

ORIGIN = PLATFORM.origin
FIELDS = tuple(Demographics.model_fields)
"""The data model's profile fields. The fields have the names of the keys in the platform's oldest format, which embeds
still have."""
COUNTS = tuple(name for name in FIELDS if name.endswith("_count"))
OMITTED_WHEN_EMPTY = ("profile_banner_url", "url")

REPOST_MARK = "RT @"
Part = User | Post | Media | Note | Link


class Contradictions:
    """Counts the contradictions in the posts or users of one payload, by the path of the missing value."""

    def __init__(self, path: str) -> None:
        """``path``: the path of the posts or users in the payload."""
        self._path = path
        self._found: Counter[tuple[str, Cause, bool]] = Counter()
        self._rows = 0

    def row(self) -> None:
        """Count a post or user."""
        self._rows += 1

    def add(
        self, part: Part, name: str, cause: Cause = "contradiction", *, inside: str = "", loses_row: bool = False
    ) -> None:
        """Count a missing or unusable value, by its attribute's name.

        ``inside``: the path from the post or user to the part that lacks the value. ``loses_row``: whether the post is
        left out.
        """
        parent = join(self._path, inside) if inside else self._path
        path = join(parent, path_of(part, name))
        self._found[path, cause, loses_row] += 1

    def unread(self) -> list[Unread]:
        """Return the unread parts, with one entry for each path and cause."""
        return [
            Unread(path, cause, rows, max(rows, self._rows), loses_rows=lost)
            for (path, cause, lost), rows in self._found.items()
        ]


def media_name(post: Post) -> str:
    """Return the name of the declared value that contains a post's media."""
    return "media_list" if isinstance(post, ApiPost) else "media"


def path_of(part: Part, name: str) -> str:
    """Return the first declared path of an attribute, or its name if the format has no such value (notes in embeds)."""
    # The strict pass creates instances of subclasses of the contracts.
    kind = next(each for each in type(part).__mro__ if each.__module__.startswith("crawler.platforms"))
    return next((each.paths[0] for each in values(kind) if each.name == name), name)


# Users


def profile(user: User, contradictions: Contradictions) -> dict[str, Any]:
    """Return the data model's profile fields of a user. A field is None if the payload's format lacks it."""
    found: dict[str, Any] = {name: getattr(user, name) for name in FIELDS}
    for name in COUNTS:
        found[name] = number(user, name, contradictions)
    if user.created_at is not None and seconds(user.created_at) is None:  # not in the platform's date format
        found["created_at"] = date_text(user.created_at)
        if found["created_at"] is None:
            contradictions.add(user, "created_at", "type")
    if not user.url and user.listed_urls:
        found["url"] = user.listed_urls[0]
    if user.omits_empty:
        found.update({name: "" for name in OMITTED_WHEN_EMPTY if found[name] is None})
    if user.verified_type is None and (user.verified, user.is_blue_verified) != (None, None):
        found["verified_type"] = ""
    for name in ("name", "description", "location"):
        found[name] = None if found[name] is None else html.unescape(found[name]).strip()
    contradictions.row()
    for name in user.contradictions:
        contradictions.add(user, name)
        found[name] = None
    return found


def number(row: Any, name: str, contradictions: Contradictions) -> int | None:
    """Return a count of a user or post as an integer. If the value is not a count, return None and report the value."""
    value = getattr(row, name)
    if value is None or (type(value) is int and value >= 0):  # the usual case
        return value
    found = count(value)
    if found is None:
        contradictions.add(row, name, "type")
    return found


def merged(profiles: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge profiles field by field. For each field, the first profile with a value wins."""
    return {name: next((each[name] for each in profiles if each.get(name) is not None), None) for name in FIELDS}


# Posts


def readable(post: Post | Withheld | None) -> Post | None:
    """Return a post, or None if the platform withholds it or its author."""
    return post if isinstance(post, Post) and isinstance(post.author, User) else None


def handle_of(post: Post | None) -> str:
    """Return the handle of a post's author, "" if the platform withholds the post or its author."""
    return (post and isinstance(post.author, User) and post.author.screen_name) or ""


def record(post: Post, contradictions: Contradictions) -> dict[str, Any] | None:
    """Convert a post in the timeline to the data model, or return None if the post cannot be read.

    A post whose text begins with "RT @" is a repost: of the 2,509 posts in recorded timelines, 541 have such a text,
    and the same 541 contain a reposted post (captures 341926ad1a2f, e992000b9ff4). If the reposted post is missing, the
    post is not returned, because it would look like the profile's own post.
    """
    is_repost = post.reposted_result is not None
    if post.text.startswith(REPOST_MARK) and not is_repost:
        contradictions.row()
        contradictions.add(post, "reposted_result", loses_row=True)
        return None
    original = _inner(post.reposted_result)
    quoted = None if is_repost else _inner(post.quoted_result)
    shown = original or post
    reposted_post = _common(original, contradictions) if original else None
    found = _common(post, contradictions, reposted_post)
    if found is None:
        return None
    media = post.media or shown.media
    files = qualities(media)
    note = shown.note
    found.update(
        hashtags=list(dict.fromkeys([*shown.hashtags, *(note.hashtags if note else ())])),
        in_reply_to_handle=post.reply_handle or None,
        in_reply_to_post_id=post.reply_id or None,
        is_quote=not is_repost and (post.quoted_result is not None or bool(post.quoted_id)),
        is_reply=bool(post.reply_id),
        is_repost=is_repost,
        profile_picture_url=_author(post).profile_image_url_https or "",
        quoted_post=quoted and _common(quoted, contradictions),
        reposted_post=reposted_post,
        save_count=number(post, "bookmarks", contradictions),
        thumbnail_url=_thumbnail(media, shown),
        video_url=files["high"],
        video_urls_by_quality=files,
    )
    del found["creator_name"]
    if is_repost:
        # On a repost, these counts are placeholders of 0. Only the number of reposts is real: it is the original
        # post's.
        found.update(comment_count=None, like_count=None, save_count=None, view_count=found["view_count"] or None)
    return found


def _common(
    post: Post, contradictions: Contradictions, reposted: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the fields of both a ``Post`` and an ``InnerPost``, or None if the time of the post cannot be read.

    ``reposted``: the fields of the reposted post, which contain the whole text.
    """
    contradictions.row()
    time = moment(post.created_at, post.id)
    if time is None:
        contradictions.add(post, "created_at", "type", loses_row=True)
        return None
    for name in post.contradictions:
        contradictions.add(post, name)
    _find_unlisted(post, contradictions)
    for each in post.media:
        for name in each.contradictions:
            contradictions.add(each, name, inside=path_of(post, media_name(post)))
    handle = handle_of(post)
    return {
        "caption": reposted["caption"] if reposted else _caption(post),
        "comment_count": number(post, "replies", contradictions),
        "creator_handle": handle,
        "creator_name": html.unescape(_author(post).name or ""),
        "like_count": number(post, "likes", contradictions),
        "post_id": post.id,
        "post_url": f"{ORIGIN}/{handle}/status/{post.id}",
        "share_count": number(post, "reposts", contradictions),
        "upload_timestamp": time,
        "view_count": number(post, "views", contradictions),
    }


def _find_unlisted(post: Post, contradictions: Contradictions) -> None:
    """Report links and hashtags of the text that the post's lists lack. The texts of reposts, which may be cut, are not
    checked.

    A link after the displayed part of the text leads to the post's media: 668 of 668 recorded links there.
    """
    if post.reposted_result is not None:
        return
    note, end = post.note, post.shown_end
    links = [*post.links, *(note.links if note else ())]
    unlisted = unlisted_links(post.text, links, post.media)
    is_media = bool(unlisted) and end is not None and unlisted[0].start() >= end
    if unlisted:
        contradictions.add(post, media_name(post) if is_media else "links")
    if note and unlisted_links(note.text, links, post.media):
        contradictions.add(note, "links", inside=path_of(post, "note"))
    hashtags = [*post.hashtags, *(note.hashtags if note else ())]
    if lacks_hashtags(note.text if note else post.text, hashtags):
        contradictions.add(post, "hashtags")
    if is_cut(post.text[:end]) and note is None and post.is_expandable is None:
        contradictions.add(post, "note")
    for link in links:
        for name in link.contradictions:
            contradictions.add(link, name, inside=path_of(post, "links"))


def _caption(post: Post) -> str:
    """Return a post's text. If the post is only the link to an article, return the article's title and text."""
    article = _article_of(post)
    if article:
        return "\n\n".join(filter(None, (article.title, article.text))) or post.text
    note, raw, end = post.note, post.text, post.shown_end
    if note:
        return caption(note.text, note.links, escaped=False, has_media=bool(post.media))
    return caption(raw, post.links, escaped=True, has_media=bool(post.media), shown_end=end)


def _article_of(post: Post) -> Article | None:
    """Return the article that a post consists of. Return None for other posts, which may only link to an article."""
    return post.article if post.article and is_link_only(post.text) else None


def _author(post: Post) -> User:
    assert isinstance(post.author, User)
    return post.author


def _inner(holder: Holder | None) -> Post | None:
    """Return the quoted or reposted post, or None if it is deleted or hidden."""
    return readable(holder.post) if holder else None


def _thumbnail(media: Sequence[Media], shown: Post) -> str | None:
    """Return the URL of the first photo or video cover, else of the article's cover, else None."""
    article = None if media else _article_of(shown)
    urls = [*(each.image for each in media), article.cover.url if article and article.cover else None]
    return next(filter(None, urls), None)
