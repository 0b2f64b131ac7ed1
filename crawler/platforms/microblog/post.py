"""Microblog: converts a post in any of the platform's JSON layouts to the contract's post."""

from __future__ import annotations

from functools import cached_property
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


class Post:
    """A post in any of the platform's JSON layouts. What several fields need is read once."""

    def __init__(self, result: Node) -> None:
        """``result`` is the post, or the object that is wrapped around a post with limits on views or replies."""
        self.result = result
        self.node = result.node("tweet") or result
        self.legacy = self.node.node("legacy")
        self.author = self.node.node("core", "user_results", "result")
        self.handle = screen_name(self.author)
        """The author's handle, or ""."""
        self.id = text(self.node.get("rest_id")) or text(self.legacy.get("id_str"))
        """The post's id, or ""."""

    # Whether it can be read

    @cached_property
    def is_withheld(self) -> bool:
        """Whether the platform withholds the post on purpose. False for a post whose JSON layout is not recognised."""
        placeholder = text(self.result.get("__typename")) in WITHHELD
        return not self.result or placeholder or self.author.get("__typename") == "UserUnavailable"

    @cached_property
    def missing_parts(self) -> list[str]:
        """The names of the mandatory parts that the post lacks. Empty for a complete post."""
        parts = {
            "rest_id": self.id,
            "core": self.handle,
            "full_text": self.raw_text is not None,
            "created_at": self.moment is not None,
        }
        return [name for name, is_present in parts.items() if not is_present]

    # The records of the data model. A post without all mandatory parts has none.

    def record(self) -> dict[str, Any]:
        """Build the record of a post in the timeline."""
        reposts, quotes = self._within(_REPOST_KEYS), self._within(_QUOTE_KEYS)
        is_repost = bool(reposts)
        original = _first_readable(reposts)
        shown = original or self
        quoted = None if is_repost else _first_readable(quotes)
        media = self.media or shown.media
        files = qualities(media)
        reply_id = self._reply_id()
        record = {
            "caption": shown.caption,
            **self.counts,
            "creator_handle": self.handle,
            "hashtags": shown.hashtags(),
            "in_reply_to_handle": self._reply_handle(),
            "in_reply_to_post_id": reply_id,
            "is_quote": not is_repost and bool(quotes or self.legacy.get("quoted_status_id_str")),
            "is_reply": reply_id is not None or isinstance(self.node.value.get("reply_to_results"), dict),
            "is_repost": is_repost,
            "post_id": self.id,
            "post_url": self.url,
            "profile_picture_url": picture(self.author),
            "quoted_post": quoted and quoted.inner_record(),
            "reposted_post": original and original.inner_record(),
            "thumbnail_url": _thumbnail(media, shown.article),
            "upload_timestamp": self.moment,
            "video_url": files["high"],
            "video_urls_by_quality": files,
        }
        if is_repost:
            # On a repost, the platform fills these counts with 0. Only the number of reposts is real: the original's.
            views = record["view_count"] or None
            record.update(comment_count=None, like_count=None, save_count=None, view_count=views)
        return record

    def inner_record(self) -> dict[str, Any]:
        """Build the record of a post inside another post."""
        counts = self.counts
        return {
            "caption": self.caption,
            "comment_count": counts["comment_count"],
            "creator_handle": self.handle,
            "creator_name": display_name(self.author),
            "like_count": counts["like_count"],
            "post_id": self.id,
            "post_url": self.url,
            "share_count": counts["share_count"],
            "upload_timestamp": self.moment,
            "view_count": counts["view_count"],
        }

    # The fields

    @property
    def url(self) -> str:
        """The URL of the post's page."""
        return f"{ORIGIN}/{self.handle}/status/{self.id}"

    @cached_property
    def moment(self) -> int | None:
        """When the post was published, in Unix seconds, or None."""
        written = seconds(self.legacy.get("created_at"))
        if written is not None:
            return written
        stamped = count(self.node.get("details", "created_at_ms"))
        return stamped // 1000 if stamped is not None else id_seconds(self.id)

    @cached_property
    def raw_text(self) -> str | None:
        """The text as the platform has it, or None. A long post has its beginning here."""
        for holder, path in (
            (self.legacy, ("full_text",)),
            (self.node, ("details", "full_text")),
            (self.legacy, ("text",)),
            (self.node, (*_NOTE_PATH, "text")),
        ):
            value = holder.get(*path)
            if isinstance(value, str):
                return value
        return None

    @cached_property
    def caption(self) -> str:
        """The post's text. An article's post has only a link: this is the article's title and text instead."""
        raw, has_media = self.raw_text or "", bool(self.media)
        article = self.article
        if article:
            texts = (text(article.get("title")), text(article.get("plain_text")) or text(article.get("preview_text")))
            return "\n\n".join(filter(None, texts)) or raw
        note = self.note
        if isinstance(note.get("text"), str):
            return caption(note.get("text"), note.nodes("entity_set", "urls"), escaped=False, has_media=has_media)
        links = self.legacy.nodes("entities", "urls") or self.node.nodes("url_entities")
        shown = self.legacy.get("display_text_range") or self.node.get("details", "display_text_range")
        return caption(raw, links, escaped=True, has_media=has_media, shown_end=dig(shown, 1))

    @cached_property
    def note(self) -> Node:
        """The whole text of a long post. Empty for other posts."""
        return self.node.node(*_NOTE_PATH)

    @cached_property
    def article(self) -> Node:
        """The article that the post consists of. Empty for other posts, which may only mention an article."""
        return self.node.node(*_ARTICLE_PATH) if is_link_only(self.raw_text or "") else Node(None)

    @cached_property
    def media(self) -> list[Node]:
        """All media in the post. In older JSON layouts, ``entities.media`` has only the first photo."""
        return (
            self.legacy.nodes("extended_entities", "media")
            or self.legacy.nodes("entities", "media")
            or self.node.nodes("media_entities2")
        )

    @cached_property
    def counts(self) -> dict[str, int | None]:
        """The numbers of comments, likes, bookmarks, reposts and views."""
        legacy, counts = self.legacy.value, self.node.node("counts").value
        found = {name: count(legacy.get(key, counts.get(key))) for name, key in _COUNTS.items()}
        return {**found, "view_count": count(self.node.get("views", "count"))}

    def hashtags(self) -> list[str]:
        """Return the hashtags in the shortened text, then the hashtags that occur only in the full text."""
        tags = [
            *self.legacy.nodes("entities", "hashtags"),
            *self.node.nodes("details", "hashtag_entities"),
            *self.note.nodes("entity_set", "hashtags"),
        ]
        return list(dict.fromkeys(name for tag in tags if (name := text(tag.get("text")) or text(tag.get("tag")))))

    def _reply_id(self) -> str | None:
        known = text(self.legacy.get("in_reply_to_status_id_str"))
        reply = self.node.node("reply_to_results")
        if known or not (reply or self.node.reference("reply_to_results")):
            return known or None
        named = self.node.reference("reply_to_results") or plain_id(text(reply.get("id")))
        return text(reply.get("rest_id")) or named.rpartition(":")[2] or text(reply.get("result", "rest_id")) or None

    def _reply_handle(self) -> str | None:
        known = text(self.legacy.get("in_reply_to_screen_name"))
        return known or screen_name(self.node.node("reply_to_user_results", "result")) or None

    def _within(self, keys: tuple[str, ...]) -> list[Node]:
        """Return the posts inside this one under these keys, such as a quoted post. A deleted one is an empty node."""
        return [
            holder.node(key, "result")
            for holder in (self.legacy, self.node)
            for key in keys
            if isinstance(holder.value.get(key), dict)
        ]


def _first_readable(results: list[Node]) -> Post | None:
    """Return the first complete post, or None. A deleted or hidden post, or one with only an id, is not complete."""
    posts = map(Post, results)
    return next((post for post in posts if not post.is_withheld and not post.missing_parts), None)


def _thumbnail(media: list[Node], article: Node) -> str | None:
    """Return the URL of the first photo or poster, else of the article's cover, else None."""
    urls = [text(each.get("media_url_https")) for each in media]
    return next(filter(None, [*urls, text(article.get(*_COVER_PATH))]), None)
