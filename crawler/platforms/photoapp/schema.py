"""Photo app: the models of the params and the data of its scraper (specification 2.2)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from crawler.platforms.model import Details, Mark, Model, Params, Rows, Selects
from crawler.platforms.photoapp.urls import LINKS, PostLink, link_of_url


class PostParams(Params):
    """Params that name a post by any of the platform's links to it."""

    links: ClassVar = LINKS
    further: ClassVar = frozenset({"include_play_counts", "details"})

    url: Annotated[str, Selects("echo")] = Field(max_length=2_000)
    """URL of a post or reel, or a share link, also without ``https://``. Only its shortcode or share token is used."""
    include_play_counts: bool | None = None
    """Whether to read the play count of a reel, which takes one more request. By default, the server's setting
    ``PHOTOAPP_PLAY_COUNTS`` applies."""
    details: Details = "auto"
    """Whether to request the duration of a video whose page does not state it: ``none`` or 0, or ``all`` or a number
    from 1 on. ``auto``: if the budget lets the request start within 10 seconds. The answer says if it was left out."""

    @field_validator("url")
    @classmethod
    def _is_post(cls, url: str) -> str:
        link_of_url(url)
        return url

    @property
    def link(self) -> PostLink:
        """The parsed URL."""
        return link_of_url(self.url)


class Dimensions(Model):
    """Size of the picture.

    The post's page states the size of the uploaded file. The embed page states the size in which it shows the picture.
    """

    height: int | None
    """Height in pixels; null if the page does not state it."""
    width: int | None
    """Width in pixels; null if the page does not state it."""


class Count(Model):
    """A number, in an object of its own, as in the platform's data."""

    count: Annotated[int | None, Mark.COUNT]
    """The number; null if the owner hides it or the page does not state it. Never -1."""


class CaptionText(Model):
    """A caption."""

    text: str
    """Text of the caption, including line breaks and emoji."""


class CaptionEdge(Model):
    """The caption, in an object of its own, as in the platform's data."""

    node: CaptionText


class Captions(Model):
    """The caption, in a list with at most one element."""

    edges: Annotated[list[CaptionEdge], Rows("captions")]
    """The list with the caption. Empty if the post has no caption."""


class CommentOwner(Model):
    """The author of a comment."""

    id: str
    """The account's classic id; "" if the page does not state it."""
    username: str
    """The account's name; "" if the page does not state it."""
    is_verified: bool | None
    """Whether the account is verified; null if the page does not state it."""
    profile_pic_url: str
    """URL of the account's picture; "" if the page does not state it."""


class Comment(Model):
    """A comment that the post's page shows."""

    id: str
    """The comment's id."""
    text: str
    """Text of the comment."""
    created_at: int | None
    """When the comment was written, in Unix seconds; null if the page does not state it."""
    owner: CommentOwner
    edge_liked_by: Count


class CommentEdge(Model):
    """A comment, in an object of its own, as in the platform's data."""

    node: Comment


class Comments(Model):
    """The number of all comments, and the comments that the page shows."""

    count: Annotated[int | None, Mark.COUNT]
    """Number of all comments; null if the page does not state it."""
    edges: Annotated[list[CommentEdge], Rows("comments"), Mark.NEVER]
    """The first comments, if the page has any; often empty."""


class Coauthor(Model):
    """An account that published the post together with its owner."""

    id: str
    """The account's classic id."""
    username: str
    """The account's name."""
    full_name: str
    """Displayed name; "" if the page does not state it."""
    is_verified: bool | None
    """Whether the account is verified; null if the page does not state it."""
    profile_pic_url: Annotated[str, Mark.NEVER]
    """URL of the account's picture."""


class TaggedUser(Coauthor):
    """A tagged account."""


class Tag(Model):
    """A tag and its position in the picture."""

    user: TaggedUser
    x: Annotated[float | None, Mark.NEVER]
    """Distance from the left edge, 0 to 1; often 0 on videos; null if the page does not state it."""
    y: Annotated[float | None, Mark.NEVER]
    """Distance from the upper edge, 0 to 1; null if the page does not state it."""


class TagEdge(Model):
    """A tag, in an object of its own, as in the platform's data."""

    node: Tag


class Tags(Model):
    """The tagged accounts."""

    edges: Annotated[list[TagEdge], Rows("tagged_users")]
    """The tags. Empty if the post has none."""


class Music(Model):
    """The sound of a reel, or of a photo or carousel with music."""

    artist_name: str
    """Name of the artist. For original audio, it is an account's name."""
    song_name: str
    """Title of the sound."""
    uses_original_audio: bool | None
    """True if the sound was recorded with a reel, false if it is licensed music, null if the page does not state it."""
    should_mute_audio: bool | None
    """Whether the platform mutes the sound; null if the page does not state it."""
    should_mute_audio_reason: str
    """The reason for muting, or ""."""
    audio_id: str
    """The platform's id of the sound."""


class Location(Model):
    """The place that the post's owner tagged."""

    id: str
    """The platform's id of the place."""
    has_public_page: bool | None
    """Whether the place has a page on the platform; null if the post's page does not state it."""
    name: str
    """The place's name."""
    slug: str
    """The place's name as it occurs in URLs; "" if the page does not state it."""
    address_json: str | None
    """The place's address as a JSON string; null if the page does not state it."""


class TimelineUser(Model):
    """The owner of a timeline item."""

    id: str
    """The account's secondary id (17841…)."""
    pk: str
    """The account's classic id."""
    username: str
    """The account's name."""


class TimelineItem(Model):
    """One of the owner's posts in the list on the post's page."""

    is_media: str = Field(alias="__isXIGPolarisMedia")
    """The same as ``__typename``."""
    typename: str = Field(alias="__typename")
    """XIGPolarisImageMedia, XIGPolarisVideoMedia or XIGPolarisCarouselMedia."""
    accessibility_caption: str
    """Description of the picture in English, or ""."""
    caption: CaptionText
    """The caption. Its text is "" if the post has no caption."""
    code: str
    """The post's shortcode."""
    display_uri: str
    """URL of a picture in a size of at most 640 pixels."""
    id: str
    """``POLARIS_`` followed by the numeric id."""
    media_type: int | None
    """1 for an image, 2 for a video, 8 for a carousel; null if the page does not state it."""
    pk: str
    """The post's numeric id."""
    product_type: str
    """feed, clips, carousel_container or igtv."""
    seo_canonical_url: str | None
    """Canonical URL of the post; always null so far."""
    user: TimelineUser


class TimelineEdge(Model):
    """A timeline item, in an object of its own, as in the platform's data."""

    node: TimelineItem


class Timeline(Model):
    """The owner's newest posts, including carousels. Pinned posts come first."""

    edges: Annotated[list[TimelineEdge], Rows("timeline")]
    """At most twelve posts. Empty if the response has no timeline: only the logged-out page has one."""


class Owner(Model):
    """The owner of the post."""

    typename: Annotated[str, Mark.NEVER] = Field(alias="__typename")
    """The platform's type name for accounts, or "". Each format has another name."""
    full_name: str
    """Displayed name, or ""."""
    id: str = Field(min_length=1)
    """The account's classic numeric id. Never empty."""
    app_id: Annotated[str, Mark.NEVER]
    """The platform's secondary account id (17841…); "" if the page does not state it."""
    is_private: bool | None
    """Whether only followers see the account's posts; null if the page does not state it."""
    is_unpublished: bool | None
    """Whether the account is unpublished; null if the page does not state it."""
    is_verified: bool | None
    """Whether the account is verified; null if the page does not state it."""
    pk: str
    """The same as ``id``."""
    profile_image_uri: Annotated[str, Mark.NEVER]
    """URL of the account's smallest picture; "" if the page does not state it."""
    profile_pic_url: Annotated[str, Mark.NEVER]
    """URL of the account's picture."""
    username: str = Field(min_length=1)
    """The account's name. Never empty."""
    polaris_ordered_timeline_connection: Annotated[Timeline, Mark.NEVER]


class Post(Model):
    """A post: a photo, a video or reel, or a carousel of photos and videos.

    URLs of pictures and videos are signed and expire. The slides of a carousel are not part of the record.
    """

    typename: str = Field(alias="__typename")
    """XDTGraphImage, XDTGraphVideo or XDTGraphSidecar (a carousel)."""
    accessibility_caption: Annotated[str, Mark.NEVER]
    """Description of the picture in English, or ""."""
    clips_music_attribution_info: Music | None
    """The sound of a reel, or of a photo or carousel with music; null if the page does not state it."""
    coauthor_producers: Annotated[list[Coauthor], Rows("coauthors")]
    """Accounts that published the post together with its owner."""
    comments_disabled: bool | None
    """Whether comments are switched off; null if the page does not state it."""
    dimensions: Annotated[Dimensions, Mark.NEVER]
    display_url: Annotated[str, Mark.NEVER] = Field(min_length=1)
    """URL of the largest uncropped picture; for a video, of its cover. The URL is signed and expires. Never empty."""
    edge_media_preview_like: Count
    """Number of likes; null if the owner hides it."""
    edge_media_to_caption: Captions
    edge_media_to_comment: Comments
    edge_media_to_tagged_user: Tags
    has_audio: bool | None
    """Whether a video has sound; null if the page does not state it."""
    id: Annotated[str, Mark.KEY] = Field(pattern=r"^[0-9]+$")
    """The post's numeric id, which is the same number as ``shortcode``. Never empty."""
    is_ad: bool | None
    """Whether the post is an advertisement; null if not stated: the logged-out page does not state it."""
    is_affiliate: bool | None
    """Whether the post earns its owner a commission; null if the page does not state it."""
    is_paid_partnership: bool | None
    """Whether the post is marked as a paid partnership; null if the page does not state it."""
    is_video: bool
    """True for videos and reels; false for photos and carousels, even for carousels with videos."""
    like_and_view_counts_disabled: bool | None
    """Whether the owner hides the counts; null if the page does not state it."""
    location: Annotated[Location | None, Mark.NULL]
    """The place that the post's owner tagged, or null."""
    owner: Owner
    product_type: str
    """feed, clips, carousel_container or igtv; "" if the page does not state it."""
    shortcode: str = Field(min_length=1)
    """The code in the post's URL. Never empty."""
    taken_at_timestamp: int = Field(gt=0)
    """When the post was published, in Unix seconds. Never empty."""
    thumbnail_src: Annotated[str, Mark.NEVER]
    """URL of a smaller picture, or ""."""
    video_duration: Annotated[float | None, Mark.NEVER]
    """Duration in seconds, exact or rounded to whole seconds, depending on the page. Null for photos and carousels, or
    if no page states it."""
    video_play_count: Annotated[int | None, Mark.COUNT]
    """Number of plays; null for photos and carousels, if the owner hides it, or if no page states it, as for most
    reels. Never 0."""
    video_url: Annotated[str | None, Mark.NEVER]
    """URL of the video. The URL is signed and expires. Null for photos and carousels, or if the page states none."""
    video_view_count: Annotated[int | None, Mark.COUNT]
    """Number of views; null for photos and carousels, if the owner hides it, or if the page does not state it, as for
    most reels. Never 0."""


class PostShell(Model):
    """An object with one key, ``xdt_shortcode_media``: the key under which the platform's payloads have a post."""

    xdt_shortcode_media: Post


class PostData(Model):
    """The scraper's data: the post, nested two levels deep."""

    data: PostShell
    success: bool
    """Always true, because a failed target has no data."""
