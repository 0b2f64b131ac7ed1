"""Short-video: page objects for the search API's responses, and for the page that calls the API."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any, ClassVar, cast
from urllib.parse import parse_qs, urlsplit

import attrs
from web_poet import HttpResponse, field

from crawler.errors import Detail, ScrapeError, UpstreamBlocked, UpstreamError, UpstreamTimeout
from crawler.platforms.page import PlatformPage, missing_error, unread_error
from crawler.platforms.shortvideo.payload import Answer, Flag, Item
from crawler.platforms.shortvideo.post import IMAGES, URLS, missing_part, photo_post
from crawler.platforms.shortvideo.urls import CAPTCHA_MOUNT, STOP_SELECTORS
from crawler.reading.contract import Cause, Unread, steps, values
from crawler.reading.documents import decode, dicts, is_json, parsed_html
from crawler.reading.values import count, text

LOGIN_REQUIRED_STATUS = "2483"
"""Status code in responses to API calls that require an account."""
LOGIN_WALL = "login_wall"
"""Reason of the error if the platform asks this visitor to log in. It says nothing about the search."""
BLOCKING_NILS = frozenset({"verify_check", "antispam_check", "params_check"})
"""Values of ``search_nil_type`` that mean that an empty list is a block, not a search without results."""

ANSWER_KEYS = frozenset(str(steps(path)[0]) for value in values(Answer) for path in value.paths)
"""The keys of responses that are read."""
NOTHING_FOUND = frozenset({"no_result", "sensitive"})
"""Values of ``search_nil_type`` that mean that an empty list is a search without results.

No recorded response contains one of them. A public client of the company's other platform treats ``no_result`` as a
search without results. The app contains a notice for searches with sensitive words, which find nothing. It is not
proven that the type of these notices is ``sensitive``.
"""
WAIT_MARKS = ('id="wci"', "Please wait...")
STATE_MARK = "__UNIVERSAL_DATA_FOR_REHYDRATION__"
"""The id of the script element that contains the page state. Every page of the platform has one."""
OTHER_PAGE_MARKS = ('"webapp.video-detail"', '"webapp.reflow.video.detail"', '"webapp.user-detail"')
"""Texts that are in the page state of posts and accounts, but not of the search page."""


def wall_in(response: HttpResponse) -> str | None:
    """Return "captcha" if the page contains a CAPTCHA, "login" if it contains a login dialog, else None.

    The empty element into which the platform puts a CAPTCHA does not count.

    Raises:
        ExtractionFailed: as for ``parsed_html``.
    """
    page = parsed_html(response.text)  # the response's own selector has no CSS if the text is JSON
    for name, selector in STOP_SELECTORS.items():
        for element in page.css(selector):
            is_mount = element.xpath("@id").get() == CAPTCHA_MOUNT.removeprefix("#")
            if not is_mount or element.xpath("* | text()[normalize-space()] | @style[contains(., 'height')]"):
                return name
    return None


@attrs.define(slots=False)
class ResultsPage(PlatformPage):
    """A response from the search API. ``page_params`` contains the requested ``keywords``.

    This class also reads lists from the platform's other web APIs, which contain the same items.
    """

    source: ClassVar[str] = "search"

    @classmethod
    def recognise(cls, body: str) -> bool:
        # An empty body is read here: the search API sends it for blocked requests. The search page would be HTML.
        return is_json(body) or not body.strip()

    def validate_input(self) -> None:
        """Raise an error unless the response is a list of results, which may be empty.

        A response with rows is valid whatever the ``status_code`` in its JSON: 203 and 403 were reported with twelve
        good rows each.

        Raises:
            UpstreamBlocked: the body is empty, or a CAPTCHA, a login wall or a bot check in place of rows.
            UpstreamError: the response is not JSON, or has no rows and an unknown ``status_code``.
            ScrapeError: the HTTP status is a failure (see ``raise_for_failures``).
            ExtractionFailed: the list is missing, or empty without a mark of the end of the results, or none of its
                rows can be read.
        """
        self.raise_for_failures()
        self._raise_for_markup()
        if not (self._items or self._answer.entries):
            self._raise_for_blocks()
            if not any(each.loses_rows for each in self.unread):
                self._raise_unless_empty()
                return
        self._raise_if_blind()
        self._report_missing_position()

    # Fields: specification 2.3

    @field
    def cursor(self) -> str:
        return str(count(self._answer.cursor) or 0)

    @field
    def has_more(self) -> bool:
        """Whether more rows follow. A response with rows that does not state it does not mark the end."""
        if self._more is None:
            return not self._is_bare and bool(self._items or self._answer.entries)
        return bool(self._more) and self._more not in ("0", "false")

    @field
    def keywords(self) -> str:
        query = parse_qs(urlsplit(str(self.response.url)).query)
        requested = self.page_params.get("keywords")
        return str(requested) if requested else next((query[name][0] for name in ("keyword", "q") if name in query), "")

    @field
    def search_item_list(self) -> list[dict[str, Any]]:
        posts: dict[str, dict[str, Any]] = {}
        for item in self._readable:
            posts.setdefault(str(item.id), self.entry(item))
        return list(posts.values())

    @property
    def states_more(self) -> bool:
        """Whether the response states whether more rows follow."""
        return self._more is not None

    @property
    def has_rows(self) -> bool:
        """Whether the response has a list of objects and states whether more follow, as only results do.

        Raises:
            ExtractionFailed: the response is malformed.
        """
        return self.states_more and bool(self._other_lists)

    def entry(self, row: Item) -> dict[str, Any]:
        """Convert a row to a post. Subclasses may override this method."""
        return photo_post(row)

    # The parts of the response

    @cached_property
    def _document(self) -> dict[str, Any]:
        """The decoded object that contains the list, the cursor, the status code, and the flag that more rows follow.

        A list that was saved alone gets the key under which the platform sends it. A response that was wrapped when it
        was saved is under ``data``, where the platform itself sends lists only.
        """
        data = decode(self.response.body, what="answer")
        if self._is_bare:
            return {"data" if any("item" in each for each in dicts(data)) else "item_list": data}
        while isinstance(inner := data.get("data"), dict):
            is_wrapper = data.keys().isdisjoint({"item_list", "itemList"}) and not ANSWER_KEYS.isdisjoint(inner)
            data = inner if is_wrapper else data | {"data": None}
        return cast("dict[str, Any]", data)

    @cached_property
    def _answer(self) -> Answer:
        return self.plain_payload(Answer, self._document)

    @property
    def _more(self) -> Flag | None:
        return self._answer.account_more if self._answer.more is None else self._answer.more

    @property
    def _is_bare(self) -> bool:
        """Whether the response is a list that was saved without the object that contained it."""
        return self.response.body.lstrip().startswith(b"[")

    @cached_property
    def _items(self) -> list[Item]:
        return [*(each.item for each in self._answer.entries if each.item is not None), *self._answer.items]

    @property
    def _rows_path(self) -> str:
        of_items = "itemList[]" if "itemList" in self._document else "item_list[]"
        return "data[].item" if self._answer.entries else of_items

    @cached_property
    def _photos(self) -> list[Item]:
        """The photo posts, except private posts and posts without pictures.

        If no photo post has pictures, posts without pictures are included: the list of pictures may have moved.
        """
        public = [item for item in self._items if item.pictures and not _is_hidden(item)]
        with_pictures = [item for item in public if item.pictures and item.pictures.images]
        return with_pictures or [item for item in public if not item.is_video]

    @cached_property
    def _readable(self) -> list[Item]:
        return [item for item in self._photos if missing_part(item) is None]

    # Validation

    def _raise_for_markup(self) -> None:
        """Raise an error for HTML instead of JSON. Capture 558c97048b47 is a page with a CAPTCHA's element."""
        if not is_json(self.response.body):
            self.raise_for_walls()
            raise UpstreamError("The search response is not JSON.", reason="not_json")

    def raise_for_walls(self) -> None:
        """Raise an error for a page with a CAPTCHA."""
        if wall_in(self.response) == "captcha":
            raise UpstreamBlocked("The platform returned a CAPTCHA challenge.", reason="captcha")

    def _raise_for_blocks(self) -> None:
        """Raise an error if a response without rows means that the search was blocked or requires an account.

        The four kinds of such responses are documented by other projects. None of these responses was recorded.

        Raises:
            UpstreamBlocked: a CAPTCHA, a login wall or a bot check.
            UpstreamError: another status code, whose meaning is not known. ``details`` contains it.
        """
        answer = self._answer
        status = text(answer.status)
        if answer.kind == "verify":
            raise UpstreamBlocked("The platform returned a CAPTCHA challenge.", reason="captcha")
        if status == LOGIN_REQUIRED_STATUS:
            raise UpstreamBlocked("The platform asks for a login.", reason=LOGIN_WALL)
        if answer.nil_type in BLOCKING_NILS:
            message = f"The platform blocked the search with its bot check {answer.nil_type!r}."
            raise UpstreamBlocked(message, reason=answer.nil_type)
        if status not in {"", "0"} and not self._other_lists:
            detail: Detail = {"loc": ["status_code"], "msg": status, "type": "unknown_status"}
            message = f"The platform sent no results, but the status {status}."
            raise UpstreamError(message, details=[detail], reason="unknown_status")

    def _raise_unless_empty(self) -> None:
        """Raise an error if a response without rows does not mark the end of the results: its keys may be renamed."""
        nil = self._answer.nil_type
        if nil in NOTHING_FOUND:
            return
        if nil:
            message = f"The response contains no rows, for the unknown reason {nil[:60]!r}."
            raise missing_error(message, ["search_nil_info", "search_nil_type"], reason="unknown_nil_type")
        if self._other_lists:
            raise missing_error("The response contains its rows under unknown keys.", ["item_list"], reason="no_list")
        if self._more is None or self.has_more:
            message = "The response contains no rows, but does not mark the end of the results."
            raise missing_error(message, ["item_list"], reason="no_rows")

    @cached_property
    def _other_lists(self) -> list[str]:
        """The keys of lists of objects in the response, one of which may contain the rows under a new name."""
        return [key for key, value in self._document.items() if dicts(value)]

    def _report_missing_position(self) -> None:
        """Report that a response with rows lacks ``cursor`` or ``has_more``, which six public projects read."""
        if not self._is_bare and self._answer.account_more is None:
            stated = {"cursor": self._answer.cursor, "has_more": self._answer.more}
            missing = [key for key, value in stated.items() if value is None]
            self.unread += [Unread(key, "missing") for key in missing if key not in {each.path for each in self.unread}]

    def _raise_if_blind(self) -> None:
        """Report items of an unknown kind, and photo posts without a mandatory part. Raise an error if no post is left.

        Every recorded item is a photo post (``imagePost``), a video (with a duration) or a live stream.
        """
        lost = Counter(part for item in self._photos if (part := missing_part(item)))
        lost["imagePost"] = sum(not (item.pictures or item.is_video or _is_hidden(item)) for item in self._items)
        lost[IMAGES] += 0  # a photo post without its list of pictures is not among the photo posts
        paths = {f"{self._rows_path}.{part}": number for part, number in lost.items() if number or part == IMAGES}
        # A part that the contract has reported is not reported again.
        self.unread = [each._replace(loses_rows=True) if each.path in paths else each for each in self.unread]
        for path, number in paths.items():
            if (new := number - sum(each.rows for each in self.unread if each.path == path)) > 0:
                self.unread.append(Unread(path, "missing", new, len(self._items), loses_rows=True))
        self._report_missing_values()
        failed = [each for each in self.unread if each.loses_rows]
        if failed and not self._readable:
            raise unread_error("No photo post in the response can be read.", failed, reason="blind")

    def _report_missing_values(self) -> None:
        """Report pictures without an address, and keys that posts lack although they have others beside these.

        The recorded pictures have two addresses (capture 0195a6f55cbd). For the keys, see ``Item.missing``.
        """
        pictures = [each for item in self._readable if item.pictures for each in item.pictures.images]
        found: list[tuple[str, Cause, int, int]] = [
            (URLS, "null", sum(not each.urls for each in pictures), len(pictures))
        ]
        keys = Counter(key for item in self._readable for key in item.missing)
        found += [(key, "missing", rows, len(self._readable)) for key, rows in keys.items()]
        for path, cause, rows, of in found:
            if (number := rows - self._noted(path)) > 0:
                self.unread.append(Unread(f"{self._rows_path}.{path}", cause, number, of))

    def _noted(self, path: str) -> int:
        """Return the number of rows in which a part of photo posts is already reported."""
        return sum(each.rows for each in self.unread if each.path.endswith(f".{path}"))


def _is_hidden(item: Item) -> bool:
    """Whether an item is left out of the record because it is private or a live stream."""
    is_of_private_account = item.author is not None and item.author.is_private is True
    return item.live is not None or item.is_private is True or is_of_private_account


@attrs.define(slots=False)
class SearchPage(PlatformPage):
    """The search page, whose script fetches the results. If none arrive, this class finds the reason in the HTML."""

    source: ClassVar[str] = "search page"
    received: dict[str, Any] | None = attrs.field(default=None, init=False)
    """The record built from the results that the page received in the browser; None if no results arrived."""
    elsewhere: ScrapeError | None = attrs.field(default=None, init=False)
    """What the responses to the page's other search calls explain, if no results arrived."""

    @cached_property
    def wall(self) -> str | None:
        """The login dialog or CAPTCHA in the HTML, or None.

        For a page that was loaded in the browser, the spider sets it to the login dialog or CAPTCHA that was visible.
        """
        return wall_in(self.response)

    @classmethod
    def recognise(cls, body: str) -> bool:
        return body.lstrip()[:1] == "<"

    def validate_input(self) -> None:
        """Raise the error that explains why the page received no results.

        For the errors by HTTP status, such as ``UpstreamRateLimited``, see ``raise_for_failures``.

        Raises:
            UpstreamBlocked: the page shows a CAPTCHA or a waiting room; or it is the login page, or shows the login
                dialog.
            ExtractionFailed: the page is not the search page, or its results have an unknown path and form.
            UpstreamTimeout: the page is the search page, but no results arrived.
        """
        self.raise_for_failures()
        self.raise_for_walls()
        body, path = self.response.text, self._path
        is_other_page = (path and "/search" not in path) or any(mark in body for mark in OTHER_PAGE_MARKS)
        if STATE_MARK not in body or is_other_page:
            raise missing_error("The page is not the platform's search page.", [STATE_MARK], reason="no_search_page")
        raise self.elsewhere or UpstreamTimeout("The page received no results in time.", reason="no_answer")

    @property
    def _path(self) -> str:
        return urlsplit(str(self.response.url)).path

    def raise_for_walls(self) -> None:
        """Raise an error for a page with a CAPTCHA or a login dialog, for the login page, and for the waiting room."""
        if self.wall == "captcha":
            raise UpstreamBlocked("The platform returned a CAPTCHA challenge.", reason="captcha")
        if self.wall == "login" or self._path.startswith("/login"):
            raise UpstreamBlocked("The platform asks for a login.", reason=LOGIN_WALL)
        if STATE_MARK not in self.response.text and any(mark in self.response.text for mark in WAIT_MARKS):
            raise UpstreamBlocked("The platform returned its waiting room.", reason="waiting_room")
