"""Microblog: what its scraper takes, and the profile with its posts that it gives (specification 2.5)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from crawler import cursors
from crawler.platforms.model import Entity, Model, Params

CURSOR = "microblog-profile-1"
"""Kind and version of this scraper's cursors."""
HANDLE = r"^@?[A-Za-z0-9_]{1,15}$"


class ProfileParams(Params):
    """A profile by its handle, from the start or from where an earlier answer ended."""

    username: str = Field(pattern=HANDLE)
    """Handle of the profile: 1 to 15 letters, digits and underscores. One leading @ is dropped; case is ignored."""
    cursor: str | None = Field(default=None, min_length=1, max_length=cursors.MAX_LENGTH)
    """``nextCursor`` of an earlier answer for the same handle, unchanged. Left out: the newest posts."""

    @model_validator(mode="after")
    def _own_cursor(self) -> Self:
        if self.cursor is not None and self.continuation["handle"] != self.handle.casefold():
            raise ValueError("the cursor is another profile's")
        return self

    @property
    def handle(self) -> str:
        """The handle without its @, in the caller's case."""
        return self.username.removeprefix("@")

    @property
    def continuation(self) -> dict[str, Any]:
        """What the cursor says: handle, the platform's id of the user, its cursor, and the posts handed out early.

        Raises:
            ValueError: not a cursor of this scraper, cut, or changed.
        """
        payload = cursors.decode(CURSOR, self.cursor or "")
        kinds = {"handle": str, "user_id": str, "cursor": str, "seen": list}
        if payload.keys() != kinds.keys() or not all(isinstance(payload[key], kind) for key, kind in kinds.items()):
            raise ValueError("not a cursor: expected the value of a previous answer, unchanged")
        return payload


class Demographics(Model):
    """Who the profile is, under the platform's own names."""

    entity: ClassVar[Entity] = Entity(
        "profiles",
        key=("screen_name",),
        history=(
            "favourites_count",
            "followers_count",
            "friends_count",
            "listed_count",
            "media_count",
            "statuses_count",
        ),
    )

    created_at: str
    """When the account was made, in the platform's form: ``Sat Dec 14 04:35:55 +0000 2013``. "" where not exposed."""
    description: str
    """What the account says of itself; "" where it says nothing."""
    favourites_count: int | None
    """How many posts it has liked; null where no source exposes it."""
    followers_count: int | None
    """How many follow it; null where not exposed."""
    friends_count: int | None
    """How many it follows; null where not exposed."""
    listed_count: int | None
    """How many lists it is on; null where not exposed (the newest payloads have no such number)."""
    media_count: int | None
    """How many of its posts have media; null where not exposed."""
    statuses_count: int | None
    """How many posts it has; null where not exposed."""
    is_blue_verified: bool | None
    """Whether it pays for its badge; null where not exposed."""
    protected: bool | None
    """Whether its posts are for approved followers only; null where not exposed."""
    verified: bool | None
    """The platform's old badge, false nearly everywhere; null where not exposed."""
    location: str
    """Where it says it is: free text. "" where it says nothing."""
    name: str = Field(min_length=1)
    """Display name. Never empty."""
    profile_banner_url: str
    """URL of the banner without a size; "" where there is none, or where not exposed."""
    profile_image_url_https: str
    """URL of the picture in the size that the platform names (``_normal``)."""
    screen_name: str = Field(min_length=1)
    """Handle in its canonical case, without @. Never empty."""
    url: str
    """The website's shortened link, as the platform has it; "" where there is none."""
    verified_type: str
    """``Business``, ``Government``, or ""."""


class VideoQualities(Model):
    """The post's video files by bitrate. A file that does not exist is null."""

    high: str | None
    """URL of the file with the highest bitrate."""
    low: str | None
    """URL of the file with the lowest bitrate; null where there is only one."""
    medium: str | None
    """URL of the file in the middle; null where there are fewer than three."""
    watermarked: str | None
    """Always null: the platform has no such files."""


class InnerPost(Model):
    """A post within a post: the one that is quoted, or the one that is reposted."""

    caption: str
    """Its whole text, as for posts."""
    comment_count: int | None
    """Replies to it; null where not exposed."""
    creator_handle: str = Field(min_length=1)
    """Who wrote it, without @. Never empty."""
    creator_name: str
    """Display name of who wrote it."""
    like_count: int | None
    """Likes of it; null where not exposed."""
    post_id: str = Field(min_length=1)
    """Its id. Never empty."""
    post_url: str
    """URL of its page."""
    share_count: int | None
    """Reposts of it; null where not exposed."""
    upload_timestamp: int
    """When it was posted, in Unix seconds."""
    view_count: int | None
    """Views of it; null where not exposed."""


class Post(Model):
    """A post or repost of the profile."""

    entity: ClassVar[Entity] = Entity(
        "posts",
        key=("post_id",),
        history=("comment_count", "like_count", "save_count", "share_count", "view_count"),
    )

    caption: str
    """The whole text: of a long post all of it, of a repost the reposted post's. Shortened links are expanded; the link
    to the post's own media at its end is dropped; mentions at its start are kept."""
    comment_count: int | None
    """Replies; null where not exposed, and on a repost, where the platform fills in 0."""
    like_count: int | None
    """Likes; null as above."""
    save_count: int | None
    """Bookmarks; null as above. The embed source does not expose them."""
    share_count: int | None
    """Reposts, without quotes; on a repost the reposted post's number."""
    view_count: int | None
    """Views; null where not exposed: the embed source, old posts."""
    creator_handle: str = Field(min_length=1)
    """Who posted it, without @: not always the profile. Never empty."""
    hashtags: list[str]
    """Hashtags without #, in the text's order and case."""
    in_reply_to_handle: str | None
    """Whom it answers, null where it is no answer. A post that begins with a mention may have it without an id."""
    in_reply_to_post_id: str | None
    """The post that it answers; null where it is no answer."""
    is_quote: bool
    """Whether it quotes a post; false on a repost, also on that of a quote."""
    is_reply: bool
    """Whether it answers a post, also one of its own author."""
    is_repost: bool
    """Whether it is another post, handed on."""
    post_id: str = Field(min_length=1)
    """Its id: text, as it is larger than what floating-point numbers hold. Never empty."""
    post_url: str
    """URL of its page."""
    profile_picture_url: str
    """URL of its author's picture."""
    quoted_post: InnerPost | None
    """The post that it quotes; null where there is none, and where that is deleted or hidden."""
    reposted_post: InnerPost | None
    """The post that it hands on; null where there is none, and where that is deleted or hidden."""
    thumbnail_url: str | None
    """The first photo, or the poster of the first video; null where it has no media. Of a repost: the other post's."""
    upload_timestamp: int
    """When it was posted, in Unix seconds."""
    video_url: str | None
    """The best video file; null where it has no video."""
    video_urls_by_quality: VideoQualities


class Additional(Model):
    """What is told beside the posts."""

    profile_demographics: Demographics


class Content(Model):
    """The profile and its posts."""

    additional: Additional
    main: list[Post]
    """Posts in the platform's order, a pinned one first. Empty for a protected account, and past the end."""


class Profile(Model):
    """A profile with a page of its posts."""

    data: Content
    hasMore: bool  # noqa: N815  # the contract's spelling
    """Whether ``nextCursor`` leads on."""
    nextCursor: str  # noqa: N815  # the contract's spelling
    """Opaque; to be sent as ``cursor``. "" where there are no further posts, or no source that can continue."""
