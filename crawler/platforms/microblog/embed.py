"""Microblog: page object for the embeddable timeline, whose users and posts have the platform's oldest JSON format."""

from __future__ import annotations

import re
from functools import cached_property
from typing import ClassVar

import attrs

from crawler.platforms.microblog.base import MicroblogPage, is_rate_limit_text
from crawler.platforms.microblog.payload_embed import Embed
from crawler.platforms.microblog.post import handle_of
from crawler.platforms.microblog.timeline import Row, owner_of
from crawler.platforms.page import missing_error
from crawler.reading.json import script_block
from crawler.reading.unread import Unread

DATA_SCRIPT = "__NEXT_DATA__"
_DATA_SCRIPT = re.compile(rf"<script\b[^<>]*\b{DATA_SCRIPT}\b")


@attrs.define(slots=False)
class EmbedPage(MicroblogPage):
    """The embeddable timeline: the whole profile and up to a hundred posts, not always sorted by time.

    The posts have no view counts and no bookmark counts.
    """

    source: ClassVar[str] = "embed"

    @classmethod
    def recognise(cls, body: str) -> bool:
        as_json = body.lstrip().startswith("{") and '"pageProps"' in body and '"entries"' in body
        return as_json or bool(_DATA_SCRIPT.search(body)) or is_rate_limit_text(body)

    def validate_input(self) -> None:
        """Raise an error unless the response is the embeddable timeline of the requested profile.

        Raises:
            TargetNotFound: the HTTP status is 404.
            UpstreamBlocked: a login page or a challenge.
            ExtractionFailed: the response contains no data, another profile's data, or only posts that cannot be read.
        """
        self.raise_for_failures()
        if self._block is None:
            self.raise_for_blocks()
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
        body = self.response.body
        return body if body.lstrip().startswith(b"{") else script_block(body, DATA_SCRIPT)

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
        return [Row(each.id or "tweet", each.post, handle_of(each.post)) for each in posts if each.post]
