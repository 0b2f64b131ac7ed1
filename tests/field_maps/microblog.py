"""Microblog: reads users and timelines of the two API generations, independently of the page objects."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tests.field_maps.paths import at, first, values

SITE = "https://x.com"
AUTHOR = "core.user_results.result"
NOTE = "note_tweet.note_tweet_results.result"
ARTICLE = "article.article_results.result"
COVER = "cover_media.media_info.original_img_url"


def expected(page: str, payload: Any) -> dict[str, Any] | None:
    """Return what the page object of a user or a timeline must extract; None for other responses."""
    if page == "UserPage" and at(payload, "data.user.result.rest_id"):
        user = at(payload, "data.user.result")
        return {"next_cursor": "", "pinned": "", "posts": [], "profile": profile(user), "user_id": user["rest_id"]}
    return timeline(payload) if page == "TimelinePage" else None


def profile(user: dict[str, Any]) -> dict[str, Any]:
    """The expected profile."""
    return {
        "created_at": first(user, "legacy.created_at", "core.created_at"),
        "description": html.unescape(first(user, "profile_bio.description", "legacy.description") or ""),
        "favourites_count": first(user, "legacy.favourites_count", "action_counts.favorites_count"),
        "followers_count": first(user, "legacy.followers_count", "relationship_counts.followers"),
        "friends_count": first(user, "legacy.friends_count", "relationship_counts.following"),
        "is_blue_verified": at(user, "is_blue_verified"),
        "listed_count": at(user, "legacy.listed_count"),
        "location": (first(user, "location.location", "legacy.location") or "").strip(),
        "media_count": first(user, "legacy.media_count", "tweet_counts.media_tweets"),
        "name": first(user, "core.name", "legacy.name"),
        "profile_banner_url": first(user, "banner.image_url", "legacy.profile_banner_url") or "",
        "profile_image_url_https": first(user, "avatar.image_url", "legacy.profile_image_url_https"),
        "protected": bool(first(user, "privacy.protected", "legacy.protected")),
        "screen_name": first(user, "core.screen_name", "legacy.screen_name"),
        "statuses_count": first(user, "legacy.statuses_count", "tweet_counts.tweets"),
        "url": first(user, "website.url", "legacy.url") or "",
        "verified": first(user, "verification.verified", "legacy.verified"),
        "verified_type": first(user, "verification.verified_type", "legacy.verified_type") or "",
    }


def timeline(payload: Any) -> dict[str, Any] | None:
    """A page of posts: the pinned post first, each post once, and the bottom cursor."""
    instructions = next(values(payload, "instructions"))
    pins = [each["entry"] for each in instructions if each["type"] == "TimelinePinEntry"]
    entries = [entry for each in instructions for entry in each.get("entries") or []]
    entries = [entry for entry in entries if not entry["entryId"].startswith("conversationthread-")]  # others' replies
    rows = [item for entry in [*pins, *entries] for item in items(entry)]
    posts = {found["post_id"]: found for row in rows if (found := post(at(row, "tweet_results.result")))}
    pinned = [post(at(row, "tweet_results.result")) for entry in pins for row in items(entry)]
    # A page of posts contains the profile's user only as the author of posts. Without a requested handle, the first
    # author is used.
    author = next((user for row in rows if (user := at(row, f"tweet_results.result.{AUTHOR}"))), None)
    cursors = [each for each in (at(entry, "content") for entry in entries) if each.get("cursorType") == "Bottom"]
    cursors += [row for row in rows if row.get("cursorType") == "Bottom"]
    return {
        "next_cursor": cursors[0]["value"] if cursors and posts else "",
        "pinned": pinned[0]["post_id"] if pinned and pinned[0] else "",
        "posts": list(posts.values()),
        "profile": profile(author) if author else {},
        "user_id": author["rest_id"] if author else "",
    }


def items(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The contents of an entry or of the items of its module, without advertisements."""
    own = at(entry, "content.itemContent")
    nested = [at(each, "item.itemContent") for each in at(entry, "content.items") or []]
    yield from (each for each in [own, *nested] if each and "promotedMetadata" not in each)


def post(found: Any) -> dict[str, Any] | None:
    """The expected post, or None for the placeholder of a deleted post."""
    found = at(found, "tweet") or found
    legacy = at(found, "legacy")
    if not legacy:
        return None
    source = at(legacy, "retweeted_status_result.result")
    source = at(source, "tweet") or source
    inner = quoted(source)
    is_repost = "retweeted_status_result" in legacy
    is_quote = not is_repost and ("quoted_status_result" in found or "quoted_status_id_str" in legacy)
    own = quoted(found)
    assert own is not None
    del own["creator_name"]
    shown = source if inner else found  # hashtags and media of a repost are usually only in the inner post
    if is_repost:  # the wrapper's text is cut, and its counts are placeholders
        own |= {"caption": inner["caption"] if inner else own["caption"], "comment_count": None, "like_count": None}
    user = at(found, AUTHOR)
    tags = [*(at(shown, "legacy.entities.hashtags") or []), *(at(shown, f"{NOTE}.entity_set.hashtags") or [])]
    media = at(shown, "legacy.extended_entities.media") or []
    videos = qualities(media)
    return own | {
        "hashtags": list(dict.fromkeys(each["text"] for each in tags)),
        "in_reply_to_handle": at(legacy, "in_reply_to_screen_name"),
        "in_reply_to_post_id": at(legacy, "in_reply_to_status_id_str"),
        "is_quote": is_quote,
        "is_reply": at(legacy, "in_reply_to_status_id_str") is not None,
        "is_repost": is_repost,
        "profile_picture_url": first(user, "avatar.image_url", "legacy.profile_image_url_https"),
        "quoted_post": quoted(at(found, "quoted_status_result.result")) if is_quote else None,
        "reposted_post": inner,
        "save_count": None if is_repost else at(legacy, "bookmark_count"),
        "thumbnail_url": media[0]["media_url_https"] if media else at(shown, f"{ARTICLE}.{COVER}"),
        "video_url": videos["high"],
        "video_urls_by_quality": videos,
    }


def quoted(found: Any) -> dict[str, Any] | None:
    """The expected quoted or reposted post, or None for the placeholder of a deleted post."""
    found = at(found, "tweet") or found
    legacy, user = at(found, "legacy"), at(found, AUTHOR)
    if not legacy:
        return None
    handle = first(user, "core.screen_name", "legacy.screen_name")
    views = at(found, "views.count")
    created = datetime.strptime(legacy["created_at"], "%a %b %d %H:%M:%S %z %Y")
    return {
        "caption": caption(found, legacy),
        "comment_count": at(legacy, "reply_count"),
        "creator_handle": handle,
        "creator_name": first(user, "core.name", "legacy.name"),
        "like_count": at(legacy, "favorite_count"),
        "post_id": found["rest_id"],
        "post_url": f"{SITE}/{handle}/status/{found['rest_id']}",
        "share_count": at(legacy, "retweet_count"),
        "upload_timestamp": int(created.timestamp()),
        "view_count": int(views) if views else None,
    }


def caption(found: Any, legacy: dict[str, Any]) -> str:
    """The whole text: links expanded, the link to media at the end removed. A note's text is not escaped.

    The post of an article is only a link: its caption is the article's title and text, separated by a blank line (our
    choice).
    """
    note, article = at(found, f"{NOTE}.text"), at(found, ARTICLE)
    text: str = legacy["full_text"] if note is None else note
    if article and re.fullmatch(r"https://t\.co/\w+", text):
        return f"{article['title']}\n\n{article['preview_text']}"
    media = at(legacy, "extended_entities.media") or at(legacy, "entities.media") or []
    own = {each["url"] for each in media}
    links = [*(at(legacy, "entities.urls") or []), *(at(found, f"{NOTE}.entity_set.urls") or [])]
    listed = {each["url"] for each in links}
    # Links after the shown text are removed: to the post's media, and, not listed, to those of another post. A link is
    # kept if the invented range ends inside it, which real ranges never do.
    end = at(legacy, "display_text_range.1")
    while (last := re.search(r"https://t\.co/\w+$", text)) and (last[0] in own or last[0] not in listed):
        if not note and last.start() < end < len(text):
            break
        text = text[: last.start()].rstrip()
    if note is None:
        text = html.unescape(text)
    for link in links:
        text = text.replace(link["url"], link.get("expanded_url") or link["url"])
    return text


def qualities(media: list[dict[str, Any]]) -> dict[str, str | None]:
    """The URLs of the first video's MP4 files with the highest, the lowest and a medium bitrate."""
    variants: list[dict[str, Any]] = next(
        (each["video_info"]["variants"] for each in media if "video_info" in each), []
    )
    files = sorted((each for each in variants if each["content_type"] == "video/mp4"), key=lambda each: each["bitrate"])
    urls = [each["url"] for each in files]
    return {
        "high": urls[-1] if urls else None,
        "low": urls[0] if len(urls) > 1 else None,
        "medium": urls[(len(urls) - 1) // 2] if len(urls) > 2 else None,
        "watermarked": None,
    }
