"""Microblog: merges the sources into one record: posts by id, then field by field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crawler import cursors
from crawler.errors import CircuitOpen, ScrapeError, TargetError
from crawler.platforms.microblog.schema import CURSOR
from crawler.platforms.microblog.user import FIELDS, merged
from crawler.platforms.page import missing_error

Part = dict[str, Any]
"""A page's item: ``profile``, ``user_id``, ``posts``, ``next_cursor``."""

PROFILE_ORDER = ("user", "timeline", "page", "embed")
"""Precedence of the sources for profile fields. Embeds may be hours old."""
POST_ORDER = ("timeline", "page", "embed")
"""Precedence of the sources for posts and counts. Embeds have fewer of them."""

_COUNTS = ("favourites_count", "followers_count", "friends_count", "listed_count", "media_count", "statuses_count")
_NULLABLE = frozenset({*_COUNTS, "is_blue_verified", "protected", "verified"})


def profile_of(parts: dict[str, Part]) -> dict[str, Any]:
    """Merge the profile fields of all sources; None for fields that no source exposes."""
    return merged([parts[source]["profile"] for source in PROFILE_ORDER if source in parts])


def user_id_of(parts: dict[str, Part]) -> str:
    """The platform's id of the user, or "" where no source has it."""
    return next(
        (parts[source]["user_id"] for source in PROFILE_ORDER if source in parts and parts[source]["user_id"]), ""
    )


def record(parts: dict[str, Part], handle: str, seen: Iterable[str] = ()) -> dict[str, Any]:
    """Build the contract's data. ``seen`` are ids of posts that earlier pages returned ahead of their position.

    Raises:
        ExtractionFailed: no source has the profile.
    """
    profile = profile_of(parts)
    if not profile["screen_name"]:
        raise missing_error("No source has the profile's handle.", ["screen_name"], reason="no_user")
    demographics = {name: profile[name] if name in _NULLABLE else profile[name] or "" for name in FIELDS}
    seen_ids = list(dict.fromkeys(seen))
    posts = [post for post in _posts(parts) if post["post_id"] not in seen_ids]
    following = parts.get("timeline", {}).get("next_cursor", "")
    ahead = _repeated_later(parts) if following else []
    payload = {
        "handle": (handle or profile["screen_name"]).casefold(),
        "user_id": user_id_of(parts),
        "cursor": following,
        "seen": [*seen_ids, *(post_id for post_id in ahead if post_id not in seen_ids)],
    }
    return {
        "data": {"additional": {"profile_demographics": demographics}, "main": posts},
        "hasMore": bool(following),
        "nextCursor": cursors.encode(CURSOR, payload) if following else "",
    }


def _repeated_later(parts: dict[str, Part]) -> list[str]:
    """Ids of posts that a later page repeats: the pinned post, and newest posts that this timeline page lacks."""
    served = [post["post_id"] for post in parts["timeline"]["posts"]]
    newest = [post["post_id"] for post in parts.get("page", {}).get("posts", ())]
    pinned = parts["timeline"]["pinned"]
    return [*([pinned] if pinned else []), *(post_id for post_id in newest if post_id not in served)]


def _posts(parts: dict[str, Part]) -> list[dict[str, Any]]:
    """Merge the posts by id, in the timeline's order.

    Newest posts of the page that the timeline lacks come first, but after a pinned post. Without a timeline: the page's
    posts, then the embed's. With a timeline the embed only completes its posts: later pages repeat the embed's others.
    """
    by_source = {source: parts[source]["posts"] for source in POST_ORDER if source in parts}
    known: dict[str, dict[str, Any]] = {}
    for posts in by_source.values():
        for post in posts:
            known[post["post_id"]] = _filled(known.get(post["post_id"]), post)
    timeline = [post["post_id"] for post in by_source.get("timeline", ())]
    newest = [post["post_id"] for post in by_source.get("page", ())]
    if timeline:
        ahead = [post_id for post_id in newest if post_id not in timeline]
        first = 1 if parts["timeline"]["pinned"] == timeline[0] else 0
        order = [*timeline[:first], *ahead, *timeline[first:]]
    else:
        order = [*newest, *(post["post_id"] for post in by_source.get("embed", ()))]
    return [known[post_id] for post_id in dict.fromkeys(order)]


def _filled(better: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """Complete a post with values that only another source exposes."""
    if better is None:
        return other
    return {name: other[name] if _is_missing(value) else value for name, value in better.items()}


def _is_missing(value: Any) -> bool:
    """Whether a source has no value here: None, no hashtags, or no video file of any quality."""
    return value is None or value == [] or (isinstance(value, dict) and not any(value.values()))


def representative_error(errors: list[ScrapeError]) -> ScrapeError:
    """Pick the error of a target without data: an error of the target itself, else a retryable one, else the first.

    The errors are in the order in which the sources were tried. The error of a source that was not is the last choice.
    """
    final = next((error for error in errors if isinstance(error, TargetError)), None)
    retryable = sorted((error for error in errors if error.retryable), key=lambda e: isinstance(e, CircuitOpen))
    return final or next(iter(retryable), errors[0])
