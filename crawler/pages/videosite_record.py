"""Video site: one record from the parts that there are. Pure: what the page objects gave goes in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crawler.errors import ExtractionFailed

Item = dict[str, Any]

FILLED = ("published_date", "like_count", "comment_count", "video_duration_seconds")
"""What an item gets from another source where its list does not tell it."""


def record(profile: Item, posts: list[Item], exact: list[Item], *, cursor: str = "") -> Item:
    """The contract's object. ``exact``: what feed and metadata know of the items, the better source first."""
    known: dict[str, list[Item]] = {}
    for each in exact:
        known.setdefault(each["content_id"], []).append(each)
    author = {
        "author_id": profile["profile_id"] or None,
        "author_name": profile["display_name"],
        "author_username": profile["username"],
    }
    joined = [{**_completed(post, known.get(post["content_id"], [])), **author} for post in posts]
    return {"pagination": {"cursor": cursor, "has_more": bool(cursor)}, "posts": joined, "profile": profile}


def with_about(profile: Item, about: Item, created: Item) -> Item:
    """The channel with its about panel. The feed tells the second of its beginning, the panel the day."""
    return {**profile, **about, **created}


def needs_more(posts: list[Item], exact: list[Item]) -> Iterator[str]:
    """The ids of the items whose date, likes or views are not told exactly by what is there. Shorts keep their views."""
    known = {each["content_id"] for each in exact}
    yield from (post["content_id"] for post in posts if post["content_id"] not in known)


def _completed(post: Item, exact: list[Item]) -> Item:
    whole = dict(post)
    for source in exact:
        for key in FILLED:
            if whole[key] is None:
                whole[key] = source[key]
        whole["caption"] = whole["caption"] or source["caption"]
        for key in ("hashtags", "mentions"):
            whole[key] = list(dict.fromkeys(whole[key] + source[key]))
    # Shorts are counted by starts in lists and by watchers elsewhere: figures that must not be mixed.
    if post["content_type"] != "short":
        views = [source["view_count"] for source in exact]
        whole["view_count"] = next((each for each in views if _agrees(each, post["view_count"])), post["view_count"])
    return whole


def _agrees(exact: int | None, stated: int | None) -> bool:
    """Whether an exact number can be the rounded one that is stated: feeds are known to say 1."""
    return exact is not None and (stated is None or stated <= 2 * exact <= 4 * max(stated, 10))


def joined(parts: dict[str, Item]) -> Item:
    """The record from saved answers by their kind, as far as they tell it: of the list's next page, if it is there.

    Raises:
        ExtractionFailed: they belong to different channels.
    """
    listing = next((parts[kind] for kind in ("continuation", "playlist", "channel") if kind in parts), None)
    exact = [post for kind in ("video", "feed", "comments") for post in parts.get(kind, {}).get("posts", [])]
    profile = dict(next(parts[kind]["profile"] for kind in _PROFILES if kind in parts))
    own = {profile["profile_id"], *(part["channel"] for part in parts.values() if part.get("channel"))} - {""}
    if len(own) > 1:
        raise ExtractionFailed(f"The files are of different channels: {', '.join(sorted(own))}.", reason="wrong_echo")
    if "about" in parts:
        profile = with_about(profile, parts["about"]["about"], parts.get("feed", {}).get("created", {}))
    profile["profile_id"] = profile["profile_id"] or next(iter(own), "")
    if "channel" not in parts:  # a part that was saved alone may name the channel by its handle or id only
        profile["display_name"] = profile["display_name"] or profile["username"] or profile["profile_id"]
    return record(profile, exact if listing is None else listing["posts"], exact if listing else [])


_PROFILES = ("channel", "about", "feed", "video", "comments", "resolve", "continuation", "playlist")
"""Kinds of answers, the one that knows most of the channel first."""
