"""Video site: one record from the parts that there are. Pure: what the page objects gave goes in."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from crawler import cursors
from crawler.errors import ExtractionFailed
from crawler.platforms.videosite.schema import CURSOR_KIND, TABS, Continuation

Item = dict[str, Any]

FILLED = ("published_date", "like_count", "comment_count", "video_duration_seconds")
"""What an item gets from another source where its list does not tell it."""

REMEMBERED = 24
"""Tokens that a cursor remembers as used: circles are short, cursors should be too."""


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


def unknown(posts: list[Item], exact: list[Item]) -> list[str]:
    """The ids of the items of which no other source has told anything yet."""
    known = {each["content_id"] for each in exact}
    return [post["content_id"] for post in posts if post["content_id"] not in known]


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


def cursor_after(  # noqa: PLR0913  # where a list stands, by name
    profile: Item, *, asked: str, kind: str, tabs: list[str], token: str, seen: list[int]
) -> str:
    """Where to go on: in the first of the ``tabs`` by its token, else with the next tab; "" after the last.

    ``asked`` and ``kind`` are the params ``username`` and ``type``, ``seen`` the marks of the tokens used in this tab.
    """
    mark = zlib.crc32(token.encode())
    if mark in seen:
        token = ""  # the platform leads in a circle
    if not token:
        tabs, seen = tabs[1:], []
    if not tabs or not profile["profile_id"]:
        return ""
    names = {asked.removeprefix("@").lower(), profile["username"].lower(), profile["profile_id"].lower()}
    payload = Continuation.model_validate(
        {
            "channel": profile["profile_id"],
            "names": sorted(names - {""}),
            "type": kind,
            "tabs": tabs,
            "token": token,
            "seen": [*seen, mark][-REMEMBERED:] if token else [],
        }
    )
    return cursors.encode(CURSOR_KIND, payload.model_dump())


def joined(parts: dict[str, Item], asked: Mapping[str, Any]) -> Item:
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
    if asked.get("include_about") and not profile["external_links"]:
        profile["external_links"] = parts.get("channel", {}).get("links", [])
    if "about" in parts:
        profile = with_about(profile, parts["about"]["about"], parts.get("feed", {}).get("created", {}))
    profile["profile_id"] = profile["profile_id"] or next(iter(own), "")
    if "channel" not in parts:  # a part that was saved alone may name the channel by its handle or id only
        profile["display_name"] = profile["display_name"] or profile["username"] or profile["profile_id"]
    if listing is None:
        return record(profile, exact, [])
    return record(profile, _labelled(parts, listing), exact, cursor=_saved_cursor(profile, parts, listing, asked))


def _labelled(parts: dict[str, Item], listing: Item) -> list[Item]:
    """The items of a list's further page with the label of the tab that its first page showed."""
    is_live = parts.get("channel", {}).get("tab") == TABS["live"]
    relabelled = {"content_type": "live"} if is_live else {}
    return [post | relabelled if post["content_type"] == "video" else post for post in listing["posts"]]


def _saved_cursor(profile: Item, parts: dict[str, Item], listing: Item, asked: Mapping[str, Any]) -> str:
    page = parts.get("channel", {})
    kinds = {tab: kind for kind, tab in TABS.items()}
    shown = {post["content_type"] for post in listing["posts"]}
    told = asked.get("tab") or page.get("tab") or (TABS[shown.pop()] if len(shown) == 1 else TABS["video"])
    whole = asked.get("type") == "all"
    if told not in kinds:
        return ""
    tabs = [tab for tab in TABS.values() if tab == told or (whole and tab in page.get("tabs", ()))]
    return cursor_after(
        profile,
        asked=asked.get("username", ""),
        kind="all" if whole else kinds[told],
        tabs=tabs[tabs.index(told) :],
        token=listing["continuation"],
        seen=[],
    )


_PROFILES = ("channel", "about", "feed", "video", "comments", "resolve", "continuation", "playlist")
"""Kinds of answers, the one that knows most of the channel first."""
