"""Photo app: the contracts of a post's payloads, and of the list of an account's reels.

A post has three forms. Each is a contract with the attributes of ``Post``, so that ``post.py`` converts all of them:

- the logged-out page and its query since 2026-06 (``Relay``), with other keys for photos, videos and carousels;
- the item of the web-info query (``Item``), which logged-out pages had until 2026-01: all keys for every kind of post;
- the classic graph (``Graph``), and the embed page with some of its keys (``Embedded``).

The kinds of the graph and of the item are counted over recorded payloads of 2026 (``tests/contracts``). Of the
logged-out page there are two, from which comments, tokens and the manifest of the streams were removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from crawler.reading.contract import Contract, NonEmpty, always, identity, sometimes

Id = str | int
Number = int | float | str

IMAGE, VIDEO, CAROUSEL = 1, 2, 8


# Accounts


class Account(Contract):
    """An account in the newer forms. ``pk`` is its classic id; ``id`` may be another one."""

    pk: Id = identity("pk")
    username: NonEmpty = identity("username")
    full_name: str | None = sometimes("full_name")
    is_verified: bool | None = always("is_verified")
    picture: str | None = always("profile_pic_url")


class GraphAccount(Contract):
    """An account in the classic graph, and a tagged account in all forms: ``id`` is the classic id."""

    other_id: ClassVar[None] = None
    pk: Id = identity("id")
    username: NonEmpty = identity("username")
    full_name: str | None = sometimes("full_name")
    is_verified: bool | None = always("is_verified")
    picture: str | None = always("profile_pic_url")


class Listed(Contract):
    """One of the newest posts of the owner. Its ids are passed on as they are."""

    pk: NonEmpty = identity("pk")
    code: NonEmpty = identity("code")
    id: str | None = always("id")
    typename: str | None = always("__typename")
    media_type: int | None = always("media_type")
    product_type: str | None = always("product_type")
    alt: str | None = always("accessibility_caption")
    caption: str | None = always("caption.text")
    picture: str | None = always("display_uri")
    link: str | None = always("seo_canonical_url")
    user_id: str | None = always("user.id")
    user_pk: str | None = always("user.pk")
    user_name: str | None = always("user.username")


class Owner(Contract):
    """What all forms state about the owner of a post."""

    pk: Id
    other_id: Id | None = None
    username: NonEmpty = identity("username")
    typename: str | None = None
    full_name: str | None = None
    is_verified: bool | None = always("is_verified")
    is_private: bool | None = None
    is_unpublished: bool | None = None
    picture: str | None = None
    small_picture: str | None = None
    newest: Sequence[Listed] = ()


class ItemOwner(Owner):
    """The owner in the item of the web-info query."""

    pk: Id = identity("pk")
    other_id: Id | None = sometimes("id")
    typename: str | None = always("__typename")
    full_name: str | None = always("full_name")
    is_private: bool | None = always("is_private")
    is_unpublished: bool | None = always("is_unpublished")
    picture: str | None = always("profile_pic_url")


class RelayOwner(ItemOwner):
    """The owner on the logged-out page, with the newest posts."""

    other_id: Id | None = always("id")
    small_picture: str | None = always("profile_image_uri")
    newest: list[Listed] = always("polaris_ordered_timeline_connection.edges[].node")


class EmbeddedOwner(Owner):
    """The owner on the embed page."""

    pk: Id = identity("id")
    full_name: str | None = sometimes("full_name")
    is_private: bool | None = sometimes("is_private")
    is_unpublished: bool | None = sometimes("is_unpublished")
    picture: str | None = sometimes("profile_pic_url")


class GraphOwner(Owner):
    """The owner in the classic graph."""

    pk: Id = identity("id")
    full_name: str | None = always("full_name")
    is_private: bool | None = always("is_private")
    is_unpublished: bool | None = always("is_unpublished")
    picture: str | None = always("profile_pic_url")


# Parts of a post


class Comment(Contract):
    """A comment in the newer forms."""

    pk: Id = identity("pk")
    text: str | None = always("text")
    created_at: Number | None = always("created_at")
    author: Account | None = always("user")
    likes: Number | None = always("comment_like_count")


class GraphComment(Contract):
    """A comment in the classic graph."""

    pk: Id = identity("id")
    text: str | None = always("text")
    created_at: Number | None = always("created_at")
    author: GraphAccount | None = always("owner")
    likes: Number | None = always("edge_liked_by.count")


class Tag(Contract):
    """A tagged account in the newer forms."""

    user: GraphAccount | None = always("user")
    x: Number | None = always("position[0]")
    y: Number | None = always("position[1]")


class GraphTag(Contract):
    """A tagged account in the classic graph."""

    user: GraphAccount | None = always("user")
    x: Number | None = always("x")
    y: Number | None = always("y")


class Place(Contract):
    """The place of a post. The newer forms have its ``pk``, the classic graph its ``id`` and the other values."""

    id: Id | None = always("pk", "id")
    name: str | None = always("name")
    has_public_page: bool | None = sometimes("has_public_page")
    slug: str | None = sometimes("slug")
    address: str | None = sometimes("address_json")


class Picture(Contract):
    """A picture in one size. Uncropped sizes come first, the largest first."""

    url: NonEmpty = identity("url")
    width: int | None = sometimes("width")


class Version(Contract):
    """A file of a video. Usually all versions are the same file."""

    url: NonEmpty = identity("url")
    type: int | None = always("type")


class OriginalSound(Contract):
    """A sound that was recorded with a reel."""

    is_original: ClassVar[bool] = True
    artist: str | None = always("ig_artist.username")
    title: str | None = always("original_audio_title")
    is_muted: bool | None = always("should_mute_audio")
    mute_reason: str | None = always("consumption_info.should_mute_audio_reason")
    id: Id | None = always("audio_asset_id")


class LicensedSound(Contract):
    """Licensed music."""

    is_original: ClassVar[bool] = False
    artist: str | None = always("music_asset_info.display_artist")
    title: str | None = always("music_asset_info.title")
    is_muted: bool | None = always("music_consumption_info.should_mute_audio")
    mute_reason: str | None = always("music_consumption_info.should_mute_audio_reason")
    id: Id | None = always("music_asset_info.audio_cluster_id")


class GraphSound(Contract):
    """The sound of a reel in the classic graph."""

    is_original: bool | None = always("uses_original_audio")
    artist: str | None = always("artist_name")
    title: str | None = always("song_name")
    is_muted: bool | None = always("should_mute_audio")
    mute_reason: str | None = always("should_mute_audio_reason")
    id: Id | None = always("audio_id")


class Slide(Contract):
    """A slide of a carousel."""

    pictures: list[Picture] = sometimes("image_versions2.candidates[]")
    height: Number | None = sometimes("original_height")
    width: Number | None = sometimes("original_width")


# Posts


class Post(Contract):
    """What all forms state about a post. Values that a form lacks are null or empty."""

    pk: Id
    code: str | None = None
    taken_at: int
    owner: Owner
    caption: str | None = None
    alt: str | None = None
    picture: str | None = None
    """The largest picture. The newer forms have ``pictures`` instead."""
    thumbnail: str | None = None
    pictures: Sequence[Picture] = ()
    slides: Sequence[Slide] = ()
    height: Number | None = None
    width: Number | None = None
    likes: Number | None = None
    comment_count: Number | None = None
    comments: Sequence[Comment | GraphComment] = ()
    coauthors: Sequence[Account | GraphAccount] = ()
    tags: Sequence[Tag | GraphTag] = ()
    place: Place | None = None
    product_type: str | None = None
    hides_counts: bool | None = None
    closes_comments: bool | None = None
    is_ad: bool | None = None
    is_affiliate: bool | None = None
    is_paid: bool | None = None
    has_audio: bool | None = None
    versions: Sequence[Version] = ()
    video_url: str | None = None
    """The file of the video. The newer forms have ``versions`` instead."""
    manifest: str | None = None
    seconds: Number | None = None
    plays: Number | None = None
    views: Number | None = None
    original: OriginalSound | None = None
    licensed: LicensedSound | None = None
    attributed: GraphSound | None = None

    @property
    def kind(self) -> int:
        """``IMAGE``, ``VIDEO`` or ``CAROUSEL``."""
        raise NotImplementedError

    @property
    def sound(self) -> OriginalSound | LicensedSound | GraphSound | None:
        """The sound of a reel."""
        return self.original or self.licensed or self.attributed


class Media(Post):
    """What the newer forms have for every kind of post."""

    pk: Id = identity("pk")
    code: str | None = always("code")
    taken_at: int = identity("taken_at")
    media_type: Literal[1, 2, 8] = identity("media_type")
    owner: ItemOwner = identity("user")
    product_type: str | None = always("product_type")
    caption: str | None = always("caption.text")
    alt: str | None = always("accessibility_caption")
    pictures: list[Picture] = always("image_versions2.candidates[]")
    thumbnail: str | None = always("display_uri")
    height: Number | None = always("original_height")
    width: Number | None = always("original_width")
    likes: Number | None = always("like_count")
    comment_count: Number | None = always("comment_count")
    hides_counts: bool | None = always("like_and_view_counts_disabled")
    place: Place | None = always("location")

    @property
    def kind(self) -> int:
        return self.media_type


class Item(Media):
    """A post in the web-info query, in which each kind of post has all keys, and in the API of the app.

    Posts without tags or coauthors have no key for them in the API of the app.
    """

    coauthors: list[Account] = sometimes("coauthor_producers[]")
    tags: list[Tag] = sometimes("usertags.in[]")
    comments: list[Comment] = sometimes("preview_comments[]", "comments[]")
    slides: list[Slide] = always("carousel_media[]")
    closes_comments: bool | None = always("comments_disabled")
    is_paid: bool | None = always("is_paid_partnership")
    has_audio: bool | None = always("has_audio")
    versions: list[Version] = always("video_versions[]")
    manifest: str | None = always("video_dash_manifest")
    seconds: Number | None = sometimes("video_duration")
    views: Number | None = always("view_count")
    plays: Number | None = sometimes("play_count")
    original: OriginalSound | None = always("clips_metadata.original_sound_info")
    licensed: LicensedSound | None = always("clips_metadata.music_info")


class Relay(Media):
    """What the logged-out page has for every kind of post."""

    owner: RelayOwner = identity("user")
    coauthors: list[Account] = always("coauthor_producers[]")
    tags: list[Tag] = always("usertags.in[]")


class RelayImage(Relay, tag=("__typename", "XIGPolarisImageMedia")):
    """A photo."""


class RelayVideo(Relay, tag=("__typename", "XIGPolarisVideoMedia")):
    """A video or reel."""

    has_audio: bool | None = always("has_audio")
    versions: list[Version] = always("video_versions[]")
    manifest: str | None = sometimes("video_dash_manifest")
    original: OriginalSound | None = always("clips_metadata.original_sound_info")
    licensed: LicensedSound | None = always("clips_metadata.music_info")


class RelayCarousel(Relay, tag=("__typename", "XIGPolarisCarouselMedia")):
    """A carousel."""

    slides: list[Slide] = always("carousel_media[]")


class Classic(Post):
    """What the embed page and the classic graph have."""

    pk: Id = identity("id")
    code: str | None = always("shortcode")
    taken_at: int = identity("taken_at_timestamp")
    is_video: bool = identity("is_video")
    picture: str | None = always("display_url")
    height: Number | None = always("dimensions.height")
    width: Number | None = always("dimensions.width")
    caption: str | None = always("edge_media_to_caption.edges[0].node.text")

    @property
    def kind(self) -> int:
        return VIDEO if self.is_video else IMAGE


class Embedded(Classic):
    """A post on the embed page, or in the classic graph before 2022. The embed page has few keys."""

    typename: str | None = always("__typename")
    owner: EmbeddedOwner = identity("owner")
    alt: str | None = sometimes("accessibility_caption")
    thumbnail: str | None = sometimes("thumbnail_src")
    likes: Number | None = sometimes("edge_media_preview_like.count", "edge_liked_by.count")
    comment_count: Number | None = sometimes("edge_media_to_parent_comment.count", "edge_media_to_comment.count")
    comments: list[GraphComment] = sometimes(
        "edge_media_to_parent_comment.edges[].node", "edge_media_to_comment.edges[].node"
    )
    coauthors: list[GraphAccount] = sometimes("coauthor_producers[]")
    tags: list[GraphTag] = sometimes("edge_media_to_tagged_user.edges[].node")
    place: Place | None = sometimes("location")
    product_type: str | None = sometimes("product_type")
    hides_counts: bool | None = sometimes("like_and_view_counts_disabled")
    closes_comments: bool | None = sometimes("comments_disabled")
    is_ad: bool | None = sometimes("is_ad")
    is_affiliate: bool | None = sometimes("is_affiliate")
    is_paid: bool | None = sometimes("is_paid_partnership")
    has_audio: bool | None = sometimes("has_audio")
    video_url: str | None = sometimes("video_url")
    manifest: str | None = sometimes("dash_info.video_dash_manifest")
    seconds: Number | None = sometimes("video_duration")
    plays: Number | None = sometimes("video_play_count")
    views: Number | None = sometimes("video_view_count")
    attributed: GraphSound | None = sometimes("clips_music_attribution_info")

    @property
    def kind(self) -> int:
        return CAROUSEL if self.typename == "GraphSidecar" else super().kind


class Graph(Classic):
    """What the classic graph has for every kind of post."""

    owner: GraphOwner = identity("owner")
    alt: str | None = always("accessibility_caption")
    thumbnail: str | None = always("thumbnail_src")
    likes: Number | None = always("edge_media_preview_like.count")
    comment_count: Number | None = always("edge_media_to_parent_comment.count")
    comments: list[GraphComment] = always("edge_media_to_parent_comment.edges[].node")
    coauthors: list[GraphAccount] = always("coauthor_producers[]")
    tags: list[GraphTag] = always("edge_media_to_tagged_user.edges[].node")
    place: Place | None = always("location")
    hides_counts: bool | None = always("like_and_view_counts_disabled")
    closes_comments: bool | None = always("comments_disabled")
    is_ad: bool | None = always("is_ad")
    is_affiliate: bool | None = always("is_affiliate")
    is_paid: bool | None = always("is_paid_partnership")


class GraphImage(Graph, tag=("__typename", "XDTGraphImage")):
    """A photo."""


class GraphVideo(Graph, tag=("__typename", "XDTGraphVideo")):
    """A video or reel."""

    product_type: str | None = always("product_type")
    has_audio: bool | None = always("has_audio")
    video_url: str | None = always("video_url")
    manifest: str | None = always("dash_info.video_dash_manifest")
    seconds: Number | None = always("video_duration")
    plays: Number | None = always("video_play_count")
    views: Number | None = always("video_view_count")
    attributed: GraphSound | None = always("clips_music_attribution_info")


class GraphCarousel(Graph, tag=("__typename", "XDTGraphSidecar")):
    """A carousel. It is not a video, even if it begins with one."""

    @property
    def kind(self) -> int:
        return CAROUSEL


# Responses


class Ruling(Contract):
    """The platform's statement that it withholds a post."""

    gating_type: int | None = sometimes("gating_type")
    title: str | None = always("title")
    description: str | None = always("description")


class Gated(Contract):
    """A post of the logged-out page that may be withheld, with its comments."""

    pk: Id | None = always("pk")
    code: str | None = always("code")
    post: RelayImage | RelayVideo | RelayCarousel | None = always("if_not_gated_logged_out")
    ruling: Ruling | None = always("gating_ruling")
    comments: list[Comment] = always("comments_connection.edges[].node")


class WebInfo(Contract):
    """The answer of the web-info query."""

    items: list[Item] = always("items[]")


class Answer(Contract):
    """The object of a response under whose keys the posts are."""

    gated: Gated | None = sometimes("xig_polaris_media")
    web_info: WebInfo | None = sometimes("xdt_api__v1__media__shortcode__web_info")
    app_items: list[Item] = sometimes("items[]")
    graph: GraphImage | GraphVideo | GraphCarousel | None = sometimes("xdt_shortcode_media")
    embedded: Embedded | None = sometimes("shortcode_media")


class Reel(Contract):
    """One of the newest reels of an account."""

    pk: NonEmpty = identity("pk")
    plays: Number | None = always("play_count")
    hides_counts: bool | None = always("like_and_view_counts_disabled")


class Reels(Contract):
    """The object of a response under whose key the reels of an account are."""

    reels: list[Reel] = always("polaris_clips_connection.edges[].node")
