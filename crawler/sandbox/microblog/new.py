"""The simulated microblog's users, posts and timelines in the format of its newest client."""

from __future__ import annotations

import html
from typing import Any

from crawler.sandbox.microblog.account import Media, Post, User
from crawler.sandbox.microblog.old import variants
from crawler.sandbox.microblog.user import b64

KEY = "__key"
"""The key that contains an object's record id. Objects with this key become separate records in a page's data."""


def user_payload(user: User, *, whole: bool) -> dict[str, Any]:
    """Build a user. ``whole``: with all fields, as the page's owner; else with only the fields of a post's author."""
    core: dict[str, Any] = {"__typename": "UserCore", "screen_name": user.handle, "name": user.name}
    verification: dict[str, Any] = {"__typename": "UserVerification", "is_blue_verified": user.blue}
    verification["verified_type"] = user.kind or None
    made: dict[str, Any] = {
        KEY: b64(f"User:{user.id}"),
        "__typename": "User",
        "core": core,
        "rest_id": user.id,
        "avatar": {"__typename": "UserAvatar", "image_url": user.picture},
        "relationship_counts": {
            "__typename": "UserRelationshipCounts",
            "followers": user.followers,
            "following": user.following,
        },
        "tweet_counts": {"__typename": "UserTweetCounts", "tweets": user.posts},
        "profile_image_shape": "Circle",
        "identity_profile_labels_highlighted_label": {"__typename": "HighlightedUserLabelResponse", "label": None},
        "privacy": {"__typename": "UserPrivacy", "protected": user.protected},
        "verification": verification,
        "id": b64(f"User:{user.id}"),
    }
    if whole:
        core["created_at_ms"] = user.created * 1000
        verification["verified"] = False
        made["profile_bio"] = {"__typename": "UserProfileBio", "description": html.escape(user.about, quote=False)}
    return made


def post_payload(post: Post, *, depth: int = 0) -> dict[str, Any]:
    """Build a post."""
    quoted = post.quote_id if depth == 0 and not post.repost_of else ""
    placeholder = post.repost_of is not None
    counts: dict[str, Any] = {
        "__typename": "ApiCounts",
        "bookmark_count": 0 if placeholder else post.saves,
        "favorite_count": 0 if placeholder else post.likes,
        "reply_count": 0 if placeholder else post.replies,
        "retweet_count": post.repost_of.shares if post.repost_of else post.shares,
    }
    if depth:
        del counts["bookmark_count"]
    text = post.served
    shown = not post.long and not placeholder
    return {
        KEY: b64(f"Tweet:{post.id}"),
        "__typename": "Tweet",
        "rest_id": post.id,
        "core": {"__typename": "TweetCore", "user_results": user_results(post.author)},
        "legacy": {
            "__typename": "LegacyTweet",
            "retweeted_status_results": post_results(post.repost_of, depth=1) if post.repost_of else None,
            "possibly_sensitive": False if post.media else None,
            "lang": "en",
        },
        "counts": counts,
        "views": {"__typename": "ViewCountInfo", **({} if post.views is None else {"count": str(post.views)})},
        "details": {
            "__typename": "TBirdData",
            "conversation_control": None,
            "display_text_range": [0, len(text)],
            "self_thread_metadata": None,
            "full_text": text,
            "hashtag_entities": [{"__typename": "HashtagEntity", "text": tag} for tag in post.tags] if shown else [],
            "timestamp_entities": [],
            "cashtag_entities": [],
            "smarttags": [],
            "created_at_ms": post.time * 1000,
        },
        "mention_entities": [],
        "reply_to_results": _reply(post),
        "reply_to_user_results": _reply_user(post),
        "media_entities2": [_media(each, text) for each in post.media] if not placeholder else [],
        "quoted_tweet_results": _quoted(post) if quoted else None,
        "card": None,
        "jetfuel_attachment": None,
        "article": None,
        "cashtag_attachments": [],
        "birdwatch_pivot": None,
        "content_disclosure": None,
        "url_entities": [_link(text, short, long) for short, long in post.links] if shown else [],
        "note_tweet": _note(post) if post.long else None,
        "grok_translated_post_with_availability": {
            "__typename": "ApiGrokTranslateResponse",
            "is_available": False,
            "data": None,
        },
        "exclusive_tweet_info": None,
        "reaction_context": None,
        "place": {"__typename": "ApiPlace", "full_name": None, "id": None},
        "super_follows_conversation_user_results": None,
        "id": b64(f"Tweet:{post.id}"),
    }


def post_results(post: Post, *, depth: int = 0) -> dict[str, Any]:
    """Build the object that contains a post. The platform also sends this object for a missing post."""
    made: dict[str, Any] = {
        KEY: f"TweetResults:{post.id}",
        "__typename": "TweetResults",
        "result": post_payload(post, depth=depth),
    }
    return made | {"id": b64(f"TweetResults:{post.id}"), "rest_id": post.id}


def user_results(user: User, *, whole: bool = False) -> dict[str, Any]:
    """Build the object that contains a user. The platform also sends this object for a missing user."""
    made_id = b64(f"UserResults:{user.id}")
    return {KEY: made_id, "__typename": "UserResults", "result": user_payload(user, whole=whole), "id": made_id}


def _post_reference(post_id: str, result: dict[str, Any] | None = None) -> dict[str, Any]:
    """Build the object that replaces a post that is not in the page."""
    return {KEY: f"TweetResults:{post_id}", "__typename": "TweetResults", "result": result, "rest_id": post_id}


def _quoted(post: Post) -> dict[str, Any]:
    if post.quote_of:
        return post_results(post.quote_of, depth=1)
    unavailable = (
        {"__typename": "BlurredMediaTombstone", "text": "Log in to X to view this post."} if int(post.id) % 2 else None
    )
    return _post_reference(post.quote_id, unavailable)


def _reply(post: Post) -> dict[str, Any] | None:
    if not post.reply_id:
        return None
    return _post_reference(post.reply_id)


def _reply_user(post: Post) -> dict[str, Any] | None:
    if not post.reply_handle:
        return None
    user = {
        KEY: b64("User:12"),
        "__typename": "User",
        "core": {"__typename": "UserCore", "screen_name": post.reply_handle},
    }
    return {KEY: b64(f"UserResults:{post.reply_handle}"), "__typename": "UserResults", "result": user}


def _note(post: Post) -> dict[str, Any]:
    entity_set = {
        "__typename": "EntitySet",
        "hashtags": [{"__typename": "HashtagEntity", "text": tag} for tag in post.tags],
        "symbols": [],
        "smarttags": [],
        "urls": [_link(post.whole, short, long) for short, long in post.links],
        "timestamps": None,
        "user_mentions": [],
    }
    note_id, results_id = b64(f"NoteTweet:{post.id}"), b64(f"NoteTweetResults:{post.id}")
    note = {KEY: note_id, "__typename": "NoteTweet", "text": post.whole, "entity_set": entity_set, "id": note_id}
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


def entry(post: Post, *, kind: str = "tweet") -> dict[str, Any]:
    """Build a post's entry in the timeline."""
    entry_id = f"{kind}-{post.id}"
    shown = {
        "__typename": "TimelineTweet",
        "promoted_metadata": None,
        "tweet_results": post_results(post),
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
        "sort_index": post.id,
    }


def call_timeline(posts: list[Post], pinned: Post | None, following: str, *, end: bool) -> dict[str, Any]:
    """Build the response to the newest client's query for a user's posts."""
    instructions: list[dict[str, Any]] = []
    if pinned:
        instructions.append({"__typename": "TimelinePinEntry", "entry": entry(pinned)})
    entries = [entry(post) for post in posts]
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
    """Remove the record ids (``KEY``) from nested objects."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key != KEY}
    return [plain(each) for each in value] if isinstance(value, list) else value
