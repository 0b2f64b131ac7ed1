"""Video site: page objects for a list's continuation pages, and for the playlists of channels that have no tabs."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.errors import InvalidRequest, ScrapeError, UpstreamError
from crawler.platforms.page import mismatch_error, missing_error
from crawler.platforms.videosite.base import CONTENTS, REPORTED_ERROR, ListPage
from crawler.platforms.videosite.item import Path, node_text, read_row, rows_of
from crawler.platforms.videosite.profile import blank, browse_id, channel_id, profile_of
from crawler.platforms.videosite.schema import CHANNEL_ID
from crawler.reading.json import dicts, dig, find_all
from crawler.reading.values import text

_APPENDING_ACTIONS = ("appendContinuationItemsAction", "reloadContinuationItemsCommand")
"""Names of the actions in a response that contain rows."""


@attrs.define(slots=False)
class ContinuationPage(ListPage):
    """A continuation page of a list. ``page_params`` has ``tab`` and ``channel``, which the response may lack."""

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

    @classmethod
    def has_rows_only(cls, body: str) -> bool:
        """Whether a saved JSON response has rows to append, without a page around them."""
        return body.lstrip().startswith("{") and '"continuationItems"' in body and f'"{CONTENTS[1]}"' not in body

    def validate_input(self) -> None:
        """Raise an error unless the response is a continuation page of the channel's list.

        Raises:
            InvalidRequest: the platform no longer accepts the token.
            UpstreamError: the request failed. Status 404 counts as a failure, because it occurs sporadically here.
            ExtractionFailed: the response has no list, is for another channel, or has an item without a valid id.
        """
        if self.response.status in {404, 410}:
            message = "The platform did not find this page of the list."
            raise UpstreamError(message, upstream_status=self.response.status, reason="lost")
        super().validate_input()
        if not isinstance(self.data, dict) or not (self.rows or self._is_empty_list):
            raise missing_error("The response has no list.", ("onResponseReceivedActions",), reason="no_list")
        requested = text(self.page_params.get("channel"))
        if requested and self.channel and self.channel != requested:
            message = f"The page belongs to another channel: {self.channel}, requested was {requested}."
            raise mismatch_error(message, ["responseContext"], requested)
        self.raise_for_unread_rows()

    @property
    def _is_empty_list(self) -> bool:
        """Whether the response is valid although it has no rows.

        It must have no commands for the page (``onResponseReceivedActions``), or a command that appends rows.
        A list under another key may contain the rows under a new name, so it does not count as empty.
        """
        actions = dig(self.data, "onResponseReceivedActions") or dig(self.data, "onResponseReceivedEndpoints")
        items = [item for name in _APPENDING_ACTIONS for item in find_all(actions, name)]
        holders = items if actions else [self.data]
        renamed = any(dicts(value) for each in holders if isinstance(each, dict) for value in each.values())
        return bool(dig(self.data, "responseContext")) and (not actions or bool(items)) and not renamed

    def _bad_request_error(self) -> ScrapeError:
        return InvalidRequest(
            "The platform no longer accepts this cursor. Start again without a cursor.",
            details=[{"loc": ["cursor"], "msg": "The cursor has expired", "type": "value_error"}],
            upstream_status=400,
            reason="stale_cursor",
        )

    @field
    def channel(self) -> str:
        return channel_id(self.data) or text(self.page_params.get("channel"))

    @field
    def profile(self) -> dict[str, Any]:
        """The channel, for a continuation page that was saved without the list's first page: often only its id."""
        has_metadata = dig(self.data, "metadata", "channelMetadataRenderer") is not None
        return profile_of(self.data, None) if has_metadata else blank(self.channel)

    @cached_property
    def rows(self) -> list[tuple[Path, dict[str, Any]]]:
        """The rows of the response; an item that was saved alone counts as a row."""
        found: list[tuple[Path, dict[str, Any]]] = []
        for key in ("onResponseReceivedActions", "onResponseReceivedEndpoints"):
            for number, action in enumerate(dicts(dig(self.data, key))):
                for name in _APPENDING_ACTIONS:
                    items = dig(action, name, "continuationItems")
                    path: Path = (key, number, name, "continuationItems")
                    found += [((*path, index), item) for index, item in enumerate(dicts(items))]
        if found:
            return found
        single = {"lockupViewModel": self.data} if dig(self.data, "contentImage") else self.data
        return [((), single)] if read_row(single, self.kind)[0] else []


@attrs.define(slots=False)
class PlaylistPage(ContinuationPage):
    """The playlist with all items of one tab. It is the only list of a channel whose page has no tabs."""

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
        return self.requested_tab or {"UUSH": "shorts", "UULV": "streams"}.get(prefix, "videos")

    @field
    def channel(self) -> str:
        channel = f"UC{self._playlist[4 if self._playlist[:4] in {'UULF', 'UUSH', 'UULV'} else 2 :]}"
        return channel if re.fullmatch(CHANNEL_ID, channel) else text(self.page_params.get("channel"))

    @cached_property
    def _playlist(self) -> str:
        requested = browse_id(self.data).removeprefix("VL")
        listed = (text(each) for each in find_all(dig(self.data, "contents"), "playlistId"))
        return requested or next((each for each in listed if each.startswith("UU")), "")

    @property
    def _is_empty_list(self) -> bool:
        alerts = find_all(dig(self.data, "alerts"), "alertRenderer")
        errors = [node_text(dig(each, "text")) for each in alerts if dig(each, "type") == "ERROR"]
        is_missing = bool(errors) and not any(REPORTED_ERROR.search(error) for error in errors)
        return is_missing or any(True for _ in find_all(dig(self.data, "contents"), "messageRenderer"))

    @cached_property
    def rows(self) -> list[tuple[Path, dict[str, Any]]]:
        """The rows in the playlist page's only tab, or in a continuation page of the playlist."""
        prefix: Path = (*CONTENTS, 0, "tabRenderer", "content")
        return [((*prefix, *path), row) for path, row in rows_of(dig(self.data, *prefix))] or super().rows
