"""Photo app: the contracts of the parts of a post, such as accounts, comments and sounds.

``payload.py`` describes the formats. Names that begin with ``Embedded`` are of the embed page, the others of the post's
page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

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
