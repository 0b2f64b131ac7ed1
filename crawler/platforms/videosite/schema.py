"""Video site: what its scraper takes, and the channel with a page of its items that it gives (specification 2.4)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from crawler import cursors
from crawler.platforms.model import Model, Params

CHANNEL_ID = r"^UC[A-Za-z0-9_-]{22}$"
VIDEO_ID = r"^[A-Za-z0-9_-]{11}$"
USERNAME = r"^@?[\w\-·][\w.\-·]{0,99}$"
"""A handle, a channel id or a legacy name: one segment of a path, in any script, that is no way to another one."""

TABS = {"video": "videos", "short": "shorts", "live": "streams"}
"""Content type -> the last word of its tab's URL. In the order in which ``all`` goes through them."""
CURSOR_KIND = "videosite-profile-1"

ContentType = Literal["video", "short", "live"]
_SWITCH = {"true": True, "false": False, "1": True, "0": False}


def switch(value: Any) -> Any:
    """The specification's "boolean-type switch": a boolean, 1 or 0, or one of them as text."""
    return _SWITCH.get(str(value).lower(), value) if isinstance(value, bool | int | str) else value


class Continuation(Model):
    """What our cursor carries: where to go on, and for whom."""

    channel: str = Field(pattern=CHANNEL_ID)
    """The channel's id."""
    names: list[str]
    """The lower-case names under which the channel was asked for, or may be."""
    type: str
    """The ``type`` that it was asked for with."""
    tabs: list[Literal["videos", "shorts", "streams"]] = Field(min_length=1, max_length=3)
    """The tabs left, the present one first."""
    token: str
    """The platform's own token of the next page; "" where the tab is to be started."""
    seen: list[int]
    """Checksums of the tokens used in this tab: the platform is known to lead in circles."""


class ProfileParams(Params):
    """A channel, with one page of its items."""

    username: str = Field(pattern=USERNAME)
    """Handle (with or without "@"), channel id, or legacy name."""
    type: Literal["all", "video", "short", "live"] = "video"
    """Which items: of one kind, or of all kinds, one kind after the other."""
    include_about: Annotated[
        bool, BeforeValidator(switch), WithJsonSchema({"enum": [True, False, 1, 0, "true", "false", "1", "0"]})
    ] = False
    """Whether to add the parts of the about panel: links, location, joining date, total views."""
    cursor: str | None = Field(default=None, min_length=1, max_length=cursors.MAX_LENGTH)
    """``pagination.cursor`` of the previous answer, for the same channel and type."""

    @field_validator("cursor")
    @classmethod
    def _is_ours(cls, cursor: str) -> str:
        continuation_of(cursor)
        return cursor

    @model_validator(mode="after")
    def _belongs(self) -> Self:
        if self.continuation is not None:
            if self.continuation.type != self.type:
                raise ValueError(f"the cursor is one of type {self.continuation.type!r}")
            if self.name.lower() not in self.continuation.names:
                raise ValueError("the cursor is one of another channel")
        return self

    @property
    def name(self) -> str:
        """What was asked for, without "@"."""
        return self.username.removeprefix("@")

    @property
    def continuation(self) -> Continuation | None:
        """What the cursor says, None without one."""
        return None if self.cursor is None else continuation_of(self.cursor)


def continuation_of(cursor: str) -> Continuation:
    """What a cursor of ours carries.

    Raises:
        ValueError: not one of this scraper's, cut, or changed.
    """
    return Continuation.model_validate(cursors.decode(CURSOR_KIND, cursor))


class Pagination(Model):
    """How to go on."""

    cursor: str
    """What to send as ``cursor`` for the next page, opaque. "" where there is none."""
    has_more: bool
    """Whether there is a next page."""


class MediaLinks(Model):
    """Streams of the item. All null: the platform gives them to its own player only, signed."""

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
    """Handle of the channel without "@", "" where it has none."""
    caption: str
    """The title; "" where the platform shows none. The description is no part of it."""
    comment_count: int | None
    """Number of comments, rounded as the platform rounds it. Null: no list tells it."""
    content_code: str
    """The item's id; the platform has only one."""
    content_id: str = Field(pattern=VIDEO_ID)
    """The item's id, 11 characters. Never empty."""
    content_language: str | None
    """Always null: not exposed."""
    content_link: str = Field(min_length=1)
    """URL of the item's page. Never empty."""
    content_type: ContentType
    """By the tab or the link it stands under, never by its duration. A finished live stream is ``live``."""
    first_comment: None
    """Always null."""
    hashtags: list[str]
    """Hashtags of title and description without "#", in their order; of the title alone where no more is told."""
    images: list[str]
    """Always empty: posts with images are no part of this scraper."""
    like_count: int | None
    """Number of likes, exact; null where hidden, and where no source tells it (lists do not)."""
    media_links: MediaLinks
    mentions: list[str]
    """Handles mentioned in title and description, without "@", in their order."""
    published_date: int | None
    """Unix seconds, exact; for an announced item the announced start. Null where only "3 weeks ago" is known."""
    slideshow_status: bool
    """Always false: the platform has no slideshows."""
    subtitles: None
    """Always null."""
    thumbnail_image: str
    """URL of the preview image, as listed."""
    transcript: None
    """Always null."""
    video_duration_seconds: int | None
    """Length in seconds; null for what is live or announced (but for premieres, whose length is told), and for shorts
    unless another source tells it."""
    video_link: str | None
    """Always null: see ``media_links``."""
    view_count: int | None
    """Views: exact where a source has it, else the rounded number that the list states. Null where hidden, and for what
    is live or announced ("8 watching" are no views). For a short always the list's: other sources count otherwise."""


class Profile(Model):
    """The channel."""

    account_creation_date: int | None
    """Unix seconds of its joining; midnight UTC where only the day is told. Null without ``include_about``."""
    account_creation_date_text: str
    """The same as YYYY-MM-DD, "" without ``include_about``."""
    available_country_codes: list[str]
    """ISO 3166 codes, sorted; empty where not told."""
    banner_image: str
    """URL of the banner in its largest size, "" where there is none."""
    biography: str
    """The channel's description, with its line breaks."""
    content_count: int | None
    """Number of items; rounded from 1,000 on unless ``include_about`` is set. Null where not told."""
    display_name: str = Field(min_length=1)
    """Name of the channel. Never empty."""
    external_links: list[str]
    """The links of the about panel, without the platform's redirect. Empty without ``include_about``."""
    follower_count: int | None
    """Subscribers, to three digits, as the platform rounds them. Null where hidden."""
    is_family_safe: bool | None
    """Whether the platform calls it safe for families; null where it does not tell (age-gated channels)."""
    keywords: str
    """The channel's keywords as it wrote them, several words in quotes."""
    location: str
    """Country, by its English name; "" where not told, and without ``include_about``."""
    privacy_status: str
    """``public``: what is not public has no page."""
    profile_id: str = Field(pattern=CHANNEL_ID)
    """The channel's id. Never empty."""
    profile_image: str
    """URL of the avatar."""
    profile_link: str
    """URL of the channel, by its handle where it has one."""
    subscriber_count_text: str
    """The number of subscribers as the platform writes it, "" where hidden."""
    total_views: int | None
    """Views of all items, exact. Null without ``include_about``."""
    username: str
    """Handle without "@", in the channel's own spelling; "" where it has none."""
    verification_status: bool | None
    """Whether it has the badge of a verified channel or artist; null where no header is shown (age-gated ones)."""


class ChannelRecord(Model):
    """A channel with one page of its items."""

    pagination: Pagination
    posts: list[ContentItem]
    """The items of this page, in the platform's order, each once."""
    profile: Profile
