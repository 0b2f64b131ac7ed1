"""Microblog: the models of the params and the data of its scraper (specification 2.5)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from crawler.platforms.microblog.urls import LINKS, USERNAME
from crawler.platforms.model import Details, LinkParams, Mark, Model, Rows, Selects, refuse_link
from crawler.platforms.requests import MAX_CURSOR, decode_cursor

CURSOR = "microblog-profile-1"
"""Kind and version of this scraper's cursors."""
MAX_SEEN = 400
"""Maximum number of post ids in a cursor, which limits its length. The sources return about 105 posts at most."""


class ProfileParams(LinkParams):
    """Params that name a profile by its handle or URL, the cursor from which to continue, and the details to add."""

    further: ClassVar = frozenset({"details"})
    links: ClassVar = LINKS
    kinds: ClassVar = ("profile",)
    exactly_one_of: ClassVar = ("username", "url")
    _no_link = field_validator("username", mode="before")(refuse_link)

    username: Annotated[Annotated[str, USERNAME] | None, Selects("echo")] = None
    """Handle of the profile: 1 to 15 letters, digits and underscores. One leading @ is dropped; case is ignored."""
    url: Annotated[str | None, Selects("echo")] = Field(default=None, max_length=2_000)
    """URL of the profile or of one of its tabs, also without ``https://``. Only the handle is used."""
    cursor: Annotated[str | None, Selects(None, "a page of further posts does not repeat it")] = Field(
        default=None, min_length=1, max_length=MAX_CURSOR
    )
    """``nextCursor`` from an earlier response for the same handle, unchanged. Default: the newest posts."""
    details: Details = "auto"
    """Whether to request the profile's fields that neither its page nor the timeline has: ``none`` or 0, or ``all`` or
    a number from 1 on. ``auto``: if the budget lets the requests start within 10 seconds. The answer says how many
    fields were left out."""

    @field_validator("cursor")
    @classmethod
    def _is_cursor(cls, cursor: str) -> str:
        continuation_of(cursor)
        return cursor

    @model_validator(mode="after")
    def _own_cursor(self) -> Self:
        if self.cursor is not None and self.continuation["handle"] != self.handle.casefold():
            raise ValueError("the cursor belongs to another profile")
        return self

    @property
    def handle(self) -> str:
        """The handle without a leading @, in the caller's spelling (upper and lower case)."""
        return self.own().removeprefix("@")

    @property
    def continuation(self) -> dict[str, Any]:
        """The cursor's payload: ``handle``, ``user_id``, the platform's ``cursor``, ``seen``, ``posts`` and ``used``.

        ``seen`` are the ids of posts that earlier pages already returned. ``posts`` is the number of all posts on
        earlier pages, None in cursors of earlier versions. ``used`` are the checksums of the platform's cursors up to
        this one.

        An empty ``cursor`` stands for the first page of the timeline. An empty ``user_id`` is unknown, and must be
        queried first.
        """
        return continuation_of(self.cursor or "")


def continuation_of(cursor: str) -> dict[str, Any]:
    """Decode a cursor.

    Raises:
        ValueError: the cursor belongs to another scraper, or was truncated or changed.
    """
    payload = {"posts": None, "used": []} | decode_cursor(CURSOR, cursor)
    kinds = {"handle": str, "user_id": str, "cursor": str, "seen": list, "posts": int | None, "used": list}
    malformed = payload.keys() != kinds.keys() or not all(isinstance(payload[key], kind) for key, kind in kinds.items())
    members = {"seen": str, "used": int}
    if (
        malformed
        or len(payload["seen"]) > MAX_SEEN
        or not all(isinstance(each, kind) for name, kind in members.items() for each in payload[name])
    ):
        raise ValueError("malformed cursor: expected the nextCursor of an earlier response, unchanged")
    return payload


class Demographics(Model):
    """The fields about the account itself, under the platform's names."""

    created_at: Annotated[str, Mark.NEVER]
    """When the account was created, in the platform's format: ``Sat Dec 14 04:35:55 +0000 2013``. "" if not exposed."""
    description: str
    """The text in which the account describes itself, or ""."""
    favourites_count: Annotated[int | None, Mark.COUNT]
    """Number of posts that the account liked; null if no source exposes it."""
    followers_count: Annotated[int | None, Mark.COUNT]
    """Number of followers; null if no source exposes it."""
    friends_count: Annotated[int | None, Mark.COUNT]
    """Number of accounts that the account follows; null if no source exposes it."""
    listed_count: Annotated[int | None, Mark.COUNT]
    """Number of lists that include the account; null if no source exposes it. The newest API does not expose it."""
    media_count: Annotated[int | None, Mark.COUNT]
    """Number of the account's posts with media; null if no source exposes it."""
    statuses_count: Annotated[int | None, Mark.COUNT]
    """Number of the account's posts; null if no source exposes it."""
    is_blue_verified: bool | None
    """Whether the account pays for its badge; null if no source exposes it."""
    protected: bool | None
    """Whether only approved followers see the account's posts; null if no source exposes it."""
    verified: bool | None
    """Whether the account has the platform's old badge, which few accounts have; null if no source exposes it."""
    location: str
    """The location that the account states, as free text, or ""."""
    name: str = Field(min_length=1)
    """Display name. Never empty."""
    profile_banner_url: Annotated[str, Mark.NEVER]
    """URL of the banner, without a size; "" if the account has no banner or no source exposes it."""
    profile_image_url_https: Annotated[str, Mark.NEVER]
    """URL of the account's picture; "" if unknown. It is the size of the profile's page, ``_400x400``, if this page was
    read, else usually the platform's default size, ``_normal``."""
    screen_name: Annotated[str, Mark.KEY] = Field(min_length=1)
    """Handle in the upper and lower case that the platform shows, without @. Never empty."""
    url: str
    """Link to the account's website, as shortened by the platform, or ""."""
    verified_type: str
    """Kind of verified account: ``Business``, ``Government``, or ""."""


class VideoQualities(Model):
    """The post's video files by bitrate. A field is null if no such file exists."""

    high: str | None
    """URL of the file with the highest bitrate; null if the post has no video."""
    low: str | None
    """URL of the file with the lowest bitrate; null if there are fewer than two files."""
    medium: str | None
    """URL of a file with a medium bitrate; null if there are fewer than three files."""
    watermarked: str | None
    """Always null: the platform has no such files."""


class InnerPost(Model):
    """A quoted or reposted post, inside the post that quotes or reposts it."""

    caption: Annotated[str, Mark.PARTIAL]
    """The whole text, with links expanded as in ``caption`` of the outer post."""
    comment_count: Annotated[int | None, Mark.COUNT]
    """Number of replies to the post; null if no source exposes it."""
    creator_handle: str = Field(min_length=1)
    """Handle of the post's author, without @. Never empty."""
    creator_name: str
    """Display name of the post's author."""
    like_count: Annotated[int | None, Mark.COUNT]
    """Number of likes; null if no source exposes it."""
    post_id: str = Field(min_length=1)
    """The post's id. Never empty."""
    post_url: str
    """URL of its page."""
    share_count: Annotated[int | None, Mark.COUNT]
    """Number of reposts; null if no source exposes it."""
    upload_timestamp: int
    """When the post was published, in Unix seconds."""
    view_count: Annotated[int | None, Mark.COUNT]
    """Number of views; null if no source exposes it."""


class Post(Model):
    """A post or repost in the profile's timeline."""

    caption: Annotated[str, Mark.PARTIAL]
    """The whole text, even of a long post. For a repost, it is the text of the reposted post; for a post that is only
    the link to an article, the article's title and text. Shortened links are expanded. A link to the post's own media
    at the end is removed. Mentions at the start are kept."""
    comment_count: Annotated[int | None, Mark.COUNT]
    """Number of replies; null if no source exposes it. Also null on a repost, where the platform fills in 0."""
    like_count: Annotated[int | None, Mark.COUNT]
    """Number of likes; null if no source exposes it. Also null on a repost, where the platform fills in 0."""
    save_count: Annotated[int | None, Mark.COUNT]
    """Number of bookmarks; null if no source exposes it (the embed does not). Also null on a repost."""
    share_count: Annotated[int | None, Mark.COUNT]
    """Number of reposts, not counting quotes; null if no source exposes it. On a repost, it is the reposted post's."""
    view_count: Annotated[int | None, Mark.COUNT]
    """Number of views; null if no source exposes it, as for posts that only the embed contains, and for old posts. On a
    repost, it is the repost's own."""
    creator_handle: str = Field(min_length=1)
    """Handle of the post's author, without @. The author is not always the profile. Never empty."""
    hashtags: Annotated[list[str], Mark.PARTIAL]
    """Hashtags without #, in the order and spelling of the text."""
    in_reply_to_handle: str | None
    """Handle of the account to which the post is addressed; null if the platform states none. A post that only begins
    with a mention may have this handle: its ``in_reply_to_post_id`` is null then, and its ``is_reply`` false."""
    in_reply_to_post_id: str | None
    """Id of the post that this post replies to; null if this post is not a reply."""
    is_quote: bool
    """Whether the post quotes another post. False on every repost, even if the reposted post is a quote."""
    is_reply: bool
    """Whether the post replies to another post, even to one by the same author."""
    is_repost: bool
    """Whether the post is a repost of another post."""
    post_id: Annotated[str, Mark.KEY] = Field(min_length=1)
    """The post's id, a string, because floating-point numbers cannot hold such ids exactly. Never empty."""
    post_url: str
    """URL of its page."""
    profile_picture_url: Annotated[str, Mark.NEVER]
    """URL of the author's picture."""
    quoted_post: Annotated[InnerPost | None, Mark.NULL]
    """The quoted post; null if the post quotes none. Also null, although ``is_quote`` is true, if the quoted post is
    deleted or hidden."""
    reposted_post: Annotated[InnerPost | None, Mark.NULL]
    """The reposted post; null if this is not a repost, or the reposted post is deleted or hidden."""
    thumbnail_url: Annotated[str | None, Mark.NEVER]
    """URL of the first photo or of the first video's cover; for an article, of its picture. On a repost, it is that of
    the reposted post. Null if there is no media."""
    upload_timestamp: int
    """When the post was published, in Unix seconds."""
    video_url: Annotated[str | None, Mark.NEVER]
    """URL of the video file with the highest bitrate; null if the post has no video."""
    video_urls_by_quality: Annotated[VideoQualities, Mark.NEVER]


class Additional(Model):
    """The data about the account itself, without its posts."""

    profile_demographics: Demographics


class Content(Model):
    """The profile and its posts."""

    additional: Additional
    main: Annotated[list[Post], Rows("posts")]
    """Posts in the platform's order, a pinned post first. Empty for a protected account, and after the last post."""


class Profile(Model):
    """A profile with a page of its posts."""

    data: Content
    hasMore: Annotated[bool, Mark.NEVER]  # noqa: N815  # the contract's spelling
    """Whether a next page exists. Also true if the timeline could not be fetched, or its cursor could not be read, and
    posts seem to be missing: the cursor then requests the timeline from its start."""
    nextCursor: Annotated[str, Mark.NEVER]  # noqa: N815  # the contract's spelling
    """Opaque value of the param ``cursor`` for the next page. "" at the end."""
