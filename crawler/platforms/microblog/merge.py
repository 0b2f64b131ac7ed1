"""Microblog: merges a profile's sources into one record. Posts are matched by id and merged field by field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from crawler.errors import CircuitOpen, ScrapeError, TargetError
from crawler.platforms.microblog.convert import merged
from crawler.platforms.microblog.schema import CURSOR, MAX_SEEN, Demographics
from crawler.platforms.model import empty
from crawler.platforms.page import missing_error
from crawler.platforms.requests import encode_cursor, page_mark, with_used

Part = dict[str, Any]
"""The item of one source's page object: ``profile``, ``user_id``, ``posts``, ``pinned`` and ``next_cursor``."""

PROFILE_ORDER = ("user", "timeline", "page", "embed")
"""The sources in order of preference for profile fields. The embed is last, because it may be hours old."""
POST_ORDER = ("timeline", "page", "embed")
"""The sources in order of preference for posts and their counts. The embed is last, because it lacks some counts."""

LONG = 200
"""Minimum number of characters of a text that may be the shortened form of a longer text."""


def profile_of(parts: dict[str, Part]) -> dict[str, Any]:
    """Merge the profile fields from all sources. A field is None if no source exposes it.

    The picture is the page's if there is a page: only pages have it in a larger size.
    """
    found = merged([parts[source]["profile"] for source in PROFILE_ORDER if source in parts])
    picture = parts["page"]["profile"].get("profile_image_url_https") if "page" in parts else None
    return found | ({"profile_image_url_https": picture} if picture else {})


def user_id_of(parts: dict[str, Part]) -> str:
    """Return the user's id on the platform, or "" if no source contains it."""
    return next(
        (parts[source]["user_id"] for source in PROFILE_ORDER if source in parts and parts[source]["user_id"]), ""
    )


def record(
    parts: dict[str, Part],
    handle: str,
    seen: Iterable[str] = (),
    earlier: int | None = 0,
    used: Sequence[int] = (),
) -> dict[str, Any]:
    """Build the contract's data from the sources. ``handle`` is the requested handle.

    ``seen`` are the ids of posts that earlier pages already returned. These posts are left out of this page.
    ``earlier`` is the number of posts on earlier pages, None if it is unknown. ``used`` are the checksums of the
    platform's cursors that led to this page and to earlier ones.

    If the timeline could not be fetched, or its cursor could not be read, and posts seem to be missing, the record's
    cursor requests the timeline from its start. The later pages then omit the posts in this record.

    Raises:
        ExtractionFailed: no source contains the profile.
    """
    profile = profile_of(parts)
    if not profile["screen_name"]:
        raise missing_error("No source contains the profile's handle.", ["screen_name"], reason="no_user")
    demographics = empty(Demographics) | {name: value for name, value in profile.items() if value is not None}
    seen_ids = list(dict.fromkeys(seen))
    posts = [post for post in _posts(parts) if post["post_id"] not in seen_ids]
    following: str | None = parts["timeline"]["next_cursor"] if "timeline" in parts else None
    if following is None:
        has_more, ahead = not _is_complete(profile, len(posts) + (earlier or 0)), [post["post_id"] for post in posts]
    else:
        has_more, ahead = bool(following), _repeated_later(parts)
    payload = {
        "handle": (handle or profile["screen_name"]).casefold(),
        "user_id": user_id_of(parts),
        "cursor": following or "",
        "seen": list(dict.fromkeys([*seen_ids, *ahead]))[:MAX_SEEN],
        "posts": None if earlier is None else earlier + len(posts),
        "used": with_used(used, following, page_mark_of(parts["timeline"])) if following else list(used),
    }
    return {
        "data": {"additional": {"profile_demographics": demographics}, "main": posts},
        "hasMore": has_more,
        "nextCursor": encode_cursor(CURSOR, payload) if has_more else "",
    }


def page_mark_of(timeline: Part) -> str:
    """Return the mark of a page of the timeline, by which a page that repeats itself is known."""
    return page_mark(post["post_id"] for post in timeline["posts"])


def _is_complete(profile: dict[str, Any], posts: int) -> bool:
    """Whether no post is missing: the profile is protected, or states no more posts than were found."""
    count = profile["statuses_count"]
    return profile["protected"] is True or (count is not None and posts >= count)


def _repeated_later(parts: dict[str, Part]) -> list[str]:
    """Return the ids of posts in this record that a later page of the timeline repeats.

    These are the pinned post, and the posts on the profile's public page that are not on this page of the timeline.
    """
    served = [post["post_id"] for post in parts["timeline"]["posts"]]
    newest = [post["post_id"] for post in parts.get("page", {}).get("posts", ())]
    pinned = parts["timeline"]["pinned"]
    return [*([pinned] if pinned else []), *(post_id for post_id in newest if post_id not in served)]


def _posts(parts: dict[str, Part]) -> list[dict[str, Any]]:
    """Merge the posts by id, in the timeline's order.

    Posts that are only on the profile's page are the newest. Such posts come first, but after a pinned post. If the
    timeline has no posts, the posts on the profile's page come first, then the embed's. Otherwise the embed fills in
    missing values of posts from the timeline or the profile's page. Later timeline pages contain the embed's other
    posts; if there is no later page, these posts come last.
    """
    by_source = {source: parts[source]["posts"] for source in POST_ORDER if source in parts}
    known: dict[str, dict[str, Any]] = {}
    for posts in by_source.values():
        for post in posts:
            known[post["post_id"]] = _filled(known.get(post["post_id"]), post)
    timeline, newest, embedded = ([post["post_id"] for post in by_source.get(name, ())] for name in POST_ORDER)
    order = [*newest, *embedded]
    if timeline:
        ahead = [post_id for post_id in newest if post_id not in timeline]
        first = 1 if parts["timeline"]["pinned"] == timeline[0] else 0
        is_last = parts["timeline"]["next_cursor"] == ""
        order = [*timeline[:first], *ahead, *timeline[first:], *(embedded if is_last else ())]
    return [known[post_id] for post_id in dict.fromkeys(order)]


def _filled(better: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """Return a post with its missing values filled in from another source's version of the same post."""
    if better is None:
        return other
    filled = {name: other[name] if _is_missing(value) else value for name, value in better.items()}
    if len(filled["caption"]) >= LONG and other["caption"].startswith(filled["caption"].rstrip(" …")):
        filled["caption"] = other["caption"]  # the better source has only the beginning of the text
    return filled


def _is_missing(value: Any) -> bool:
    """Whether a post's value is missing: None, an empty list, or an object of video files that are all None."""
    return value is None or value == [] or (isinstance(value, dict) and not any(value.values()))


def representative_error(errors: list[ScrapeError]) -> ScrapeError:
    """Choose the error of a target without data: the first ``TargetError``, else a retryable error, else the first.

    ``errors`` are in the order in which the sources were tried. Among retryable errors, the error for an open circuit
    breaker is chosen last, because that source was not requested.
    """
    final = next((error for error in errors if isinstance(error, TargetError)), None)
    retryable = sorted((error for error in errors if error.retryable), key=lambda e: isinstance(e, CircuitOpen))
    return final or next(iter(retryable), errors[0])
