"""Microblog: page object for the embeddable timeline, whose users and posts have the platform's oldest JSON layout."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, ClassVar

import attrs

from crawler.platforms.microblog.base import MicroblogPage, is_rate_limit_text
from crawler.platforms.microblog.node import Node
from crawler.platforms.microblog.timeline import Row, owner_of
from crawler.platforms.microblog.user import screen_name
from crawler.platforms.page import missing_error
from crawler.reading.json import decode, dicts, dig, script_block
from crawler.reading.values import text

DATA_SCRIPT = "__NEXT_DATA__"
_DATA_SCRIPT = re.compile(rf"<script\b[^<>]*\b{DATA_SCRIPT}\b")
ENTRIES = ("props", "pageProps", "timeline", "entries")


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
            ExtractionFailed: the response has no data, another profile's data, or posts that are not recognised.
        """
        self.raise_for_failures()
        if self._block is None:
            self.raise_for_blocks()
            raise missing_error("The page has no data block.", [f"script#{DATA_SCRIPT}"], reason="no_data_block")
        if not isinstance(dig(self._payload, *ENTRIES), list):
            raise missing_error("The embed has no list of entries.", list(ENTRIES), reason="no_rows")
        if self.rows and not any(row.result for row in self.rows):
            raise missing_error(
                "No entry of the embed contains a post.", [*ENTRIES, 0, "content", "tweet"], reason="blind"
            )
        self.raise_for_other_profile(self._header_handle)
        rows = [row.handle for row in self.rows if row.handle]
        if self.requested_handle and rows and not screen_name(self.user):
            self.raise_for_other_profile(rows[0])
        self.raise_if_no_row_is_understood()

    @cached_property
    def owner(self) -> str:
        return self.requested_handle or self._header_handle or owner_of(self.rows)

    @property
    def _header_handle(self) -> str:
        """The handle in the header object of the embed's payload."""
        return text(dig(self._payload, "props", "pageProps", "headerProps", "screenName"))

    @cached_property
    def _block(self) -> bytes | None:
        body = self.response.body
        return body if body.lstrip().startswith(b"{") else script_block(body, DATA_SCRIPT)

    @cached_property
    def _payload(self) -> Any:
        return decode(self._block or b"", what=DATA_SCRIPT)

    @cached_property
    def rows(self) -> list[Row]:
        return [
            Row(text(entry.get("entry_id")) or "tweet", Node(as_nested(dig(entry, "content", "tweet"))))
            for entry in dicts(dig(self._payload, *ENTRIES))
            if entry.get("type") == "tweet" or dig(entry, "content", "tweet")
        ]


def as_nested(post: Any) -> dict[str, Any]:
    """Convert a flat post to the nesting of the API's oldest generation: the same keys, one level deeper.

    It does not recurse, so that deeply nested posts cannot exhaust the stack.
    """
    top: dict[str, Any] = {}
    waiting: list[tuple[Any, dict[str, Any]]] = [(post, top)]
    while waiting:
        flat, nested = waiting.pop()
        if not isinstance(flat, dict):
            continue
        user = flat.get("user")
        author = {"rest_id": text(dig(user, "id_str")), "legacy": user} if isinstance(user, dict) else {}
        nested.update(rest_id=text(flat.get("id_str")), legacy={**flat}, core={"user_results": {"result": author}})
        if flat.get("retweeted_status"):
            inner: dict[str, Any] = {}
            nested["legacy"]["retweeted_status_result"] = {"result": inner}
            waiting.append((flat["retweeted_status"], inner))
        if flat.get("quoted_status") or flat.get("is_quote_status"):
            inner = {}
            nested["quoted_status_result"] = {"result": inner}
            waiting.append((flat.get("quoted_status"), inner))
    return top
