"""Microblog: the base classes of the page objects: for all sources of a profile, and for the API's responses."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import attrs
from web_poet import field

from crawler.errors import (
    OTHER_FORM_REASONS,
    ExtractionFailed,
    ScrapeError,
    TargetNotFound,
    TargetRestricted,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
    quoted,
)
from crawler.platforms.microblog.convert import Contradictions, merged, profile
from crawler.platforms.microblog.payload import User
from crawler.platforms.microblog.timeline import Row, owner_of, records_of
from crawler.platforms.page import PlatformPage, mismatch_error, missing_error, unread_error
from crawler.reading.contract import invalid_error
from crawler.reading.documents import all_dicts, decode, dicts, dig, is_json
from crawler.reading.values import count, text

LOGIN_PATH = "/i/flow/login"
CHALLENGE_MARKS = (
    "/cdn-cgi/challenge-platform/",
    "<title>Just a moment...</title>",
    "cf-browser-verification",
    "<title>Attention Required! | Cloudflare</title>",
)
RATE_LIMIT_PREFIXES = ("rate limit exceeded", "429 too many requests")
"""The beginnings of the platform's messages about a rate limit, in lower case and with blanks between the words."""

_LOGIN_TITLE = re.compile(r"<title[^>]{0,200}+>\s*Log in to X")


def is_rate_limit_text(body: str) -> bool:
    """Whether a response body, or the message of an error, is one of the platform's messages about a rate limit."""
    return body[:100].strip().casefold().replace("_", " ").startswith(RATE_LIMIT_PREFIXES)


@attrs.define(slots=False)
class MicroblogPage(PlatformPage):
    """Base class for the responses of all sources. ``page_params`` contains ``username``: the requested handle without
    @.

    Fields: ``profile`` (with the data model's keys; None for values that the source does not expose; {} if the source
    contains no user), ``user_id``, ``posts`` (as the data model describes them), ``pinned`` (the pinned post's id, or
    "") and ``next_cursor`` (the platform's cursor; "" if this source has no next page; None if it could not be read).
    """

    @field
    def profile(self) -> dict[str, Any]:
        users = [each for each in self.users if each.screen_name]
        contradictions = Contradictions("user")
        found = merged([profile(each, contradictions) for each in users]) if users else {}
        self.unread += contradictions.unread()
        return found

    @field
    def user_id(self) -> str:
        return next((each.id for each in self.users if each.id), "")

    @field
    def posts(self) -> list[dict[str, Any]]:
        return self.records

    @field
    def pinned(self) -> str:
        return next((row.post.id for row in self.rows if row.pinned and row.post), "")

    @field
    def next_cursor(self) -> str | None:
        return ""

    # Defaults that the page objects of some sources override

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of the timeline, with posts or placeholders. Empty if the source has no timeline."""
        return []

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """The posts in the timeline, as the data model describes them."""
        contradictions = Contradictions("tweet_results.result")
        found = records_of(self.rows, self.owner, contradictions)
        self.unread += contradictions.unread()
        return found

    @cached_property
    def users(self) -> Sequence[User]:
        """The user objects of the requested user in the response, the most complete one first."""
        return self.authors[:1]

    @cached_property
    def authors(self) -> list[User]:
        """The user objects of the requested user among the authors of the timeline's posts."""
        authors = [row.post.author for row in self.rows if row.post and row.handle.casefold() == self.owner.casefold()]
        return [author for author in authors if isinstance(author, User)]

    @property
    def requested_handle(self) -> str:
        """The requested handle, or "" if it is unknown, as for a saved response."""
        return text(self.page_params.get("username")).removeprefix("@")

    @cached_property
    def owner(self) -> str:
        """The requested handle, or if it is unknown, the handle of the timeline's most frequent author."""
        return self.requested_handle or owner_of(self.rows)

    # Validation methods that the page objects of all sources use

    def raise_for_walls(self) -> None:
        """Raise an error for a login page, a challenge or a rate limit. Call this only for a page without data."""
        body = self.response.text
        if is_rate_limit_text(body):
            raise UpstreamRateLimited("The platform's rate limit is reached.", reason="rate_limited")
        if any(mark in body for mark in CHALLENGE_MARKS):
            raise UpstreamBlocked("The platform returned a challenge page.", reason="challenge")
        if LOGIN_PATH in str(self.response.url) or _LOGIN_TITLE.search(body):
            raise UpstreamBlocked("The platform returned its login page.", reason="login_wall")

    def raise_if_no_row_is_understood(self) -> None:
        """Raise an error if no post can be read, although the response has rows.

        Raises:
            ExtractionFailed: rows were left out because they could not be read, and no post is left. The reason is
                ``null_rows`` if all of them are null, else ``blind``.
        """
        if not self.records:
            lost = [each for each in self.unread if each.loses_rows and each.cause != "limit"]
            if lost:
                reason = "null_rows" if all(each.cause == "null" for each in lost) else "blind"
                raise unread_error("No post in the timeline could be read.", lost[:10], reason=reason)

    def raise_for_other_profile(self, handle: str) -> None:
        """Raise ``ExtractionFailed`` if the handle is not the requested handle. An empty handle is accepted."""
        if self.requested_handle and handle and handle.casefold() != self.requested_handle.casefold():
            message = f"The response is for the profile {handle!r}, not {self.requested_handle!r}."
            raise mismatch_error(message, ["screen_name"], self.requested_handle)


# The API

_WEB_ROOT = re.compile(rb'"user_result_by_screen_name"|"data"\s*:\s*\{\s*"user_results"')
"""The keys in responses to the newest web client's queries, and to an older client's query for a user."""
ROOT_BYTES = 2_000
"""The keys that identify the kind of response are within this number of bytes from its start."""
STALE_MESSAGE = "query not found"
USER_KEYS = ("user", "user_result_by_screen_name", "user_results")
"""The keys under which the responses to the project's queries contain the user."""
OLD_USER_KEYS = frozenset({"created_at", "name", "screen_name"})
"""The keys in ``legacy`` of users without ``core``: 830 of 830 in the responses until 2025-03, to query ids that are no
longer used (captures 251bd89a84fc, d58666568877). None of the 1,904 users with ``core`` has one of them there."""

TOKEN_REFUSED = "token_refused"  # noqa: S105  # the reason of an error, not a secret
STALE_QUERY = "stale_query_id"
MISSING_FLAGS = "missing_flags"
BAD_REQUEST = "bad_request"
WRONG_VARIABLES = "wrong_variables"
REFUSED_QUERY = "refused_query"
PERMANENT_REASONS = frozenset({STALE_QUERY, MISSING_FLAGS, WRONG_VARIABLES}) | OTHER_FORM_REASONS
"""Error reasons after which the same query would fail again if it were sent unchanged."""

_MARKUP = re.compile(rb"\s*<")
_FLAG = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+){2,}\b", re.ASCII)

_REPORTED: dict[int, tuple[type[ScrapeError], str]] = {
    code: (kind, reason)
    for kind, reason, codes in (
        (TargetNotFound, "not_found", (17, 34, 50, 144)),
        (TargetRestricted, "suspended", (63,)),
        (TargetRestricted, "protected", (22,)),
        (TargetRestricted, "withheld", (421, 422)),
        (UpstreamBlocked, "login_required", (32, 37, 179, 200, 326, 353)),
        (UpstreamBlocked, TOKEN_REFUSED, (89, 239)),
        (UpstreamError, "server_error", (29, 130, 131)),
        (ExtractionFailed, BAD_REQUEST, (214,)),
    )
    for code in codes
}
"""The error's class and reason for each known error code of the platform, except the codes for rate limits and for
missing flags."""


def unavailable_error(reason: str | None, *place: str | int) -> TargetNotFound | TargetRestricted:
    """Return the error for the placeholder of a user that is not shown. ``reason``: what the placeholder states."""
    reason = reason or "unavailable"
    details, message = quoted(f"UserUnavailable: {reason}", *place), f"The account is unavailable: {reason}."
    if reason in {"NotFound", "Deactivated", "Deleted"}:
        return TargetNotFound(message, details=details, reason="not_found")
    return TargetRestricted(message, details=details, reason=reason.lower())


def rate_limited(page: PlatformPage) -> UpstreamRateLimited:
    """Create the error for a rate limit, with the seconds until the limit resets if the response headers state them."""
    reset = count(page.response.headers.get("x-rate-limit-reset"))
    wait = None if reset is None else min(max(0, reset - int(time.time())), 86_400)
    return UpstreamRateLimited("The platform's rate limit is reached.", reason="rate_limited", retry_after=wait)


@attrs.define(slots=False)
class ApiPage(MicroblogPage):
    """Base class for JSON responses of the API, which contain data, the platform's own error codes, or both."""

    token_reasons: ClassVar[frozenset[str]] = frozenset({TOKEN_REFUSED})

    @classmethod
    def recognise(cls, body: str) -> bool:
        return is_json(body) and ('"data"' in body or '"errors"' in body)

    def raise_for_failures(self) -> None:
        """Raise an error for a failed response, by the platform's error code or the HTTP status.

        Status 404 has two meanings here. With the message "Query not found" or the error code 34, the query's id is out
        of date. Otherwise the platform refuses the query, because it is not open to guests or lacks a signature.

        Raises:
            ScrapeError: the response failed. The platform's error code or the HTTP status decides the error's class. If
                the response has data, its error codes are ignored.
        """
        status = self.response.status
        if status == 429 or is_rate_limit_text(self.response.body[:100].decode(errors="replace")):
            raise rate_limited(self)
        if status == 404 and self._message.casefold().startswith(STALE_MESSAGE):
            raise self._stale_error()
        if status == 422:
            message = f"The platform rejected the query's variables: {self._message or 'no reason stated'}."
            raise missing_error(message, ["variables"], reason=WRONG_VARIABLES)
        if self._has_failed and self._errors and not self._has_data:
            raise self._reported_error()
        if status in {404, 410}:
            raise UpstreamBlocked("The platform refused the query: it is not open to guests.", reason=REFUSED_QUERY)
        if status == 403 and not self._is_markup:
            raise UpstreamBlocked("The platform rejected the guest token.", reason=TOKEN_REFUSED)
        super().raise_for_failures()
        if self._is_markup:
            raise UpstreamBlocked("Expected JSON, received an HTML page.", reason="challenge")

    @property
    def _is_markup(self) -> bool:
        return _MARKUP.match(self.response.body) is not None

    @property
    def _has_failed(self) -> bool:
        status = self.response.status
        return status is not None and not 200 <= status < 300

    @cached_property
    def _plain(self) -> Any:
        """The decoded response body, for responses without the requested data.

        None if the body of a failed response is not valid JSON: the status already states the failure.
        """
        try:
            return decode(self.response.body, what="response")
        except ExtractionFailed:
            if self._has_failed:
                return None
            raise

    @property
    def _is_web(self) -> bool:
        """Whether the response has a key in ``_WEB_ROOT``, so that the contract for it is ``WebResponse``."""
        return _WEB_ROOT.search(self.response.body, 0, ROOT_BYTES) is not None

    @cached_property
    def _message(self) -> str:
        """The message in a response with neither data nor a list of errors, "" if there is none."""
        return text(dig(self._plain, "message"))[:200] if is_json(self.response.body) else ""

    def _stale_error(self) -> ExtractionFailed:
        return missing_error("Query not found: its id is out of date.", ["data"], reason=STALE_QUERY)

    @cached_property
    def _errors(self) -> list[dict[str, Any]]:
        return dicts(dig(self._plain, "errors")) if is_json(self.response.body) else []

    @property
    def _has_data(self) -> bool:
        found = dig(self._plain, "data")
        return isinstance(found, dict) and any(value for value in found.values())

    def _reported_error(self) -> ScrapeError:
        error, status = self._errors[0], self.response.status
        code = count(error.get("code")) or count(dig(error, "extensions", "code")) or 0
        message = text(error.get("message"))[:200]
        if code == 34 and status == 404:
            return self._stale_error()
        if code == 88 or is_rate_limit_text(message):
            return rate_limited(self)
        if code == 336:
            flags = [["features", name] for name in dict.fromkeys(_FLAG.findall(text(error.get("message"))))]
            return missing_error(message, *flags, reason=MISSING_FLAGS)
        if code in _REPORTED:
            kind, reason = _REPORTED[code]
            details = quoted(message, "errors", 0)
            return kind(f"The platform returned error {code}: {message}", details=details, reason=reason)
        if status in {401, 403}:
            return UpstreamBlocked(f"The platform returned an error: {message}", reason=TOKEN_REFUSED)
        return UpstreamError(f"The platform returned an error: {message}", reason="server_error")

    def _raise_without_user(self, message: str, reason: str) -> NoReturn:
        """Raise the error for a response in which the contract finds no user or no timeline.

        ``message``, ``reason``: of the error for a response with a user that cannot be read.

        Raises:
            ExtractionFailed: ``null_user``: the user is null, and nothing says why. ``unknown_form``: the response is
                for another query, or has the users of a former query id. Otherwise ``reason``, with up to ten paths
                that could not be read.
            ScrapeError: the response has a list of errors.
        """
        if self._errors:
            raise self._reported_error()
        data = dig(self._plain, "data")
        if not isinstance(data, dict):
            raise missing_error("The response contains no data object.", ["data"], reason="no_data_block")
        key = next((key for key in USER_KEYS if key in data), None)
        if key is None and data:
            raise missing_error("The response is not for a user.", ["data", "user"], reason="unknown_form")
        path = ["data", key or "user", "result"]
        user = data[key] if key else None
        if user is None or (isinstance(user, dict) and user.get("result", "") is None):
            raise invalid_error("The platform sent no user.", path, "Input is null", "null", reason="null_user")
        if any(_is_old_user(each) for each in all_dicts(data)):
            message = "The response has the users of a former query id."
            raise missing_error(message, [*path, "core"], reason="unknown_form")
        paths = [[each.path] for each in self.unread[:10]]
        raise missing_error(message, *(paths or [path]), reason=reason)


def _is_old_user(data: dict[str, Any]) -> bool:
    legacy = data.get("legacy")
    return "core" not in data and isinstance(legacy, dict) and legacy.keys() >= OLD_USER_KEYS
