"""Video site: base classes of the page objects. They find the JSON data and the lists, and detect blocks and errors."""

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
from crawler.platforms.page import BLOCK_STATUSES, PlatformPage, missing_error
from crawler.platforms.videosite.item import ENGLISH, Path, is_unrecognised, read_row, stated_texts, token_of
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
"""JSON keys that only channel pages have. Continuation pages contain some of the same names, but as values."""
CONSENT_MARKS = (b"consent.youtube.com/s", b"Before you continue to YouTube")
TRAFFIC_MARKS = (b'id="captcha-form"', b'class="g-recaptcha"', b"unusual traffic")
REPORTED_ERROR = re.compile(
    r"error|fehler|erreur|\berro\b|try again|something went wrong|erneut|réessay|vuelve a intentar|tente novamente",
    re.IGNORECASE,
)
"""Matches alerts about an error of the platform, in the languages that are checked."""
NOT_FOUND_MARK = b"<title>Error 404 (Not Found)"


@attrs.define(slots=False)
class VideositePage(PlatformPage):
    """Base class of the platform's page objects. It finds the JSON data, and raises errors for blocks and failures."""

    def validate_input(self) -> None:
        """Raise an error for a failed or blocked response, or for an error that the platform reports in it.

        Raises:
            TargetNotFound: the status is 404, or the body is that of a 404 page.
            UpstreamBlocked: the response has a blocking status or an empty body, or is the cookie consent page.
            UpstreamRateLimited: the status is 429, or the response is the CAPTCHA page for unusual traffic.
            UpstreamError: the status is 5xx, or the data contains an error that the platform reports.
            ExtractionFailed: the page has no data block, or the data is not valid JSON.
        """
        if self.response.status == 400 or (self.response.status is None and self._error_code == 400):
            raise self._bad_request_error()
        self.raise_for_failures()
        self._raise_for_blocks()
        self._raise_for_reported_errors()

    def _bad_request_error(self) -> ScrapeError:
        """Create the error for a response with status 400."""
        return TargetNotFound(
            "The platform rejected the target's id as invalid.", upstream_status=400, reason="invalid_id"
        )

    @cached_property
    def data(self) -> Any:
        """The decoded JSON data of the response."""
        if self._block is None:
            raise missing_error("The page has no data block.", (f"script:{DATA}",), reason="no_data_block")
        return decode(self._block, what=DATA, code_after=True)

    @cached_property
    def _body(self) -> bytes:
        """The body as plain bytes. Searching the response's own subclass of ``bytes`` would copy the body each time."""
        return bytes(self.response.body)

    @cached_property
    def _block(self) -> bytes | None:
        """The JSON text of the data: the whole body, or part of a script in the page. None if there is no data."""
        return self._body if is_bare_json(self._body) else assigned_block(self._body, DATA)

    @property
    def _error_code(self) -> Any:
        """The HTTP status that the body states, or None. It is for a response that was saved without its status."""
        is_error = re.match(rb'\s*\{\s*"error"\s*:', self._body)
        return dig(self.data, "error", "code") if is_error else None

    def _raise_for_blocks(self) -> None:
        if self._block is not None:
            return
        body = self._body
        status = self.response.status
        if any(mark in body for mark in CONSENT_MARKS):
            raise UpstreamBlocked(
                "The platform returned its cookie consent page.", upstream_status=status, reason="consent"
            )
        if any(mark in body for mark in TRAFFIC_MARKS):
            message = "The platform returned a CAPTCHA page for unusual traffic."
            raise UpstreamRateLimited(message, upstream_status=status, reason="captcha")
        if NOT_FOUND_MARK in body:
            raise TargetNotFound("The platform has no such page.", upstream_status=status, reason="not_found")

    def _raise_for_reported_errors(self) -> None:
        code = self._error_code
        if code is None:
            return
        known: dict[str, tuple[type[ScrapeError], str]] = {
            "404": (TargetNotFound, "not_found"),
            "429": (UpstreamRateLimited, "rate_limited"),
            **dict.fromkeys(map(str, BLOCK_STATUSES), (UpstreamBlocked, "refused")),
        }
        kind, reason = known.get(text(code), (UpstreamError, "reported_error"))
        raise kind(f"The platform reports an error: {code}.", reason=reason)

    def skip_language(self, part: str, path: Path) -> None:
        """Add an error to ``skipped`` for a part that is not in English: its numbers and dates could not be read."""
        self.skip(missing_error(f"{part} is not in English: its numbers are missing.", path, reason="language"))

    @property
    def requested_tab(self) -> str:
        """The requested tab, or "" if it is unknown."""
        return text(self.page_params.get("tab"))


@attrs.define(slots=False)
class ListPage(VideositePage):
    """Base class for responses that have a list of items."""

    @cached_property
    def rows(self) -> list[tuple[Path, dict[str, Any]]]:
        """All rows in the list, with their paths in the data."""
        raise NotImplementedError

    @property
    def kind(self) -> str:
        """The tab that the items belong to."""
        return self.requested_tab

    @cached_property
    def parsed_rows(self) -> list[tuple[Path, dict[str, Any], dict[str, Any] | None, Path | None]]:
        """All rows, each with its path and its item. If the item's id is missing: the path where it was expected."""
        kind = self.kind
        return [(path, row, *read_row(row, kind)) for path, row in self.rows]

    @field
    def posts(self) -> list[dict[str, Any]]:
        return list({item["content_id"]: item for _, _, item, _ in self.parsed_rows if item is not None}.values())

    @field
    def continuation(self) -> str:
        # Other tokens (sort orders, the about panel, recommendations) are elsewhere in the response. The next page's
        # token ends the list that has the items, or else the list around it.
        lists = [path[:-1] for path, _, item, _ in self.parsed_rows if item is not None]
        ends = [row for path, row in self.rows if path[:-1] in lists[-1:]][-1:] + [row for _, row in self.rows[-1:]]
        return next(filter(None, map(token_of, ends)), "")

    def raise_for_unread_rows(self) -> None:
        """Leave out the rows that could not be read, and raise an error if no row could be read.

        Also add an error to ``skipped`` if items are not in English: the numbers in them could not be read.
        """
        if self.kind and self.kind not in TABS.values():
            return  # other tabs, such as albums and posts, have no videos
        unread = [
            (*path, *(id_path or ()))
            for path, row, item, id_path in self.parsed_rows
            if id_path or (item is None and is_unrecognised(row))
        ]
        if unread:
            error = missing_error("List items have an unknown format or no valid id.", *unread[:10], reason="blind")
            if not any(item for _, _, item, _ in self.parsed_rows):
                raise error
            self.skip(error)
        texts = [(path, stated_texts(row)) for path, row, item, _ in self.parsed_rows if item]
        foreign = [path for path, stated in texts if stated and not any(map(ENGLISH.search, stated))]
        if foreign:
            self.skip_language("The list", foreign[0])
        rich = [
            (*path, "richItemRenderer", "content") for path, row, _, _ in self.parsed_rows if "richItemRenderer" in row
        ]
        if rich and not any(item for _, _, item, _ in self.parsed_rows):
            raise missing_error("The list has no item of a known type.", *rich[:10], reason="blind")
