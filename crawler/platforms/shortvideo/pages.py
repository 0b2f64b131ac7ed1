"""Short-video: the answers of the search's own call in both shapes, and the page that makes it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import attrs
from web_poet import field

from crawler.errors import ExtractionFailed, TargetRestricted, UpstreamBlocked, UpstreamError, UpstreamTimeout
from crawler.platforms.page import PlatformPage, missing
from crawler.platforms.shortvideo import app as shortvideo_app
from crawler.platforms.shortvideo import web as shortvideo_web
from crawler.platforms.shortvideo.image import Path
from crawler.reading.json import decode, dicts, dig, is_bare_json
from crawler.reading.values import count, text

LOGIN_REQUIRED = 2483
"""The platform's own status of a call that it answers to accounts only."""
BLOCKING_NILS = frozenset({"verify_check", "antispam_check", "params_check"})
"""Reasons that the platform gives for an empty list when it did not search at all."""

# Entries of a mixed list that are no posts: their kinds differ, that they have one is enough.
CARD_KEYS = ("user_list", "challenge_list", "common", "user_info", "live_info", "card_title")

APP_MARKS = ('"aweme_', '"search_item_list"', '"image_post_info"', '"multi_photo"')
CAPTCHA_MARKS = ("tiktok-verify-ele", "captcha_verify_container", "captcha-verify-container")
LOGIN_MARKS = ('id="loginContainer"', 'data-e2e="login-modal"')
WAIT_MARKS = ('id="wci"', "Please wait...")
STATE_MARK = "__UNIVERSAL_DATA_FOR_REHYDRATION__"
"""The script in which every page of the platform's carries its state."""

GENERAL_POST = 1
"""Type of a post among the entries of the general tab."""


@attrs.define(slots=False)
class ResultsPage(PlatformPage):
    """One answer of the search's own call. ``page_params``: ``keywords``, as asked.

    Lists of the platform's other web calls are read too: the same items stand in them.
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
        # An empty answer is a refusal of this call's: as its page would tell it.
        return body.lstrip()[:1] in {"{", "[", ""}

    def validate_input(self) -> None:
        """Decides whether this is a list of results, be it an empty one.

        Raises:
            UpstreamBlocked: an empty body, a captcha, or an empty list with a reason that is none of the search's.
            TargetRestricted: only accounts are answered.
            UpstreamError: no JSON; also as ``raise_for_failures``.
            ExtractionFailed: JSON without a list, or rows of which none is understood.
        """
        self.raise_for_failures()
        self._refuse_markup()
        if self._listed:
            self._raise_if_unrecognised()
        else:
            self._refuse_walls()

    # Fields: specification 2.3

    @field
    def cursor(self) -> str:
        return str(count(self.envelope.get("cursor")) or 0)

    @field
    def has_more(self) -> bool:
        told = self.envelope.get("has_more", self.envelope.get("hasMore"))
        return bool(told) and told not in ("0", "false")

    @field
    def keywords(self) -> str:
        asked = parse_qs(urlsplit(str(self.response.url)).query)
        return text(self.page_params.get("keywords")) or next(
            (asked[name][0] for name in ("keyword", "q") if name in asked), ""
        )

    @field
    def search_item_list(self) -> list[dict[str, Any]]:
        photos: dict[str, dict[str, Any]] = {}
        for path, item in self._items:
            if self.is_photo(item) and not self.is_hidden(item):
                post = self.photo_post(item, path)
                photos.setdefault(post["aweme_id"], post)
        return list(photos.values())

    # The item's shape

    is_photo = staticmethod(shortvideo_web.is_photo)
    is_other = staticmethod(shortvideo_web.is_other)
    is_hidden = staticmethod(shortvideo_web.is_hidden)
    photo_post = staticmethod(shortvideo_web.photo_post)

    # The answer's parts

    @cached_property
    def _answer(self) -> Any:
        return decode(self.response.body, what="answer")

    @cached_property
    def _list(self) -> tuple[Path, list[Any] | None]:
        """Where the rows are, and the rows; None where there is no list."""
        if isinstance(self._answer, list):
            return [], self._answer
        for path in self.list_paths:
            found = dig(self._answer, *path)
            if isinstance(found, list):
                return list(path), found
        return [], None

    @property
    def _listed(self) -> list[Any]:
        return self._list[1] or []

    @cached_property
    def envelope(self) -> dict[str, Any]:
        """What stands around the list: cursor, status, whether there is more."""
        around = dig(self._answer, *self._list[0][:-1])
        if self._list[1] is None and isinstance(dig(around, "data"), dict):
            around = around["data"]
        return around if isinstance(around, dict) else {}

    @cached_property
    def _items(self) -> list[tuple[Path, dict[str, Any]]]:
        """The rows that are items, each with its place."""
        path, rows = self._list
        items: list[tuple[Path, dict[str, Any]]] = []
        for index, row in enumerate(rows or []):
            inner = dig(row, self.item_key)
            if isinstance(inner, dict):
                items.append(([*path, index, self.item_key], inner))
            elif isinstance(row, dict) and not any(key in row for key in CARD_KEYS):
                items.append(([*path, index], row))
        return items

    # The gate

    def _refuse_markup(self) -> None:
        if is_bare_json(self.response.body):
            return
        body = self.response.text
        if any(mark in body for mark in CAPTCHA_MARKS):
            raise UpstreamBlocked("The platform asks whether a human is there.", reason="captcha")
        raise UpstreamError("The answer of the search's call is no JSON.", reason="not_json")

    def _refuse_walls(self) -> None:
        """An empty list is a result only where nothing says otherwise."""
        status = count(self.envelope.get("status_code", self.envelope.get("statusCode")))
        nil = text(dig(self.envelope, "search_nil_info", "search_nil_type"))
        if dig(self._answer, "type") == "verify" or dig(self._answer, "data", "type") == "verify":
            raise UpstreamBlocked("The platform asks whether a human is there.", reason="captcha")
        if status == LOGIN_REQUIRED:
            raise TargetRestricted("The platform answers this search to accounts only.", reason="login_required")
        if nil in BLOCKING_NILS:
            raise UpstreamBlocked("The platform did not search: it takes us for a robot.", reason=nil)
        if status:
            raise UpstreamBlocked(f"The platform refused the search with its status {status}.", reason="refused")
        if self._list[1] is None and status is None:
            raise missing("The answer has no list of results.", self.list_paths[0], reason="no_list")

    def _raise_if_unrecognised(self) -> None:
        items = self._items
        strangers = [path for path, item in items if not self.is_photo(item) and not self.is_other(item)]
        cards = len(dicts(self._listed)) - len(items)
        if (strangers and len(strangers) == len(items)) or not (items or cards):
            where = strangers[0] if strangers else [*self._list[0], 0]
            raise ExtractionFailed(
                "The answer has rows, and none of them is understood.",
                details=[{"loc": where, "msg": "Input should be a post", "type": "value_error"}],
                reason="blind",
            )


@attrs.define(slots=False)
class AppResultsPage(ResultsPage):
    """A list of the app's calls, of the same posts under other names."""

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
        keys = body.replace('\\"', "")  # texts may hold JSON of the platform's own, with keys of the app's
        return super().recognise(body) and any(mark in keys for mark in APP_MARKS)

    is_photo = staticmethod(shortvideo_app.is_photo)
    is_other = staticmethod(shortvideo_app.is_other)
    photo_post = staticmethod(shortvideo_app.photo_post)

    @cached_property
    def _list(self) -> tuple[Path, list[Any] | None]:
        detail = dig(self._answer, "aweme_detail")
        if isinstance(detail, dict):
            return ["aweme_detail"], [{self.item_key: detail}]
        return super()._list


@attrs.define(slots=False)
class SearchPage(PlatformPage):
    """The search page in the browser. It holds no results: it fetches them. Without any, it says why."""

    source: ClassVar[str] = "search page"
    received: dict[str, Any] | None = attrs.field(default=None, init=False)
    """The data of the results that the page received in the browser; None where it received none."""

    @classmethod
    def recognise(cls, body: str) -> bool:
        return body.lstrip()[:1] == "<"

    def validate_input(self) -> None:
        """Says why the page received no results.

        Raises:
            UpstreamBlocked: a captcha, or a waiting room that let nobody in.
            TargetRestricted: the page of the login, or the page behind its window.
            ExtractionFailed: another page.
            UpstreamTimeout: the search page, still without results.
        """
        self.raise_for_failures()
        body = self.response.text
        if any(mark in body for mark in CAPTCHA_MARKS):
            raise UpstreamBlocked("The platform asks whether a human is there.", reason="captcha")
        if urlsplit(str(self.response.url)).path.startswith("/login") or any(mark in body for mark in LOGIN_MARKS):
            raise TargetRestricted("The platform shows this search to accounts only.", reason="login_required")
        if STATE_MARK not in body:
            if any(mark in body for mark in WAIT_MARKS):
                raise UpstreamBlocked("The platform keeps visitors waiting.", reason="waiting_room")
            raise ExtractionFailed("The page is not the platform's search.", reason="no_search_page")
        raise UpstreamTimeout("The page received no results in time.", reason="no_answer")
