"""Microblog: converts a post in any of the platform's JSON layouts to the contract's post."""

from __future__ import annotations

from typing import Any

from crawler.platforms.microblog import PLATFORM
from crawler.platforms.microblog.node import Node, plain_id
from crawler.platforms.microblog.text import caption, id_seconds, is_link_only, qualities, seconds
from crawler.platforms.microblog.user import display_name, picture, screen_name
from crawler.reading.json import dig
from crawler.reading.values import count, text

ORIGIN = PLATFORM.origin
WITHHELD = frozenset({"TweetTombstone", "TweetUnavailable", "BlurredMediaTombstone", "TweetPreviewDisplay"})
"""Type names of placeholders, which replace deleted, hidden and restricted posts in a payload."""

_COUNTS = {
    "comment_count": "reply_count",
    "like_count": "favorite_count",
    "save_count": "bookmark_count",
    "share_count": "retweet_count",
}
_REPOST_KEYS = ("retweeted_status_result", "retweeted_status_results", "repostedStatusResults")
_QUOTE_KEYS = ("quoted_status_result", "quoted_tweet_results", "quotedPostResults")
_NOTE_PATH = ("note_tweet", "note_tweet_results", "result")
_ARTICLE_PATH = ("article", "article_results", "result")
_COVER_PATH = ("cover_media", "media_info", "original_img_url")


def unwrapped(result: Node) -> Node:
    """Return the post itself. A post with limits on views or replies is wrapped in another object."""
    return result.node("tweet") or result


def is_withheld(result: Node) -> bool:
    """Whether the platform withholds the post on purpose. False for a post whose JSON layout is not recognised."""
    author = unwrapped(result).node("core", "user_results", "result")
    return not result or text(result.get("__typename")) in WITHHELD or author.get("__typename") == "UserUnavailable"


def post_id(post: Node) -> str:
    """Return a post's id, or ""."""
    return text(post.get("rest_id")) or text(post.get("legacy", "id_str"))


def author_of(post: Node) -> Node:
    """Return the user object of a post's author, or an empty node."""
    return post.node("core", "user_results", "result")


def missing_parts(post: Node) -> list[str]:
    """Return the names of the mandatory parts that a post lacks. The list is empty for a complete post."""
    parts = {
        "rest_id": post_id(post),
        "core": screen_name(author_of(post)),
        "full_text": _raw_text(post) is not None,
        "created_at": _moment(post) is not None,
    }
    return [name for name, is_present in parts.items() if not is_present]


def post_record(post: Node) -> dict[str, Any]:
    """Build a post as the data model describes it. The post must have all mandatory parts: see ``missing_parts``."""
    reposts, quotes = _within(post, _REPOST_KEYS), _within(post, _QUOTE_KEYS)
    is_repost = bool(reposts)
    original = _first_readable(reposts)
    author = author_of(post)
    shown = original or post
    quoted = None if is_repost else _first_readable(quotes)
    media = _media(post) or _media(shown)
    files = qualities(media)
    record = {
        "caption": _caption(shown),
        **_counts(post),
        "creator_handle": screen_name(author),
        "hashtags": _hashtags(shown),
        "in_reply_to_handle": _reply_handle(post),
        "in_reply_to_post_id": _reply_id(post),
        "is_quote": not is_repost and bool(quotes or post.get("legacy", "quoted_status_id_str")),
        "is_reply": _is_reply(post),
        "is_repost": is_repost,
        "post_id": post_id(post),
        "post_url": _url(post),
        "profile_picture_url": picture(author),
        "quoted_post": quoted and _inner_record(quoted),
        "reposted_post": original and _inner_record(original),
        "thumbnail_url": _thumbnail(media, _article(shown)),
        "upload_timestamp": _moment(post),
        "video_url": files["high"],
        "video_urls_by_quality": files,
    }
    if is_repost:
        # On a repost, the platform fills these counts with 0. Only the number of reposts is real: the original post's.
        record.update(comment_count=None, like_count=None, save_count=None, view_count=record["view_count"] or None)
    return record


def _inner_record(post: Node) -> dict[str, Any]:
    counts = _counts(post)
    return {
        "caption": _caption(post),
        "comment_count": counts["comment_count"],
        "creator_handle": screen_name(author_of(post)),
        "creator_name": display_name(author_of(post)),
        "like_count": counts["like_count"],
        "post_id": post_id(post),
        "post_url": _url(post),
        "share_count": counts["share_count"],
        "upload_timestamp": _moment(post),
        "view_count": counts["view_count"],
    }


def _within(post: Node, keys: tuple[str, ...]) -> list[Node]:
    """Return the posts that a post contains under these keys, such as a quoted post. A deleted one is an empty node."""
    return [
        holder.node(key, "result")
        for holder in (post.node("legacy"), post)
        for key in keys
        if isinstance(holder.value.get(key), dict)
    ]


def _first_readable(results: list[Node]) -> Node | None:
    """Return the first complete post, or None. A deleted or hidden post, or one with only an id, is not complete."""
    for result in results:
        found = unwrapped(result)
        if not is_withheld(result) and not missing_parts(found):
            return found
    return None


def _counts(post: Node) -> dict[str, int | None]:
    legacy, counts = post.node("legacy").value, post.node("counts").value
    found = {name: count(legacy.get(key, counts.get(key))) for name, key in _COUNTS.items()}
    return {**found, "view_count": count(post.get("views", "count"))}


def _raw_text(post: Node) -> str | None:
    for path in (("legacy", "full_text"), ("details", "full_text"), ("legacy", "text")):
        value = post.get(*path)
        if isinstance(value, str):
            return value
    note = post.get(*_NOTE_PATH, "text")
    return note if isinstance(note, str) else None


def _caption(post: Node) -> str:
    """Return a post's text. An article's post has only a link: return the article's title and text instead."""
    raw, has_media = _raw_text(post) or "", bool(_media(post))
    article = _article(post)
    if article:
        texts = (text(article.get("title")), text(article.get("plain_text")) or text(article.get("preview_text")))
        return "\n\n".join(filter(None, texts)) or raw
    note = post.node(*_NOTE_PATH)
    if isinstance(note.get("text"), str):
        return caption(note.get("text"), note.nodes("entity_set", "urls"), escaped=False, has_media=has_media)
    links = post.nodes("legacy", "entities", "urls") or post.nodes("url_entities")
    shown = post.get("legacy", "display_text_range") or post.get("details", "display_text_range")
    return caption(raw, links, escaped=True, has_media=has_media, shown_end=dig(shown, 1))


def _article(post: Node) -> Node:
    """Return the article that a post consists of. Empty for other posts, which may only mention an article."""
    return post.node(*_ARTICLE_PATH) if is_link_only(_raw_text(post) or "") else Node(None)


def _thumbnail(media: list[Node], article: Node) -> str | None:
    """Return the URL of the first photo or poster, else of the article's cover, else None."""
    urls = [text(each.get("media_url_https")) for each in media]
    return next(filter(None, [*urls, text(article.get(*_COVER_PATH))]), None)


def _media(post: Node) -> list[Node]:
    """Return all media in a post. In older JSON layouts, ``entities.media`` has only the first photo."""
    return (
        post.nodes("legacy", "extended_entities", "media")
        or post.nodes("legacy", "entities", "media")
        or post.nodes("media_entities2")
    )


def _hashtags(post: Node) -> list[str]:
    """Return the hashtags in the shortened text, then the hashtags that occur only in the full text."""
    tags = [
        *post.nodes("legacy", "entities", "hashtags"),
        *post.nodes("details", "hashtag_entities"),
        *post.nodes(*_NOTE_PATH, "entity_set", "hashtags"),
    ]
    return list(dict.fromkeys(name for tag in tags if (name := text(tag.get("text")) or text(tag.get("tag")))))


def _is_reply(post: Node) -> bool:
    return _reply_id(post) is not None or isinstance(post.value.get("reply_to_results"), dict)


def _reply_id(post: Node) -> str | None:
    known = text(post.get("legacy", "in_reply_to_status_id_str"))
    reply = post.node("reply_to_results")
    if known or not (reply or post.reference("reply_to_results")):
        return known or None
    named = post.reference("reply_to_results") or plain_id(text(reply.get("id")))
    return text(reply.get("rest_id")) or named.rpartition(":")[2] or text(reply.get("result", "rest_id")) or None


def _reply_handle(post: Node) -> str | None:
    known = text(post.get("legacy", "in_reply_to_screen_name"))
    return known or screen_name(post.node("reply_to_user_results", "result")) or None


def _moment(post: Node) -> int | None:
    written = seconds(post.get("legacy", "created_at"))
    stamped = count(post.get("details", "created_at_ms"))
    if written is not None:
        return written
    return stamped // 1000 if stamped is not None else id_seconds(post_id(post))


def _url(post: Node) -> str:
    return f"{ORIGIN}/{screen_name(author_of(post))}/status/{post_id(post)}"
