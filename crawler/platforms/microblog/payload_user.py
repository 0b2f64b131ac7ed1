"""Microblog: the contracts of users in the API's payloads, and the common attributes of users in all payloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crawler.reading.contract import Contract, always, filled, identity, sometimes

Number = int | float | str
"""A count. The API sends counts of views as texts."""

# Users


class User(Contract):
    """A user in any format. The attributes have the names of the data model's fields.

    The declared paths are those of the newest web client. The contracts of other formats override the paths that
    differ.
    """

    id: str | None = sometimes("rest_id")
    screen_name: str | None = sometimes("core.screen_name")
    name: str | None = sometimes("core.name")
    profile_image_url_https: str | None = sometimes("avatar.image_url")
    created_at: str | int | None = sometimes("core.created_at_ms", "core.created_at")
    """The platform's date format, or Unix milliseconds."""
    description: str | None = sometimes("profile_bio.description")
    location: str | None = sometimes("location.location")
    profile_banner_url: str | None = sometimes("banner.image_url")
    url: str | None = sometimes("website.url")
    listed_urls: list[str] = sometimes("profile_bio.entities.url.urls[].url")
    """The links in the user's profile. In some payloads, the user's website is only in this list."""
    verified_type: str | None = sometimes("verification.verified_type")
    shape: str | None = sometimes("profile_image_shape")
    """The shape of the user's picture, such as "Square"."""
    verified: bool | None = sometimes("verification.verified")
    is_blue_verified: bool | None = sometimes("verification.is_blue_verified", "is_blue_verified")
    protected: bool | None = sometimes("privacy.protected")
    favourites_count: Number | None = sometimes("action_counts.favorites_count")
    followers_count: Number | None = sometimes("relationship_counts.followers")
    friends_count: Number | None = sometimes("relationship_counts.following")
    listed_count: Number | None = None
    media_count: Number | None = sometimes("tweet_counts.media_tweets")
    statuses_count: Number | None = sometimes("tweet_counts.tweets")

    @property
    def omits_empty(self) -> bool:
        """Whether the format omits empty texts."""
        return False

    @property
    def contradictions(self) -> Sequence[str]:
        """The names of values that the object lacks, although all objects in its format have them.

        All 408 recorded users with a square picture, and no other users, have the ``verified_type`` "Business"
        (captures 8bf3576c7485, e992000b9ff4).
        """
        return ["verified_type"] if self.shape == "Square" and not self.verified_type else []


def lacking(row: object, names: Sequence[str], at_least: int) -> list[str]:
    """Return the values in a group that an object lacks, if it has at least a number of them. Otherwise return []."""
    missing = [name for name in names if getattr(row, name) is None]
    return missing if len(names) - len(missing) >= at_least else []


class ApiUser(User, tag=("__typename", "User"), nulls=False):
    """A user in the API's responses.

    The values are in two formats. Until 2026-07, the counts, the banner and the website are in ``legacy``. Since
    2026-08, there is no ``legacy``. No other key shows the format, so a value that has moved has both paths.
    """

    id: str | None = filled("rest_id")
    screen_name: str = identity("core.screen_name")
    name: str | None = always("core.name")
    profile_image_url_https: str | None = always("avatar.image_url")
    created_at: str | None = always("core.created_at")
    description: str | None = always("profile_bio.description", "legacy.description")
    location: str | None = always("location.location")
    profile_banner_url: str | None = sometimes("banner.image_url", "legacy.profile_banner_url")
    url: str | None = sometimes("website.url", "legacy.url")
    listed_urls: list[str] = sometimes("profile_bio.entities.url.urls[].url", "legacy.entities.url.urls[].url")
    verified: bool | None = always("verification.verified")
    is_blue_verified: bool | None = filled("is_blue_verified")
    protected: bool | None = always("privacy.protected")
    favourites_count: Number | None = filled("action_counts.favorites_count", "legacy.favourites_count")
    followers_count: Number | None = filled("relationship_counts.followers", "legacy.followers_count")
    friends_count: Number | None = filled("relationship_counts.following", "legacy.friends_count")
    listed_count: Number | None = sometimes("legacy.listed_count")
    media_count: Number | None = filled("tweet_counts.media_tweets", "legacy.media_count")
    statuses_count: Number | None = filled("tweet_counts.tweets", "legacy.statuses_count")

    old_followers: Number | None = sometimes("legacy.followers_count")
    withheld_in: list[Any] | None = sometimes("legacy.withheld_in_countries")
    """Only users in responses until 2026-03 have this key. Without a banner or website, they lack its key, too."""

    @property
    def omits_empty(self) -> bool:
        return self.withheld_in is not None

    @property
    def contradictions(self) -> Sequence[str]:
        """Find missing values that all users in the object's format have.

        All 1,400 recorded users with counts in ``legacy`` have ``listed_count`` there. All 1,864 recorded users without
        ``withheld_in`` have a banner and a website, which may be "" (captures d3ee9f8bd024, e992000b9ff4). 29 users of
        2025-12 and 2026-03 have ``withheld_in``, of whom some lack a banner or a website (capture 791f9ce4911c).
        """
        expected = [] if self.old_followers is None else ["listed_count"]
        expected += [] if self.omits_empty else ["profile_banner_url", "url"]
        return [*super().contradictions, *(name for name in expected if getattr(self, name) is None)]


class UnavailableUser(Contract, tag=("__typename", "UserUnavailable")):
    """The placeholder for a suspended, deleted or protected user."""

    reason: str | None = sometimes("reason", "unavailable_reason")
