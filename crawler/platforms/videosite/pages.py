"""Video site: page objects for a tab on a channel's page, as HTML or from the page's API call, for a list's
continuation pages, and for the playlists of channels without tabs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.errors import InvalidRequest, ScrapeError, UpstreamError
from crawler.platforms.page import mismatch_error, missing_error
from crawler.platforms.videosite.base import CHANNEL_MARK, CONTENTS, DATA_MARK, MARKS, ListPage, alert_error
from crawler.platforms.videosite.payload import METADATA_PATH, Continuation, Page, Placed, Tab, flat
from crawler.platforms.videosite.record import (
    Path,
    about_of,
    age_gate,
    blank,
    channel_ids,
    handle_in,
    has_unread_numbers,
    profile_of,
)
from crawler.platforms.videosite.schema import TABS
from crawler.platforms.videosite.urls import CHANNEL_ID
from crawler.reading.contract import Unread
from crawler.reading.documents import dig, is_json, linked_data, nonempty_strings, scripts_with
from crawler.reading.values import text

_VERSION_KEY = b'"INNERTUBE_CONTEXT_CLIENT_VERSION":"'
_VERSION = re.compile(rb"[0-9.]{5,40}(?=\")")


@attrs.define(slots=False)
class ChannelPage(ListPage):
    """A channel's page with one tab. ``page_params`` contains the requested ``tab``, and ``handle`` or ``channel``."""

    source: ClassVar[str] = "channel"

    @classmethod
    def recognise(cls, body: str) -> bool:
        if ContinuationPage.has_rows_only(body):
            return False  # read by ``ContinuationPage``, also if it has the channel's metadata beside the rows
        if any(mark.decode() in body for mark in MARKS) or DATA_MARK.search(body) or CHANNEL_MARK.search(body):
            return True
        # JSON that starts with one of these keys, without the contents of another page, may be an error response.
        is_response = re.match(r'\s*\{\s*"(error|alerts|responseContext)"', body) is not None
        is_other = ContinuationPage.recognise(body) or ('"contents"' in body and str(CONTENTS[1]) not in body)
        return is_response and not is_other

    rows_path: ClassVar[str] = "contents.twoColumnBrowseResultsRenderer.tabs[].tabRenderer.content"

    def validate_input(self) -> None:
        """Raise an error unless the response is the requested tab of the requested channel.

        A page without the requested tab is valid if the channel does not have this tab.

        Raises: TargetNotFound, TargetRestricted, UpstreamError: see ``alert_error`` and ``VideositePage``.
        UpstreamBlocked, UpstreamRateLimited: see ``VideositePage``. ExtractionFailed: the page has an unknown alert, or
        no data; is not a channel, belongs to another channel or tab; or none of its items could be read.
        """
        super().validate_input()
        if self.page.error is not None and not self._tabs:  # if the page has content, an alert is only a notice
            raise alert_error(self.page.error)
        if self.moved_to:
            self.unread.clear()  # a page that only redirects contains nothing else
            return
        self._raise_for_other_pages()
        self._raise_for_other_channels()
        self._raise_for_other_tabs()
        self.raise_for_unread_rows()
        found = self.page.contradictions(self._block or b"")
        is_destination = self.page.channel_header is not None and self.page.metadata is None
        if not self._profile["profile_image"] and not is_destination:
            # All recorded pages have a picture (37), except that of a destination (capture 2242d9a3fad5).
            found.append(
                Unread("header.….avatar" if self.page.header else "….channelAgeGateRenderer.avatar", "missing")
            )
        if len(self._ids) > 1:
            found.append(Unread(f"{METADATA_PATH}.externalId", "contradiction"))
        self.unread += [each for each in found if not any(known.path.startswith(each.path) for known in self.unread)]
        if has_unread_numbers(self.page.header):
            self.skip_language("The page's header", ("header",))

    @field
    def profile(self) -> dict[str, Any]:
        return self._profile

    @field
    def tab(self) -> str:
        return self._selected.name if self._selected else ""

    @field
    def tabs(self) -> list[str]:
        return list(self._tabs_with_items)

    @field
    def tab_params(self) -> dict[str, str]:
        """The params that select a tab in API requests, by the tab's name, as the page contains them."""
        return {name: tab.params for name, tab in self._tabs_with_items.items() if tab.params}

    @field
    def about_token(self) -> str:
        header = self.page.channel_header
        return (header and header.about_token) or ""

    @field
    def links(self) -> list[str]:
        """The channel's links in the page's linked data, which are the same as in the about panel."""
        return list(dict.fromkeys(nonempty_strings(dig(self._person, "sameAs"))))

    @field
    def has_about(self) -> bool:
        return bool(self._about)

    @field
    def age_gated(self) -> bool:
        return age_gate(self.page) is not None

    @field
    def client_version(self) -> str:
        at = -1 if self._block is self._body else self._body.find(_VERSION_KEY)
        found = _VERSION.match(self._body, at + len(_VERSION_KEY)) if at >= 0 else None
        return found[0].decode() if found else ""

    @field
    def moved_to(self) -> str:
        """The id of the channel that this page redirects to, or "". In some regions a channel has another id."""
        return next((each for each in self.page.moved_to if CHANNEL_ID.matches(each)), "")

    @cached_property
    def page(self) -> Page:
        """The page's data."""
        return self.read_data(Page)

    @cached_property
    def _person(self) -> Any:
        """The channel in the page's linked data, or None."""
        scripts = () if self._block is self._body else scripts_with(self._body, b'"ProfilePage"')
        nodes, _ = linked_data(scripts)
        return next((node.get("mainEntity") for node in nodes if node["@type"] == "ProfilePage"), None)

    @cached_property
    def _profile(self) -> dict[str, Any]:
        return {**profile_of(self.page, self._person, next(iter(self._ids), "")), **self._about}

    @cached_property
    def _ids(self) -> list[str]:
        return channel_ids(self.page, self._person)

    @cached_property
    def _about(self) -> dict[str, Any]:
        return about_of(self.page.panels[0]) if self.page.panels else {}

    @cached_property
    def _tabs(self) -> Sequence[Tab]:
        return self.page.tabs

    @cached_property
    def _tabs_with_items(self) -> dict[str, Tab]:
        """The tabs that this project reads, by name."""
        named = {each.name: each for each in self._tabs}
        return {name: named[name] for name in named if name in TABS.values()}

    @cached_property
    def _selected(self) -> Tab | None:
        selected = [each for each in self._tabs if each.selected]
        filled = [each for each in self._tabs if each.content is not None]
        return next(iter(selected or filled or self._tabs), None)

    @cached_property
    def kind(self) -> str:
        return self.requested_tab or self.tab

    @cached_property
    def rows(self) -> list[Placed]:
        """The rows in the tab that the page shows, or [] if that is not the requested tab."""
        if self._selected is None or self._selected.content is None or self._is_of_other_tab:
            return []
        return list(flat(self._selected.content))

    @property
    def _is_of_other_tab(self) -> bool:
        """Whether the page shows another tab than the requested tab, because the channel lacks the requested tab.

        Unknown rows of such a page are not reported, because the home tab contains more kinds of shelves than are
        documented.
        """
        return bool(self.requested_tab) and self.tab != self.requested_tab

    @property
    def _is_without_items(self) -> bool:
        return self._is_of_other_tab or self.tab not in TABS.values()

    # Validation

    def _raise_for_other_pages(self) -> None:
        if not self._tabs:  # each recorded page of a channel has at least one tab
            is_other = self.page.contents is not None and not self._profile["profile_id"]
            reason = "no_channel" if is_other else "no_contents"
            raise missing_error("The page has no tabs of a channel.", CONTENTS, reason=reason)
        for key, name in (("profile_id", "externalId"), ("display_name", "title")):
            if not self._profile[key]:
                path: Path = ("metadata", "channelMetadataRenderer", name)
                raise missing_error(f"The page contains no {name} of a channel.", path, reason="no_channel")

    def _raise_for_other_channels(self) -> None:
        for param, found in (("channel", self._profile["profile_id"]), ("handle", self._profile["username"])):
            requested = text(self.page_params.get(param))
            fold = param == "handle"
            if requested and found and _comparable(requested, fold=fold) != _comparable(found, fold=fold):
                path: Path = ("metadata", "channelMetadataRenderer", "externalId")
                message = f"The page belongs to another channel: {found}, requested was {requested}."
                raise mismatch_error(message, path, requested)

    def _raise_for_other_tabs(self) -> None:
        if not any(each.selected or each.content is not None for each in self._tabs):
            # A tab is selected on all 24 recorded pages. The requested tab may be absent for the same reason.
            raise missing_error("No tab of the page is selected.", (*CONTENTS, "tabRenderer"), reason="no_list")
        if self.page.metadata is not None and self._selected and not self._selected.name:
            raise missing_error("The selected tab has no URL.", (*CONTENTS, "tabRenderer"), reason="blind")
        if self.requested_tab in self._tabs_with_items and self.requested_tab != self.tab:
            message = f"The page shows another tab: {self.tab or 'unnamed'}, requested was {self.requested_tab}."
            raise missing_error(message, (*CONTENTS, "tabRenderer", "endpoint"), reason="wrong_tab")
        if self.tab in TABS.values() and self.tab == self.kind and not (self.rows or self._lost):
            raise missing_error("The tab contains no list.", (*CONTENTS, "tabRenderer", "content"), reason="no_list")


def _comparable(name: str, *, fold: bool) -> str:
    """Normalize a name for comparison. ``fold``: ignore case and the encoding of accents, as for handles."""
    return unicodedata.normalize("NFC", name).casefold() if fold else name


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
            self.raise_for_walls()
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
        if self._error_code != 400:  # nothing in the answer concerns the cursor
            return super()._bad_request_error()
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
