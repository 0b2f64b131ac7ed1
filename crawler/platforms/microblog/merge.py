"""Microblog: one record from what the sources say: posts by id, then field by field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crawler import cursors
from crawler.errors import ScrapeError, TargetError
from crawler.platforms.microblog.schema import CURSOR
from crawler.platforms.microblog.user import FIELDS, merged
from crawler.platforms.page import missing

Part = dict[str, Any]
"""A page's item: ``profile``, ``user_id``, ``posts``, ``next_cursor``."""

PROFILE_ORDER = ("user", "timeline", "page", "embed")
"""Whose profile fields win. Embeds may be hours old."""
POST_ORDER = ("timeline", "page", "embed")
"""Whose posts and counts win. Embeds know fewer of them."""

_COUNTS = ("favourites_count", "followers_count", "friends_count", "listed_count", "media_count", "statuses_count")
_NULLABLE = frozenset({*_COUNTS, "is_blue_verified", "protected", "verified"})


def profile_of(parts: dict[str, Part]) -> dict[str, Any]:
    """The profile as far as any source exposes it; None for the rest."""
    return merged([parts[source]["profile"] for source in PROFILE_ORDER if source in parts])


def user_id_of(parts: dict[str, Part]) -> str:
    """The platform's id of the user, "" where no source tells it."""
    return next(
        (parts[source]["user_id"] for source in PROFILE_ORDER if source in parts and parts[source]["user_id"]), ""
    )


def record(parts: dict[str, Part], handle: str, seen: Iterable[str] = ()) -> dict[str, Any]:
    """The contract's data. ``seen`` are posts that earlier pages have handed out before their turn.

    Raises:
        ExtractionFailed: no source has the profile.
    """
    profile = profile_of(parts)
    if not profile["screen_name"]:
        raise missing("No answer tells who the profile is.", ["screen_name"], reason="no_user")
    shown = {name: profile[name] if name in _NULLABLE else profile[name] or "" for name in FIELDS}
    early = list(dict.fromkeys(seen))
    posts = [post for post in _posts(parts) if post["post_id"] not in early]
    following = parts.get("timeline", {}).get("next_cursor", "")
    ahead = _ahead(parts) if following else []
    payload = {
        "handle": (handle or profile["screen_name"]).casefold(),
        "user_id": user_id_of(parts),
        "cursor": following,
        "seen": [*early, *(post_id for post_id in ahead if post_id not in early)],
    }
    return {
        "data": {"additional": {"profile_demographics": shown}, "main": posts},
        "hasMore": bool(following),
        "nextCursor": cursors.encode(CURSOR, payload) if following else "",
    }


def _ahead(parts: dict[str, Part]) -> list[str]:
    """Posts that come again on a later page: a pinned one, and the newest that the timeline has elsewhere."""
    served = [post["post_id"] for post in parts["timeline"]["posts"]]
    newest = [post["post_id"] for post in parts.get("page", {}).get("posts", ())]
    pinned = parts["timeline"]["pinned"]
    return [*([pinned] if pinned else []), *(post_id for post_id in newest if post_id not in served)]


def _posts(parts: dict[str, Part]) -> list[dict[str, Any]]:
    """Every post once. The timeline's order, the newest posts that it leaves out before it but after a pinned one.

    Without a timeline: the page's newest posts, then the embed's. With one the embed only adds to its posts: it has
    old ones, which come again on later pages.
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
    """A post with what only another source exposes."""
    if better is None:
        return other
    return {name: other[name] if _is_missing(value) else value for name, value in better.items()}


def _is_missing(value: Any) -> bool:
    """Whether a source says nothing: no value, no hashtags, no video file of any quality."""
    return value is None or value == [] or (isinstance(value, dict) and not any(value.values()))


def failure(errors: list[ScrapeError]) -> ScrapeError:
    """The one error of a target of which no source told anything: what is said of the target itself, else what may
    pass, else the first. The sources are asked in the order of their worth.
    """
    said = next((error for error in errors if isinstance(error, TargetError)), None)
    return said or next((error for error in errors if error.retryable), errors[0])
