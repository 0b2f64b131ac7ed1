"""Photo app: what its scraper takes, and the post that it gives (specification 2.2)."""

from __future__ import annotations

from pydantic import Field, field_validator

from crawler.platforms.model import Model, Params
from crawler.platforms.photoapp.link import Link, link_of_url


class PostParams(Params):
    """A post, by any of the platform's links to it."""

    url: str = Field(max_length=2_000, json_schema_extra={"format": "uri"})
    """URL of a post or reel, or a share link. Only the code in it counts; the rest is ignored."""

    @field_validator("url")
    @classmethod
    def _is_post(cls, url: str) -> str:
        link_of_url(url)
        return url

    @property
    def link(self) -> Link:
        """What the URL leads to."""
        return link_of_url(self.url)


class Dimensions(Model):
    """Size of the picture in pixels."""

    height: int | None
    """Height; null where the page does not tell."""
    width: int | None
    """Width; null where not told. Of the upload in the logged-out page's form, of the shown picture in older ones."""


class Count(Model):
    """A number in the platform's shell."""

    count: int | None
    """The number; null where the owner hides it or the page does not tell. Never -1."""


class CaptionText(Model):
    """A caption."""

    text: str
    """As the platform has it, with line breaks and emoji."""


class CaptionEdge(Model):
    """The caption in the platform's shell."""

    node: CaptionText


class Captions(Model):
    """The caption, in a list of at most one."""

    edges: list[CaptionEdge]
    """Empty where the post has no caption."""


class CommentOwner(Model):
    """Who wrote a comment."""

    id: str
    """The account's classic id, "" where the page does not tell."""
    username: str
    """The account's name."""
    is_verified: bool | None
    """Whether the account is verified; null where the page does not tell."""
    profile_pic_url: str
    """URL of the account's picture."""


class Comment(Model):
    """A comment that the page shows."""

    id: str
    """The comment's id."""
    text: str
    """As written."""
    created_at: int | None
    """Unix seconds; null where the page does not tell."""
    owner: CommentOwner
    edge_liked_by: Count


class CommentEdge(Model):
    """A comment in the platform's shell."""

    node: Comment


class Comments(Model):
    """How many comments there are, and those that the page shows."""

    count: int | None
    """All comments; null where the page does not tell."""
    edges: list[CommentEdge]
    """The first of them, as far as the page shows them; often none."""


class TaggedUser(Model):
    """An account that is tagged."""

    full_name: str
    """Displayed name, "" where there is none."""
    id: str
    """The account's classic id."""
    is_verified: bool | None
    """Whether the account is verified; null where the page does not tell."""
    profile_pic_url: str
    """URL of the account's picture."""
    username: str
    """The account's name."""


class Tag(Model):
    """A tag, and where in the picture it is."""

    user: TaggedUser
    x: float | None
    """From the left edge, 0 to 1; often 0 on videos; null where the page does not tell."""
    y: float | None
    """From the upper edge, 0 to 1."""


class TagEdge(Model):
    """A tag in the platform's shell."""

    node: Tag


class Tags(Model):
    """The tagged accounts."""

    edges: list[TagEdge]
    """Empty where nobody is tagged."""


class Coauthor(Model):
    """An account that published the post together with its owner."""

    id: str
    """The account's classic id."""
    username: str
    """The account's name."""
    full_name: str
    """Displayed name, "" where the page does not tell."""
    is_verified: bool | None
    """Whether the account is verified; null where the page does not tell."""
    profile_pic_url: str
    """URL of the account's picture."""


class Music(Model):
    """The sound of a reel."""

    artist_name: str
    """The artist; of an original sound the account's name."""
    song_name: str
    """Title of the sound."""
    uses_original_audio: bool | None
    """True where the sound was recorded with a reel, false where it is licensed music."""
    should_mute_audio: bool | None
    """Whether the platform mutes it; null where the page does not tell."""
    should_mute_audio_reason: str
    """Why it does, "" where it does not."""
    audio_id: str
    """The platform's id of the sound."""


class Location(Model):
    """The place that the owner named."""

    id: str
    """The platform's id of the place."""
    has_public_page: bool | None
    """Whether it has a page; null where not told."""
    name: str
    """Its name."""
    slug: str
    """Its name as in URLs, "" where not told."""
    address_json: str | None
    """Its address, JSON as text; null where the platform gives none."""


class TimelineUser(Model):
    """Whose post a timeline item is."""

    id: str
    """The account's secondary id (17841…), as the platform has it."""
    pk: str
    """The account's classic id."""
    username: str
    """The account's name."""


class TimelineItem(Model):
    """One of the owner's posts, as the page lists them; ids as the platform has them."""

    is_media: str = Field(alias="__isXIGPolarisMedia")
    """The same as ``__typename``."""
    typename: str = Field(alias="__typename")
    """XIGPolarisImageMedia, XIGPolarisVideoMedia or XIGPolarisCarouselMedia."""
    accessibility_caption: str
    """What the picture shows, in English; "" where there is no such text."""
    caption: CaptionText
    """The caption; its text is "" where the post has none."""
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
    """A timeline item in the platform's shell."""

    node: TimelineItem


class Timeline(Model):
    """The owner's newest posts, pinned ones first; carousels are among them."""

    edges: list[TimelineEdge]
    """Twelve at most. Empty where the page has no timeline, as in all forms but the logged-out page."""


class Owner(Model):
    """Whose post it is."""

    typename: str = Field(alias="__typename")
    """The platform's word for an account, "" where it gives none."""
    full_name: str
    """Displayed name, "" where there is none."""
    id: str = Field(min_length=1)
    """The account's classic numeric id. Never empty."""
    app_id: str
    """The platform's secondary account id (17841…), "" where not told."""
    is_private: bool | None
    """Whether only followers see its posts; null where the page does not tell."""
    is_unpublished: bool | None
    """Whether the account is withdrawn; null where the page does not tell."""
    is_verified: bool | None
    """Whether the account is verified; null where the page does not tell."""
    pk: str
    """The same as ``id``."""
    profile_image_uri: str
    """URL of the smallest picture of the account, "" where not told."""
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
    """What the picture shows, in English; "" where there is no such text."""
    clips_music_attribution_info: Music | None
    """The sound of a reel; null for photos and carousels, and where the page does not tell."""
    coauthor_producers: list[Coauthor]
    """Accounts that published it too."""
    comments_disabled: bool | None
    """Whether comments are switched off; null where the page does not tell."""
    dimensions: Dimensions
    display_url: str = Field(min_length=1)
    """URL of the largest picture that is not cropped; of a video its cover. Signed: it expires. Never empty."""
    edge_media_preview_like: Count
    """Likes; null where the owner hides them."""
    edge_media_to_caption: Captions
    edge_media_to_comment: Comments
    edge_media_to_tagged_user: Tags
    has_audio: bool | None
    """Whether a video has sound; null where the page does not tell."""
    id: str = Field(pattern=r"^[0-9]+$")
    """The post's numeric id. Never empty."""
    is_ad: bool | None
    """Whether it is an advertisement; null where the page does not tell, as the logged-out page."""
    is_affiliate: bool | None
    """Whether it earns its owner a commission; null where the page does not tell."""
    is_paid_partnership: bool | None
    """Whether it is marked as paid; null where the page does not tell."""
    is_video: bool
    """True for videos and reels; false for photos and carousels, also where these hold videos."""
    like_and_view_counts_disabled: bool | None
    """Whether the owner hides the counts; null where the page does not tell."""
    location: Location | None
    """The place that the owner named; null where there is none."""
    owner: Owner
    product_type: str
    """feed, clips, carousel_container or igtv; "" where the page does not tell."""
    shortcode: str = Field(min_length=1)
    """The code in the post's URL. Never empty."""
    taken_at_timestamp: int = Field(gt=0)
    """When it was published, Unix seconds. Never empty."""
    thumbnail_src: str
    """URL of a smaller picture."""
    video_duration: float | None
    """Seconds, whole ones where only those are known. Null for photos and carousels, and where not told."""
    video_play_count: int | None
    """Plays; null for photos and carousels, where hidden, and where the page does not tell. Never 0."""
    video_url: str | None
    """URL of the video; signed: it expires. Null for photos and carousels."""
    video_view_count: int | None
    """Views; null for photos and carousels, where hidden, and where the page does not tell. Never 0."""


class PostShell(Model):
    """The post under the platform's name for it."""

    xdt_shortcode_media: Post


class PostData(Model):
    """What the scraper gives: the post in two shells."""

    data: PostShell
    success: bool
    """Always true: a failure has no data."""
