"""Video site: page objects for a list's continuation pages, and for the playlists of channels without tabs."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.errors import InvalidRequest, ScrapeError, UpstreamError
from crawler.platforms.page import mismatch_error, missing_error
from crawler.platforms.videosite.base import CONTENTS, ListPage, alert_error
from crawler.platforms.videosite.item import handle_in
from crawler.platforms.videosite.link import CHANNEL_ID
from crawler.platforms.videosite.payload import Continuation, Placed, flat
from crawler.platforms.videosite.profile import blank
from crawler.reading.contract import Unread
from crawler.reading.json import is_json
from crawler.reading.values import text

_ITEMS = re.compile(rb'"continuationItems"|"richItemRenderer"|ytimg\.com\\?/vi')
"""Matches responses that contain a list of items, by the list's keys or by the URL of an item's picture."""


@attrs.define(slots=False)
class ContinuationPage(ListPage):
    """A continuation page of a list. ``page_params`` contains ``tab`` and ``channel``, which the response may lack."""

    source: ClassVar[str] = "continuation"

    @classmethod
    def recognise(cls, body: str) -> bool:
        marks = ("appendContinuationItemsAction", "reloadContinuationItemsCommand")
        return is_json(body) and any(mark in body for mark in marks)

    @classmethod
    def has_rows_only(cls, body: str) -> bool:
        """Whether a saved JSON response consists of rows to append, without the rest of a page."""
        return is_json(body) and '"continuationItems"' in body and f'"{CONTENTS[1]}"' not in body

    rows_path: ClassVar[str] = "onResponseReceivedActions[].appendContinuationItemsAction.continuationItems[]"

    def validate_input(self) -> None:
        """Raise an error unless the response is a continuation page of the channel's list.

        Raises: InvalidRequest: the platform no longer accepts the token (status 400). UpstreamBlocked,
        UpstreamRateLimited: see ``VideositePage``. UpstreamError: the request failed. Status 404 counts as a failure,
        because it occurs occasionally for lists that exist. ExtractionFailed: the response contains no list, belongs to
        another channel, or none of its items could be read.
        """
        if self.response.status in {404, 410}:
            message = "The platform did not find this page of the list."
            raise UpstreamError(message, reason="lost")
        super().validate_input()
        if not (self.rows or self._lost or self._is_empty_list):
            raise missing_error("The response contains no list.", ("onResponseReceivedActions",), reason="no_list")
        requested = text(self.page_params.get("channel"))
        if requested and self.channel and self.channel != requested:
            message = f"The page belongs to another channel: {self.channel}, requested was {requested}."
            raise mismatch_error(message, ["responseContext"], requested)
        self.raise_for_unread_rows()

    @property
    def _is_empty_list(self) -> bool:
        """Whether the response is valid although it has no rows.

        The response must repeat values of the request. The response must also contain a command that appends rows, or
        contain neither commands for the page (``onResponseReceivedActions``) nor pictures of items. A response with
        pictures may have rows under new names.
        """
        commands = [*self.page.actions, *self.page.endpoints]
        is_appended = any(each.addition is not None for each in commands)
        return bool(self.page.tracked) and (is_appended or not (commands or _ITEMS.search(self._body)))

    @property
    def _lost(self) -> list[Unread]:
        return [each for each in self.unread if each.loses_rows]

    def _bad_request_error(self) -> ScrapeError:
        return InvalidRequest(
            "The platform no longer accepts this cursor. Start again without a cursor.",
            details=[{"loc": ["cursor"], "msg": "The cursor has expired", "type": "value_error"}],
            reason="stale_cursor",
        )

    @field
    def channel(self) -> str:
        found = (self.page.metadata and self.page.metadata.id) or self.page.browse_id
        return found if CHANNEL_ID.matches(found) else text(self.page_params.get("channel"))

    @field
    def profile(self) -> dict[str, Any]:
        """The channel, often only its id, for a continuation page that was saved without the list's first page."""
        metadata = self.page.metadata
        if metadata is None:
            return blank(self.channel)
        return blank(self.channel, handle=handle_in(metadata.vanity_url or ""), name=metadata.name or "")

    @cached_property
    def page(self) -> Continuation:
        """The data of the response."""
        return self.read_data(Continuation)

    @cached_property
    def rows(self) -> list[Placed]:
        """The rows in the response."""
        commands = [*self.page.actions, *self.page.endpoints]
        additions = [each.addition for each in commands if each.addition is not None]
        return [Placed(row.wrapped or row, addition) for addition in additions for row in addition.rows]


@attrs.define(slots=False)
class PlaylistPage(ContinuationPage):
    """The playlist with all items of one tab, for channels whose page has no tabs and therefore no other list."""

    source: ClassVar[str] = "playlist"

    @classmethod
    def recognise(cls, body: str) -> bool:
        is_channel = re.search(r'"(?:channelMetadataRenderer|c4TabbedHeaderRenderer)"\s*:', body) is not None
        if is_channel or not is_json(body):
            return False
        marks = ('"playlistVideoListRenderer"', '"playlistMetadataRenderer"', "The playlist does not exist.")
        return any(mark in body for mark in marks) or bool(re.search(r'"playlistId":\s*"UU(?:LF|SH|LV)', body))

    @cached_property
    def kind(self) -> str:
        prefix = self._playlist[:4]
        return self.requested_tab or {"UUSH": "shorts", "UULV": "streams"}.get(prefix, "videos")

    @field
    def channel(self) -> str:
        channel = f"UC{self._playlist[4 if self._playlist[:4] in {'UULF', 'UUSH', 'UULV'} else 2 :]}"
        return channel if CHANNEL_ID.matches(channel) else text(self.page_params.get("channel"))

    @cached_property
    def _playlist(self) -> str:
        requested = self.page.browse_id.removeprefix("VL")
        shapes = (placed.row.item for placed in self.rows)
        listed = (shape.playlist or "" for shape in shapes if shape is not None)
        return requested or next((each for each in listed if each.startswith("UU")), "")

    @property
    def _is_empty_list(self) -> bool:
        if self.page.error is None:
            return False
        error = alert_error(self.page.error)
        if error.reason != "not_found":
            raise error
        return True

    @cached_property
    def rows(self) -> list[Placed]:
        """The rows in the playlist page's only tab, or in a continuation page of the playlist."""
        tabs = self.page.contents.tabs if self.page.contents else []
        contents = [tab.content for tab in tabs if tab.content is not None]
        return [placed for content in contents[:1] for placed in flat(content)] or super().rows
