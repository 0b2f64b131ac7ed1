"""The simulated microblog's users, posts and timelines in the format of its newest client."""

from __future__ import annotations

import html
from typing import Any

from crawler.sandbox.microblog.account import Media, Post, User
from crawler.sandbox.microblog.old import b64, span, variants
from crawler.sandbox.skeletons import ABSENT, Skeletons

KEY = "__key"
"""The key that contains an object's record id. Objects with this key become separate records in a page's data."""

fill = Skeletons(__file__)


def user_payload(user: User, *, whole: bool) -> dict[str, Any]:
    """Build a user. ``whole``: with all fields, as the page's owner; else with only the fields of a post's author."""
    return fill(
        "user",
        user=user,
        id=b64(f"User:{user.id}"),
        kind=user.kind or None,
        created=user.created * 1000 if whole else ABSENT,
        verified=False if whole else ABSENT,
        bio=fill("bio", about=html.escape(user.about, quote=False)) if whole else ABSENT,
    )


def post_payload(post: Post, *, depth: int = 0) -> dict[str, Any]:
    """Build a post."""
    text, is_repost = post.served, post.repost_of is not None
    has_entities = not post.long and not is_repost
    return fill(
        "post",
        post=post,
        id=b64(f"Tweet:{post.id}"),
        author=user_results(post.author),
        repost=post_results(post.repost_of, depth=1) if post.repost_of else None,
        sensitive=False if post.media else None,
        **post.figures | ({"saves": ABSENT} if depth else {}),
        views=ABSENT if post.views is None else str(post.views),
        text=text,
        length=len(text),
        hashtags=_hashtags(post) if has_entities else [],
        created=post.time * 1000,
        reply=_post_reference(post.reply_id) if post.reply_id else None,
        reply_user=_reply_user(post.reply_handle) if post.reply_handle else None,
        media=[] if is_repost else [_media(each, text) for each in post.media],
        quoted=_quoted(post) if post.quote_id and not depth and not is_repost else None,
        urls=_links(post, text) if has_entities else [],
        note=_note(post) if post.long else None,
    )


def post_results(post: Post, *, depth: int = 0) -> dict[str, Any]:
    """Build the object that contains a post. The platform also sends this object for a missing post."""
    payload = post_payload(post, depth=depth)
    return fill("post results", post=post, payload=payload, id=b64(f"TweetResults:{post.id}"))


def user_results(user: User, *, whole: bool = False) -> dict[str, Any]:
    """Build the object that contains a user. The platform also sends this object for a missing user."""
    return fill("user results", payload=user_payload(user, whole=whole), id=b64(f"UserResults:{user.id}"))


def _post_reference(post_id: str, result: dict[str, Any] | None = None) -> dict[str, Any]:
    """Build the object that replaces a post that is not in the page."""
    return fill("reference", id=post_id, result=result)


def _quoted(post: Post) -> dict[str, Any]:
    if post.quote_of:
        return post_results(post.quote_of, depth=1)
    unavailable = (
        {"__typename": "BlurredMediaTombstone", "text": "Log in to X to view this post."} if int(post.id) % 2 else None
    )
    return _post_reference(post.quote_id, unavailable)


def _reply_user(handle: str) -> dict[str, Any]:
    return fill("reply user", handle=handle, id=b64(f"UserResults:{handle}"))


def _note(post: Post) -> dict[str, Any]:
    return fill(
        "note",
        post=post,
        note_id=b64(f"NoteTweet:{post.id}"),
        results_id=b64(f"NoteTweetResults:{post.id}"),
        hashtags=_hashtags(post),
        urls=_links(post, post.whole),
    )


def _hashtags(post: Post) -> list[dict[str, Any]]:
    return [{"__typename": "HashtagEntity", "text": tag} for tag in post.tags]


def _links(post: Post, text: str) -> list[dict[str, Any]]:
    return [fill("link", span=span(text, short), short=short, long=long) for short, long in post.links]


def _media(each: Media, text: str) -> dict[str, Any]:
    files = [{"__typename": "ApiMediaEntityVideoVariant", **file} for file in variants(each, explicit=True)]
    return fill(
        "media",
        media=each,
        span=span(text, each.short),
        info=fill("media info") if files else None,
        video=fill("video", variants=files) if files else None,
    )


def entry(post: Post) -> dict[str, Any]:
    """Build a post's entry in the timeline."""
    return fill("entry", post=post, result=post_results(post))


def call_timeline(posts: list[Post], pinned: Post | None, following: str, *, end: bool) -> dict[str, Any]:
    """Build the response to the newest client's query for a user's posts."""
    instructions: list[dict[str, Any]] = []
    if pinned:
        instructions.append({"__typename": "TimelinePinEntry", "entry": entry(pinned)})
    entries = [entry(post) for post in posts]
    if following:
        entries.append(fill("cursor", following=following))
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
