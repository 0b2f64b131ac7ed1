"""Video site: base classes of the page objects, which find JSON data and lists, and detect blocks and errors."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.errors import (
    ExtractionFailed,
    ScrapeError,
    TargetNotFound,
    TargetRestricted,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
    quoted,
)
from crawler.platforms.page import BLOCK_STATUSES, PlatformPage, missing_error
from crawler.platforms.videosite.payload import Failure, Lockup, Placed, PlaylistVideo, Short
from crawler.platforms.videosite.record import ENGLISH, Path, gaps, is_video_id, item_of, stated_texts
from crawler.platforms.videosite.schema import TABS
from crawler.reading.careful import read
from crawler.reading.contract import MAX_NAME_LENGTH, MAX_NAMES, C, Unread
from crawler.reading.documents import assigned_block, is_json
from crawler.reading.values import text

DATA = "ytInitialData"
CONTENTS: Path = ("contents", "twoColumnBrowseResultsRenderer", "tabs")
DATA_MARK = re.compile(rf"{DATA}(?:[\"']\])?\s*=\s*\{{")
CHANNEL_MARK = re.compile(
    r'"(?:channelMetadataRenderer|c4TabbedHeaderRenderer|pageHeaderRenderer|carouselHeaderRenderer'
    r'|interactiveTabbedHeaderRenderer|channelAgeGateRenderer)"\s*:'
)
"""Matches JSON keys that only channel pages have. Continuation pages contain some of these names, but as values."""
CONSENT_MARKS = (b"consent.youtube.com/s", b"Before you continue to YouTube")
TRAFFIC_MARKS = (b'id="captcha-form"', b'class="g-recaptcha"', b"unusual traffic")
_SUBJECT = r"^(?:this|the) (?:\w+ )?(?:channel|account|page|playlist|video|content)\b.*?"
"""Matches the beginning of an alert about the target. Other alerts may be about the visitor or the platform."""
ALERTS = (
    (r"in your country|in deinem land|dans votre pays|en tu país|no seu país", TargetRestricted, "region"),
    (
        r"error|fehler|erreur|\berro\b|try again|something went wrong|erneut|réessay|vuelve a intentar|tente novamente",
        UpstreamError,
        "reported_error",
    ),
    (rf"{_SUBJECT}(?:does not exist|isn['’]t available|not available$)", TargetNotFound, "not_found"),
    (rf"{_SUBJECT}(?:terminated|suspended)", TargetNotFound, "terminated"),
    (rf"{_SUBJECT}(?:removed|deleted|closed)", TargetNotFound, "removed"),
)
"""Patterns for the text of alerts, each with the error class and the reason."""
NOTHING = re.compile(r"\bhas no \w+|\bdoesn['’]t have any\b", re.IGNORECASE)
"""Matches the messages of empty tabs: "This channel has no videos." and "This channel doesn't have any content".

Public clients quote both; none was recorded. Other messages state something else: the recorded one (capture
bb9a74d0f95b) is about comments that are turned off.
"""
_ERROR = re.compile(rb'\s*\{\s*"error"\s*:')
"""Matches the beginning of a JSON body that only states an error."""
NOT_FOUND_MARK = b"<title>Error 404 (Not Found)"
MARKS = (*CONSENT_MARKS, *TRAFFIC_MARKS, NOT_FOUND_MARK)


def alert_error(message: str) -> ScrapeError:
    """Return the error for an alert on a page without content. ``message``: the alert's text, which the details quote.

    The error is a ``TargetNotFound``, a ``TargetRestricted`` or an ``UpstreamError`` if the text is known, else an
    ``ExtractionFailed`` with the reason ``unknown_alert``.
    """
    details = quoted(message, "alerts", 0, "alertRenderer", "text")
    for pattern, kind, reason in ALERTS:
        if re.search(pattern, message, re.IGNORECASE):
            return kind(f"The platform reported: {message}", details=details, reason=reason)
    return ExtractionFailed(f"The page has an unknown alert: {message}", details=details, reason="unknown_alert")


@attrs.define(slots=False)
class VideositePage(PlatformPage):
    """Base class of the platform's page objects. The class finds the JSON data, and raises errors for blocks."""

    def validate_input(self) -> None:
        """Raise an error for a failed or blocked response, or for an error that the platform reports in it.

        Raises: TargetNotFound: the status is 404 or 410, the error code in the body is 404, or the body is a 404 page.
        UpstreamBlocked: the status or the error code means a block, the body is empty, or the response is the cookie
        consent page. UpstreamRateLimited: the status or the error code is 429, or the response is the CAPTCHA page for
        unusual traffic. UpstreamError: any other status that is not a success, or any other error code.
        ExtractionFailed: status 400; or the body begins like a JSON error, but is not valid JSON.
        """
        if self.response.status == 400 or (self.response.status is None and self._error_code == 400):
            self.raise_for_walls()
            raise self._bad_request_error()
        self.raise_for_failures()
        self.raise_for_walls()
        self.raise_for_missing_page()
        self._raise_for_reported_errors()

    def _bad_request_error(self) -> ScrapeError:
        """Return the error for a response with status 400."""
        message = "The platform rejected the request as invalid (400)."
        return ExtractionFailed(message, details=quoted("400", "error", "code"), reason="bad_request")

    def read_data(self, kind: type[C]) -> C:
        """Read the JSON data of the response by its contract.

        Raises:
            ExtractionFailed: the response has no data, or the data cannot be read (see ``payload``).
        """
        if self._block is None:
            raise missing_error("The page has no data block.", (f"script:{DATA}",), reason="no_data_block")
        return self.payload(kind, self._block, what=DATA, code_after=True)

    @cached_property
    def _body(self) -> bytes:
        """The body as plain ``bytes``: each search of the response's subclass of ``bytes`` would copy the body."""
        return bytes(self.response.body)

    @cached_property
    def _block(self) -> bytes | None:
        """The JSON text of the data: the whole body, or part of a script in the page. None if there is no data."""
        return self._body if is_json(self._body) else assigned_block(self._body, DATA)

    @property
    def _error_code(self) -> Any:
        """The error code in a JSON body, or None. Responses that were saved without their status still contain it."""
        if not _ERROR.match(self._body):
            return None
        failure = read(Failure, self._body, what=DATA).value
        return failure and failure.code

    def raise_for_walls(self) -> None:
        if self._block is not None:
            return
        body = self._body
        if any(mark in body for mark in CONSENT_MARKS):
            raise UpstreamBlocked("The platform returned its cookie consent page.", reason="consent")
        if any(mark in body for mark in TRAFFIC_MARKS):
            message = "The platform returned a CAPTCHA page for unusual traffic."
            raise UpstreamRateLimited(message, reason="captcha")

    def raise_for_missing_page(self) -> None:
        """Raise ``TargetNotFound`` if the response is the platform's 404 page, such as one saved without its status."""
        if self._block is None and NOT_FOUND_MARK in self._body:
            details = quoted(NOT_FOUND_MARK.decode(), "title")
            raise TargetNotFound("The platform has no such page.", details=details, reason="not_found")

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
        details = quoted(text(code), "error", "code")
        raise kind(f"The platform reported an error: {code}.", details=details, reason=reason)

    def skip_language(self, part: str, path: Path) -> None:
        """Add an error to ``skipped``: the numbers and dates of a part cannot be read, because it is not in English."""
        self.skip(missing_error(f"{part} is not in English: its numbers are missing.", path, reason="language"))

    @property
    def requested_tab(self) -> str:
        """The requested tab, or "" if it is unknown."""
        return text(self.page_params.get("tab"))


Shape = Lockup | Short | PlaylistVideo


def _is_next_page(lost: Unread) -> bool:
    """Whether an unread row is the row that leads to the next page of the list."""
    return lost.path.endswith(".token") or any(name.startswith("continuationItem") for name in lost.names)


@attrs.define(slots=False)
class ListPage(VideositePage):
    """Base class for responses that contain a list of items."""

    rows_path: ClassVar[str]
    """The path of the list in the payload, with which the paths of the list's unread parts begin. A continuation page
    may contain its list at other paths."""

    @cached_property
    def rows(self) -> list[Placed]:
        """All rows in the list, in the platform's order."""
        raise NotImplementedError

    @cached_property
    def kind(self) -> str:
        """The name of the tab that the items belong to, such as ``videos``; "" if it is unknown."""
        return self.requested_tab

    @cached_property
    def _shapes(self) -> list[tuple[Placed, Shape]]:
        """The rows whose item has a valid id, each with its item. Items without a valid id are reported."""
        blank = 0 if self._lost else sum(row.is_blank for row, _ in self.rows)  # lost rows are reported already
        if blank:
            path = f"{self.rows_path}.…unknown"
            self.unread.append(Unread(path, "unknown", blank, len(self.rows), loses_rows=True))
        found = [(placed, shape) for placed in self.rows if (shape := placed.row.item) is not None]
        valid = [(placed, shape) for placed, shape in found if is_video_id(shape.id)]
        invalid = Counter(shape.id_path for _, shape in found if not is_video_id(shape.id)) if found != valid else {}
        for path, count in invalid.items():
            lost = Unread(f"{self.rows_path}.{path}", "type", count, count + len(valid), loses_rows=True)
            self.unread.append(lost)
        return valid

    @cached_property
    def _items(self) -> list[dict[str, Any]]:
        return [self.entry(shape) for _, shape in self._shapes]

    def entry(self, row: Shape) -> dict[str, Any]:
        """Convert a row's item. Subclasses may override this method."""
        return item_of(row, self.kind)

    @field
    def posts(self) -> list[dict[str, Any]]:
        return list({item["content_id"]: item for item in self._items}.values())

    @field
    def continuation(self) -> str:
        # Other tokens (sort orders, the about panel, recommendations) are elsewhere in the response. The row with the
        # token for the next page is the last row of the list that contains the items, or of the list around it.
        last = self._shapes[-1][0].parent if self._shapes else None
        ends = [each for each in self.rows if each.parent is last][-1:] + self.rows[-1:]
        return next((each.row.token for each in ends if each.row.token), "")

    @field
    def more(self) -> bool:
        """Whether the list has a next page, whose token may be unreadable.

        A row in an unknown format counts as the row that leads to the next page if its key begins with
        "continuationItem". This key changed in 2026, from ``continuationItemRenderer`` to
        ``continuationItemViewModel``.
        """
        return bool(self.continuation) or any(map(_is_next_page, self._lost))

    @property
    def _lost(self) -> list[Unread]:
        """The rows of the list that could not be read."""
        return [each for each in self.unread if each.loses_rows and each.path.startswith(self.rows_path)]

    def raise_for_unread_rows(self) -> None:
        """Check that the list's items could be read, with what all recorded rows have.

        If items are not in English, add an error to ``skipped``, because the numbers in these items cannot be read. If
        the tab has no items, as a channel's posts, its unknown rows are not reported.

        Raises:
            ExtractionFailed: the list has rows, but none of them could be read as an item.
        """
        if self._is_without_items:
            unknown = [each for each in self.unread if each.cause == "unknown" and each.path.startswith(self.rows_path)]
            self.unread = [each for each in self.unread if each not in unknown]
            return
        self._report_unknown_messages()
        if not self._items:
            if self._lost or (self.kind and not all(row.is_empty_list for row, _ in self.rows)):
                message = "The list contains no item of a known type with a valid id"
                unread = "; ".join(map(str, self._lost))
                raise missing_error(f"{message}{': ' if unread else '.'}{unread}", (self.rows_path,), reason="blind")
            return
        is_english = not self._is_in_other_language
        if not is_english:
            self.skip_language("The list", (self.rows_path,))
        self._report_gaps(has_views=is_english)

    def _report_unknown_messages(self) -> None:
        """Report the messages in place of items, except those of empty tabs (``NOTHING``)."""
        texts = [str(row.message.text or "") for row, _ in self.rows if row.message]
        if unknown := [text for text in texts if not NOTHING.search(text)]:
            names = tuple(text[:MAX_NAME_LENGTH] for text in unknown[:MAX_NAMES])
            path = f"{self.rows_path}.messageRenderer.…unknown"
            self.unread.append(Unread(path, "unknown", len(unknown), len(self.rows), names=names))

    @property
    def _is_without_items(self) -> bool:
        """Whether the list is in another tab than videos, shorts and live streams, such as the tab with posts."""
        return bool(self.kind) and self.kind not in TABS.values()

    @property
    def _is_in_other_language(self) -> bool:
        """Whether the list, or any item without a number of views, has numbers but no English words beside them."""
        if not any(map(ENGLISH.search, self._texts())):
            return any(re.search(r"\d", text) for text in self._texts())
        without = ("\n".join(texts) for texts, item in self._stated() if item["view_count"] is None)
        return any(re.search(r"\d", texts) and not ENGLISH.search(texts) for texts in without)

    def _stated(self) -> Iterator[tuple[list[str], dict[str, Any]]]:
        """Yield, for each row, the texts that may contain a number, and the row's item."""
        for (_, shape), item in zip(self._shapes, self._items, strict=True):
            yield stated_texts(shape), item

    def _texts(self) -> Iterator[str]:
        return (text for _, shape in self._shapes for text in stated_texts(shape))

    def _report_gaps(self, *, has_views: bool) -> None:
        """Report pictures, lengths and numbers of views that rows lack or state in an unknown format (see ``gaps``).

        ``has_views``: whether numbers of views can be read, because the list is in English.
        """
        found: defaultdict[str, list[list[str]]] = defaultdict(list)
        for (_, shape), item in zip(self._shapes, self._items, strict=True):
            for path, texts in gaps(shape, item):
                if has_views or path != shape.views_path:
                    found[path].append(texts)
        for path, rows in found.items():
            end = ".".join(path.split(".")[-2:])
            if any(each.path.endswith(end) for each in self.unread):
                continue  # the contract has reported it already
            shown = dict.fromkeys(text[:MAX_NAME_LENGTH] for texts in rows for text in texts)
            names = tuple(shown)[:MAX_NAMES]
            lost = Unread(f"{self.rows_path}.{path}", "missing", len(rows), len(self._items))
            unknown = lost._replace(path=f"{lost.path}.…unknown", cause="unknown", names=names)
            self.unread.append(unknown if names else lost)
