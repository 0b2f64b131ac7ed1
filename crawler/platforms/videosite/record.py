"""Video site: builds a record from the page objects' items, without I/O."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from crawler.platforms import cursors
from crawler.platforms.page import mismatch_error
from crawler.platforms.videosite.schema import CURSOR_KIND, TABS

Item = dict[str, Any]

ENRICHED_FIELDS = ("published_date", "like_count", "video_duration_seconds")
"""Fields of an item that are taken from the enrichment if the list lacks them."""

MAX_ROUNDING = 1.1
"""Maximum ratio of an exact number of views to its rounded form: "1M" is shown for up to 1,099,999 views."""
MAX_GROWTH, SMALL_GROWTH = 0.05, 10
"""Maximum increase of a number of views between two sources: as a share, and as an absolute number in addition."""

ABOUT_FIELDS: Item = {
    "account_creation_date": None,
    "account_creation_date_text": "",
    "external_links": [],
    "location": "",
    "total_views": None,
}
"""The channel's fields that belong to the about panel, with their empty values."""

MAX_SEEN_TOKENS = 24
"""Maximum number of used tokens in a cursor. A few suffice to detect that tokens repeat, because such loops are short.
"""


def record(profile: Item, posts: list[Item], enrichments: list[Item], *, cursor: str = "", more: bool = False) -> Item:
    """Build the record of a channel (``profile``) and the items in its list (``posts``).

    ``enrichments``: items from the feed and from video metadata, which complete the posts with the same ids. Of several
    values for a field, the first is used. ``more``: whether the list continues, although the token for its next page
    could not be read.
    """
    known: dict[str, list[Item]] = {}
    for each in enrichments:
        known.setdefault(each["content_id"], []).append(each)
    author = {
        "author_id": profile["profile_id"] or None,
        "author_name": profile["display_name"],
        "author_username": profile["username"],
    }
    completed = [_completed(post, known.get(post["content_id"], [])) for post in posts]
    posts = [post if post["author_id"] not in (None, author["author_id"]) else post | author for post in completed]
    return {"pagination": {"cursor": cursor, "has_more": more or bool(cursor)}, "posts": posts, "profile": profile}


def without_about(profile: Item) -> Item:
    """Return the channel with the fields that belong to the about panel emptied."""
    return {**profile, **ABOUT_FIELDS}


def unenriched(posts: list[Item], enrichments: list[Item]) -> list[str]:
    """Return the ids of the posts for which there is no enrichment."""
    known = {each["content_id"] for each in enrichments}
    return [post["content_id"] for post in posts if post["content_id"] not in known]


def _completed(post: Item, enrichments: list[Item]) -> Item:
    completed = dict(post)
    for source in enrichments:
        for key in ENRICHED_FIELDS:
            if completed[key] is None:
                completed[key] = source[key]
        completed["caption"] = completed["caption"] or source["caption"]
        for key in ("hashtags", "mentions"):
            completed[key] = list(dict.fromkeys(completed[key] + source[key]))
    # For shorts, the number in a list counts each start of playback, but other sources count viewers.
    if post["content_type"] != "short":
        views = [source["view_count"] for source in enrichments]
        completed["view_count"] = next(
            (each for each in views if _is_plausible(each, post["view_count"])), post["view_count"]
        )
    return completed


def _is_plausible(exact: int | None, stated: int | None) -> bool:
    """Whether an exact number of views is consistent with the number in the list (``stated``).

    The list's number is rounded down to two or three digits. If the list has no number, every exact number is
    consistent. Other sources may count views differently, and the Atom feeds sometimes state 1 view for every video.
    """
    if exact is None or stated is None:
        return exact is not None
    return stated * (1 - MAX_GROWTH) - 1 <= exact <= stated * MAX_ROUNDING * (1 + MAX_GROWTH) + SMALL_GROWTH


def is_used(token: str, seen: list[int]) -> bool:
    """Whether a token was used before. ``seen``: the checksums of used tokens."""
    return zlib.crc32(token.encode()) in seen


def cursor_after(  # noqa: PLR0913  # the arguments are the position in a list
    profile: Item, *, username: str, kind: str, tabs: list[str], token: str, seen: list[int]
) -> str:
    """Return the cursor for the next page, a ``Continuation``; "" after the last tab.

    If there is a ``token`` that was not used before, the next page continues the first of the ``tabs``. Otherwise the
    next page is the first page of the second tab.

    ``tabs`` are the tabs that are still to be read, the current tab first. ``username`` and ``kind`` are the params
    ``username`` and ``type``. ``seen`` are the checksums of used tokens.
    """
    checksum = zlib.crc32(token.encode())
    if is_used(token, seen):
        token = ""  # the platform repeated a token: following it would never end
    if not token:
        tabs = tabs[1:]
    if not tabs or not profile["profile_id"]:
        return ""
    names = {username.removeprefix("@").lower(), profile["username"].lower(), profile["profile_id"].lower()}
    payload = {
        "channel": profile["profile_id"],
        "names": sorted(names - {""}),
        "type": kind,
        "tabs": tabs,
        "token": token,
        "seen": [*seen, checksum][-MAX_SEEN_TOKENS:] if token else [],
    }
    return cursors.encode(CURSOR_KIND, payload)


def joined_record(parts: dict[str, Item], params: Mapping[str, Any]) -> Item:
    """Build the record from saved responses. ``parts`` maps the kind of each response to its data.

    The items are those of a continuation page if one was saved, else of a playlist, else of the channel's page. The
    param ``without_about`` empties the fields that belong to the about panel.

    Raises:
        ExtractionFailed: the responses belong to different channels.
    """
    listing = next((parts[kind] for kind in ("continuation", "playlist", "channel") if kind in parts), None)
    enrichments = [post for kind in ("video", "feed") for post in parts.get(kind, {}).get("posts", [])]
    profile = dict(next(parts[kind]["profile"] for kind in _PROFILES if kind in parts))
    ids = {profile["profile_id"], *(part["channel"] for part in parts.values() if part.get("channel"))} - {""}
    if len(ids) > 1:
        message = f"The files belong to different channels: {', '.join(sorted(ids))}."
        raise mismatch_error(message, ["profile", "profile_id"], min(ids))
    if params.get("include_about") and not profile["external_links"]:
        profile["external_links"] = parts.get("channel", {}).get("links", [])
    if "about" in parts:
        # The panel contains only the day of the channel's creation, the feed the exact time.
        profile |= parts["about"]["about"] | parts.get("feed", {}).get("created", {})
    if params.get("without_about"):
        profile = without_about(profile)
    profile["profile_id"] = profile["profile_id"] or next(iter(ids), "")
    if "channel" not in parts:  # a response that was saved alone may contain only the channel's handle or only its id
        profile["display_name"] = profile["display_name"] or profile["username"] or profile["profile_id"]
    if listing is None:  # all responses are about one video
        posts = list({post["content_id"]: post for post in reversed(enrichments)}.values())[::-1]
        return record(profile, posts, enrichments)
    posts = _labelled(parts, listing)
    more = listing["more"] and not listing["continuation"]
    return record(profile, posts, enrichments, cursor=_saved_cursor(profile, parts, listing, params), more=more)


def _labelled(parts: dict[str, Item], listing: Item) -> list[Item]:
    """Return the list's items. If the saved channel page shows the tab of live streams, label its videos as live."""
    is_live = parts.get("channel", {}).get("tab") == TABS["live"]
    relabelled = {"content_type": "live"} if is_live else {}
    return [post | relabelled if post["content_type"] == "video" else post for post in listing["posts"]]


def _saved_cursor(profile: Item, parts: dict[str, Item], listing: Item, params: Mapping[str, Any]) -> str:
    page = parts.get("channel", {})
    kinds = {name: kind for kind, name in TABS.items()}
    types = {post["content_type"] for post in listing["posts"]}
    tab = params.get("tab") or page.get("tab") or (TABS[types.pop()] if len(types) == 1 else TABS["video"])
    is_all = params.get("type") == "all"
    if tab not in kinds:
        return ""
    tabs = [each for each in TABS.values() if each == tab or (is_all and each in page.get("tabs", ()))]
    return cursor_after(
        profile,
        username=params.get("username", ""),
        kind="all" if is_all else kinds[tab],
        tabs=tabs[tabs.index(tab) :],
        token=listing["continuation"],
        seen=[],
    )


_PROFILES = ("channel", "about", "feed", "video", "resolve", "continuation", "playlist")
"""Kinds of responses (``source``) that contain data of the channel, the most complete first."""
