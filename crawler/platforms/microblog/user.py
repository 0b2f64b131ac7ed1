"""Microblog: converts a user in any of the platform's JSON layouts to the contract's profile fields.

A field is None if the layout does not expose it.
"""

from __future__ import annotations

import html
from typing import Any

from crawler.platforms.microblog.node import Node
from crawler.platforms.microblog.text import date_text
from crawler.reading.values import count, flag, text

FIELDS = (
    "created_at",
    "description",
    "favourites_count",
    "followers_count",
    "friends_count",
    "listed_count",
    "media_count",
    "statuses_count",
    "is_blue_verified",
    "protected",
    "verified",
    "location",
    "name",
    "profile_banner_url",
    "profile_image_url_https",
    "screen_name",
    "url",
    "verified_type",
)
"""The contract's profile fields. They have the names of the keys in the oldest JSON layout, which embeds still use."""

_COUNTS = {
    "favourites_count": ("action_counts", "favorites_count"),
    "followers_count": ("relationship_counts", "followers"),
    "friends_count": ("relationship_counts", "following"),
    "listed_count": None,
    "media_count": ("tweet_counts", "media_tweets"),
    "statuses_count": ("tweet_counts", "tweets"),
}
"""Paths of the counts in the platform's newest JSON layout."""
_TEXTS = {
    "description": ("profile_bio", "description"),
    "location": ("location", "location"),
    "profile_banner_url": ("banner", "image_url"),
    "profile_image_url_https": ("avatar", "image_url"),
    "screen_name": ("core", "screen_name"),
    "url": ("website", "url"),
    "name": ("core", "name"),
}
_OMITTED_WHEN_EMPTY = ("profile_banner_url", "url", "verified_type")
"""Fields that the older JSON layouts omit if they are empty. These layouts still use the oldest keys for counts."""


def screen_name(user: Node) -> str:
    """Return a user's handle, or "" if the object is not a user."""
    return text(user.get("core", "screen_name")) or text(user.get("legacy", "screen_name"))


def display_name(user: Node) -> str:
    """Return a user's display name, or ""."""
    return html.unescape(text(user.get("core", "name")) or text(user.get("legacy", "name")))


def picture(user: Node) -> str:
    """Return the URL of a user's picture, or ""."""
    return text(user.get("avatar", "image_url")) or text(user.get("legacy", "profile_image_url_https"))


def profile(user: Node) -> dict[str, Any]:
    """Return the contract's profile fields from a user object. A field is None if the object does not expose it."""
    legacy = user.node("legacy")
    found: dict[str, Any] = {}
    for name, newer in _COUNTS.items():
        exact = count(legacy.get(name))
        found[name] = exact if exact is not None or newer is None else count(user.get(*newer))
    for name, path in _TEXTS.items():
        values = (user.get(*path), legacy.get(name))
        found[name] = next((each for each in values if isinstance(each, str)), None)
    found["created_at"] = next(
        (
            each
            for each in (
                text(user.get("core", "created_at")),
                text(legacy.get("created_at")),
                date_text(user.get("core", "created_at_ms")),
            )
            if each
        ),
        None,
    )
    found["url"] = found["url"] or _listed_url(user) or found["url"]
    found["is_blue_verified"] = _first_flag(
        user.get("is_blue_verified"), user.get("verification", "is_blue_verified"), legacy.get("is_blue_verified")
    )
    found["protected"] = _first_flag(user.get("privacy", "protected"), legacy.get("protected"))
    found["verified"] = _first_flag(user.get("verification", "verified"), legacy.get("verified"))
    found["verified_type"] = _verified_type(user)
    if legacy.get("followers_count") is not None:
        found.update({name: "" for name in _OMITTED_WHEN_EMPTY if found[name] is None})
        if found["protected"] is None:
            found["protected"] = False  # the oldest layout omits the key for public accounts
    for name in ("name", "description"):
        found[name] = None if found[name] is None else html.unescape(found[name])
    return {name: found[name] for name in FIELDS}


def _listed_url(user: Node) -> str:
    """Return the user's website from the first link entity of the profile. Some payloads have it only there."""
    for holder in ("profile_bio", "legacy"):
        for link in user.nodes(holder, "entities", "url", "urls"):
            if text(link.get("url")):
                return text(link.get("url"))
    return ""


def _first_flag(*values: object) -> bool | None:
    return next((each for each in map(flag, values) if each is not None), None)


def _verified_type(user: Node) -> str | None:
    verification = user.node("verification")
    kind = text(verification.get("verified_type")) or text(user.get("legacy", "verified_type"))
    return kind or ("" if verification else None)


def merged(profiles: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge profiles field by field. For each field, the first profile with a value wins."""
    return {name: next((each[name] for each in profiles if each.get(name) is not None), None) for name in FIELDS}
