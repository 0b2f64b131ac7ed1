"""Video site: a tab of a channel's page, as rendered or as its own call answers it, and the further pages of its list."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from typing import Any, ClassVar

import attrs
import orjson
from web_poet import field

from crawler.errors import (
    Detail,
    ExtractionFailed,
    InvalidRequest,
    ScrapeError,
    TargetNotFound,
    TargetRestricted,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)
from crawler.normalise import text
from crawler.pages.base import REFUSALS, PlatformPage
from crawler.pages.videosite_item import Path, node_text, read_row, rows_of, token_of
from crawler.pages.videosite_profile import about_of, age_gate, browse_id, channel_id, panel_of, profile_of
from crawler.payload import assigned_text, decode, dig, find_all, objects
from crawler.schemas.videosite import CHANNEL_ID, TABS

DATA = "ytInitialData"
CONTENTS: Path = ("contents", "twoColumnBrowseResultsRenderer", "tabs")
CHANNEL_MARKS = (
    '"channelMetadataRenderer"',
    '"c4TabbedHeaderRenderer"',
    '"pageHeaderRenderer"',
    '"carouselHeaderRenderer"',
    '"interactiveTabbedHeaderRenderer"',
    '"channelAgeGateRenderer"',
)
CONSENT_MARKS = ("consent.youtube.com/save", "Before you continue to YouTube")
TRAFFIC_MARKS = ('id="captcha-form"', "unusual traffic")
NOT_FOUND_MARK = "<title>Error 404 (Not Found)"
_STRUCTURED = re.compile(r'<script type="application/ld\+json"[^>]*>(.*?)</script>', re.DOTALL)
_VERSION = re.compile(r'"INNERTUBE_(?:CONTEXT_)?CLIENT_VERSION":"([0-9.]{5,40})"')

ALERTS = (
    (re.compile(r"does not exist|isn't available|not available$", re.IGNORECASE), TargetNotFound, "not_found"),
    (re.compile(r"in your country", re.IGNORECASE), TargetRestricted, "region"),
    (re.compile(r"terminated|suspended", re.IGNORECASE), TargetNotFound, "terminated"),
    (re.compile(r"removed|deleted|closed", re.IGNORECASE), TargetNotFound, "removed"),
    (re.compile(r"error|try again|something went wrong", re.IGNORECASE), UpstreamError, "reported_error"),
)
"""What an error alert says -> what it is. Some other words mean that there is no channel to show."""


def missing(message: str, *paths: Path, reason: str) -> ExtractionFailed:
    """The error for parts that must be there."""
    details: list[Detail] = [{"loc": list(path), "msg": "Field required", "type": "missing"} for path in paths]
    return ExtractionFailed(message, details=details, reason=reason)


@attrs.define(slots=False)
class VideositePage(PlatformPage):
    """What all answers of the platform share: data as JSON, alone or in a page, and the ways to refuse."""

    def validate_input(self) -> None:
        """The gate up to the data: statuses, walls, and errors that the platform reports.

        Raises:
            TargetNotFound: 404, also where only the body says so.
            UpstreamBlocked: a refusal, the consent page, an empty body.
            UpstreamRateLimited: 429, or the page that says so.
            UpstreamError: 5xx, or an error in the data.
            ExtractionFailed: no data.
        """
        if self.response.status == 400 or (self.response.status is None and self._error_code == 400):
            raise self._invalid()
        self.refuse_failures()
        self._refuse_walls()
        self._refuse_reported_errors()

    def _invalid(self) -> ScrapeError:
        """What a 400 means for this kind of request."""
        return TargetNotFound("The platform knows no such target.", upstream_status=400, reason="invalid_id")

    @cached_property
    def data(self) -> Any:
        """The answer's data."""
        body = self.response.text.strip()
        block = body if body.startswith(("{", "[")) else assigned_text(body, DATA)
        if block is None:
            raise missing("The page has no data block.", (f"script:{DATA}",), reason="no_data_block")
        return decode(block, what=DATA)

    @property
    def _error_code(self) -> Any:
        """The status that the body reports, where it was saved without one."""
        is_error = self.response.text.lstrip()[:200].replace(" ", "").replace("\n", "").startswith('{"error":')
        return dig(self.data, "error", "code") if is_error else None

    def _refuse_walls(self) -> None:
        body = self.response.text
        if f"{DATA} = " in body or body.lstrip().startswith("{"):
            return
        status = self.response.status
        if any(mark in body for mark in CONSENT_MARKS):
            raise UpstreamBlocked("The platform asks for consent first.", upstream_status=status, reason="consent")
        if any(mark in body for mark in TRAFFIC_MARKS):
            raise UpstreamRateLimited("The platform sees unusual traffic.", upstream_status=status, reason="captcha")
        if NOT_FOUND_MARK in body:
            raise TargetNotFound("The platform has no such page.", upstream_status=status, reason="not_found")

    def _refuse_reported_errors(self) -> None:
        code = self._error_code
        if code is None:
            return
        known: dict[int, type[ScrapeError]] = {404: TargetNotFound, 429: UpstreamRateLimited}
        kind = UpstreamBlocked if code in REFUSALS else known.get(code if isinstance(code, int) else 0, UpstreamError)
        raise kind(f"The platform reports an error: {code}.", reason="reported_error")

    @property
    def wanted(self) -> str:
        """The tab that was asked for, "" where nothing of it is known."""
        return text(self.page_params.get("tab"))


@attrs.define(slots=False)
class ListPage(VideositePage):
    """An answer with a list of items."""

    @cached_property
    def rows(self) -> list[tuple[Path, dict[str, Any]]]:
        """Every row of the list, with its path in the data."""
        raise NotImplementedError

    @property
    def kind(self) -> str:
        """The tab whose items these are."""
        return self.wanted

    @field
    def posts(self) -> list[dict[str, Any]]:
        found = (read_row(row, self.kind)[0] for _, row in self.rows)
        return list({each["content_id"]: each for each in found if each is not None}.values())

    @field
    def continuation(self) -> str:
        # Other tokens (sort orders, the about panel) stand elsewhere in the answer; this one ends the list.
        return token_of(self.rows[-1][1]) if self.rows else ""

    def refuse_blindness(self) -> None:
        """Raises for rows that are seen and not understood: that is no empty list, nor a shorter one."""
        unread = [(*path, *place) for path, row in self.rows for place in (read_row(row, self.kind)[1],) if place]
        if unread:
            raise missing("Items of the list are not understood.", *unread[:10], reason="blind")
        rich = [(*path, "richItemRenderer", "content") for path, row in self.rows if "richItemRenderer" in row]
        if rich and not any(read_row(row, self.kind)[0] for _, row in self.rows) and not self._lists_only():
            raise missing("None of the list's items is of a kind that is known.", *rich[:10], reason="blind")

    def _lists_only(self) -> bool:
        """Whether the rows are lists of videos (albums, podcasts), of which another tab consists."""
        return any(dig(row, "richItemRenderer", "content", "lockupViewModel") for _, row in self.rows)


@attrs.define(slots=False)
class ChannelPage(ListPage):
    """A tab of a channel. ``page_params``: ``tab``, and the ``handle`` or the ``channel`` that must be the page's."""

    source: ClassVar[str] = "channel"

    @classmethod
    def recognise(cls, body: str) -> bool:
        marks = (*CHANNEL_MARKS, *CONSENT_MARKS, *TRAFFIC_MARKS, NOT_FOUND_MARK, f"{DATA} = ", '"ProfilePage"')
        return any(mark in body for mark in marks) or bool(re.match(r'\s*\{\s*"(error|alerts)"', body))

    def validate_input(self) -> None:
        """Decides whether this is the channel, and the tab, that were asked for.

        Raises:
            TargetNotFound: no such channel, or no longer; a page of something else.
            UpstreamError: also where an alert reports an error.
            ExtractionFailed: no data, another channel's or tab's, or items of which one is not understood.
        """
        super().validate_input()
        self._refuse_alerts()
        if self.moved_to:
            return
        self._refuse_other_pages()
        self._refuse_other_channels()
        self._refuse_other_tabs()
        self.refuse_blindness()

    @field
    def profile(self) -> dict[str, Any]:
        return {**profile_of(self.data, self._person), **self._about}

    @field
    def tab(self) -> str:
        return self._tabs[self._selected][0] if self._tabs else ""

    @field
    def tabs(self) -> list[str]:
        return [name for name, _ in self._tabs if name in TABS.values()]

    @field
    def about_token(self) -> str:
        # Under the header only: shelves open the panels of other channels.
        for panel in find_all(dig(self.data, "header"), "showEngagementPanelEndpoint"):
            for item in find_all(panel, "continuationItemRenderer"):
                token = token_of({"continuationItemRenderer": item})
                if token:
                    return token
        return ""

    @field
    def has_about(self) -> bool:
        return bool(self._about)

    @field
    def age_gated(self) -> bool:
        return age_gate(self.data) is not None

    @field
    def client_version(self) -> str:
        found = _VERSION.search(self.response.text)
        return found[1] if found else ""

    @field
    def moved_to(self) -> str:
        """Another channel to ask for instead: in some regions a channel has another id."""
        actions = objects(dig(self.data, "onResponseReceivedActions"))
        ids = (dig(action, "navigateAction", "endpoint", "browseEndpoint", "browseId") for action in actions)
        return next((each for each in ids if re.fullmatch(CHANNEL_ID, text(each))), "")

    @cached_property
    def data(self) -> Any:
        """The page's data; {} where only what search engines read was saved."""
        saved_part = DATA not in self.response.text and self._person is not None
        return {} if saved_part else super().data

    @cached_property
    def _person(self) -> Any:
        """The channel as the page describes it to search engines, None where it does not."""
        block = _STRUCTURED.search(self.response.text) if "ld+json" in self.response.text else None
        try:
            described = orjson.loads(block[1]) if block else None
        except orjson.JSONDecodeError:
            return None  # it adds to what the data say
        return dig(described, "mainEntity") if dig(described, "@type") == "ProfilePage" else None

    @cached_property
    def _about(self) -> dict[str, Any]:
        return about_of(panel_of(self.data))

    @cached_property
    def _tabs(self) -> list[tuple[str, dict[str, Any]]]:
        """Name and content of each tab. They are named by their URL's end: titles are translated, places vary."""
        tabs = [each.get("tabRenderer") for each in objects(dig(self.data, *CONTENTS))]
        return [(_tab_name(tab), tab) for tab in tabs if isinstance(tab, dict)]

    @cached_property
    def _selected(self) -> int:
        chosen = [place for place, (_, tab) in enumerate(self._tabs) if tab.get("selected") is True]
        filled = [place for place, (_, tab) in enumerate(self._tabs) if tab.get("content")]
        return next(iter(chosen or filled), 0)

    @property
    def kind(self) -> str:
        return self.wanted or self.tab

    @cached_property
    def rows(self) -> list[tuple[Path, dict[str, Any]]]:
        """The rows of the tab that is shown; none where it is another than the one asked for."""
        if not self._tabs or (self.wanted and self.tab != self.wanted):
            return []
        before: Path = (*CONTENTS, self._selected, "tabRenderer", "content")
        return [((*before, *path), row) for path, row in rows_of(self._tabs[self._selected][1].get("content"))]

    # The gate

    def _refuse_alerts(self) -> None:
        if dig(self.data, "contents"):
            return  # the alert is a notice above a page
        alerts = (each.get("alertRenderer") for each in objects(dig(self.data, "alerts")))
        words = next((node_text(dig(each, "text")) for each in alerts if dig(each, "type") == "ERROR"), None)
        if words is None:
            return
        for pattern, kind, reason in ALERTS:
            if pattern.search(words):
                raise kind(f"The platform says: {words}", upstream_status=self.response.status, reason=reason)
        raise TargetNotFound(f"The platform says: {words}", upstream_status=self.response.status, reason="unavailable")

    def _refuse_other_pages(self) -> None:
        contents = dig(self.data, "contents")
        known = self._tabs or channel_id(self.data, self._person)
        if isinstance(contents, dict) and contents and not known:
            status = self.response.status
            raise TargetNotFound("The page is no channel.", upstream_status=status, reason="wrong_page_kind")
        if not known or (self.wanted and not self._tabs):
            raise missing("The answer has no contents.", CONTENTS, reason="no_contents")
        if not self.profile["profile_id"]:
            path: Path = ("metadata", "channelMetadataRenderer", "externalId")
            raise missing("The page does not tell the channel's id.", path, reason="no_channel")
        if not self.profile["display_name"]:
            path = ("metadata", "channelMetadataRenderer", "title")
            raise missing("The page does not tell the channel's name.", path, reason="no_channel")

    def _refuse_other_channels(self) -> None:
        for asked, told in (("channel", self.profile["profile_id"]), ("handle", self.profile["username"])):
            wanted = text(self.page_params.get(asked))
            if wanted and told and _comparable(wanted, fold=asked == "handle") != _comparable(told, fold=asked == "handle"):
                path: Path = ("metadata", "channelMetadataRenderer", "externalId")
                raise ExtractionFailed(
                    f"The page is another channel's: {told}, asked was {wanted}.",
                    details=[{"loc": list(path), "msg": f"Input should be {wanted!r}", "type": "literal_error"}],
                    reason="wrong_echo",
                )

    def _refuse_other_tabs(self) -> None:
        if self.wanted in self.tabs and self.wanted != self.tab:
            raise missing(
                f"The page shows another tab than the one asked for: {self.tab or 'unnamed'}.",
                (*CONTENTS, self._selected, "tabRenderer", "endpoint"),
                reason="wrong_tab",
            )
        content = self._tabs[self._selected][1].get("content") if self._tabs else None
        empty = any(True for _ in find_all(content, "messageRenderer"))
        if self.wanted and self.wanted == self.tab and not self.rows and not empty:
            before: Path = (*CONTENTS, self._selected, "tabRenderer", "content")
            raise missing("The tab has no list to read.", before, reason="no_list")


@attrs.define(slots=False)
class ContinuationPage(ListPage):
    """A further page of a list. ``page_params``: ``tab`` and ``channel``, of which the answer itself says little."""

    source: ClassVar[str] = "continuation"

    @classmethod
    def recognise(cls, body: str) -> bool:
        marks = ("appendContinuationItemsAction", "reloadContinuationItemsCommand", '"lockupViewModel"', '"contentImage"')
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
        if not isinstance(self.data, dict):
            raise missing("The answer is no object.", ("onResponseReceivedActions",), reason="no_contents")
        asked = text(self.page_params.get("channel"))
        if asked and self.channel and self.channel != asked:
            raise ExtractionFailed(
                f"The page is another channel's: {self.channel}, asked was {asked}.",
                details=[{"loc": ["responseContext"], "msg": f"Input should be {asked!r}", "type": "literal_error"}],
                reason="wrong_echo",
            )
        self.refuse_blindness()

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

    @cached_property
    def rows(self) -> list[tuple[Path, dict[str, Any]]]:
        """The rows that the answer brings; a single item that was saved alone is one, too."""
        found: list[tuple[Path, dict[str, Any]]] = []
        for place in ("onResponseReceivedActions", "onResponseReceivedEndpoints"):
            for number, action in enumerate(objects(dig(self.data, place))):
                for name in ("appendContinuationItemsAction", "reloadContinuationItemsCommand"):
                    items = dig(action, name, "continuationItems")
                    path: Path = (place, number, name, "continuationItems")
                    found += [((*path, index), item) for index, item in enumerate(objects(items))]
        if found:
            return found
        alone = {"lockupViewModel": self.data} if "contentImage" in self.data else self.data
        return [((), alone)] if read_row(alone, self.kind)[0] else []


@attrs.define(slots=False)
class PlaylistPage(ContinuationPage):
    """The playlist of all of a channel's items of a kind: what there is for channels that show no tab."""

    source: ClassVar[str] = "playlist"

    @classmethod
    def recognise(cls, body: str) -> bool:
        if any(mark in body for mark in CHANNEL_MARKS[:2]) or not body.lstrip().startswith("{"):
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

    @cached_property
    def rows(self) -> list[tuple[Path, dict[str, Any]]]:
        """The rows of the only tab."""
        before: Path = (*CONTENTS, 0, "tabRenderer", "content")
        return [((*before, *path), row) for path, row in rows_of(dig(self.data, *before))]


def _tab_name(tab: dict[str, Any]) -> str:
    url = dig(tab, "endpoint", "commandMetadata", "webCommandMetadata", "url")
    return text(url).partition("?")[0].rstrip("/").rpartition("/")[2]


def _comparable(name: str, *, fold: bool) -> str:
    """Ids are compared as they are; handles have no case, and an accent may be written in two ways."""
    return unicodedata.normalize("NFC", name).casefold() if fold else name
