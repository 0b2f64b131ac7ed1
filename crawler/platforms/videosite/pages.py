"""Video site: the page object for a tab on a channel's page, as HTML or from the page's API call."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.errors import TargetNotFound, TargetRestricted, UpstreamError
from crawler.platforms.page import mismatch_error, missing_error
from crawler.platforms.videosite.base import (
    CHANNEL_MARK,
    CONSENT_MARKS,
    CONTENTS,
    DATA_MARK,
    NOT_FOUND_MARK,
    REPORTED_ERROR,
    TRAFFIC_MARKS,
    ListPage,
)
from crawler.platforms.videosite.item import Path, node_text, rows_of, token_of
from crawler.platforms.videosite.lists import ContinuationPage
from crawler.platforms.videosite.profile import about_of, age_gate, channel_id, has_unread_numbers, panel_of, profile_of
from crawler.platforms.videosite.schema import CHANNEL_ID, TABS
from crawler.reading.json import dicts, dig, find_all, linked_data, nonempty_strings, scripts_with
from crawler.reading.values import text

_VERSION = re.compile(rb'"INNERTUBE_(?:CONTEXT_)?CLIENT_VERSION":"([0-9.]{5,40})"')

ALERTS = (
    (
        re.compile(r"in your country|in deinem land|dans votre pays|en tu país|no seu país", re.IGNORECASE),
        TargetRestricted,
        "region",
    ),
    (re.compile(r"does not exist|isn't available|not available$", re.IGNORECASE), TargetNotFound, "not_found"),
    (re.compile(r"terminated|suspended", re.IGNORECASE), TargetNotFound, "terminated"),
    (re.compile(r"removed|deleted|closed", re.IGNORECASE), TargetNotFound, "removed"),
    (REPORTED_ERROR, UpstreamError, "reported_error"),
)
"""Patterns for the text of alerts, each with error class and reason. Any other alert means an unavailable channel."""


@attrs.define(slots=False)
class ChannelPage(ListPage):
    """A tab on a channel's page. ``page_params`` has the requested ``tab``, and ``handle`` or ``channel``."""

    source: ClassVar[str] = "channel"

    @classmethod
    def recognise(cls, body: str) -> bool:
        if ContinuationPage.has_rows_only(body):
            return False  # it may have the channel's metadata beside the rows
        marks = (mark.decode() for mark in (*CONSENT_MARKS, *TRAFFIC_MARKS, NOT_FOUND_MARK))
        if any(mark in body for mark in (*marks, '"ProfilePage"')):
            return True
        if DATA_MARK.search(body) or CHANNEL_MARK.search(body):
            return True
        # JSON that starts with one of these keys is read as a channel's page, because error responses start with them.
        is_response = re.match(r'\s*\{\s*"(error|alerts|responseContext)"', body) is not None
        return is_response and not ContinuationPage.recognise(body)

    def validate_input(self) -> None:
        """Raise an error unless the response is the requested tab of the requested channel.

        Raises:
            TargetNotFound: the channel does not exist, was removed, or the page is not a channel.
            TargetRestricted: the channel is not available in this region.
            UpstreamError: the request failed, or an alert on the page reports an error.
            ExtractionFailed: the page has no data, is for another channel or tab, or has an item without a valid id.
        """
        super().validate_input()
        self._raise_for_alerts()
        if self.moved_to:
            return
        self._raise_for_other_pages()
        self._raise_for_other_channels()
        self._raise_for_other_tabs()
        self.raise_for_unread_rows()
        if has_unread_numbers(self.data):
            self.skip_language("The page's header", ("header",))

    @field
    def profile(self) -> dict[str, Any]:
        return self._profile

    @field
    def tab(self) -> str:
        return self._tabs[self._selected][0] if self._tabs else ""

    @field
    def tabs(self) -> list[str]:
        return [name for name, _ in self._tabs if name in TABS.values()]

    @field
    def tab_params(self) -> dict[str, str]:
        """The params with which the API call requests each tab, as the page has them."""
        found = {name: text(dig(tab, "endpoint", "browseEndpoint", "params")) for name, tab in self._tabs}
        return {name: params for name, params in found.items() if name in TABS.values() and params}

    @field
    def about_token(self) -> str:
        # Search only the page header: shelves contain the panels of other channels.
        for panel in find_all(dig(self.data, "header"), "showEngagementPanelEndpoint"):
            for item in find_all(panel, "continuationItemRenderer"):
                token = token_of({"continuationItemRenderer": item})
                if token:
                    return token
        return ""

    @field
    def links(self) -> list[str]:
        """The channel's links from the page's linked data. They are the same as in the about panel."""
        return list(dict.fromkeys(nonempty_strings(dig(self._person, "sameAs"))))

    @field
    def has_about(self) -> bool:
        return bool(self._about)

    @field
    def age_gated(self) -> bool:
        return age_gate(self.data) is not None

    @field
    def client_version(self) -> str:
        found = _VERSION.search(self._body)
        return found[1].decode() if found else ""

    @field
    def moved_to(self) -> str:
        """The id of the channel that this page redirects to, or "". In some regions a channel has another id."""
        actions = dicts(dig(self.data, "onResponseReceivedActions"))
        ids = (dig(action, "navigateAction", "endpoint", "browseEndpoint", "browseId") for action in actions)
        return next((each for each in ids if re.fullmatch(CHANNEL_ID, text(each))), "")

    @cached_property
    def data(self) -> Any:
        """The page's data; {} if only the linked data was saved."""
        saved_part = self._block is None and self._person is not None
        return {} if saved_part else super().data

    @cached_property
    def _person(self) -> Any:
        """The channel in the page's linked data, None if the page has none."""
        is_page = self._block is not self._body
        nodes = linked_data(scripts_with(self._body, b'"ProfilePage"')) if is_page else []
        return next((node.get("mainEntity") for node in nodes if node["@type"] == "ProfilePage"), None)

    @cached_property
    def _profile(self) -> dict[str, Any]:
        return {**profile_of(self.data, self._person), **self._about}

    @cached_property
    def _about(self) -> dict[str, Any]:
        return about_of(panel_of(self.data))

    @cached_property
    def _tabs(self) -> list[tuple[str, dict[str, Any]]]:
        """Name and content of each tab. The name is the end of its URL: titles are translated, and the order varies."""
        tabs = [each.get("tabRenderer") for each in dicts(dig(self.data, *CONTENTS))]
        return [(_tab_name(tab), tab) for tab in tabs if isinstance(tab, dict)]

    @cached_property
    def _selected(self) -> int:
        selected = [index for index, (_, tab) in enumerate(self._tabs) if tab.get("selected") is True]
        filled = [index for index, (_, tab) in enumerate(self._tabs) if tab.get("content")]
        return next(iter(selected or filled), 0)

    @property
    def kind(self) -> str:
        return self.requested_tab or self.tab

    @cached_property
    def rows(self) -> list[tuple[Path, dict[str, Any]]]:
        """The rows in the tab that the page shows, or [] if another tab was requested."""
        if not self._tabs or (self.requested_tab and self.tab != self.requested_tab):
            return []
        prefix: Path = (*CONTENTS, self._selected, "tabRenderer", "content")
        return [((*prefix, *path), row) for path, row in rows_of(self._tabs[self._selected][1].get("content"))]

    # Validation

    def _raise_for_alerts(self) -> None:
        if dig(self.data, "contents"):
            return  # if the page has content, an alert is only a notice above it
        alerts = (each.get("alertRenderer") for each in dicts(dig(self.data, "alerts")))
        message = next((node_text(dig(each, "text")) for each in alerts if dig(each, "type") == "ERROR"), None)
        if message is None:
            return
        for pattern, kind, reason in ALERTS:
            if pattern.search(message):
                raise kind(f"The platform reported: {message}", upstream_status=self.response.status, reason=reason)
        raise TargetNotFound(
            f"The platform reported: {message}", upstream_status=self.response.status, reason="unavailable"
        )

    def _raise_for_other_pages(self) -> None:
        contents = dig(self.data, "contents")
        known = self._tabs or channel_id(self.data, self._person)
        if isinstance(contents, dict) and contents and not known:
            status = self.response.status
            raise TargetNotFound("The page is not a channel.", upstream_status=status, reason="wrong_page_kind")
        if not known or (self.requested_tab and not self._tabs):
            raise missing_error("The response has no contents.", CONTENTS, reason="no_contents")
        if not self._profile["profile_id"]:
            path: Path = ("metadata", "channelMetadataRenderer", "externalId")
            raise missing_error("The page has no channel id.", path, reason="no_channel")
        if not self._profile["display_name"]:
            path = ("metadata", "channelMetadataRenderer", "title")
            raise missing_error("The page has no channel name.", path, reason="no_channel")

    def _raise_for_other_channels(self) -> None:
        for param, found in (("channel", self._profile["profile_id"]), ("handle", self._profile["username"])):
            requested = text(self.page_params.get(param))
            fold = param == "handle"
            if requested and found and _comparable(requested, fold=fold) != _comparable(found, fold=fold):
                path: Path = ("metadata", "channelMetadataRenderer", "externalId")
                message = f"The page belongs to another channel: {found}, requested was {requested}."
                raise mismatch_error(message, path, requested)

    def _raise_for_other_tabs(self) -> None:
        unnamed = [
            (*CONTENTS, index, "tabRenderer", "endpoint")
            for index, (name, tab) in enumerate(self._tabs)
            if not name and "title" in tab  # the tabs of generated channels have neither
        ]
        if unnamed:
            error = missing_error("Tabs have no address.", *unnamed, reason="blind")
            if len(unnamed) == len(self._tabs) or self._selected in [path[len(CONTENTS)] for path in unnamed]:
                raise error
            self.skip(error)
        if self.requested_tab in self.tabs and self.requested_tab != self.tab:
            raise missing_error(
                f"The page shows another tab: {self.tab or 'unnamed'}, requested was {self.requested_tab}.",
                (*CONTENTS, self._selected, "tabRenderer", "endpoint"),
                reason="wrong_tab",
            )
        content = self._tabs[self._selected][1].get("content") if self._tabs else None
        if not self.requested_tab or self.requested_tab != self.tab or self.rows:
            return
        if not any(True for _ in find_all(content, "messageRenderer")):
            prefix: Path = (*CONTENTS, self._selected, "tabRenderer", "content")
            raise missing_error("The tab has no list.", prefix, reason="no_list")


def _tab_name(tab: dict[str, Any]) -> str:
    url = dig(tab, "endpoint", "commandMetadata", "webCommandMetadata", "url")
    return text(url).partition("?")[0].rstrip("/").rpartition("/")[2]


def _comparable(name: str, *, fold: bool) -> str:
    """Normalize a name for comparison. ``fold`` is for handles: they ignore case, and accents have two encodings."""
    return unicodedata.normalize("NFC", name).casefold() if fold else name
