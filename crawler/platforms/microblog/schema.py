"""Microblog: the params and the data of its scraper (specification 2.5)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from crawler import cursors
from crawler.platforms.model import Entity, Model, Params

CURSOR = "microblog-profile-1"
"""Kind and version of this scraper's cursors."""
MAX_SEEN = 400
"""Maximum number of posts that a cursor leaves out. It bounds the cursor's length; sources return about 105 at most."""
HANDLE = r"^@?[A-Za-z0-9_]{1,15}$"


class ProfileParams(Params):
    """A profile by its handle, from the newest post or from a cursor."""

    username: str = Field(pattern=HANDLE)
    """Handle of the profile: 1 to 15 letters, digits and underscores. One leading @ is dropped; case is ignored."""
    cursor: str | None = Field(default=None, min_length=1, max_length=cursors.MAX_LENGTH)
    """``nextCursor`` of an earlier response for the same handle, unchanged. Default: the newest posts."""

    @model_validator(mode="after")
    def _own_cursor(self) -> Self:
        if self.cursor is not None and self.continuation["handle"] != self.handle.casefold():
            raise ValueError("the cursor belongs to another profile")
        return self

    @property
    def handle(self) -> str:
        """The handle without its @, in the caller's case."""
        return self.username.removeprefix("@")

    @property
    def continuation(self) -> dict[str, Any]:
        """The cursor's payload: handle, the platform's id of the user and cursor, and the posts returned early.

        An empty ``cursor`` is the start of the timeline. An empty ``user_id``: the user must be looked up.

        Raises:
            ValueError: the cursor belongs to another scraper, is truncated or changed.
        """
        payload = cursors.decode(CURSOR, self.cursor or "")
        kinds = {"handle": str, "user_id": str, "cursor": str, "seen": list}
        malformed = payload.keys() != kinds.keys() or not all(
            isinstance(payload[key], kind) for key, kind in kinds.items()
        )
        if malformed or len(payload["seen"]) > MAX_SEEN or not all(isinstance(each, str) for each in payload["seen"]):
            raise ValueError("malformed cursor: expected nextCursor of an earlier response, unchanged")
        return payload


class Demographics(Model):
    """The profile, under the platform's own names."""

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
    """Time of creation in the platform's form: ``Sat Dec 14 04:35:55 +0000 2013``. "" where not exposed."""
    description: str
    """The account's description of itself, or ""."""
    favourites_count: int | None
    """Number of posts that it liked; null where no source exposes it."""
    followers_count: int | None
    """Number of followers; null where not exposed."""
    friends_count: int | None
    """Number of accounts that it follows; null where not exposed."""
    listed_count: int | None
    """Number of lists that it is on; null where not exposed, as in the newest payloads."""
    media_count: int | None
    """Number of its posts with media; null where not exposed."""
    statuses_count: int | None
    """Number of its posts; null where not exposed."""
    is_blue_verified: bool | None
    """Whether it pays for its badge; null where not exposed."""
    protected: bool | None
    """Whether its posts are for approved followers only; null where not exposed."""
    verified: bool | None
    """The platform's old badge, false nearly everywhere; null where not exposed."""
    location: str
    """Location as free text, or ""."""
    name: str = Field(min_length=1)
    """Display name. Never empty."""
    profile_banner_url: str
    """URL of the banner without a size; "" without a banner, or where not exposed."""
    profile_image_url_https: str
    """URL of the picture in the platform's default size (``_normal``)."""
    screen_name: str = Field(min_length=1)
    """Handle in its canonical case, without @. Never empty."""
    url: str
    """The website's shortened link, as the platform has it, or ""."""
    verified_type: str
    """``Business``, ``Government``, or ""."""


class VideoQualities(Model):
    """The post's video files by bitrate. A file that does not exist is null."""

    high: str | None
    """URL of the file with the highest bitrate."""
    low: str | None
    """URL of the file with the lowest bitrate; null for a single file."""
    medium: str | None
    """URL of the file in the middle; null for fewer than three files."""
    watermarked: str | None
    """Always null: the platform has no such files."""


class InnerPost(Model):
    """A post within a post: quoted or reposted."""

    caption: str
    """Its whole text, as for posts."""
    comment_count: int | None
    """Replies to it; null where not exposed."""
    creator_handle: str = Field(min_length=1)
    """Handle of its author, without @. Never empty."""
    creator_name: str
    """Display name of its author."""
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
    """Handle of its author, without @: not always the profile's. Never empty."""
    hashtags: list[str]
    """Hashtags without #, in the text's order and case."""
    in_reply_to_handle: str | None
    """Handle that it replies to; null for other posts. A post that begins with a mention may have it without an id."""
    in_reply_to_post_id: str | None
    """Id of the post that it replies to; null for other posts."""
    is_quote: bool
    """Whether it quotes a post. False on every repost, also on a repost of a quote."""
    is_reply: bool
    """Whether it replies to a post, also to its author's own."""
    is_repost: bool
    """Whether it is a repost of another post."""
    post_id: str = Field(min_length=1)
    """Its id. A string, since floating-point numbers cannot hold it exactly. Never empty."""
    post_url: str
    """URL of its page."""
    profile_picture_url: str
    """URL of its author's picture."""
    quoted_post: InnerPost | None
    """The quoted post; null without one, and where it is deleted or hidden."""
    reposted_post: InnerPost | None
    """The reposted post; null without one, and where it is deleted or hidden."""
    thumbnail_url: str | None
    """The first photo, or the poster of the first video; null without media. Of a repost: the original post's."""
    upload_timestamp: int
    """When it was posted, in Unix seconds."""
    video_url: str | None
    """The best video file; null where it has no video."""
    video_urls_by_quality: VideoQualities


class Additional(Model):
    """Data beside the posts."""

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
    """Whether a next page exists. True also where the timeline could not be fetched: the cursor requests it again."""
    nextCursor: str  # noqa: N815  # the contract's spelling
    """Opaque value of the param ``cursor`` for the next page. "" at the end."""
