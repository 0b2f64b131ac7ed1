"""Video site: the params and the record of its scraper (specification 2.4)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from crawler import cursors
from crawler.platforms.model import Model, Params

CHANNEL_ID = r"^UC[A-Za-z0-9_-]{22}$"
VIDEO_ID = r"^[A-Za-z0-9_-]{11}$"
USERNAME = r"^@?[\w\-·][\w.\-·]{0,99}$"
"""A handle, a channel id or a legacy name: one path segment in any script, never "." or ".."."""

TABS = {"video": "videos", "short": "shorts", "live": "streams"}
"""Content type -> last segment of its tab's URL, in the order in which ``all`` reads them."""
CURSOR_KIND = "videosite-profile-1"

ContentType = Literal["video", "short", "live"]
_SWITCH = {"true": True, "false": False, "1": True, "0": False}


def switch(value: Any) -> Any:
    """Parse the specification's "boolean-type switch": a boolean, 1 or 0, or one of these as text."""
    return _SWITCH.get(str(value).lower(), value) if isinstance(value, bool | int | str) else value


class Continuation(Model):
    """The content of our cursor: the position in the lists, and the channel."""

    channel: str = Field(pattern=CHANNEL_ID)
    """The channel's id."""
    names: list[str]
    """The lower-case names with which the channel may be requested."""
    type: str
    """The ``type`` of the request."""
    tabs: list[Literal["videos", "shorts", "streams"]] = Field(min_length=1, max_length=3)
    """The remaining tabs, the current one first."""
    token: str
    """The platform's token of the next page; "" at the start of a tab."""
    seen: list[int]
    """Checksums of the tokens used in this tab: the platform sometimes repeats tokens in a loop."""


class ProfileParams(Params):
    """A channel, with one page of its items."""

    username: str = Field(pattern=USERNAME)
    """Handle (with or without "@"), channel id, or legacy name."""
    type: Literal["all", "video", "short", "live"] = "video"
    """The kind of items; ``all`` returns one kind after the other."""
    include_about: Annotated[
        bool, BeforeValidator(switch), WithJsonSchema({"enum": [True, False, 1, 0, "true", "false", "1", "0"]})
    ] = False
    """Whether to add the parts of the about panel: links, location, joining date, total views."""
    cursor: str | None = Field(default=None, min_length=1, max_length=cursors.MAX_LENGTH)
    """``pagination.cursor`` of the previous record, for the same channel and type."""

    @field_validator("cursor")
    @classmethod
    def _is_valid_cursor(cls, cursor: str) -> str:
        continuation_of(cursor)
        return cursor

    @model_validator(mode="after")
    def _cursor_belongs_to_target(self) -> Self:
        if self.continuation is not None:
            if self.continuation.type != self.type:
                raise ValueError(f"the cursor belongs to type {self.continuation.type!r}")
            if self.name.lower() not in self.continuation.names:
                raise ValueError("the cursor belongs to another channel")
        return self

    @property
    def name(self) -> str:
        """The requested name, without "@"."""
        return self.username.removeprefix("@")

    @property
    def continuation(self) -> Continuation | None:
        """The content of the cursor, None without a cursor."""
        return None if self.cursor is None else continuation_of(self.cursor)


def continuation_of(cursor: str) -> Continuation:
    """Decode a cursor.

    Raises:
        ValueError: the cursor is truncated, modified, or belongs to another scraper.
    """
    return Continuation.model_validate(cursors.decode(CURSOR_KIND, cursor))


class Pagination(Model):
    """The position of the next page."""

    cursor: str
    """The ``cursor`` param of the next page, opaque. "" on the last page."""
    has_more: bool
    """Whether there is a next page."""


class MediaLinks(Model):
    """Streams of the item. Always null: only the platform's own player receives their signed URLs."""

    high: str | None
    """Always null."""
    low: str | None
    """Always null."""
    medium: str | None
    """Always null."""
    watermarked: str | None
    """Always null."""


class ContentItem(Model):
    """A video, a short or a live stream of the channel."""

    age_restriction_status: None
    """Always null: not exposed."""
    author_id: str | None
    """Id of the channel."""
    author_name: str
    """Name of the channel."""
    author_username: str
    """Handle of the channel without "@", "" if it has none."""
    caption: str
    """The title, without the description; "" if the platform shows none."""
    comment_count: int | None
    """Number of comments, as rounded by the platform. Null: lists do not have it."""
    content_code: str
    """The item's id; the platform has only one."""
    content_id: str = Field(pattern=VIDEO_ID)
    """The item's id, 11 characters. Never empty."""
    content_language: str | None
    """Always null: not exposed."""
    content_link: str = Field(min_length=1)
    """URL of the item's page. Never empty."""
    content_type: ContentType
    """From the item's tab or link, never from its duration. A finished live stream is ``live``."""
    first_comment: None
    """Always null."""
    hashtags: list[str]
    """Hashtags of title and description without "#", in their order; of the title only if that is the only source."""
    images: list[str]
    """Always empty: posts with images are out of scope."""
    like_count: int | None
    """Exact number of likes; null if hidden, or if no source has it (lists do not)."""
    media_links: MediaLinks
    mentions: list[str]
    """Handles mentioned in title and description, without "@", in their order."""
    published_date: int | None
    """Exact Unix seconds; for an announced item its announced start. Null if only "3 weeks ago" is known."""
    slideshow_status: bool
    """Always false: the platform has no slideshows."""
    subtitles: None
    """Always null."""
    thumbnail_image: str
    """URL of the preview image, as listed."""
    transcript: None
    """Always null."""
    video_duration_seconds: int | None
    """Length in seconds. Null for live and announced items, except premieres with a known length, and for shorts unless
    another source has it."""
    video_link: str | None
    """Always null: see ``media_links``."""
    view_count: int | None
    """Views: exact if a source has them, else the rounded number in the list. Null if hidden, and for live and
    announced items ("8 watching" is not a number of views). For a short always the list's number."""


class Profile(Model):
    """The channel."""

    account_creation_date: int | None
    """Unix seconds of its creation; midnight UTC if only the day is known. Null without ``include_about``."""
    account_creation_date_text: str
    """The same as YYYY-MM-DD, "" without ``include_about``."""
    available_country_codes: list[str]
    """ISO 3166 codes, sorted; empty if unknown."""
    banner_image: str
    """URL of the banner in its largest size, "" without a banner."""
    biography: str
    """The channel's description, with its line breaks."""
    content_count: int | None
    """Number of items; rounded from 1,000 on unless ``include_about`` is set. Null if unknown."""
    display_name: str = Field(min_length=1)
    """Name of the channel. Never empty."""
    external_links: list[str]
    """The links of the about panel, without the platform's redirect. Empty without ``include_about``."""
    follower_count: int | None
    """Subscribers, rounded by the platform to three digits. Null if hidden."""
    is_family_safe: bool | None
    """Whether the platform marks it as safe for families; null if unknown (age-restricted channels)."""
    keywords: str
    """The channel's keywords in its own spelling; keywords of several words are in quotes."""
    location: str
    """English name of the country; "" if unknown, and without ``include_about``."""
    privacy_status: str
    """Always ``public``: channels that are not public have no page."""
    profile_id: str = Field(pattern=CHANNEL_ID)
    """The channel's id. Never empty."""
    profile_image: str
    """URL of the avatar."""
    profile_link: str
    """URL of the channel, with its handle if it has one."""
    subscriber_count_text: str
    """The number of subscribers as shown by the platform, "" if hidden."""
    total_views: int | None
    """Views of all items, exact. Null without ``include_about``."""
    username: str
    """Handle without "@", in the channel's own spelling; "" if it has none."""
    verification_status: bool | None
    """Whether it has the badge of a verified channel or artist; null without a header (age-restricted channels)."""


class ChannelRecord(Model):
    """A channel with one page of its items."""

    pagination: Pagination
    posts: list[ContentItem]
    """The items of this page, in the platform's order, each once."""
    profile: Profile
