"""Microblog: the contracts of users in the API's payloads, and the common attributes of users in all payloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crawler.reading.contract import Contract, always, identity, sometimes

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
        """Whether the format omits empty texts, and for public accounts also the key ``protected``."""
        return False

    @property
    def contradictions(self) -> Sequence[str]:
        """The names of values that the object lacks, although all objects in its format have them.

        All 408 recorded users with a square picture, and no other users, have the ``verified_type`` "Business"
        (captures 8bf3576c7485, e992000b9ff4).
        """
        return ["verified_type"] if self.shape == "Square" and not self.verified_type else []


class ApiUser(User, tag=("__typename", "User")):
    """A user in the API's responses."""

    id: str | None = always("rest_id")
    screen_name: str = identity("core.screen_name", "legacy.screen_name")
    name: str | None = always("core.name", "legacy.name")
    profile_image_url_https: str | None = always("avatar.image_url", "legacy.profile_image_url_https")
    created_at: str | None = always("core.created_at", "legacy.created_at")
    description: str | None = always("profile_bio.description", "legacy.description")
    location: str | None = always("location.location", "legacy.location")
    profile_banner_url: str | None = sometimes("banner.image_url", "legacy.profile_banner_url")
    url: str | None = sometimes("website.url", "legacy.url")
    listed_urls: list[str] = sometimes("profile_bio.entities.url.urls[].url", "legacy.entities.url.urls[].url")
    verified_type: str | None = sometimes("verification.verified_type", "legacy.verified_type")
    verified: bool | None = always("verification.verified", "legacy.verified")
    is_blue_verified: bool | None = always("is_blue_verified")
    protected: bool | None = sometimes("privacy.protected", "legacy.protected")
    favourites_count: Number | None = always("action_counts.favorites_count", "legacy.favourites_count")
    followers_count: Number | None = always("relationship_counts.followers", "legacy.followers_count")
    friends_count: Number | None = always("relationship_counts.following", "legacy.friends_count")
    listed_count: Number | None = sometimes("legacy.listed_count")
    media_count: Number | None = always("tweet_counts.media_tweets", "legacy.media_count")
    statuses_count: Number | None = always("tweet_counts.tweets", "legacy.statuses_count")

    current_name: str | None = sometimes("core.screen_name")
    old_followers: Number | None = sometimes("legacy.followers_count")
    withheld_in: list[Any] | None = sometimes("legacy.withheld_in_countries")
    """Only users in responses until 2026-03 have this key. Without a banner or website, they lack its key, too."""

    @property
    def omits_empty(self) -> bool:
        return self.old_followers is not None

    @property
    def contradictions(self) -> Sequence[str]:
        """Find missing values that all users in the object's format have.

        All 468 recorded authors with counts in ``legacy`` have ``listed_count`` there. All 515 recorded authors with
        ``core`` have the values for privacy, banner and website, which may be "" (captures 8bf3576c7485, d3ee9f8bd024,
        e992000b9ff4). A user of 2026-03 lacks the last two (capture 791f9ce4911c).
        """
        expected = ["listed_count"] if self.omits_empty else []
        expected += ["protected"] if self.current_name is not None else []
        expected += ["profile_banner_url", "url"] if self.current_name is not None and self.withheld_in is None else []
        return [*super().contradictions, *(name for name in expected if getattr(self, name) is None)]


class UnavailableUser(Contract, tag=("__typename", "UserUnavailable")):
    """The placeholder for a suspended, deleted or protected user."""

    reason: str | None = sometimes("reason", "unavailable_reason")
