"""Short-video: the models of the photo search's params and record (specification 2.3).

More than half of a row's values are null or empty in every record: only the platform's app has them, and no source that
a visitor can reach. Their descriptions say so.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from crawler.platforms.links import WORDS, Grammar
from crawler.platforms.model import LinkParams, Mark, Model, Rows, Selects, at_most, encodable, refuse_link
from crawler.platforms.shortvideo.urls import LINKS

CURSOR = Grammar(r"[0-9]{1,6}", "a cursor is a number of at most 6 digits: the cursor of the previous record")
MAX_ROWS = 30
"""The maximum number of rows in a record."""


class PhotoSearchParams(LinkParams):
    """Params of a search, given by its words or URL, and of the rows of the results to return."""

    links: ClassVar = LINKS
    kinds: ClassVar = ("search",)
    exactly_one_of: ClassVar = ("keywords", "url")
    phrases: ClassVar = frozenset({"keywords"})
    _no_link = field_validator("keywords", mode="before")(refuse_link)

    keywords: Annotated[Annotated[str, Field(max_length=200), WORDS] | None, Selects("request")] = Field(
        default=None, min_length=1
    )
    """The search text, as a visitor would type it."""
    url: Annotated[str | None, Selects("request")] = Field(default=None, max_length=2_000)
    """URL of a search, also without ``https://``: that of its photo tab or of its first tab. Only the words are
    used."""
    cursor: Annotated[str, CURSOR, Selects("here")] = "0"
    """The ``cursor`` of the previous record, "0" to start. The cursor is the number of rows in all earlier records."""
    count: Annotated[int, at_most(MAX_ROWS), Selects("here")] = Field(default=MAX_ROWS, ge=1)
    """The maximum number of rows, at most 30: a larger number is reduced to 30, with a note.

    A record may have fewer rows even if more follow: see ``has_more``."""

    @property
    def words(self) -> str:
        """The search text, from ``keywords`` or ``url``."""
        return self.own()


class Image(Model):
    """A picture with its URLs. The platform also uses this structure for sounds."""

    height: int | None
    """Height in pixels as stated by the platform; the file may have another one. Null for all images except
    ``display_image``: the website states none."""
    uri: Annotated[str, Mark.NEVER]
    """The first URL in ``url_list``, or "" if this list is empty."""
    url_list: Annotated[list[str], Mark.NEVER]
    """URLs of the same file: mirrors or formats, in the platform's order; [] if the response has none. Most of these
    URLs expire."""
    url_prefix: str | None
    """Always null: neither the website nor the app states it."""
    width: int | None
    """Width in pixels as stated by the platform; the file may have another one. Null for all images except
    ``display_image``: the website states none."""


class Author(Model):
    """The author of a post."""

    avatar_larger: Image
    avatar_medium: Image
    avatar_thumb: Image
    events: list[Any] | None
    """Always null: neither the website nor the app states it."""
    language: str | None
    """Language code of the account. Always null: only the app states it."""
    nickname: str
    """Display name, unchanged."""
    region: str
    """Country code of the account (not of the post). Always "": only the app states it."""
    sec_uid: str | None
    """The platform's second id of the account; null if not exposed."""
    short_id: str | None
    """The platform's third id of the account. Always null: only the app states it."""
    signature: str | None
    """The account's self-description; null if not exposed."""
    social_info: str | None
    """JSON text about the account. Always null: only the app states it."""
    uid: str = Field(min_length=1)
    """The account's id. Never empty."""
    unique_id: str
    """The account's handle without "@", "" if not exposed."""


class CommerceInfo(Model):
    """Commercial attributes of the post. All fields are null or empty: only the app states them."""

    adv_promotable: bool | None
    """Whether the post can be promoted. Always null: only the app states it."""
    auction_ad_invited: bool | None
    """Whether the author was invited to advertise with the post. Always null: only the app states it."""
    branded_content_type: int | None
    """The platform's code. Always null: only the app states it."""
    is_diversion_ad: int | None
    """The platform's flag. Always null: only the app states it."""
    organic_log_extra: str
    """JSON text for the platform's logs. Always "": only the app states it."""
    with_comment_filter_words: bool | None
    """Whether words are filtered from the post's comments. Always null: only the app states it."""


class Slide(Model):
    """One picture of a post."""

    display_image: Image
    """The picture as shown."""
    owner_watermark_image: Image
    """The picture with its owner's watermark. Always empty, and no copy of ``display_image``: only the app has it."""


class ImagePost(Model):
    """The pictures of a post."""

    image_post_cover: Slide
    """The cover; the first picture if the post has no cover."""
    images: list[Slide] = Field(min_length=1)
    """The pictures in their order; at least one, and at least one with a URL."""

    @model_validator(mode="after")
    def _has_a_url(self) -> Self:
        if not any(slide.display_image.url_list for slide in self.images):
            raise ValueError("no image has a URL")
        return self


class Music(Model):
    """The sound of the post. All fields are null or empty for a silent post."""

    album: str | None
    """Null if the sound does not belong to an album."""
    author: str
    """The sound's author, "" if unknown."""
    cover_large: Image
    cover_medium: Image
    cover_thumb: Image
    duration: int | None
    """Length of the sound in seconds; null if unknown."""
    id: str
    """The sound's id."""
    id_str: str
    """The same as ``id``."""
    mid: str
    """The same as ``id``: the platform has three keys for this id."""
    is_original: bool | None
    """The app's flag. Always null: the website states ``is_original_sound`` only."""
    is_original_sound: bool | None
    """Whether the sound is a user's own, not a licensed track."""
    owner_nickname: str
    """Display name of the sound's owner. Always "": only the app states it."""
    play_url: Image
    """URLs of the sound itself."""
    title: str
    """The sound's title, in the language of the post's author."""
    user_count: Annotated[int | None, Mark.COUNT]
    """Number of posts that use the sound. Always null: only the app states it."""


class Statistics(Model):
    """The post's counts: exact if available, else as rounded by the platform. Null if not exposed."""

    aweme_id: str
    """The post's id."""
    collect_count: Annotated[int | None, Mark.COUNT]
    """Number of times the post was saved as a favourite."""
    comment_count: Annotated[int | None, Mark.COUNT]
    """Number of comments."""
    digg_count: Annotated[int | None, Mark.COUNT]
    """Number of likes."""
    download_count: Annotated[int | None, Mark.COUNT]
    """Number of downloads. Always null: only the app states it."""
    forward_count: Annotated[int | None, Mark.COUNT]
    """Number of times the post was forwarded within the platform. Always null: only the app states it."""
    lose_comment_count: Annotated[int | None, Mark.COUNT]
    """Number of comments that the platform counts as lost. Always null: only the app states it."""
    lose_count: Annotated[int | None, Mark.COUNT]
    """Number of likes or views that the platform counts as lost. Always null: only the app states it."""
    play_count: Annotated[int | None, Mark.COUNT]
    """Number of views."""
    repost_count: Annotated[int | None, Mark.COUNT]
    """Number of reposts."""
    share_count: Annotated[int | None, Mark.COUNT]
    """Number of shares to other places."""
    chatapp_share_count: Annotated[int | None, Mark.COUNT]
    """Number of shares to a messenger that the platform counts separately. Always null: only the app states it."""


class Video(Model):
    """The post's video object. A photo post has no video, so most fields are empty; covers and sound are set."""

    cover: Image
    dynamic_cover: Image
    origin_cover: Image
    download_addr: Image
    """Empty for most photo posts."""
    play_addr: Image
    """The sound, or a rendered slide show if the platform made one."""
    data_size: int | None
    """Size in bytes. Always null: a photo post has no video."""
    watermark_data_size: int | None
    """Size in bytes of the file with a watermark. Always null: a photo post has no video."""
    height: int | None
    """Height in pixels; null for a photo post, for which the response has 0."""
    width: int | None
    """Width in pixels; null for a photo post, for which the response has 0."""
    duration: int
    """Length in seconds; 0 for a photo post."""


class PhotoPost(Model):
    """A photo post from the search results."""

    anchors: Annotated[list[Any], AfterValidator(encodable)] | None
    """Links from the post to effects, templates or shops, unchanged; null if the response has none."""
    author: Author
    author_user_id: str
    """The same as ``author.uid``."""
    aweme_id: Annotated[str, Mark.KEY] = Field(min_length=1)
    """The post's id. Never empty."""
    aweme_type: int
    """The platform's type number; 150 means a photo post."""
    commerce_info: CommerceInfo
    create_time: int = Field(ge=1)
    """Time of creation in Unix seconds."""
    create_time_utc: str
    """``create_time`` as text: ISO 8601 in UTC, with milliseconds (always .000)."""
    desc: str
    """The caption, unchanged, without the title of the pictures; "" without a caption."""
    desc_language: str | None
    """Language code, "un" if the platform could not detect it; null if not exposed."""
    image_post_info: ImagePost
    is_ad: Annotated[bool | None, Mark.ADVERTISED]
    """Whether the post is an advertisement; null if the response does not state it."""
    is_eligible_for_commission: bool | None
    """Whether the author may earn a commission with the post. Always null: the website does not state it."""
    is_nff_or_nr: bool | None
    """The app's flag. Always null: only the app states it."""
    is_paid_partnership: bool | None
    """Whether the post is marked as a paid partnership; null if the response does not state it."""
    is_top: int | None
    """Whether the post is pinned to its account's page: 0 or 1. Null in searches: only lists of accounts state it."""
    item_comment_settings: int | None
    """Who may comment: 0 means everyone. Null if not exposed."""
    media_id: str | None
    """Always null: neither the website nor the app states it."""
    music: Music
    region: str
    """Code of the country in which the post was made. "" in searches: only pages of posts state it."""
    shop_product_url: str | None
    """URL of the advertised product. Always null: the website does not state it."""
    statistics: Statistics
    url: str = Field(min_length=1)
    """URL of the post's photo page. Never empty."""
    video: Video


class PhotoSearch(Model):
    """One page of photo posts from the search results."""

    cursor: Annotated[str, Mark.NEVER] = Field(pattern=r"^[0-9]+$")
    """The ``cursor`` param for the next page: the number of rows in all records up to this one."""
    has_more: Annotated[bool, Mark.NEVER]
    """Whether more rows follow. True if a response with rows does not state it. Also true if they require an account:
    the next page then fails with UPSTREAM_BLOCKED, reason ``login_wall``."""
    keywords: str
    """The search text as it was sent, without the platform's corrections."""
    search_item_list: Annotated[list[PhotoPost], Rows("posts")]
    """Photo posts only, each once, in the platform's order. Empty after the end."""
