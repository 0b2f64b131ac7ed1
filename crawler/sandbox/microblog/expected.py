"""The simulated microblog's truth: the contract's record, from what it knows and from which sources speak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crawler.sandbox.microblog.account import Media, Post, User, date_text

SITE = "https://x.com"
NOT_ON_PAGES = {"favourites_count", "listed_count", "media_count", "profile_banner_url"}
ON_FRAGMENTS = {
    "followers_count",
    "friends_count",
    "is_blue_verified",
    "name",
    "profile_image_url_https",
    "protected",
    "screen_name",
    "statuses_count",
    "verified_type",
}
"""What the newest client's posts say of their author."""
TEXTS = {
    "created_at",
    "description",
    "location",
    "name",
    "profile_banner_url",
    "profile_image_url_https",
    "screen_name",
    "url",
    "verified_type",
}


@dataclass(frozen=True, slots=True)
class Exposed:
    """What there is to be known of a target, and by whom."""

    user: User
    shape: str
    sources: frozenset[str]
    newest: list[Post]
    embedded: list[Post]
    served: list[Post]
    """The timeline's posts on this page, and on the first."""
    first_served: list[Post]
    pinned: Post | None
    number: int
    stale: int
    more: bool


def record(it: Exposed) -> dict[str, Any]:
    """The contract's data object."""
    speaks = "timeline" in it.sources and not it.user.protected
    return {
        "data": {"additional": {"profile_demographics": _profile(it)}, "main": _posts(it)},
        "hasMore": speaks and it.more,
        "nextCursor": "",
    }


def _profile(it: Exposed) -> dict[str, Any]:
    whole = _whole(it.user)
    newer = {name: value for name, value in whole.items() if it.shape in {"A", "B"} or name != "listed_count"}
    fragment = {name: value for name, value in whole.items() if name in ON_FRAGMENTS}
    known: dict[str, dict[str, Any]] = {
        "user": newer,
        "timeline": (fragment if it.shape == "D" else newer) if it.served else {},
        "page": {name: value for name, value in whole.items() if name not in NOT_ON_PAGES},
        "embed": whole | {"followers_count": it.user.followers - it.stale} if it.embedded else {},
    }
    asked = set(it.sources)
    if it.number > 1:
        asked &= {"timeline", "user"}
    elif it.embedded and "embed" in it.sources:
        asked -= {"user"}  # nothing is left for it to tell
    found: dict[str, Any] = {name: "" if name in TEXTS else None for name in whole}
    for source in ("embed", "page", "timeline", "user"):
        if source in asked:
            found |= known[source]
    return found


def _whole(who: User) -> dict[str, Any]:
    return {
        "created_at": date_text(who.created),
        "description": who.about,
        "favourites_count": who.likes,
        "followers_count": who.followers,
        "friends_count": who.following,
        "listed_count": who.lists,
        "media_count": who.media,
        "statuses_count": who.posts,
        "is_blue_verified": who.blue,
        "protected": who.protected,
        "verified": False,
        "location": who.location,
        "name": who.name,
        "profile_banner_url": who.banner,
        "profile_image_url_https": who.picture,
        "screen_name": who.handle,
        "url": who.link,
        "verified_type": who.kind,
    }


def _posts(it: Exposed) -> list[dict[str, Any]]:
    timeline = it.served if "timeline" in it.sources else []
    newest = it.newest if "page" in it.sources else []
    first = ([it.pinned] if it.pinned else []) + it.first_served
    early = [post for post in newest if post not in first]
    if it.number > 1:
        return [post_record(post) for post in timeline if post != it.pinned and post not in early]
    if timeline:
        top = [it.pinned] if it.pinned else []
        rest = [post for post in timeline if post != it.pinned]
        return [post_record(post) for post in [*top, *early, *rest]]
    embedded = it.embedded if "embed" in it.sources else []
    late = [post for post in embedded if post not in newest]
    return [post_record(post) for post in newest] + [post_record(post, embedded=True) for post in late]


def post_record(post: Post, *, embedded: bool = False) -> dict[str, Any]:
    """The contract's post object; an embed does not know views and bookmarks."""
    inner = post.repost_of
    media = (inner or post).media
    return {
        "caption": post.caption,
        "comment_count": None if inner else post.replies,
        "like_count": None if inner else post.likes,
        "save_count": None if inner or embedded else post.saves,
        "share_count": inner.shares if inner else post.shares,
        "view_count": None if embedded else post.views,
        "creator_handle": post.author.handle,
        "hashtags": list((inner or post).tags),
        "in_reply_to_handle": post.reply_handle or None,
        "in_reply_to_post_id": post.reply_id or None,
        "is_quote": bool(post.quote_id) and inner is None,
        "is_reply": bool(post.reply_id),
        "is_repost": inner is not None,
        "post_id": post.id,
        "post_url": f"{SITE}/{post.author.handle}/status/{post.id}",
        "profile_picture_url": post.author.picture,
        "quoted_post": _inner(post.quote_of, embedded=embedded) if post.quote_of else None,
        "reposted_post": _inner(inner, embedded=embedded) if inner else None,
        "thumbnail_url": media[0].thumbnail if media else None,
        "upload_timestamp": post.time,
        "video_url": _files(media)["high"],
        "video_urls_by_quality": _files(media),
    }


def _inner(post: Post, *, embedded: bool) -> dict[str, Any]:
    return {
        "caption": post.caption,
        "comment_count": post.replies,
        "creator_handle": post.author.handle,
        "creator_name": post.author.name,
        "like_count": post.likes,
        "post_id": post.id,
        "post_url": f"{SITE}/{post.author.handle}/status/{post.id}",
        "share_count": post.shares,
        "upload_timestamp": post.time,
        "view_count": None if embedded else post.views,
    }


def _files(media: tuple[Media, ...]) -> dict[str, str | None]:
    urls = [url for _, url in sorted(media[0].files)] if media else []
    names: dict[str, str | None] = dict.fromkeys(("high", "low", "medium", "watermarked"))
    if urls:
        names["high"] = urls[-1]
    if len(urls) >= 2:
        names["low"] = urls[0]
    if len(urls) >= 3:
        names["medium"] = urls[(len(urls) - 1) // 2]
    return names
