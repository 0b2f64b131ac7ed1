"""The simulated microblog's users, posts and timelines, as its newest client has them."""

from __future__ import annotations

import html
from typing import Any

from crawler.sandbox.microblog.account import Media, Post, User
from crawler.sandbox.microblog.old import variants
from crawler.sandbox.microblog.user import b64

KEY = "__key"
"""The id under which an object becomes a record of its own."""


def user(who: User, *, whole: bool) -> dict[str, Any]:
    """A user; ``whole`` is the one whose page it is, the others are fragments beside their posts."""
    core: dict[str, Any] = {"__typename": "UserCore", "screen_name": who.handle, "name": who.name}
    verification: dict[str, Any] = {"__typename": "UserVerification", "is_blue_verified": who.blue}
    verification["verified_type"] = who.kind or None
    made: dict[str, Any] = {
        KEY: b64(f"User:{who.id}"),
        "__typename": "User",
        "core": core,
        "rest_id": who.id,
        "avatar": {"__typename": "UserAvatar", "image_url": who.picture},
        "relationship_counts": {
            "__typename": "UserRelationshipCounts",
            "followers": who.followers,
            "following": who.following,
        },
        "tweet_counts": {"__typename": "UserTweetCounts", "tweets": who.posts},
        "profile_image_shape": "Circle",
        "identity_profile_labels_highlighted_label": {"__typename": "HighlightedUserLabelResponse", "label": None},
        "privacy": {"__typename": "UserPrivacy", "protected": who.protected},
        "verification": verification,
        "id": b64(f"User:{who.id}"),
    }
    if whole:
        core["created_at_ms"] = who.created * 1000
        verification["verified"] = False
        made["profile_bio"] = {"__typename": "UserProfileBio", "description": html.escape(who.about, quote=False)}
    return made


def post(it: Post, *, depth: int = 0) -> dict[str, Any]:
    """A post."""
    quoted = it.quote_id if depth == 0 and not it.repost_of else ""
    placeholder = it.repost_of is not None
    counts: dict[str, Any] = {
        "__typename": "ApiCounts",
        "bookmark_count": 0 if placeholder else it.saves,
        "favorite_count": 0 if placeholder else it.likes,
        "reply_count": 0 if placeholder else it.replies,
        "retweet_count": it.repost_of.shares if it.repost_of else it.shares,
    }
    if depth:
        del counts["bookmark_count"]
    text = it.served
    shown = not it.long and not placeholder
    return {
        KEY: b64(f"Tweet:{it.id}"),
        "__typename": "Tweet",
        "rest_id": it.id,
        "core": {"__typename": "TweetCore", "user_results": user_results(it.author)},
        "legacy": {
            "__typename": "LegacyTweet",
            "retweeted_status_results": post_results(it.repost_of, depth=1) if it.repost_of else None,
            "possibly_sensitive": False if it.media else None,
            "lang": "en",
        },
        "counts": counts,
        "views": {"__typename": "ViewCountInfo", **({} if it.views is None else {"count": str(it.views)})},
        "details": {
            "__typename": "TBirdData",
            "conversation_control": None,
            "display_text_range": [0, len(text)],
            "self_thread_metadata": None,
            "full_text": text,
            "hashtag_entities": [{"__typename": "HashtagEntity", "text": tag} for tag in it.tags] if shown else [],
            "timestamp_entities": [],
            "cashtag_entities": [],
            "smarttags": [],
            "created_at_ms": it.time * 1000,
        },
        "mention_entities": [],
        "reply_to_results": _reply(it),
        "reply_to_user_results": _reply_user(it),
        "media_entities2": [_media(each, text) for each in it.media] if not placeholder else [],
        "quoted_tweet_results": _quoted(it) if quoted else None,
        "card": None,
        "jetfuel_attachment": None,
        "article": None,
        "cashtag_attachments": [],
        "birdwatch_pivot": None,
        "content_disclosure": None,
        "url_entities": [_link(text, short, long) for short, long in it.links] if shown else [],
        "note_tweet": _note(it) if it.long else None,
        "grok_translated_post_with_availability": {
            "__typename": "ApiGrokTranslateResponse",
            "is_available": False,
            "data": None,
        },
        "exclusive_tweet_info": None,
        "reaction_context": None,
        "place": {"__typename": "ApiPlace", "full_name": None, "id": None},
        "super_follows_conversation_user_results": None,
        "id": b64(f"Tweet:{it.id}"),
    }


def post_results(it: Post, *, depth: int = 0) -> dict[str, Any]:
    """A post as something that may be missing."""
    made: dict[str, Any] = {KEY: f"TweetResults:{it.id}", "__typename": "TweetResults", "result": post(it, depth=depth)}
    return made | {"id": b64(f"TweetResults:{it.id}"), "rest_id": it.id}


def user_results(who: User, *, whole: bool = False) -> dict[str, Any]:
    """A user as somebody who may be missing."""
    made_id = b64(f"UserResults:{who.id}")
    return {KEY: made_id, "__typename": "UserResults", "result": user(who, whole=whole), "id": made_id}


def _quoted(it: Post) -> dict[str, Any]:
    if it.quote_of:
        return post_results(it.quote_of, depth=1)
    gone = {"__typename": "BlurredMediaTombstone", "text": "Log in to X to view this post."} if int(it.id) % 2 else None
    return {KEY: f"TweetResults:{it.quote_id}", "__typename": "TweetResults", "result": gone, "rest_id": it.quote_id}


def _reply(it: Post) -> dict[str, Any] | None:
    if not it.reply_id:
        return None
    return {KEY: f"TweetResults:{it.reply_id}", "__typename": "TweetResults", "result": None, "rest_id": it.reply_id}


def _reply_user(it: Post) -> dict[str, Any] | None:
    if not it.reply_handle:
        return None
    who = {
        KEY: b64("User:12"),
        "__typename": "User",
        "core": {"__typename": "UserCore", "screen_name": it.reply_handle},
    }
    return {KEY: b64(f"UserResults:{it.reply_handle}"), "__typename": "UserResults", "result": who}


def _note(it: Post) -> dict[str, Any]:
    entity_set = {
        "__typename": "EntitySet",
        "hashtags": [{"__typename": "HashtagEntity", "text": tag} for tag in it.tags],
        "symbols": [],
        "smarttags": [],
        "urls": [_link(it.whole, short, long) for short, long in it.links],
        "timestamps": None,
        "user_mentions": [],
    }
    note_id, results_id = b64(f"NoteTweet:{it.id}"), b64(f"NoteTweetResults:{it.id}")
    note = {KEY: note_id, "__typename": "NoteTweet", "text": it.whole, "entity_set": entity_set, "id": note_id}
    results = {KEY: results_id, "__typename": "NoteTweetResults", "result": note, "id": results_id}
    return {"__typename": "NoteTweetData", "is_expandable": True, "note_tweet_results": results}


def _link(text: str, short: str, long: str) -> dict[str, Any]:
    start = text.rfind(short)
    return {
        "__typename": "UrlsEntity",
        "display_url": "example.org/…",
        "expanded_url": long,
        "indices": [start, start + len(short)],
        "url": short,
    }


def _media(each: Media, text: str) -> dict[str, Any]:
    start = text.rfind(each.short)
    info = None
    if each.files:
        files = [{"__typename": "ApiMediaEntityVideoVariant", **file} for file in variants(each, explicit=True)]
        info = {"__typename": "ApiMediaEntityVideoInfo", "duration_millis": 11433, "variants": files}
    meta = {"__typename": "ApiMediaMetadata", "title": None, "description": None, "source_user": None}
    return {
        "__typename": "ApiMediaEntity",
        "media_url_https": each.thumbnail,
        "type": each.kind,
        "indices": [start, start + len(each.short)],
        "id_str": each.id,
        "original_info": {"__typename": "ApiMediaEntityOriginalInfo", "width": 1622, "height": 1548},
        "ext_alt_text": None,
        "additional_media_info": meta if each.files else None,
        "sensitive_media_warning": None,
        "video_info": info,
        "source_status_id_str": None,
        "ext_playlists": [],
        "features": {"__typename": "ApiMediaEntityFeatures", "all": None},
    }


def entry(it: Post, *, kind: str = "tweet") -> dict[str, Any]:
    """A timeline's entry of a post."""
    entry_id = f"{kind}-{it.id}"
    shown = {
        "__typename": "TimelineTweet",
        "promoted_metadata": None,
        "tweet_results": post_results(it),
        "display_type": "Tweet",
        "social_context": None,
        "has_moderated_replies": None,
    }
    event = {
        "__typename": "TimelineClientEventInfo",
        "action": None,
        "component": "organic_tweets",
        "element": "tweet",
        "details": None,
    }
    content = {
        "__typename": "TimelineTimelineItem",
        "client_event_info": event,
        "feedback_info": None,
        "content": shown,
    }
    return {
        KEY: f"urt:server:TimelineTimelineEntry:{entry_id}",
        "__typename": "TimelineTimelineEntry",
        "content": content,
        "entry_id": entry_id,
        "sort_index": it.id,
    }


def call_timeline(posts: list[Post], pinned: Post | None, following: str, *, end: bool) -> dict[str, Any]:
    """The answer of the newest client's call for a user's posts."""
    instructions: list[dict[str, Any]] = []
    if pinned:
        instructions.append({"__typename": "TimelinePinEntry", "entry": entry(pinned)})
    entries = [entry(it) for it in posts]
    if following:
        bottom = {"__typename": "TimelineTimelineCursor", "cursor_type": "Bottom", "value": following}
        entries.append({"entry_id": "cursor-bottom-1", "sort_index": "1", "content": bottom})
    instructions.append({"__typename": "TimelineAddEntries", "entries": entries})
    if end:
        instructions.append({"__typename": "TimelineTerminateTimeline", "direction": "Bottom"})
    result = {"__typename": "User", "profile_timeline_v2": {"timeline": {"instructions": instructions}}}
    made: dict[str, Any] = plain({"data": {"user_result_by_screen_name": {"result": result}}})
    return made


def plain(value: Any) -> Any:
    """Nested objects, without the ids of records."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key != KEY}
    return [plain(each) for each in value] if isinstance(value, list) else value
