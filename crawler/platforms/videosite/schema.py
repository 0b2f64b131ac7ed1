"""Video site: the models of the scrapers' params and record (specification 2.4)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from crawler.platforms import model
from crawler.platforms.model import Details, LinkParams, Mark, Model, Selects, refuse_link
from crawler.platforms.requests import MAX_CURSOR, decode_cursor
from crawler.platforms.videosite import urls

TABS = {"video": "videos", "short": "shorts", "live": "streams"}
"""Maps each content type to the last URL segment of its tab. For the type ``all``, the tabs are read in this order."""
CURSOR_KIND = "videosite-profile-1"

ContentType = Literal["video", "short", "live"]

_SWITCH = dict.fromkeys(("true", "True", "TRUE", "1"), True) | dict.fromkeys(("false", "False", "FALSE", "0"), False)
SWITCH_SCHEMA = {
    "anyOf": [
        {"type": "boolean"},
        {"type": "integer", "minimum": 0, "maximum": 1},
        {"type": "string", "pattern": r"^([Tt]rue|TRUE|[Ff]alse|FALSE|[01])$"},
    ]
}
"""The JSON schema of the values that ``switch`` converts."""


def switch(value: Any) -> Any:
    """Convert a value of the specification's "boolean-type switch" to a boolean: true, false, 1 or 0, also as text."""
    return _SWITCH.get(str(value), value) if isinstance(value, bool | int | str) else value


class Continuation(Model):
    """The content of a cursor that this scraper issues: the channel, and the position in its lists."""

    channel: Annotated[str, urls.CHANNEL_ID]
    """The channel's id."""
    names: list[str]
    """The names, in lower case, by which the channel may be requested with this cursor."""
    type: str
    """The param ``type`` that the cursor was issued for."""
    tabs: list[Literal["videos", "shorts", "streams"]] = Field(min_length=1, max_length=3)
    """The tabs that are still to be read, the current tab first."""
    token: str
    """The platform's token for the next page; "" at the start of a tab."""
    seen: list[int]
    """Checksums of the last tokens used in this tab, to detect that the platform repeats a token."""


class ChannelParams(LinkParams):
    """Params that name a channel by its name or URL, and the page of its items to return."""

    links: ClassVar = urls.LINKS
    kinds: ClassVar = ("channel",)
    exactly_one_of: ClassVar = ("username", "url")
    _no_link = field_validator("username", mode="before")(refuse_link)

    username: Annotated[Annotated[str, urls.USERNAME] | None, Selects("echo")] = None
    """Handle (with or without "@"), channel id, or legacy name. A legacy name may have the prefix of its URL:
    ``c/name``, ``user/name``."""
    url: Annotated[str | None, Selects("echo")] = Field(default=None, max_length=2_000)
    """URL of the channel, also without ``https://``: ``/@handle``, ``/channel/id``, ``/c/name`` or ``/user/name``. If
    the URL ends with a tab (``/videos``, ``/shorts``, ``/streams``, ``/about``), the tab sets ``type`` or
    ``include_about``, unless this param is given."""
    type: Annotated[Literal["all", "video", "short", "live"], Selects("echo")] = "video"
    """The kind of items to return; ``all`` returns all videos first, then all shorts, then all live streams."""
    cursor: Annotated[str | None, Selects(None, "a page of further items does not repeat it")] = Field(
        default=None, min_length=1, max_length=MAX_CURSOR
    )
    """``pagination.cursor`` from the previous record of the same channel and type."""

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
        """The requested name, without "@" or a prefix."""
        return self.channel.rpartition("/")[2].removeprefix("@")

    @property
    def channel(self) -> str:
        """The channel's name, with its "@" or prefix, from ``username`` or ``url``."""
        return self.own()

    @property
    def continuation(self) -> Continuation | None:
        """The decoded cursor, or None without the param ``cursor``."""
        return None if self.cursor is None else continuation_of(self.cursor)


class ProfileParams(ChannelParams):
    """Params that name a channel by its name or URL, the page of its items to return, and the details to include."""

    further: ClassVar = frozenset({"include_about", "details"})

    include_about: Annotated[bool, BeforeValidator(switch), WithJsonSchema(SWITCH_SCHEMA)] = False
    """Whether to add the fields from the about panel: links, location, creation date, total views."""
    details: Details = "auto"
    """Number of items, from the top of the page, whose exact date, likes, views and description are requested.
    ``auto``: as many as the budget lets start within 10 seconds. The answer says how many items were left out."""


def continuation_of(cursor: str) -> Continuation:
    """Decode a cursor.

    Raises:
        ValueError: the cursor is truncated, modified, or belongs to another scraper.
    """
    return Continuation.model_validate(decode_cursor(CURSOR_KIND, cursor))


class ContentItem(model.ContentItem):
    """A video, a short or a live stream of the channel."""

    author_id: str | None
    """Id of the item's owner, if its row states one, else of the channel; null if unknown."""
    author_name: str
    """Name of the item's owner, if its row states one, else of the channel."""
    author_username: str
    """Handle of the item's owner, if its row states one, else of the channel; without "@", "" if there is none."""
    caption: str
    """The title, without the description; "" if the platform shows none."""
    comment_count: int | None
    """Always null: no response that the scraper requests contains the number of comments."""
    content_code: str
    """The same as ``content_id``: the platform has only one id for an item."""
    content_id: Annotated[str, urls.VIDEO_ID, Mark.KEY]
    """The item's id, 11 characters. Never empty."""
    content_link: str = Field(min_length=1)
    """URL of the item's page. Never empty."""
    content_type: ContentType
    """Kind of item, taken from its tab, link or labels, never from its duration. A finished live stream is ``live``,
    too."""
    hashtags: Annotated[list[str], Mark.NEVER]
    """Hashtags in title and description, without "#", in order. If no source contains the description, only those in
    the title."""
    images: list[str]
    """Always empty: posts with images are out of scope."""
    like_count: Annotated[int | None, Mark.COUNT]
    """Exact number of likes. Null if hidden, or if no source contains it; lists never contain it."""
    mentions: Annotated[list[str], Mark.NEVER]
    """Handles mentioned in title and description, without "@", in their order."""
    published_date: int | None
    """Time of publication, or an announced item's start, in Unix seconds. Null if only "3 weeks ago" is known."""
    slideshow_status: bool
    """Always false: the platform has no slideshows."""
    thumbnail_image: Annotated[str, Mark.NEVER]
    """URL of the preview image in the platform's list; "" if there is none."""
    video_duration_seconds: int | None
    """Length in seconds. Null for live and announced items, except premieres with a known length. Also null for shorts,
    unless a source other than the list contains the length."""
    view_count: Annotated[int | None, Mark.COUNT]
    """Number of views: exact if a source contains the exact number, else rounded down to two or three digits as in the
    list. A number without zeros at its end is exact. A list may contain exact and rounded numbers, so do not compute
    growth from two records. Null if hidden, and for live and announced items ("8 watching" is not a number of views).
    For a short, the number is always the list's."""


class Profile(Model):
    """The channel."""

    account_creation_date: int | None
    """Time of creation in Unix seconds; midnight UTC if only the day is known. Null if unknown, and without
    ``include_about``."""
    account_creation_date_text: str
    """The day of ``account_creation_date`` as YYYY-MM-DD; "" if unknown, and without ``include_about``."""
    available_country_codes: list[str]
    """ISO 3166 codes of the countries in which the channel is available, sorted; empty if unknown."""
    banner_image: str
    """URL of the banner in its largest size, "" without a banner."""
    biography: str
    """The channel's description, with its line breaks, without white space at its ends."""
    content_count: Annotated[int | None, Mark.COUNT]
    """Number of items. From 1,000 on, it is rounded unless ``include_about`` is set. Null if unknown."""
    display_name: str = Field(min_length=1)
    """Name of the channel. Never empty."""
    external_links: list[str]
    """The links in the about panel, without the platform's redirect. Empty without ``include_about``."""
    follower_count: Annotated[int | None, Mark.COUNT]
    """Number of subscribers, which the platform rounds to three digits. Null if hidden."""
    is_family_safe: bool | None
    """Whether the platform marks the channel as safe for families; null if unknown, as for age-restricted channels."""
    keywords: str
    """The channel's keywords in its own spelling; keywords of several words are in quotes."""
    location: str
    """English name of the country; "" if unknown, and without ``include_about``."""
    privacy_status: str
    """Always ``public``: channels that are not public have no page."""
    profile_id: Annotated[str, urls.CHANNEL_ID, Mark.KEY]
    """The channel's id. Never empty."""
    profile_image: str
    """URL of the avatar."""
    profile_link: str
    """URL of the channel, with its handle or legacy name if it has one, else with its id."""
    subscriber_count_text: Annotated[str, Mark.NEVER]
    """The number of subscribers as shown by the platform, "" if hidden."""
    total_views: Annotated[int | None, Mark.COUNT]
    """Exact number of views of all items. Null if unknown, and without ``include_about``."""
    username: str
    """Handle without "@", in the channel's own spelling; "" if the channel has none."""
    verification_status: bool | None
    """Whether the channel has a badge for verified channels or artists; null if unknown, as for age-restricted and
    generated channels."""


class ChannelRecord(Model):
    """A channel with one page of its items."""

    pagination: model.Pagination
    posts: list[ContentItem]
    """The items of this page, in the platform's order, each once."""
    profile: Profile
