"""Video site: what all its answers share (data as JSON, alone or in a page; the ways to refuse), and lists of items."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import attrs
from web_poet import field

from crawler.errors import (
    ScrapeError,
    TargetNotFound,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)
from crawler.platforms.page import REFUSALS, PlatformPage, missing
from crawler.platforms.videosite.item import Path, read_row, token_of
from crawler.platforms.videosite.schema import TABS
from crawler.reading.json import assigned_block, decode, dig, is_bare_json
from crawler.reading.values import text

DATA = "ytInitialData"
CONTENTS: Path = ("contents", "twoColumnBrowseResultsRenderer", "tabs")
DATA_MARK = re.compile(rf"{DATA}(?:[\"']\])?\s*=\s*\{{")
CHANNEL_MARK = re.compile(
    r'"(?:channelMetadataRenderer|c4TabbedHeaderRenderer|pageHeaderRenderer|carouselHeaderRenderer'
    r'|interactiveTabbedHeaderRenderer|channelAgeGateRenderer)"\s*:'
)
"""Parts of channel pages. As keys: further pages name some of them as what to load before."""
CONSENT_MARKS = (b"consent.youtube.com/save", b"Before you continue to YouTube")
TRAFFIC_MARKS = (b'id="captcha-form"', b"unusual traffic")
NOT_FOUND_MARK = b"<title>Error 404 (Not Found)"


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
        self.raise_for_failures()
        self._refuse_walls()
        self._raise_for_reported_errors()

    def _invalid(self) -> ScrapeError:
        """What a 400 means for this kind of request."""
        return TargetNotFound("The platform knows no such target.", upstream_status=400, reason="invalid_id")

    @cached_property
    def data(self) -> Any:
        """The answer's data."""
        if self._block is None:
            raise missing("The page has no data block.", (f"script:{DATA}",), reason="no_data_block")
        return decode(self._block, what=DATA, code_after=True)

    @cached_property
    def _body(self) -> bytes:
        """The answer as plain bytes: to search in their subclass copies them each time."""
        return bytes(self.response.body)

    @cached_property
    def _block(self) -> bytes | None:
        """The data as they were sent: alone, or in the page."""
        return self._body if is_bare_json(self._body) else assigned_block(self._body, DATA)

    @property
    def _error_code(self) -> Any:
        """The status that the body reports, where it was saved without one."""
        is_error = re.match(rb'\s*\{\s*"error"\s*:', self._body)
        return dig(self.data, "error", "code") if is_error else None

    def _refuse_walls(self) -> None:
        if self._block is not None:
            return
        body = self._body
        status = self.response.status
        if any(mark in body for mark in CONSENT_MARKS):
            raise UpstreamBlocked("The platform asks for consent first.", upstream_status=status, reason="consent")
        if any(mark in body for mark in TRAFFIC_MARKS):
            raise UpstreamRateLimited("The platform sees unusual traffic.", upstream_status=status, reason="captcha")
        if NOT_FOUND_MARK in body:
            raise TargetNotFound("The platform has no such page.", upstream_status=status, reason="not_found")

    def _raise_for_reported_errors(self) -> None:
        code = self._error_code
        if code is None:
            return
        known: dict[str, tuple[type[ScrapeError], str]] = {
            "404": (TargetNotFound, "not_found"),
            "429": (UpstreamRateLimited, "rate_limited"),
            **dict.fromkeys(map(str, REFUSALS), (UpstreamBlocked, "refused")),
        }
        kind, reason = known.get(text(code), (UpstreamError, "reported_error"))
        raise kind(f"The platform reports an error: {code}.", reason=reason)

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

    @cached_property
    def read(self) -> list[tuple[Path, dict[str, Any], dict[str, Any] | None, Path | None]]:
        """Every row with its item, or with the place in it that is not understood."""
        kind = self.kind
        return [(path, row, *read_row(row, kind)) for path, row in self.rows]

    @field
    def posts(self) -> list[dict[str, Any]]:
        return list({item["content_id"]: item for _, _, item, _ in self.read if item is not None}.values())

    @field
    def continuation(self) -> str:
        # Other tokens (sort orders, the about panel, what else might be watched) stand elsewhere in the answer; this
        # one ends the list that has the items, or else all of them.
        lists = [path[:-1] for path, _, item, _ in self.read if item is not None]
        ends = [row for path, row in self.rows if path[:-1] in lists[-1:]][-1:] + [row for _, row in self.rows[-1:]]
        return next(filter(None, map(token_of, ends)), "")

    def refuse_blindness(self) -> None:
        """Raises for rows that are seen and not understood: that is no empty list, nor a shorter one."""
        if self.kind and self.kind not in TABS.values():
            return  # albums, posts: tabs of other things
        unread = [(*path, *place) for path, _, _, place in self.read if place]
        if unread:
            raise missing("Items of the list are not understood.", *unread[:10], reason="blind")
        rich = [(*path, "richItemRenderer", "content") for path, row, _, _ in self.read if "richItemRenderer" in row]
        if rich and not any(item for _, _, item, _ in self.read):
            raise missing("None of the list's items is of a kind that is known.", *rich[:10], reason="blind")
