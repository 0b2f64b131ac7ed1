"""Photo app: the contracts of a post's payloads, of their parts, and of the list of an account's reels.

A post has three formats. Each is a contract with the attributes of ``Post``, so that ``post.py`` converts all of them:

- the logged-out page since 2026-06 (``Relay``), with different keys for photos, videos and carousels;
- the item of the web-info query (``Item``), which logged-out pages contained until 2026-01, with the same keys for all
  kinds of posts;
- the embed page (``Embedded``).

The first two are the formats of the post's page. The kinds of the item's values (``always``, ``sometimes`` ...) were
counted over recorded payloads of 2025 and 2026 (``tests/contracts``). Only two pages with ``Relay`` are recorded, from
which comments, tokens and the streams' manifest were removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from crawler.reading.contract import Contract, Count, NonEmpty, Number, Seconds, always, filled, identity, sometimes

Id = str | int


# Accounts


class Person(Contract):
    """The common attributes of an account in all formats."""

    pk: Id
    """The account's numeric id. On the post's page, an account also has a secondary id (17841…) under ``id``."""
    username: NonEmpty = identity("username")
    full_name: str | None = sometimes("full_name")
    is_verified: bool | None = always("is_verified")
    picture: str | None = always("profile_pic_url")


class Account(Person, nulls=False):
    """An account on the post's page."""

    pk: Id = identity("pk")


class Coauthor(Account):
    """A coauthor on the post's page. Unlike the authors of comments, coauthors have the key ``full_name``."""

    full_name: str | None = always("full_name")


class EmbeddedAccount(Person):
    """A coauthor on the embed page."""

    pk: Id = identity("id")


class TaggedAccount(Person, nulls=False):
    """A tagged account in all formats."""

    pk: Id = identity("id")
    full_name: str | None = always("full_name")


class Caption(Contract, nulls=False):
    """The caption of a post, which has null in its place if it has no caption."""

    text: str | None = filled("text")


class Listed(Contract, nulls=False):
    """One of the newest posts of the owner. The post's ids are returned unchanged."""

    pk: NonEmpty = identity("pk")
    code: NonEmpty = identity("code")
    id: str | None = filled("id")
    typename: str | None = filled("__typename")
    media_type: Count | None = filled("media_type")
    product_type: str | None = filled("product_type")
    alt: str | None = always("accessibility_caption", nulls=True)
    caption: Caption | None = always("caption", nulls=True)
    picture: str | None = filled("display_uri")
    link: str | None = always("seo_canonical_url", nulls=True)
    user_id: str | None = filled("user.id")
    user_pk: str | None = filled("user.pk")
    user_name: str | None = filled("user.username")


class Owner(Person):
    """The owner of a post. Only the logged-out page contains the owner's newest posts and smaller picture."""

    other_id: Id | None = None
    typename: str | None = sometimes("__typename")
    is_private: bool | None = sometimes("is_private")
    is_unpublished: bool | None = sometimes("is_unpublished")
    small_picture: str | None = None
    newest: Sequence[Listed] = ()


class ItemOwner(Owner, nulls=False):
    """The owner in the item of the web-info query."""

    pk: Id = identity("pk")
    other_id: Id | None = sometimes("id")
    typename: str | None = always("__typename")
    full_name: str | None = always("full_name")
    is_private: bool | None = always("is_private")
    is_unpublished: bool | None = always("is_unpublished")


class RelayOwner(ItemOwner):
    """The owner on the logged-out page."""

    other_id: Id | None = always("id")
    small_picture: str | None = always("profile_image_uri")
    newest: list[Listed] = always("polaris_ordered_timeline_connection.edges[].node")


class EmbeddedOwner(Owner):
    """The owner on the embed page."""

    pk: Id = identity("id")
    picture: str | None = sometimes("profile_pic_url")


# Other parts


class RelayComment(Contract):
    """A comment on the post's page."""

    pk: Id = identity("pk")
    text: str | None = always("text")
    created_at: Seconds | None = always("created_at")
    author: Account | None = always("user")
    likes: Count | None = always("comment_like_count")


class Tag(Contract, nulls=False):
    """A tagged account on the post's page, with its position in the picture."""

    user: TaggedAccount | None = always("user")
    x: Number | None = always("position[0]")
    y: Number | None = always("position[1]")


class Tagged(Contract, nulls=False):
    """The tagged accounts of a post. A post without any has null or an empty list."""

    tags: list[Tag] = always("in[]")


class EmbeddedTag(Tag):
    """A tagged account on the embed page."""

    x: Number | None = always("x")
    y: Number | None = always("y")


class Place(Contract):
    """The place of a post. No recorded page has one."""

    id: Id | None = always("pk", "id")
    name: str | None = always("name")
    has_public_page: bool | None = sometimes("has_public_page")
    slug: str | None = sometimes("slug")
    address: str | None = sometimes("address_json")


class Picture(Contract, nulls=False):
    """A picture in one size. A list of these begins with the uncropped sizes, the largest first."""

    url: NonEmpty = identity("url")
    width: int | None = sometimes("width")


class Version(Contract, nulls=False):
    """A file of a video. Usually all versions are the same file."""

    url: NonEmpty = identity("url")
    type: int | None = filled("type")


class OriginalSound(Contract, nulls=False):
    """A sound that was recorded with a reel, on the post's page."""

    is_original: ClassVar[bool] = True
    artist: str | None = always("ig_artist.username")
    title: str | None = always("original_audio_title")
    is_muted: bool | None = always("should_mute_audio")
    mute_reason: str | None = always("consumption_info.should_mute_audio_reason")
    id: Id | None = always("audio_asset_id")


class LicensedSound(Contract, nulls=False):
    """The licensed music of a reel, on the post's page."""

    is_original: ClassVar[bool] = False
    artist: str | None = always("music_asset_info.display_artist")
    title: str | None = always("music_asset_info.title")
    is_muted: bool | None = always("music_consumption_info.should_mute_audio")
    mute_reason: str | None = always("music_consumption_info.should_mute_audio_reason")
    id: Id | None = always("music_asset_info.audio_cluster_id")


class Sounds(Contract):
    """The sound of a reel: one of the two kinds, or none."""

    original: OriginalSound | None = always("original_sound_info")
    licensed: LicensedSound | None = always("music_info")


class EmbeddedSound(Contract):
    """The sound of a reel on the embed page."""

    is_original: bool | None = always("uses_original_audio")
    artist: str | None = always("artist_name")
    title: str | None = always("song_name")
    is_muted: bool | None = always("should_mute_audio")
    mute_reason: str | None = always("should_mute_audio_reason")
    id: Id | None = always("audio_id")


class Slide(Contract):
    """A slide of a carousel."""

    pictures: list[Picture] = sometimes("image_versions2.candidates[]")


IMAGE, VIDEO, CAROUSEL = 1, 2, 8
REEL = "clips"
"""The ``product_type`` of reels."""


# Posts


class Post(Contract):
    """The common attributes of a post in all formats. Values that a format lacks are null or empty.

    Values whose keys are the same in all formats are declared here, the others in the subclasses.
    """

    pk: Id | None
    code: str | None
    full_id: str | None = None
    """``POLARIS_<pk>`` or ``<pk>_<owner's id>``. The embed page has only ``pk``."""
    taken_at: Seconds | None
    owner: Owner
    picture: str | None = None
    """The largest picture. The post's page has ``pictures`` instead."""
    thumbnail: str | None
    pictures: Sequence[Picture] = ()
    slides: Sequence[Slide] = ()
    height: Count | None
    width: Count | None
    likes: Count | None
    comment_count: Count | None
    comments: Sequence[RelayComment] = ()
    coauthors: Sequence[Person]
    versions: Sequence[Version] = ()
    video_url: str | None = None
    """The file of the video. The post's page has ``versions`` instead."""
    manifest: str | None = None
    seconds: Number | None = None
    plays: Count | None = None
    views: Count | None = None
    alt: str | None = sometimes("accessibility_caption")
    place: Place | None = sometimes("location")
    product_type: str | None = sometimes("product_type")
    hides_counts: bool | None = sometimes("like_and_view_counts_disabled")
    closes_comments: bool | None = sometimes("comments_disabled")
    is_ad: bool | None = sometimes("is_ad")
    is_affiliate: bool | None = sometimes("is_affiliate")
    is_paid: bool | None = sometimes("is_paid_partnership")
    has_audio: bool | None = sometimes("has_audio")

    @property
    def kind(self) -> int:
        """``IMAGE``, ``VIDEO`` or ``CAROUSEL``."""
        raise NotImplementedError

    @property
    def caption(self) -> str | None:
        """The text of the caption, None if the post has no caption."""
        raise NotImplementedError

    @property
    def tags(self) -> Sequence[Tag]:
        """The tagged accounts."""
        raise NotImplementedError

    @property
    def sound(self) -> OriginalSound | LicensedSound | EmbeddedSound | None:
        """The sound of a reel, or None."""
        raise NotImplementedError

    def contradictions(self) -> Iterator[str]:
        """Yield the keys that have null, although other values of the post state that they have a value."""
        yield from ()


class Media(Post):
    """The common part of the formats of the post's page, for all kinds of posts."""

    pk: Id | None = always("pk")
    code: str | None = always("code")
    full_id: str | None = sometimes("id")
    taken_at: Seconds = identity("taken_at")
    media_type: Literal[1, 2, 8, "1", "2", "8"] = identity("media_type")
    owner: ItemOwner = identity("user")
    product_type: str | None = always("product_type", nulls=False)
    caption_part: Caption | None = always("caption")
    alt: str | None = always("accessibility_caption")
    pictures: list[Picture] = always("image_versions2.candidates[]", nulls=False)
    thumbnail: str | None = always("display_uri")
    height: Count | None = always("original_height", nulls=False)
    width: Count | None = always("original_width", nulls=False)
    tagged: Tagged | None = always("usertags")
    likes: Count | None = always("like_count", nulls=False)
    comment_count: Count | None = always("comment_count", nulls=False)
    hides_counts: bool | None = always("like_and_view_counts_disabled", nulls=False)
    place: Place | None = always("location")
    sounds: Sounds | None = sometimes("clips_metadata")

    @property
    def kind(self) -> int:
        return int(self.media_type)

    @property
    def caption(self) -> str | None:
        return self.caption_part.text if self.caption_part else None

    @property
    def tags(self) -> Sequence[Tag]:
        return self.tagged.tags if self.tagged else ()

    @property
    def sound(self) -> OriginalSound | LicensedSound | None:
        return (self.sounds.original or self.sounds.licensed) if self.sounds else None

    def contradictions(self) -> Iterator[str]:
        """Yield the keys that have null, although every recorded post of the kind has them (11 reels, 13 videos)."""
        if self.product_type == REEL and self.sounds is None:
            yield "clips_metadata"
        if self.kind == VIDEO and not self.versions:
            yield "video_versions"
        if self.kind == VIDEO and self.has_audio is None:
            yield "has_audio"


class Item(Media):
    """A post in the web-info query, which sends all keys for all kinds of posts."""

    coauthors: list[Account] = always("coauthor_producers[]", nulls=False)
    comments: list[RelayComment] = sometimes("preview_comments[]", "comments[]")
    slides: list[Slide] = always("carousel_media[]")
    closes_comments: bool | None = always("comments_disabled")
    is_paid: bool | None = always("is_paid_partnership", nulls=False)
    has_audio: bool | None = always("has_audio")
    versions: list[Version] = always("video_versions[]")
    manifest: str | None = always("video_dash_manifest")
    has_manifest: int | None = sometimes("is_dash_eligible")
    views: Count | None = always("view_count")
    sounds: Sounds | None = always("clips_metadata")

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.has_manifest and not self.manifest:
            yield "video_dash_manifest"


class Relay(Media):
    """The common part of posts of all kinds on the logged-out page."""

    owner: RelayOwner = identity("user")
    coauthors: list[Coauthor] = always("coauthor_producers[]", nulls=False)


class RelayImage(Relay, tag=("__typename", "XIGPolarisImageMedia")):
    """A photo."""


class RelayVideo(Relay, tag=("__typename", "XIGPolarisVideoMedia")):
    """A video or reel."""

    has_audio: bool | None = always("has_audio")
    versions: list[Version] = always("video_versions[]")
    manifest: str | None = sometimes("video_dash_manifest")
    sounds: Sounds | None = always("clips_metadata")


class RelayCarousel(Relay, tag=("__typename", "XIGPolarisCarouselMedia")):
    """A carousel."""

    slides: list[Slide] = always("carousel_media[]")


class RelayItem(Item, tag=("__typename", "XDTMediaDict")):
    """A post of any kind under the type name of the web-info query, which was reported for pages of 2026-10.

    No such page is recorded.
    """

    owner: RelayOwner = identity("user")


class Embedded(Post):
    """A post on the embed page, with few keys, which are those of the platform's former API."""

    pk: Id | None = always("id")
    code: str | None = always("shortcode")
    typename: str | None = always("__typename")
    is_video: bool = identity("is_video")
    taken_at: Seconds | None = sometimes("taken_at_timestamp")
    """Probably absent: another project lists all keys in its recorded embed pages of 2026-07, and none is a time."""
    owner: EmbeddedOwner = identity("owner")
    picture: str | None = always("display_url")
    height: Count | None = always("dimensions.height")
    width: Count | None = always("dimensions.width")
    caption: str | None = always("edge_media_to_caption.edges[0].node.text")
    thumbnail: str | None = sometimes("thumbnail_src")
    likes: Count | None = sometimes("edge_media_preview_like.count", "edge_liked_by.count")
    comment_count: Count | None = sometimes("edge_media_to_parent_comment.count", "edge_media_to_comment.count")
    coauthors: list[EmbeddedAccount] = sometimes("coauthor_producers[]")
    tags: list[EmbeddedTag] = sometimes("edge_media_to_tagged_user.edges[].node")
    video_url: str | None = sometimes("video_url")
    manifest: str | None = sometimes("dash_info.video_dash_manifest")
    seconds: Number | None = sometimes("video_duration")
    plays: Count | None = sometimes("video_play_count")
    views: Count | None = sometimes("video_view_count")
    sound: EmbeddedSound | None = sometimes("clips_music_attribution_info")

    @property
    def kind(self) -> int:
        return CAROUSEL if self.typename == "GraphSidecar" else VIDEO if self.is_video else IMAGE


# Responses


class Ruling(Contract):
    """The platform's statement that it withholds a post."""

    gating_type: int | None = sometimes("gating_type")
    title: str | None = always("title")
    description: str | None = always("description")


class Gated(Contract):
    """The object that contains a post on the logged-out page, unless the post is withheld, and its comments."""

    pk: Id | None = always("pk")
    code: str | None = always("code")
    post: RelayImage | RelayVideo | RelayCarousel | RelayItem | None = always("if_not_gated_logged_out")
    ruling: Ruling | None = always("gating_ruling")
    comments: list[RelayComment] = always("comments_connection.edges[].node")


class WebInfo(Contract):
    """The response to the web-info query."""

    items: list[Item] = always("items[]")


class Answer(Contract):
    """The object in a response whose keys contain the posts."""

    gated: Gated | None = sometimes("xig_polaris_media")
    web_info: WebInfo | None = sometimes("xdt_api__v1__media__shortcode__web_info")
    embedded: Embedded | None = sometimes("shortcode_media")


class Reel(Contract):
    """One of the newest reels of an account."""

    pk: NonEmpty = identity("pk")
    plays: Count | None = always("play_count")
    hides_counts: bool | None = always("like_and_view_counts_disabled")


class Reels(Contract):
    """The object in a response whose key contains an account's reels."""

    reels: list[Reel] = always("polaris_clips_connection.edges[].node")
