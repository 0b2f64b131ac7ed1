"""Short-video: page objects for the search API's responses in both formats, and for the page that calls the API."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import attrs
from web_poet import HttpResponse, field

from crawler.errors import ExtractionFailed, TargetRestricted, UpstreamBlocked, UpstreamError, UpstreamTimeout
from crawler.platforms.page import PlatformPage, missing_error
from crawler.platforms.shortvideo import app as shortvideo_app
from crawler.platforms.shortvideo import web as shortvideo_web
from crawler.platforms.shortvideo.image import Path
from crawler.platforms.shortvideo.requests import CAPTCHA_MOUNT, STOP_SELECTORS
from crawler.reading.json import decode, dicts, dig, is_bare_json
from crawler.reading.values import count, text

LOGIN_REQUIRED_STATUS = 2483
"""Status code in responses to API calls that require an account."""
BLOCKING_NILS = frozenset({"verify_check", "antispam_check", "params_check"})
"""Values of ``search_nil_type`` with which an empty list means a block, not a search without results."""

# In a list of mixed entries, an entry with at least one of these keys is not a post.
CARD_KEYS = ("user_list", "challenge_list", "common", "user_info", "live_info", "card_title")

APP_MARKS = ('"aweme_', '"search_item_list"', '"image_post_info"', '"multi_photo"')
WAIT_MARKS = ('id="wci"', "Please wait...")
STATE_MARK = "__UNIVERSAL_DATA_FOR_REHYDRATION__"
"""The id of the script that contains the state of every page of the platform."""
OTHER_PAGE_MARKS = ('"webapp.video-detail"', '"webapp.reflow.video.detail"', '"webapp.user-detail"')
"""Texts in the page state that show that the page is a post's or an account's, not the search page."""

GENERAL_POST = 1
"""The type number that marks a post among the entries in the general tab."""


def wall_in(response: HttpResponse) -> str | None:
    """Return the kind of the first login dialog or CAPTCHA in the page (a key of ``STOP_SELECTORS``), or None."""
    for name, selector in STOP_SELECTORS.items():
        for element in response.css(selector):
            is_mount = element.attrib.get("id") == CAPTCHA_MOUNT.removeprefix("#")
            if not is_mount or element.xpath("* | text()[normalize-space()] | @style[contains(., 'height')]"):
                return name
    return None


@attrs.define(slots=False)
class ResultsPage(PlatformPage):
    """A response from the search API. ``page_params`` has ``keywords``, as requested.

    This class also reads lists from the platform's other web APIs, which contain the same items.
    """

    source: ClassVar[str] = "web results"
    list_paths: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("item_list",),
        ("itemList",),
        ("data", "item_list"),
        ("data", "itemList"),
        ("data", "data"),
        ("data",),
        ("videos",),
        ("data", "videos"),
    )
    item_key: ClassVar[str] = "item"

    @classmethod
    def recognise(cls, body: str) -> bool:
        # An empty body means that the search API blocked the request. The search page would have HTML.
        return body.lstrip()[:1] in {"{", "[", ""}

    def validate_input(self) -> None:
        """Raise an error unless the response is a list of results, which may be empty.

        Raises:
            UpstreamBlocked: the body is empty or a CAPTCHA challenge, or the JSON has a bot check or an error code
                (``status_code``) instead of rows.
            TargetRestricted: the search requires an account.
            UpstreamError: the response is not JSON, or its HTTP status is a failure (see ``raise_for_failures``).
            ExtractionFailed: the list is missing or empty although the response does not report the end of the results,
                or the list has no photo post but has rows with an unknown structure.
        """
        self.raise_for_failures()
        self._raise_for_markup()
        if self._rows:
            self._raise_if_unrecognised()
            self._skip_missing_position()
        else:
            self._raise_for_blocks()
            self._raise_unless_empty()

    # Fields: specification 2.3

    @field
    def cursor(self) -> str:
        return str(count(self.envelope.get("cursor")) or 0)

    @field
    def has_more(self) -> bool:
        return bool(self._more) and self._more not in ("0", "false")

    @field
    def keywords(self) -> str:
        query = parse_qs(urlsplit(str(self.response.url)).query)
        return text(self.page_params.get("keywords")) or next(
            (query[name][0] for name in ("keyword", "q") if name in query), ""
        )

    @field
    def search_item_list(self) -> list[dict[str, Any]]:
        photos: dict[str, dict[str, Any]] = {}
        failed: list[ExtractionFailed] = []
        for path, item in self._items:
            if self.is_photo(item) and not self.is_hidden(item):
                try:
                    post = self.photo_post(item, path)
                except ExtractionFailed as error:
                    failed.append(error)
                else:
                    photos.setdefault(post["aweme_id"], post)
        if failed and not photos:
            raise failed[0]
        for each in failed:
            self.skip(each)
        return list(photos.values())

    # The item's format

    is_photo = staticmethod(shortvideo_web.is_photo)
    is_known_non_photo = staticmethod(shortvideo_web.is_known_non_photo)
    is_hidden = staticmethod(shortvideo_web.is_hidden)
    photo_post = staticmethod(shortvideo_web.photo_post)

    # The parts of the response

    @cached_property
    def _payload(self) -> Any:
        return decode(self.response.body, what="answer")

    @cached_property
    def _list(self) -> tuple[Path, list[Any] | None]:
        """The path of the list of rows, and the list. If there is no list: an empty path and None."""
        if isinstance(self._payload, list):
            return [], self._payload
        for path in self.list_paths:
            found = dig(self._payload, *path)
            if isinstance(found, list):
                return list(path), found
        return [], None

    @property
    def _rows(self) -> list[Any]:
        return self._list[1] or []

    @cached_property
    def envelope(self) -> dict[str, Any]:
        """The object around the list, with the cursor, the status code, and the flag whether more rows follow."""
        around = dig(self._payload, *self._list[0][:-1])
        if self._list[1] is None and isinstance(dig(around, "data"), dict):
            around = around["data"]
        return around if isinstance(around, dict) else {}

    @cached_property
    def _items(self) -> list[tuple[Path, dict[str, Any]]]:
        """The rows that are items, each with its path."""
        path, rows = self._list
        items: list[tuple[Path, dict[str, Any]]] = []
        for index, row in enumerate(rows or []):
            inner = dig(row, self.item_key)
            if isinstance(inner, dict):
                items.append(([*path, index, self.item_key], inner))
            elif isinstance(row, dict) and not any(key in row for key in CARD_KEYS):
                items.append(([*path, index], row))
        return items

    # Validation

    def _raise_for_markup(self) -> None:
        if is_bare_json(self.response.body):
            return
        if wall_in(self.response) == "captcha":
            raise UpstreamBlocked("The platform returned a CAPTCHA challenge.", reason="captcha")
        raise UpstreamError("The search response is not JSON.", reason="not_json")

    def _raise_for_blocks(self) -> None:
        """Raise an error if a response without rows means that the search was blocked or requires an account."""
        status = count(self.envelope.get("status_code", self.envelope.get("statusCode")))
        if dig(self._payload, "type") == "verify" or dig(self._payload, "data", "type") == "verify":
            raise UpstreamBlocked("The platform returned a CAPTCHA challenge.", reason="captcha")
        if status == LOGIN_REQUIRED_STATUS:
            raise TargetRestricted("The platform requires an account for this search.", reason="login_required")
        if self._nil in BLOCKING_NILS:
            raise UpstreamBlocked(
                f"The platform blocked the search with its bot check {self._nil!r}.", reason=self._nil
            )
        if status and not self._has_other_rows:
            raise UpstreamBlocked(f"The platform refused the search with status {status}.", reason="refused")

    def _raise_unless_empty(self) -> None:
        """Raise an error if a response without rows does not report the end of the results: its keys may be renamed."""
        if self._nil:
            return
        if self._list[1] is None and (not self._is_end or self._has_other_rows):
            raise missing_error("The response has no list of results.", self.list_paths[0], reason="no_list")
        if not self._is_end:
            raise ExtractionFailed(
                "The response has no rows, but does not report the end of the results.",
                details=[{"loc": self._list[0], "msg": "List should not be empty", "type": "too_short"}],
                reason="no_rows",
            )

    @property
    def _has_other_rows(self) -> bool:
        """Whether the response has rows, but under an unknown key."""
        return self._list[1] is None and any(map(dicts, self.envelope.values()))

    @property
    def _nil(self) -> str:
        """The platform's word for why the list is empty; "" if the response has no such word."""
        return text(dig(self.envelope, "search_nil_info", "search_nil_type"))

    @property
    def _more(self) -> Any:
        return self.envelope.get("has_more", self.envelope.get("hasMore"))

    @property
    def _is_end(self) -> bool:
        """Whether the response states that no more rows follow."""
        return self._more is not None and not self.has_more

    def _skip_missing_position(self) -> None:
        """Add an error to ``skipped`` if a response with rows lacks its ``cursor``, its ``has_more`` or both."""
        stated = {"cursor": self.envelope.get("cursor"), "has_more": self._more}
        paths = [[*self._list[0][:-1], key] for key, value in stated.items() if value is None]
        if paths:
            self.skip(missing_error("The response lacks its position in the results.", *paths, reason="missing_part"))

    def _raise_if_unrecognised(self) -> None:
        """Leave out rows with an unknown structure. Raise an error if there are any, but no photo post."""
        items = self._items
        photos = [item for _, item in items if self.is_photo(item)]
        unrecognised = [
            path
            for path, item in items
            if not (self.is_photo(item) or self.is_known_non_photo(item) or self.is_hidden(item))
        ]
        if not (unrecognised or items or dicts(self._rows)):
            unrecognised = [[*self._list[0], 0]]
        if unrecognised:
            error = ExtractionFailed(
                "Rows of the response have an unknown structure.",
                details=[{"loc": p, "msg": "Input should be a post", "type": "value_error"} for p in unrecognised[:10]],
                reason="blind",
            )
            if not photos:
                raise error
            self.skip(error)


@attrs.define(slots=False)
class AppResultsPage(ResultsPage):
    """A list of results from the app's API, which has the same posts under other keys."""

    source: ClassVar[str] = "app results"
    list_paths: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("search_item_list",),
        ("aweme_list",),
        ("data", "search_item_list"),
        ("data", "aweme_list"),
        ("data", "data"),
        ("data",),
        ("items",),
    )
    item_key: ClassVar[str] = "aweme_info"

    @classmethod
    def recognise(cls, body: str) -> bool:
        keys = body.replace('\\"', "")  # strings may contain escaped JSON with the app's keys
        return super().recognise(body) and any(mark in keys for mark in APP_MARKS)

    is_photo = staticmethod(shortvideo_app.is_photo)
    is_known_non_photo = staticmethod(shortvideo_app.is_known_non_photo)
    photo_post = staticmethod(shortvideo_app.photo_post)

    @cached_property
    def _list(self) -> tuple[Path, list[Any] | None]:
        detail = dig(self._payload, "aweme_detail")
        if isinstance(detail, dict):
            return ["aweme_detail"], [{self.item_key: detail}]
        return super()._list


@attrs.define(slots=False)
class SearchPage(PlatformPage):
    """The search page in the browser. Its script fetches the results. If none arrive, the HTML shows the reason."""

    source: ClassVar[str] = "search page"
    received: dict[str, Any] | None = attrs.field(default=None, init=False)
    """The record built from the results that the page received in the browser; None if no results arrived."""

    @cached_property
    def wall(self) -> str | None:
        """The login dialog or CAPTCHA in the HTML, or None.

        For a page in the browser, the spider sets ``wall`` to the login dialog or CAPTCHA that was visible.
        """
        return wall_in(self.response)

    @classmethod
    def recognise(cls, body: str) -> bool:
        return body.lstrip()[:1] == "<"

    def validate_input(self) -> None:
        """Raise the error that explains why the page received no results.

        Raises:
            UpstreamBlocked: the page shows a CAPTCHA, or a waiting room that did not open.
            TargetRestricted: the page is the login page, or is behind the login dialog.
            ExtractionFailed: the page is not the search page.
            UpstreamTimeout: the page is the search page, but no results arrived.
        """
        self.raise_for_failures()
        body = self.response.text
        if self.wall == "captcha":
            raise UpstreamBlocked("The platform returned a CAPTCHA challenge.", reason="captcha")
        path = urlsplit(str(self.response.url)).path
        if self.wall == "login" or path.startswith("/login"):
            raise TargetRestricted("The platform requires an account for this search.", reason="login_required")
        if STATE_MARK not in body and any(mark in body for mark in WAIT_MARKS):
            raise UpstreamBlocked("The platform returned its waiting room.", reason="waiting_room")
        is_other_page = (path and "/search" not in path) or any(mark in body for mark in OTHER_PAGE_MARKS)
        if STATE_MARK not in body or is_other_page:
            raise missing_error("The page is not the platform's search page.", [STATE_MARK], reason="no_search_page")
        raise UpstreamTimeout("The page received no results in time.", reason="no_answer")
