"""The content envelope (specification 2.4): a profile with a page of its content items.

The video site and the professional network subclass ``ContentItem``, to narrow types and to document what the platform
shows. Each of the two has its own model of a profile.
"""

from __future__ import annotations

from typing import Annotated

from crawler.platforms.model import Mark, Model


class Pagination(Model):
    """Whether there is a next page, and the cursor that leads to it."""

    cursor: Annotated[str, Mark.NEVER]
    """Opaque value for the param ``cursor``, to get the next page. "" on the last page."""
    has_more: Annotated[bool, Mark.NEVER]
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
    """Hashtags without "#", in order; empty if the platform's items are read without hashtags."""
    images: list[str]
    """URLs of the item's images."""
    like_count: int | None
    """Number of likes, null if unknown."""
    media_links: MediaLinks
    """URLs of the item's video files."""
    mentions: list[str]
    """Mentioned names without "@", in order; empty if the platform's items are read without mentions."""
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
