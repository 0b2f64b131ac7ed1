"""Photo app: the params and the data of its scraper (specification 2.2)."""

from __future__ import annotations

from pydantic import Field, field_validator

from crawler.platforms.model import Model, Params
from crawler.platforms.photoapp.link import Link, link_of_url


class PostParams(Params):
    """A post, by any of the platform's links to it."""

    url: str = Field(max_length=2_000, json_schema_extra={"format": "uri"})
    """URL of a post or reel, or a share link. Only the code in it is used."""

    @field_validator("url")
    @classmethod
    def _is_post(cls, url: str) -> str:
        link_of_url(url)
        return url

    @property
    def link(self) -> Link:
        """The parsed URL."""
        return link_of_url(self.url)


class Dimensions(Model):
    """Size of the picture in pixels."""

    height: int | None
    """Height; null where not stated."""
    width: int | None
    """Width; null where not stated. Size of the upload on the logged-out page, of the shown picture in older forms."""


class Count(Model):
    """A number in the platform's nesting."""

    count: int | None
    """The number; null where the owner hides it or where not stated. Never -1."""


class CaptionText(Model):
    """A caption."""

    text: str
    """Text of the caption, with line breaks and emoji."""


class CaptionEdge(Model):
    """The caption in the platform's nesting."""

    node: CaptionText


class Captions(Model):
    """The caption, in a list of at most one."""

    edges: list[CaptionEdge]
    """Empty where the post has no caption."""


class CommentOwner(Model):
    """The author of a comment."""

    id: str
    """The account's classic id, "" where not stated."""
    username: str
    """The account's name."""
    is_verified: bool | None
    """Whether the account is verified; null where not stated."""
    profile_pic_url: str
    """URL of the account's picture."""


class Comment(Model):
    """A comment that the page shows."""

    id: str
    """The comment's id."""
    text: str
    """Text of the comment."""
    created_at: int | None
    """Unix seconds; null where not stated."""
    owner: CommentOwner
    edge_liked_by: Count


class CommentEdge(Model):
    """A comment in the platform's nesting."""

    node: Comment


class Comments(Model):
    """The number of comments, and the comments of the page."""

    count: int | None
    """Number of all comments; null where not stated."""
    edges: list[CommentEdge]
    """The first comments, as far as the page has them; often empty."""


class TaggedUser(Model):
    """A tagged account."""

    full_name: str
    """Displayed name, or ""."""
    id: str
    """The account's classic id."""
    is_verified: bool | None
    """Whether the account is verified; null where not stated."""
    profile_pic_url: str
    """URL of the account's picture."""
    username: str
    """The account's name."""


class Tag(Model):
    """A tag and its position in the picture."""

    user: TaggedUser
    x: float | None
    """From the left edge, 0 to 1; often 0 on videos; null where not stated."""
    y: float | None
    """From the upper edge, 0 to 1."""


class TagEdge(Model):
    """A tag in the platform's nesting."""

    node: Tag


class Tags(Model):
    """The tagged accounts."""

    edges: list[TagEdge]
    """Empty for a post without tags."""


class Coauthor(Model):
    """An account that published the post together with its owner."""

    id: str
    """The account's classic id."""
    username: str
    """The account's name."""
    full_name: str
    """Displayed name, "" where not stated."""
    is_verified: bool | None
    """Whether the account is verified; null where not stated."""
    profile_pic_url: str
    """URL of the account's picture."""


class Music(Model):
    """The sound of a reel."""

    artist_name: str
    """The artist; for original audio the account's name."""
    song_name: str
    """Title of the sound."""
    uses_original_audio: bool | None
    """True for a sound that was recorded with a reel, false for licensed music."""
    should_mute_audio: bool | None
    """Whether the platform mutes it; null where not stated."""
    should_mute_audio_reason: str
    """The reason for muting, or ""."""
    audio_id: str
    """The platform's id of the sound."""


class Location(Model):
    """The place that the owner named."""

    id: str
    """The platform's id of the place."""
    has_public_page: bool | None
    """Whether it has a page; null where not stated."""
    name: str
    """Its name."""
    slug: str
    """Its name as in URLs, "" where not stated."""
    address_json: str | None
    """Its address as a JSON string; null where not stated."""


class TimelineUser(Model):
    """The owner of a timeline item."""

    id: str
    """The account's secondary id (17841…), in the platform's form."""
    pk: str
    """The account's classic id."""
    username: str
    """The account's name."""


class TimelineItem(Model):
    """One of the owner's posts in the page's list; ids in the platform's form."""

    is_media: str = Field(alias="__isXIGPolarisMedia")
    """The same as ``__typename``."""
    typename: str = Field(alias="__typename")
    """XIGPolarisImageMedia, XIGPolarisVideoMedia or XIGPolarisCarouselMedia."""
    accessibility_caption: str
    """Description of the picture in English, or ""."""
    caption: CaptionText
    """The caption; its text is "" for a post without one."""
    code: str
    """Its shortcode."""
    display_uri: str
    """URL of a picture of 640 pixels at most."""
    id: str
    """POLARIS_ and the numeric id."""
    media_type: int | None
    """1 image, 2 video, 8 carousel."""
    pk: str
    """Its numeric id."""
    product_type: str
    """feed, clips, carousel_container or igtv."""
    seo_canonical_url: str | None
    """A canonical URL; so far always null."""
    user: TimelineUser


class TimelineEdge(Model):
    """A timeline item in the platform's nesting."""

    node: TimelineItem


class Timeline(Model):
    """The owner's newest posts, pinned ones first, including carousels."""

    edges: list[TimelineEdge]
    """Twelve at most. Empty where the page has no timeline, as in all forms but the logged-out page."""


class Owner(Model):
    """The owner of the post."""

    typename: str = Field(alias="__typename")
    """The platform's type name of an account, or ""."""
    full_name: str
    """Displayed name, or ""."""
    id: str = Field(min_length=1)
    """The account's classic numeric id. Never empty."""
    app_id: str
    """The platform's secondary account id (17841…), "" where not stated."""
    is_private: bool | None
    """Whether only followers see its posts; null where not stated."""
    is_unpublished: bool | None
    """Whether the account is withdrawn; null where not stated."""
    is_verified: bool | None
    """Whether the account is verified; null where not stated."""
    pk: str
    """The same as ``id``."""
    profile_image_uri: str
    """URL of the smallest picture of the account, "" where not stated."""
    profile_pic_url: str
    """URL of the account's picture."""
    username: str = Field(min_length=1)
    """The account's name. Never empty."""
    polaris_ordered_timeline_connection: Timeline


class Post(Model):
    """A post: a photo, a video or reel, or a carousel of both."""

    typename: str = Field(alias="__typename")
    """XDTGraphImage, XDTGraphVideo or XDTGraphSidecar (a carousel)."""
    accessibility_caption: str
    """Description of the picture in English, or ""."""
    clips_music_attribution_info: Music | None
    """The sound of a reel; null for photos and carousels, and where not stated."""
    coauthor_producers: list[Coauthor]
    """Accounts that published the post together with its owner."""
    comments_disabled: bool | None
    """Whether comments are switched off; null where not stated."""
    dimensions: Dimensions
    display_url: str = Field(min_length=1)
    """URL of the largest uncropped picture; for a video its cover. Signed: it expires. Never empty."""
    edge_media_preview_like: Count
    """Likes; null where the owner hides them."""
    edge_media_to_caption: Captions
    edge_media_to_comment: Comments
    edge_media_to_tagged_user: Tags
    has_audio: bool | None
    """Whether a video has sound; null where not stated."""
    id: str = Field(pattern=r"^[0-9]+$")
    """The post's numeric id. Never empty."""
    is_ad: bool | None
    """Whether it is an advertisement; null where not stated, as in the logged-out page."""
    is_affiliate: bool | None
    """Whether it earns its owner a commission; null where not stated."""
    is_paid_partnership: bool | None
    """Whether it is marked as paid; null where not stated."""
    is_video: bool
    """True for videos and reels; false for photos and carousels, also for carousels with videos."""
    like_and_view_counts_disabled: bool | None
    """Whether the owner hides the counts; null where not stated."""
    location: Location | None
    """The place that the owner named, or null."""
    owner: Owner
    product_type: str
    """feed, clips, carousel_container or igtv; "" where not stated."""
    shortcode: str = Field(min_length=1)
    """The code in the post's URL. Never empty."""
    taken_at_timestamp: int = Field(gt=0)
    """When it was published, Unix seconds. Never empty."""
    thumbnail_src: str
    """URL of a smaller picture."""
    video_duration: float | None
    """Duration in seconds, as exact as the platform states it. Null for photos and carousels, and where not stated."""
    video_play_count: int | None
    """Plays; null for photos and carousels, where hidden, and where not stated. Never 0."""
    video_url: str | None
    """URL of the video; signed: it expires. Null for photos and carousels."""
    video_view_count: int | None
    """Views; null for photos and carousels, where hidden, and where not stated. Never 0."""


class PostShell(Model):
    """The post under the platform's key."""

    xdt_shortcode_media: Post


class PostData(Model):
    """The scraper's data: the post in two levels of nesting."""

    data: PostShell
    success: bool
    """Always true, since failures have no data."""
