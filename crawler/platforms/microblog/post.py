"""Microblog: converts a post in any format to the data model's post."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from crawler.platforms.microblog import PLATFORM
from crawler.platforms.microblog.payload import Article, Holder, Media, Post, Withheld
from crawler.platforms.microblog.payload_user import User
from crawler.platforms.microblog.text import (
    PLATFORM_MS,
    caption,
    id_seconds,
    is_link_only,
    qualities,
    seconds,
    unlisted,
)
from crawler.platforms.microblog.unread import Contradictions, path_of
from crawler.platforms.microblog.user import number
from crawler.reading.values import count

ORIGIN = PLATFORM.origin
REPOST_MARK = "RT @"
CUT_MARK = "…"
LONGEST_CUT = 270
"""If only the beginning of a long text is given, it has at least about this number of characters: up to 280 without
links."""


def readable(post: Post | Withheld | None) -> Post | None:
    """Return a post, or None if the platform withholds it or its author."""
    return post if isinstance(post, Post) and isinstance(post.author, User) else None


def handle_of(post: Post | None) -> str:
    """Return the handle of a post's author, "" if the platform withholds the post or its author."""
    return (post and isinstance(post.author, User) and post.author.screen_name) or ""


def moment(post: Post) -> int | None:
    """Return when a post was published, in Unix seconds: from its date, or else from its id."""
    milliseconds = count(post.created_at)
    if milliseconds is not None and milliseconds in PLATFORM_MS:
        return milliseconds // 1000
    written = seconds(post.created_at)
    return id_seconds(post.id) if written is None else written


def record(post: Post, contradictions: Contradictions) -> dict[str, Any] | None:
    """Return the record of a post in the timeline, or None if the post cannot be read.

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
    """Return the part that all records of posts have in common, or None if the time of the post cannot be read.

    ``reposted``: the record of the reposted post, which contains the whole text.
    """
    contradictions.row()
    time = moment(post)
    if time is None:
        contradictions.add(post, "created_at", "type", loses_row=True)
        return None
    for name in post.contradictions:
        contradictions.add(post, name)
    for name in _unlisted(post, contradictions.present):
        contradictions.add_unless_present(post, name)
    for each in post.media:
        for name in each.contradictions:
            contradictions.add(each, name, inside=path_of(post, "media"))
    handle = handle_of(post)
    return {
        "caption": reposted["caption"] if reposted else _caption(post, contradictions),
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


def _unlisted(post: Post, present: set[str]) -> Sequence[str]:
    """Return the names of the lists that lack a link or hashtag of the text. The text of a repost may be cut.

    ``present``: the names of the lists that are not empty, and of the note, are added to it.
    """
    note = post.note
    links = note.links if note else post.links
    hashtags = [*post.hashtags, *(note.hashtags if note else ())]
    present.update(name for name, value in (("links", links), ("hashtags", hashtags), ("note", note)) if value)
    if post.reposted_result is not None or _article_of(post):
        return ()
    return unlisted(note.text if note else post.text, links, hashtags, has_media=bool(post.media))


def _caption(post: Post, contradictions: Contradictions) -> str:
    """Return a post's text. If the post is only the link to an article, return the article's title and text.

    A long text that ends with "…" is incomplete if the post has no note with the whole text. None of the 527 recorded
    posts without a note ends in this way, except reposts (captures 341926ad1a2f, d8fcad0db39f). But authors may write
    such a text, so that it is reported only if no post of the payload has a note.
    """
    article = _article_of(post)
    if article:
        return "\n\n".join(filter(None, (article.title, article.text))) or post.text
    note, raw, end = post.note, post.text, post.shown_end
    if note:
        return caption(note.text, note.links, escaped=False, has_media=bool(post.media))
    is_cut = len(raw) >= LONGEST_CUT and raw[:end].rstrip().endswith(CUT_MARK) and post.reposted_result is None
    if is_cut and "note" not in post.contradictions:
        contradictions.add_unless_present(post, "note")
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
