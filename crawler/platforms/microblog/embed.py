"""Microblog: the contracts and the page object of the embeddable timeline, which has the platform's oldest layout.

No embed has been recorded. The keys are taken from two published descriptions of live responses, of 2026-08 and
2026-09, and from a schema of 2024. The keys equal those of ``legacy`` objects in the API. Because nothing was counted,
all values of users and posts except the identities are ``sometimes``. ``COUNTS`` and ``USER`` are the values that the
schema and the descriptions agree on. If a post or user has some of these values, those that are absent are reported as
missing: the embed also sends numbers that are 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import attrs

from crawler.platforms.microblog.base import MicroblogPage, is_rate_limit_text
from crawler.platforms.microblog.payload import Link, Media, Number, Post, User, lacking
from crawler.platforms.microblog.timeline import Row, owner_of
from crawler.platforms.page import missing_error
from crawler.reading.contract import Contract, Unread, always, identity, sometimes
from crawler.reading.documents import script_block

COUNTS = ("likes", "replies", "reposts")
USER = (
    *("favourites_count", "followers_count", "friends_count", "listed_count", "media_count", "statuses_count"),
    *("name", "created_at", "profile_image_url_https", "verified", "is_blue_verified"),
)
MIN_PRESENT = 3
"""If a user has at least this number of the values in ``USER``, the other values in ``USER`` are reported as missing.
"""


class EmbedUser(User):
    """A user in the embed. Empty texts are omitted."""

    id: str | None = sometimes("id_str")
    screen_name: str = identity("screen_name")
    name: str | None = sometimes("name")
    profile_image_url_https: str | None = sometimes("profile_image_url_https")
    created_at: str | None = sometimes("created_at")
    description: str | None = sometimes("description")
    location: str | None = sometimes("location")
    profile_banner_url: str | None = sometimes("profile_banner_url")
    url: str | None = sometimes("url")
    listed_urls: list[str] = sometimes("entities.url.urls[].url")
    verified_type: str | None = sometimes("verified_type")
    shape = None
    verified: bool | None = sometimes("verified")
    is_blue_verified: bool | None = sometimes("is_blue_verified")
    protected: bool | None = sometimes("protected")
    favourites_count: Number | None = sometimes("favourites_count")
    followers_count: Number | None = sometimes("followers_count")
    friends_count: Number | None = sometimes("friends_count")
    listed_count: Number | None = sometimes("listed_count")
    media_count: Number | None = sometimes("media_count")
    statuses_count: Number | None = sometimes("statuses_count")

    @property
    def omits_empty(self) -> bool:
        return self.followers_count is not None

    @property
    def contradictions(self) -> Sequence[str]:
        return [*super().contradictions, *lacking(self, USER, MIN_PRESENT)]


class EmbedPost(Post):
    """A post in the embed. The object contains the post's author, and the post that it quotes or reposts."""

    id: str = identity("id_str")
    author: EmbedUser = identity("user")
    text: str = identity("full_text", "text")
    shown_end: int | None = sometimes("display_text_range[1]")
    created_at: str | None = sometimes("created_at")
    likes: Number | None = sometimes("favorite_count")
    replies: Number | None = sometimes("reply_count")
    reposts: Number | None = sometimes("retweet_count")
    links: list[Link] = sometimes("entities.urls[]")
    hashtags: list[str] = sometimes("entities.hashtags[].text")
    media: list[Media] = sometimes("extended_entities.media[]", "entities.media[]")
    conversation_id: str | None = sometimes("conversation_id_str")
    reply_id: str | None = sometimes("in_reply_to_status_id_str")
    reply_handle: str | None = sometimes("in_reply_to_screen_name")
    reply_user_id: str | None = sometimes("in_reply_to_user_id_str")
    quoted_id: str | None = sometimes("quoted_status_id_str")
    quoted_link: str | None = sometimes("quoted_status_permalink.expanded")
    quoted_result: EmbedPost | None = sometimes("quoted_status")
    reposted_result: EmbedPost | None = sometimes("retweeted_status")

    bookmarks = None
    views = None
    note = None
    is_expandable = None
    article = None

    @property
    def contradictions(self) -> Sequence[str]:
        """Find values that are missing although other values show that they exist, as for posts in the API's responses.

        In the API's responses, 230 posts have both the quoted post's id and the link to it, and no post has only one of
        them (captures 8bf3576c7485, d8fcad0db39f).
        """
        names = [*super().contradictions, *lacking(self, COUNTS, 1)]
        if self.reply_id is None and self.conversation_id not in {self.id, None}:
            names.append("reply_id")
        if self.reply_handle is None and self.reply_user_id is not None:
            names.append("reply_handle")
        if self.quoted_id is None and self.quoted_result is None and self.quoted_link is not None:
            names.append("quoted_id")
        return names


class EmbedRow(Contract):
    """A row of the embed. Only rows of the type ``tweet`` contain a post."""

    kind: str | None = always("type")
    id: str | None = sometimes("entry_id")
    post: EmbedPost | None = sometimes("content.tweet")


class Embed(Contract):
    """The data of the embed."""

    handle: str | None = sometimes("props.pageProps.headerProps.screenName")
    rows: list[EmbedRow] = always("props.pageProps.timeline.entries[]")


DATA_SCRIPT = "__NEXT_DATA__"
_DATA_SCRIPT = re.compile(rf"<script\b[^<>]*\b{DATA_SCRIPT}\b")


@attrs.define(slots=False)
class EmbedPage(MicroblogPage):
    """The embeddable timeline: the whole profile and about a hundred posts at most, not always sorted by time.

    The posts have no view counts and no bookmark counts.
    """

    source: ClassVar[str] = "embed"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return bool(_DATA_SCRIPT.search(body)) or is_rate_limit_text(body)

    def validate_input(self) -> None:
        """Raise an error unless the response is the embeddable timeline of the requested profile.

        Raises:
            TargetNotFound: the HTTP status is 404 or 410.
            UpstreamBlocked: a login page, a challenge, or a status that means a block.
            UpstreamRateLimited: the platform's rate limit is reached.
            UpstreamError: the request failed.
            ExtractionFailed: the response contains no data, another profile's data, or only posts that cannot be read.
        """
        self.raise_for_failures()
        if self._block is None:
            self.raise_for_walls()
            raise missing_error("The page contains no data block.", [f"script#{DATA_SCRIPT}"], reason="no_data_block")
        if not self._embed.rows and self.unread:
            raise missing_error("The embed contains no list of entries.", [self.unread[0].path], reason="no_rows")
        self.raise_for_other_profile(self._embed.handle or "")
        self.raise_if_no_row_is_understood()
        if self.rows and not self.authors:
            self.raise_for_other_profile(self.rows[0].handle)

    @cached_property
    def owner(self) -> str:
        return self.requested_handle or self._embed.handle or owner_of(self.rows)

    @cached_property
    def _block(self) -> bytes | None:
        return script_block(self.response.body, DATA_SCRIPT)

    @cached_property
    def _embed(self) -> Embed:
        return self.payload(Embed, self._block or b"", what=DATA_SCRIPT)

    @cached_property
    def rows(self) -> list[Row]:
        posts = [each for each in self._embed.rows if each.kind in {"tweet", None}]
        lacking = sum(each.post is None for each in posts)
        if lacking and not any(each.loses_rows for each in self.unread):
            path = "props.pageProps.timeline.entries[].content.tweet"
            self.unread.append(Unread(path, "missing", lacking, len(posts), loses_rows=True))
        return [Row(each.id or "tweet", each.post) for each in posts if each.post]
