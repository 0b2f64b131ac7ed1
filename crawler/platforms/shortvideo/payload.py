"""Short-video: the contracts of responses from the search API and from the platform's other web APIs for lists.

The kinds of values were counted over the items in seven captures since 2024 (``tests/contracts``), only one of which is
a photo post. The keys of pictures are taken from this post and from other projects. Items in page states, unlike items
in lists, lack ``statsV2``, ``isAd`` and other keys. Their values are ``often``, so that their absence is reported only
for lists with ten items or more.
"""

from __future__ import annotations

from typing import Any, Literal

from crawler.reading.contract import Contract, Count, Seconds, always, filled, identity, often, sometimes

Flag = bool | int | Literal["0", "1", "true", "false"]


class Author(Contract, nulls=False):
    """The account that posted an item."""

    id: str | int = identity("id")
    handle: str = identity("uniqueId")
    nickname: str | None = filled("nickname")
    sec_uid: str | None = filled("secUid")
    signature: str | None = always("signature")
    avatar_larger: str | None = filled("avatarLarger")
    avatar_medium: str | None = always("avatarMedium")
    avatar_thumb: str | None = always("avatarThumb")
    is_private: bool | None = sometimes("privateAccount")


class Music(Contract, nulls=False):
    """The sound of an item. A silent photo post has none. One of 31 recorded sounds lacks its author and duration."""

    id: str | int | None = always("id")
    title: str | None = filled("title")
    play_url: str | None = always("playUrl")
    cover_large: str | None = always("coverLarge")
    cover_medium: str | None = always("coverMedium")
    cover_thumb: str | None = always("coverThumb")
    author: str | None = often("authorName")
    album: str | None = sometimes("album")
    duration: Count | None = often("duration")
    is_original: bool | None = often("original")


class Figures(Contract, nulls=False):
    """The rounded counts of an item."""

    digg: Count | None = filled("diggCount")
    play: Count | None = filled("playCount")
    comment: Count | None = filled("commentCount")
    share: Count | None = filled("shareCount")
    collect: Count | None = always("collectCount")
    repost: Count | None = sometimes("repostCount")


class ExactFigures(Figures):
    """The exact counts of an item, as texts."""

    repost: Count | None = filled("repostCount")


class Video(Contract, nulls=False):
    """The video of an item. Photo posts also have this object, with the first picture as the cover and no duration."""

    duration: Count | None = filled("duration")
    cover: str | None = filled("cover")
    origin_cover: str | None = always("originCover")
    dynamic_cover: str | None = always("dynamicCover")
    play_addr: str | None = always("playAddr")
    download_addr: str | None = sometimes("downloadAddr")
    height: Count | None = always("height")
    width: Count | None = always("width")


class Picture(Contract, nulls=False):
    """A picture of a photo post, in one size, with several URLs."""

    urls: list[str] = always("imageURL.urlList[]")
    width: Count | None = always("imageWidth", often=True)
    height: Count | None = always("imageHeight", often=True)


class Pictures(Contract, nulls=False):
    """The pictures of a photo post."""

    images: list[Picture] = always("images[]")
    cover: Picture | None = always("cover", often=True, nulls=True)


class LiveRoom(Contract):
    """The room of a live stream. Only whether it exists is used."""


LIST_KEYS = {
    "exact_figures": "statsV2",
    "is_private": "privateItem",
    "is_ad": "isAd",
    "language": "textLanguage",
    "comment_status": "itemCommentStatus",
}
"""Attribute of an item -> key. In 19 recorded items since 2025 that have one of these keys, all of them stand together.
The item of a photo post's page (capture bb03438b51fe) has none of them."""


class Item(Contract, nulls=False):
    """A photo post, a video or a live stream."""

    id: str | int = identity("id")
    author: Author | None = filled("author")
    created: Seconds | None = filled("createTime")
    description: str | None = always("desc")
    pictures: Pictures | None = sometimes("imagePost", nulls=True)
    video: Video | None = always("video")
    music: Music | None = often("music")
    figures: Figures | None = filled("stats")
    exact_figures: ExactFigures | None = often("statsV2")
    live: LiveRoom | None = sometimes("liveRoomInfo", nulls=True)
    is_private: bool | None = often("privateItem")
    is_pinned: bool | None = sometimes("isPinnedItem", nulls=True)
    is_ad: bool | None = often("isAd")
    is_paid: bool | None = sometimes("adAuthorization", nulls=True)
    language: str | None = often("textLanguage")
    comment_status: Count | None = often("itemCommentStatus")
    place: str | None = sometimes("locationCreated", nulls=True)
    anchors: list[dict[str, Any]] | None = sometimes("anchors", nulls=True)

    @property
    def is_video(self) -> bool:
        """Whether the item is a video. A photo post has no duration."""
        return self.video is not None and self.video.duration not in (None, 0, "0", "")

    @property
    def missing(self) -> list[str]:
        """The keys of ``LIST_KEYS`` that the item lacks, if it has any of them."""
        missing = [key for name, key in LIST_KEYS.items() if getattr(self, name) is None]
        return missing if len(missing) < len(LIST_KEYS) else []


class Card(Contract):
    """An entry that is not a post, such as an account. The content of such an entry is not read."""


class Entry(Contract, one_of=True):
    """An entry in the results of all kinds: a post, or a card with accounts, hashtags or live streams."""

    item: Item | None = sometimes("item", nulls=False)
    accounts: list[Card] = sometimes("user_list[]")
    hashtags: list[Card] = sometimes("challenge_list[]")
    account: Card | None = sometimes("user_info")
    live: Card | None = sometimes("live_info")
    card_title: str | None = sometimes("card_title")


class Answer(Contract):
    """The object that contains a list of results, with the keys of the search API and of accounts' lists.

    The list is under ``data`` in the results of all kinds. No response of the photo tab itself was recorded.
    """

    cursor: Count | None = sometimes("cursor", nulls=False)
    more: Flag | None = sometimes("has_more", nulls=False)
    account_more: Flag | None = sometimes("hasMore")
    """The same flag as ``more``, in an account's list, which may have no cursor."""
    status: Count | None = sometimes("status_code", "statusCode", nulls=False)
    nil_type: str | None = sometimes("search_nil_info.search_nil_type")
    kind: str | None = sometimes("type")
    items: list[Item] = sometimes("item_list[]", "itemList[]")
    entries: list[Entry] = sometimes("data[]")
