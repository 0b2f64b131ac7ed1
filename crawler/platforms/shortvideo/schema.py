"""Short-video photo search: what the scraper takes, and the page of photo posts that it gives (specification 2.3)."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from crawler.platforms.model import Model, Params

MOST_ROWS = 30
"""The most rows that one call gives."""


class PhotoSearchParams(Params):
    """A search by words."""

    keywords: str = Field(min_length=1, max_length=200, pattern=r"\S")
    """What to search for, as a visitor would type it. It is neither corrected nor taken apart."""
    cursor: str = Field(default="0", pattern=r"^[0-9]{1,6}$")
    """Where to go on: the ``cursor`` of the answer before, "0" for the start. It counts the rows delivered so far."""
    count: int = Field(default=MOST_ROWS, ge=1, le=MOST_ROWS)
    """How many rows at most. An answer may have fewer and still have more to come: see ``has_more``."""


class Image(Model):
    """A picture or a sound, as the platform addresses it."""

    height: int | None
    """Pixels, as the platform states them (nominal, not those of each rendition); null where it does not."""
    uri: str
    """A URL of it, "" where there is none."""
    url_list: list[str]
    """URLs of the same thing: mirrors or formats, in the platform's order. Most of them expire."""
    url_prefix: str | None
    """Null in every answer seen."""
    width: int | None
    """As ``height``."""


class Author(Model):
    """Whose post it is."""

    avatar_larger: Image
    avatar_medium: Image
    avatar_thumb: Image
    events: list[Any] | None
    """Null in every answer seen."""
    language: str | None
    """Language code of the account; null where it is not exposed."""
    nickname: str
    """Display name, as written."""
    region: str
    """Country code of the account (not of the post), "" where it is not exposed."""
    sec_uid: str | None
    """The platform's second id of the account; null where it is not exposed."""
    short_id: str | None
    """The platform's third id of the account ("0" for most); null where it is not exposed."""
    signature: str | None
    """The account's own words about itself; null where they are not exposed."""
    social_info: str | None
    """JSON text; null where it is not exposed."""
    uid: str = Field(min_length=1)
    """The account's id. Never empty."""
    unique_id: str
    """The account's handle without "@", "" where it is not exposed."""


class CommerceInfo(Model):
    """What the app is told of the post's commercial side. All null in the web's answers."""

    adv_promotable: bool | None
    """Whether the post can be promoted."""
    auction_ad_invited: bool | None
    """Whether its author was invited to advertise with it."""
    branded_content_type: int | None
    """0: no branded content."""
    is_diversion_ad: int | None
    """0 or 1."""
    organic_log_extra: str | None
    """JSON text of the platform's own."""
    with_comment_filter_words: bool | None
    """Whether words are filtered from its comments."""


class Slide(Model):
    """One picture of a post."""

    display_image: Image
    """The picture as shown."""
    owner_watermark_image: Image
    """The picture with its owner's mark; empty where it is not exposed. Never a copy of the clean one."""


class ImagePost(Model):
    """The pictures of a post."""

    image_post_cover: Slide
    """The cover; the first picture where none is named."""
    images: list[Slide] = Field(min_length=1)
    """The pictures in their order; at least one, and at least one with a URL."""

    @model_validator(mode="after")
    def _has_a_url(self) -> Self:
        if not any(slide.display_image.url_list for slide in self.images):
            raise ValueError("no image has a URL")
        return self


class Music(Model):
    """The sound that plays with the post. All null and empty for a silent one."""

    album: str | None
    """Null where the sound is no track of an album."""
    author: str
    """Who made it, "" where there is none."""
    cover_large: Image
    cover_medium: Image
    cover_thumb: Image
    duration: int | None
    """Seconds."""
    id: str
    """The sound's id."""
    id_str: str
    """The same."""
    mid: str
    """The same again: the platform has three names for it."""
    is_original: bool | None
    """As the app tells it; null in the web's answers."""
    is_original_sound: bool | None
    """Whether it is a sound of the platform's users, not a licensed track."""
    owner_nickname: str
    """Display name of its owner, "" where there is none or it is not exposed."""
    play_url: Image
    """The sound itself."""
    title: str
    """In the language of the post's author."""
    user_count: int | None
    """How many posts use it, as the platform fills it in; null where it is not exposed."""


class Statistics(Model):
    """The post's figures: exact ones before the platform's rounded ones. Null is not exposed."""

    aweme_id: str
    """The post's id."""
    collect_count: int | None
    """How often it was kept as a favourite."""
    comment_count: int | None
    """Comments."""
    digg_count: int | None
    """Likes."""
    download_count: int | None
    """Downloads."""
    forward_count: int | None
    """How often it was forwarded within the platform."""
    lose_comment_count: int | None
    """Comments that the platform lost, by its own count."""
    lose_count: int | None
    """Likes or views that it lost, by its own count."""
    play_count: int | None
    """Views."""
    repost_count: int | None
    """Reposts."""
    share_count: int | None
    """Shares to other places."""
    chatapp_share_count: int | None
    """Shares into the messenger that the platform counts by itself."""


class Video(Model):
    """A stub: a photo post has the covers of a video, and its sound."""

    cover: Image
    dynamic_cover: Image
    origin_cover: Image
    download_addr: Image
    """Empty for most photo posts."""
    play_addr: Image
    """The sound, or a rendered slide show where the platform made one."""
    data_size: int | None
    """Bytes; null for a photo post."""
    watermark_data_size: int | None
    """Bytes; null for a photo post."""
    height: int | None
    """Pixels; null for a photo post, where the platform says 0."""
    width: int | None
    """As ``height``."""
    duration: int
    """Seconds; 0 for a photo post."""


class PhotoPost(Model):
    """A photo post of the search's results."""

    anchors: list[Any] | None
    """What the post links to (effects, templates, shops), as served; null where the answer names nothing."""
    author: Author
    author_user_id: str
    """The same as ``author.uid``."""
    aweme_id: str = Field(min_length=1)
    """The post's id. Never empty."""
    aweme_type: int
    """150: a photo post."""
    commerce_info: CommerceInfo
    create_time: int = Field(ge=1)
    """Unix seconds."""
    create_time_utc: str
    """The same as text: ISO 8601 in UTC, with milliseconds (always .000)."""
    desc: str
    """The caption, as written; "" where there is none. The pictures' title is no part of it."""
    desc_language: str | None
    """Language code, "un" where the platform could not tell; null where it is not exposed."""
    image_post_info: ImagePost
    is_ad: bool | None
    """Whether it is an advertisement."""
    is_eligible_for_commission: bool | None
    """Null in the web's answers."""
    is_nff_or_nr: bool | None
    """Null in the web's answers."""
    is_paid_partnership: bool | None
    """Null where the answer does not tell."""
    is_top: int | None
    """Whether it is pinned: a flag, 0 or 1. Nothing is pinned in a search."""
    item_comment_settings: int | None
    """Who may comment: 0 is everyone. Null where it is not exposed."""
    media_id: str | None
    """Null: in no answer seen."""
    music: Music
    region: str
    """Country code of where it was posted, "" where it is not exposed (the web's search)."""
    shop_product_url: str | None
    """The product that it sells; null where the answer names none."""
    statistics: Statistics
    url: str = Field(min_length=1)
    """The post's page, in its photo form. Never empty."""
    video: Video


class PhotoSearch(Model):
    """A page of photo posts."""

    cursor: str = Field(pattern=r"^[0-9]+$")
    """What to send as ``cursor`` for the next page: the number of rows delivered so far."""
    has_more: bool
    """Whether there are further rows."""
    keywords: str
    """What was searched for, as it was sent: not as the platform corrected it."""
    search_item_list: list[PhotoPost]
    """Photo posts only, each once, in the platform's order. Empty past the end."""
