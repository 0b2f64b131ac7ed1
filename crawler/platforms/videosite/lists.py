"""Video site: the further pages of a list, and the playlists that stand for tabs which a channel does not show."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.errors import InvalidRequest, ScrapeError, UpstreamError
from crawler.platforms.page import missing, wrong_echo
from crawler.platforms.videosite.base import CONTENTS, ListPage
from crawler.platforms.videosite.item import Path, node_text, read_row, rows_of
from crawler.platforms.videosite.profile import blank, browse_id
from crawler.platforms.videosite.schema import CHANNEL_ID
from crawler.reading.json import dicts, dig, find_all
from crawler.reading.values import text

_BRINGING = ("appendContinuationItemsAction", "reloadContinuationItemsCommand")
"""Actions of an answer that bring rows."""


@attrs.define(slots=False)
class ContinuationPage(ListPage):
    """A further page of a list. ``page_params``: ``tab`` and ``channel``, of which the answer itself says little."""

    source: ClassVar[str] = "continuation"

    @classmethod
    def recognise(cls, body: str) -> bool:
        marks = (
            "appendContinuationItemsAction",
            "reloadContinuationItemsCommand",
            '"lockupViewModel"',
            '"contentImage"',
        )
        return body.lstrip().startswith("{") and any(mark in body for mark in marks)

    def validate_input(self) -> None:
        """Decides whether this is a further page of that channel's list.

        Raises:
            InvalidRequest: the platform takes the token no longer.
            UpstreamError: also 404, which is sporadic here.
            ExtractionFailed: another channel's page, or items of which one is not understood.
        """
        if self.response.status in {404, 410}:
            raise UpstreamError("The platform lost the page.", upstream_status=self.response.status, reason="lost")
        super().validate_input()
        if not isinstance(self.data, dict) or not (self.rows or self._says_that_it_is_empty):
            raise missing("The answer has no list.", ("onResponseReceivedActions",), reason="no_list")
        asked = text(self.page_params.get("channel"))
        if asked and self.channel and self.channel != asked:
            message = f"The page is another channel's: {self.channel}, asked was {asked}."
            raise wrong_echo(message, ["responseContext"], asked)
        self.refuse_blindness()

    @property
    def _says_that_it_is_empty(self) -> bool:
        """Whether the answer is one, and brings nothing: so lists may end. What is brought in a new way is no end."""
        brought = dig(self.data, "onResponseReceivedActions") or dig(self.data, "onResponseReceivedEndpoints")
        items = [item for name in _BRINGING for item in find_all(brought, name)]
        return bool(dig(self.data, "responseContext")) and (not brought or bool(items))

    def _invalid(self) -> ScrapeError:
        return InvalidRequest(
            "The platform takes this cursor no longer; start again without it.",
            details=[{"loc": ["cursor"], "msg": "The cursor has expired", "type": "value_error"}],
            upstream_status=400,
            reason="stale_cursor",
        )

    @field
    def channel(self) -> str:
        asked = browse_id(self.data)
        return asked if re.fullmatch(CHANNEL_ID, asked) else text(self.page_params.get("channel"))

    @field
    def profile(self) -> dict[str, Any]:
        """The channel as far as a list names it: for one that was saved without its first page."""
        return blank(self.channel)

    @cached_property
    def rows(self) -> list[tuple[Path, dict[str, Any]]]:
        """The rows that the answer brings; a single item that was saved alone is one, too."""
        found: list[tuple[Path, dict[str, Any]]] = []
        for place in ("onResponseReceivedActions", "onResponseReceivedEndpoints"):
            for number, action in enumerate(dicts(dig(self.data, place))):
                for name in _BRINGING:
                    items = dig(action, name, "continuationItems")
                    path: Path = (place, number, name, "continuationItems")
                    found += [((*path, index), item) for index, item in enumerate(dicts(items))]
        if found:
            return found
        alone = {"lockupViewModel": self.data} if dig(self.data, "contentImage") else self.data
        return [((), alone)] if read_row(alone, self.kind)[0] else []


@attrs.define(slots=False)
class PlaylistPage(ContinuationPage):
    """The playlist of all of a channel's items of a kind: what there is for channels that show no tab."""

    source: ClassVar[str] = "playlist"

    @classmethod
    def recognise(cls, body: str) -> bool:
        if re.search(r'"(?:channelMetadataRenderer|c4TabbedHeaderRenderer)"\s*:', body) or not body.lstrip().startswith(
            "{"
        ):
            return False
        marks = ('"playlistVideoListRenderer"', '"playlistMetadataRenderer"', "The playlist does not exist.")
        return any(mark in body for mark in marks) or bool(re.search(r'"playlistId":\s*"UU(?:LF|SH|LV)', body))

    @property
    def kind(self) -> str:
        prefix = self._playlist[:4]
        return self.wanted or {"UUSH": "shorts", "UULV": "streams"}.get(prefix, "videos")

    @field
    def channel(self) -> str:
        own = f"UC{self._playlist[4 if self._playlist[:4] in {'UULF', 'UUSH', 'UULV'} else 2 :]}"
        return own if re.fullmatch(CHANNEL_ID, own) else text(self.page_params.get("channel"))

    @cached_property
    def _playlist(self) -> str:
        named = browse_id(self.data).removeprefix("VL")
        listed = (text(each) for each in find_all(dig(self.data, "contents"), "playlistId"))
        return named or next((each for each in listed if each.startswith("UU")), "")

    @property
    def _says_that_it_is_empty(self) -> bool:
        alerts = (node_text(dig(each, "text")) for each in find_all(dig(self.data, "alerts"), "alertRenderer"))
        return any("does not exist" in words for words in alerts) or any(
            True for _ in find_all(dig(self.data, "contents"), "messageRenderer")
        )

    @cached_property
    def rows(self) -> list[tuple[Path, dict[str, Any]]]:
        """The rows of the only tab; those that the answer brings, where it is a further page."""
        before: Path = (*CONTENTS, 0, "tabRenderer", "content")
        return [((*before, *path), row) for path, row in rows_of(dig(self.data, *before))] or super().rows
