"""Video site: the page object for a tab on a channel's page, as HTML or from the page's API call."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.errors import TargetNotFound, TargetRestricted, UpstreamError
from crawler.platforms.page import mismatch_error, missing_error
from crawler.platforms.videosite.base import CHANNEL_MARK, CONTENTS, DATA_MARK, MARKS, REPORTED_ERROR, ListPage
from crawler.platforms.videosite.item import Path
from crawler.platforms.videosite.lists import ContinuationPage
from crawler.platforms.videosite.payload import Channel, OtherChannel, OtherPage, Tab, page_kind
from crawler.platforms.videosite.payload_rows import Placed, flat
from crawler.platforms.videosite.profile import about_of, age_gate, channel_id, has_unread_numbers, profile_of
from crawler.platforms.videosite.schema import CHANNEL_ID, TABS
from crawler.reading.json import dig, linked_data, nonempty_strings, scripts_with
from crawler.reading.values import text

_VERSION_KEY = b'"INNERTUBE_CONTEXT_CLIENT_VERSION":"'
_VERSION = re.compile(rb"[0-9.]{5,40}(?=\")")

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
"""Patterns for the text of alerts, each with the error class and the reason. Any other alert means that the channel is
unavailable."""


@attrs.define(slots=False)
class ChannelPage(ListPage):
    """A channel's page with one tab. ``page_params`` contains the requested ``tab``, and ``handle`` or ``channel``."""

    source: ClassVar[str] = "channel"

    @classmethod
    def recognise(cls, body: str) -> bool:
        if ContinuationPage.has_rows_only(body):
            return False  # such a response may contain the channel's metadata in addition to the rows
        marks = (*(mark.decode() for mark in MARKS), '"ProfilePage"')
        if any(mark in body for mark in marks) or DATA_MARK.search(body) or CHANNEL_MARK.search(body):
            return True
        # JSON that starts with one of these keys is read as a channel's page, because error responses start in this
        # way.
        is_response = re.match(r'\s*\{\s*"(error|alerts|responseContext)"', body) is not None
        return is_response and not ContinuationPage.recognise(body)

    rows_path: ClassVar[str] = "contents.twoColumnBrowseResultsRenderer.tabs[].tabRenderer.content"

    def validate_input(self) -> None:
        """Raise an error unless the response is the requested tab of the requested channel.

        A page without the requested tab is valid if the channel does not have this tab.

        Raises: TargetNotFound: the channel does not exist, was removed, or the page is not a channel. TargetRestricted:
        the channel is not available in this region. UpstreamBlocked, UpstreamRateLimited: see ``VideositePage``.
        UpstreamError: the request failed, or an alert on the page reports an error. ExtractionFailed: the page contains
        no data, belongs to another channel or tab, or none of its items could be read.
        """
        super().validate_input()
        self._raise_for_alerts()
        if self.moved_to:
            self.unread.clear()  # a page that only redirects contains nothing else
            return
        self._raise_for_other_pages()
        self._raise_for_other_channels()
        self._raise_for_other_tabs()
        self.raise_for_unread_rows()
        if isinstance(self.page, Channel):
            self.unread += self.page.contradictions(self._block or b"")
        if has_unread_numbers(self.page):
            self.skip_language("The page's header", ("header",))

    @field
    def profile(self) -> dict[str, Any]:
        return self._profile

    @field
    def tab(self) -> str:
        return self._selected.name if self._selected else ""

    @field
    def tabs(self) -> list[str]:
        return [each.name for each in self._tabs if each.name in TABS.values()]

    @field
    def tab_params(self) -> dict[str, str]:
        """The params that select a tab in API requests, by the tab's name, as the page contains them."""
        return {each.name: each.params for each in self._tabs if each.name in TABS.values() and each.params}

    @field
    def about_token(self) -> str:
        return (isinstance(self.page, Channel) and self.page.about_token) or ""

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
        return next((each for each in self.page.moved_to if re.fullmatch(CHANNEL_ID, each)), "")

    @cached_property
    def page(self) -> Channel | OtherChannel | OtherPage:
        """The page's data. If only the linked data was saved, this is the data of an empty page."""
        if self._block is None and self._person is not None:
            return self.plain_payload(OtherPage, {})
        return self.read_data(page_kind(self._block or b""))

    @cached_property
    def _person(self) -> Any:
        """The channel in the page's linked data, or None."""
        is_page = self._block is not self._body
        nodes = linked_data(scripts_with(self._body, b'"ProfilePage"')) if is_page else []
        return next((node.get("mainEntity") for node in nodes if node["@type"] == "ProfilePage"), None)

    @cached_property
    def _profile(self) -> dict[str, Any]:
        return {**profile_of(self.page, self._person), **self._about}

    @cached_property
    def _about(self) -> dict[str, Any]:
        return about_of(self.page.panels[0]) if self.page.panels else {}

    @cached_property
    def _tabs(self) -> Sequence[Tab]:
        """The channel's tabs, without the tab that searches in the channel."""
        return [] if isinstance(self.page, OtherPage) else self.page.tabs

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
        return self._is_of_other_tab or super()._is_without_items

    # Validation

    def _raise_for_alerts(self) -> None:
        if self._tabs or (isinstance(self.page, OtherPage) and self.page.contents):
            return  # if the page has content, an alert is only a notice
        message = self.page.error
        if message is None:
            return
        for pattern, kind, reason in ALERTS:
            if pattern.search(message):
                raise kind(f"The platform reported: {message}", reason=reason)
        raise TargetNotFound(f"The platform reported: {message}", reason="unavailable")

    def _raise_for_other_pages(self) -> None:
        contents = self.page.contents if isinstance(self.page, OtherPage) else None
        has_tabs = bool(self._tabs) or CONTENTS[1] in (contents or {})
        known = has_tabs or channel_id(self.page, self._person)
        if contents and not known:
            raise TargetNotFound("The page is not a channel.", reason="wrong_page_kind")
        if not known or (self.requested_tab and not has_tabs):
            raise missing_error("The response contains no contents.", CONTENTS, reason="no_contents")
        if not self._profile["profile_id"]:
            path: Path = ("metadata", "channelMetadataRenderer", "externalId")
            raise missing_error("The page contains no channel id.", path, reason="no_channel")
        if not self._profile["display_name"]:
            path = ("metadata", "channelMetadataRenderer", "title")
            raise missing_error("The page contains no channel name.", path, reason="no_channel")

    def _raise_for_other_channels(self) -> None:
        for param, found in (("channel", self._profile["profile_id"]), ("handle", self._profile["username"])):
            requested = text(self.page_params.get(param))
            fold = param == "handle"
            if requested and found and _comparable(requested, fold=fold) != _comparable(found, fold=fold):
                path: Path = ("metadata", "channelMetadataRenderer", "externalId")
                message = f"The page belongs to another channel: {found}, requested was {requested}."
                raise mismatch_error(message, path, requested)

    def _raise_for_other_tabs(self) -> None:
        if isinstance(self.page, Channel) and self._selected and not self._selected.name:
            raise missing_error("The selected tab has no URL.", (*CONTENTS, "tabRenderer"), reason="blind")
        if self.requested_tab in self.tabs and self.requested_tab != self.tab:
            message = f"The page shows another tab: {self.tab or 'unnamed'}, requested was {self.requested_tab}."
            raise missing_error(message, (*CONTENTS, "tabRenderer", "endpoint"), reason="wrong_tab")
        if self.tab in TABS.values() and self.tab == self.kind and not (self.rows or self._lost):
            raise missing_error("The tab contains no list.", (*CONTENTS, "tabRenderer", "content"), reason="no_list")


def _comparable(name: str, *, fold: bool) -> str:
    """Normalize a name for comparison. ``fold``: ignore case and the encoding of accents, as for handles."""
    return unicodedata.normalize("NFC", name).casefold() if fold else name
