"""Microblog: the notes' field map of a user, in the three generations of the API."""

from __future__ import annotations

import html
from typing import Any

from tests.field_maps.paths import at, first


def expected(page: str, payload: Any) -> dict[str, Any] | None:
    """Return what the page object of a user must extract; None for other responses."""
    user = at(payload, "data.user.result")
    if page != "UserPage" or not at(user, "rest_id"):
        return None
    profile = {
        "created_at": first(user, "legacy.created_at", "core.created_at"),
        "description": html.unescape(first(user, "profile_bio.description", "legacy.description") or ""),
        "favourites_count": first(user, "legacy.favourites_count", "action_counts.favorites_count"),
        "followers_count": first(user, "legacy.followers_count", "relationship_counts.followers"),
        "friends_count": first(user, "legacy.friends_count", "relationship_counts.following"),
        "is_blue_verified": at(user, "is_blue_verified"),
        "listed_count": at(user, "legacy.listed_count"),
        "location": first(user, "location.location", "legacy.location") or "",
        "media_count": first(user, "legacy.media_count", "tweet_counts.media_tweets"),
        "name": first(user, "core.name", "legacy.name"),
        "profile_banner_url": first(user, "banner.image_url", "legacy.profile_banner_url") or "",
        "profile_image_url_https": first(user, "avatar.image_url", "legacy.profile_image_url_https"),
        "protected": bool(first(user, "privacy.protected", "legacy.protected")),
        "screen_name": first(user, "core.screen_name", "legacy.screen_name"),
        "statuses_count": first(user, "legacy.statuses_count", "tweet_counts.tweets"),
        "url": first(user, "website.url", "legacy.url") or "",
        "verified": first(user, "verification.verified", "legacy.verified"),
        "verified_type": first(user, "verification.verified_type", "legacy.verified_type") or "",
    }
    return {"next_cursor": "", "pinned": "", "posts": [], "profile": profile, "user_id": user["rest_id"]}
