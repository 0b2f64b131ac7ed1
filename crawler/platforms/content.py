"""The content envelope (specification 2.4): a profile with a page of its content items.

The video site and the professional network have subclasses of these models, which narrow types and document what the
platform shows.
"""

from __future__ import annotations

from crawler.platforms.model import Model


class Pagination(Model):
    """Whether there is a next page, and the cursor that leads to it."""

    cursor: str
    """Opaque value for the param ``cursor``, to get the next page. "" on the last page."""
    has_more: bool
    """Whether there is a next page."""


class MediaLinks(Model):
    """URLs of the item's video files. Always null: no public page has URLs that work outside the platform's player."""

    high: str | None
    """Always null."""
    low: str | None
    """Always null."""
    medium: str | None
    """Always null."""
    watermarked: str | None
    """Always null."""


class ContentItem(Model):
    """An item of a profile's content, such as a video or a post."""

    age_restriction_status: None
    """Always null: not exposed."""
    author_id: str | None
    """Id of the author, null if not exposed."""
    author_name: str
    """Name of the author, "" if unknown."""
    author_username: str
    """The author's name in URLs, "" if unknown."""
    caption: str
    """The item's text or title, "" if it has none."""
    comment_count: int | None
    """Number of comments, null if unknown."""
    content_code: str
    """The item's id in URLs."""
    content_id: str
    """The item's id. Never empty."""
    content_language: str | None
    """Always null: not exposed."""
    content_link: str
    """URL of the item's page. Never empty."""
    content_type: str
    """Kind of item. Never empty."""
    first_comment: None
    """Always null."""
    hashtags: list[str]
    """Hashtags without "#", in order; empty if the platform's items are read without them."""
    images: list[str]
    """URLs of the item's images."""
    like_count: int | None
    """Number of likes, null if unknown."""
    media_links: MediaLinks
    """URLs of the item's video files."""
    mentions: list[str]
    """Mentioned names without "@", in order; empty if the platform's items are read without them."""
    published_date: int | None
    """Time of publication in Unix seconds, null if unknown."""
    slideshow_status: bool | None
    """Whether the item is a slideshow, null if unknown."""
    subtitles: None
    """Always null."""
    thumbnail_image: str
    """URL of the preview image, "" if unknown."""
    transcript: None
    """Always null."""
    video_duration_seconds: int | None
    """Length of the video in seconds, null if unknown."""
    video_link: str | None
    """Always null: see ``media_links``."""
    view_count: int | None
    """Number of views, null if unknown."""


class ContentProfile(Model):
    """The profile that the content items belong to."""

    account_creation_date: int | None
    """Time of the account's creation in Unix seconds, null if unknown."""
    account_creation_date_text: str
    """The day of ``account_creation_date`` as YYYY-MM-DD, "" if unknown."""
    available_country_codes: list[str]
    """ISO 3166 codes of the countries in which the profile is available; empty if unknown."""
    banner_image: str
    """URL of the banner, "" without a banner."""
    biography: str
    """The profile's description of itself, "" if it has none."""
    content_count: int | None
    """Number of content items, null if unknown."""
    display_name: str
    """The displayed name. Never empty."""
    external_links: list[str]
    """Links to other sites."""
    follower_count: int | None
    """Number of followers, null if unknown."""
    is_family_safe: bool | None
    """Whether the platform marks the profile as safe for families, null if unknown."""
    keywords: str
    """The profile's keywords, "" if unknown."""
    location: str
    """The profile's location, "" if unknown."""
    privacy_status: str
    """Who can see the profile, "" if unknown."""
    profile_id: str
    """The profile's id, "" if not exposed."""
    profile_image: str
    """URL of the avatar, "" if absent."""
    profile_link: str
    """URL of the profile."""
    subscriber_count_text: str
    """The number of followers in the platform's words, "" if not shown."""
    total_views: int | None
    """Number of views of all items, null if unknown."""
    username: str
    """The profile's name in URLs, "" if it has none."""
    verification_status: bool | None
    """Whether the platform has verified the profile, null if unknown."""
