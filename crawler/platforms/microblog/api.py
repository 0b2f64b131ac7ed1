"""Microblog: page objects for responses of the platform's client API: a user, a user's posts, a guest token."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.errors import (
    Detail,
    ExtractionFailed,
    ScrapeError,
    TargetNotFound,
    TargetRestricted,
    UpstreamBlocked,
    UpstreamError,
    UpstreamRateLimited,
)
from crawler.platforms.microblog.base import MicroblogPage
from crawler.platforms.microblog.payload import Instruction, TimelineResponse, UnavailableUser, User, UserResponse
from crawler.platforms.microblog.payload_web import WebInstruction, WebProfile, WebResponse
from crawler.platforms.microblog.timeline import Row, Timeline, lacking_parts, owner_of, timeline_of
from crawler.platforms.page import PlatformPage, missing_error
from crawler.reading.contract import values
from crawler.reading.json import all_dicts, decode, dicts, dig
from crawler.reading.paths import join, steps
from crawler.reading.values import count, retry_after_seconds, text

TIMELINE_KEYS = frozenset({"timeline", "timeline_v2", "profile_timeline_v2"})
_WEB_ROOT = re.compile(rb'"user_result_by_screen_name"|"data"\s*:\s*\{\s*"user_results"')
"""The keys in responses to the newest web client's queries, and to an older client's query for a user."""
ROOT_BYTES = 2_000
"""The root of a response is within this number of bytes."""
STALE_MESSAGE = "query not found"
USER_PATH = ("data", "user", "result")
SINGLE_POST_PATHS = (("data", "tweetResult", "result"), ("data", "tweet_result", "result"))

TOKEN_REFUSED = "token_refused"  # noqa: S105  # the reason of an error, not a secret
STALE_QUERY = "stale_query_id"
MISSING_FLAGS = "missing_flags"
BAD_REQUEST = "bad_request"
WRONG_VARIABLES = "wrong_variables"
REFUSED_QUERY = "refused_query"

_NOT_SPACE = re.compile(rb"\S")
_FLAG = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+){2,}\b", re.ASCII)

_ERRORS: dict[int, tuple[type[ScrapeError], str]] = {
    code: (kind, reason)
    for kind, reason, codes in (
        (TargetNotFound, "not_found", (17, 34, 50, 144)),
        (TargetRestricted, "suspended", (63,)),
        (TargetRestricted, "protected", (22,)),
        (TargetRestricted, "withheld", (421, 422)),
        (UpstreamBlocked, "login_required", (32, 37, 179, 200, 326, 353)),
        (UpstreamBlocked, TOKEN_REFUSED, (89, 239)),
        (UpstreamRateLimited, "rate_limited", (88,)),
        (UpstreamError, "server_error", (29, 130, 131)),
        (ExtractionFailed, BAD_REQUEST, (214,)),
        (ExtractionFailed, MISSING_FLAGS, (336,)),
    )
    for code in codes
}
"""The platform's error codes, each with the class and the reason of the error that it means."""


def _rate_limited(page: PlatformPage) -> UpstreamRateLimited:
    """Create the error for a rate limit, with the seconds until the limit resets if the response headers state them."""
    headers = page.response.headers
    reset = count(headers.get("x-rate-limit-reset"))
    wait = retry_after_seconds(headers.get("Retry-After"))
    if wait is None and reset is not None:
        wait = min(max(0, reset - int(time.time())), 86_400)
    return UpstreamRateLimited(
        "The platform's rate limit is reached.",
        upstream_status=page.response.status,
        reason="rate_limited",
        retry_after=wait,
    )


@attrs.define(slots=False)
class ApiPage(MicroblogPage):
    """Base class for JSON responses of the API, which contain data, the platform's own error codes, or both."""

    token_reasons: ClassVar[frozenset[str]] = frozenset({TOKEN_REFUSED})

    @classmethod
    def recognise(cls, body: str) -> bool:
        return body.lstrip().startswith("{") and ('"data"' in body or '"errors"' in body)

    def raise_for_failures(self) -> None:
        """Raise an error for a failed response, by the platform's error code or the HTTP status.

        Status 404 has two meanings here: with the message "Query not found" the query's id is out of date; with an
        empty body the platform refuses the query, because it is not open to guests or the request lacks a signature.

        Raises:
            ScrapeError: the response failed. The platform's error code or the HTTP status decides the error's class. If
                the response has data, its error codes are ignored.
        """
        status = self.response.status
        if status == 429:
            raise _rate_limited(self)
        if status == 404 and self._message.casefold().startswith(STALE_MESSAGE):
            raise self._stale_error()
        if status == 422:
            raise missing_error(
                f"The platform rejected the query's variables: {self._message or 'no reason stated'}.",
                ["variables"],
                reason=WRONG_VARIABLES,
                upstream_status=status,
            )
        if not (status is None or 200 <= status < 300) and self._errors and not self._has_data:
            raise self._reported_error()
        if status in {404, 410}:
            raise UpstreamBlocked(
                "The platform refused the query: it is not open to guests.",
                upstream_status=status,
                reason=REFUSED_QUERY,
            )
        if status == 403 and not self._is_markup:
            raise UpstreamBlocked(
                "The platform rejected the guest token.", upstream_status=status, reason=TOKEN_REFUSED
            )
        super().raise_for_failures()
        if self._is_markup:
            raise UpstreamBlocked("Expected JSON, received an HTML page.", upstream_status=status, reason="challenge")

    @cached_property
    def _first_character(self) -> bytes:
        """The first character of the response that is not a space, b"" without one."""
        found = _NOT_SPACE.search(self.response.body)
        return found[0] if found else b""

    @property
    def _is_markup(self) -> bool:
        return self._first_character == b"<"

    @cached_property
    def _plain(self) -> Any:
        """The decoded response body, for responses without the requested data."""
        return decode(self.response.body, what="response")

    @property
    def _is_web(self) -> bool:
        """Whether the response is for the newest web client's query."""
        return _WEB_ROOT.search(self.response.body, 0, ROOT_BYTES) is not None

    @property
    def _is_object(self) -> bool:
        return self._first_character == b"{"

    @cached_property
    def _message(self) -> str:
        """The message of a response that has neither data nor a list of errors, "" without one."""
        return text(dig(self._plain, "message"))[:200] if self._is_object else ""

    def _stale_error(self) -> ExtractionFailed:
        return missing_error(
            "Query not found: its id is out of date.",
            ["data"],
            reason=STALE_QUERY,
            upstream_status=self.response.status,
        )

    @cached_property
    def _errors(self) -> list[dict[str, Any]]:
        return dicts(dig(self._plain, "errors")) if self._is_object else []

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
        if code == 88:
            return _rate_limited(self)
        if code == 336:
            flags = [["features", name] for name in dict.fromkeys(_FLAG.findall(text(error.get("message"))))]
            return missing_error(message, *flags, reason=MISSING_FLAGS, upstream_status=status)
        if code in _ERRORS:
            kind, reason = _ERRORS[code]
            detail: Detail = {"loc": ["errors", 0], "msg": message, "type": "query_error"}
            return kind(
                f"The platform returned error {code}: {message}",
                details=[detail] if kind is ExtractionFailed else None,
                upstream_status=status,
                reason=reason,
            )
        if status in {401, 403}:
            return UpstreamBlocked(
                f"The platform returned an error: {message}", upstream_status=status, reason=TOKEN_REFUSED
            )
        return UpstreamError(
            f"The platform returned an error: {message}", upstream_status=status, reason="server_error"
        )

    def _raise_for_unavailable(self, reason: str | None, what: str = "account") -> None:
        """Raise the error for a placeholder with a reason in place of a user or post."""
        reason = reason or "unavailable"
        if reason in {"NotFound", "Deactivated", "Deleted"}:
            raise TargetNotFound(f"The {what} is unavailable: {reason}.", reason="not_found")
        raise TargetRestricted(f"The {what} is unavailable: {reason}.", reason=reason.lower())

    def _raise_without_data(self) -> None:
        """Raise an error for a response without the requested data, if it states why.

        The platform's response to an unknown handle has an empty object as data.
        """
        if self._errors and not self._has_data:
            raise self._reported_error()
        data = dig(self._plain, "data")
        if not isinstance(data, dict):
            raise missing_error("The response has no data object.", ["data"], reason="no_data_block")
        if not self._has_data:
            raise TargetNotFound("The profile does not exist.", reason="not_found")
        for path in SINGLE_POST_PATHS:
            post = dig(self._plain, *path)
            if text(dig(post, "__typename")) in {"TweetUnavailable", "TweetTombstone"}:
                self._raise_for_unavailable(text(dig(post, "reason")), "post")
            if post is not None:
                raise missing_error("The response is for a single post, not for a profile.", path, reason="no_user")
        if self._errors:
            raise self._reported_error()

    def _raise_for_unread(self, message: str, path: Sequence[str], reason: str) -> None:
        """Raise an error for missing data, with the paths that could not be read, else with the expected path."""
        paths = [[each.path] for each in self.unread[:10]]
        raise missing_error(message, *(paths or [list(path)]), reason=reason)


@attrs.define(slots=False)
class UserPage(ApiPage):
    """The response to the query for a user by handle, in any of the layouts of the API."""

    source: ClassVar[str] = "user"

    def validate_input(self) -> None:
        """Raise an error unless the response has the requested user.

        Raises:
            TargetNotFound: the handle does not exist.
            TargetRestricted: the account is suspended or withheld.
            UpstreamBlocked: guests may not use the query, or the platform rejected the guest token.
            UpstreamRateLimited: the platform's rate limit is reached.
            ExtractionFailed: the query id or the feature flags in the request are out of date, or the user object is
                not recognised.
        """
        self.raise_for_failures()
        if isinstance(self._result, UnavailableUser):
            self._raise_for_unavailable(self._result.reason)
        if not self.users or not self.users[0].screen_name:
            self._raise_without_data()
            self._raise_for_unread("The response has no user with a handle.", USER_PATH, "blind")
        self.raise_for_other_profile(self.users[0].screen_name or "")

    @cached_property
    def users(self) -> Sequence[User]:
        return [self._result] if isinstance(self._result, User) else []

    @cached_property
    def _result(self) -> User | UnavailableUser | None:
        if self._is_web:
            return self.payload(WebResponse, self.response.body, what="response").profile
        return self.payload(UserResponse, self.response.body, what="response").user


@attrs.define(slots=False)
class TimelinePage(ApiPage):
    """The response with one page of a user's posts.

    ``page_params`` additionally has ``cursor``: the platform's cursor that was sent with the request.
    """

    source: ClassVar[str] = "timeline"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return super().recognise(body) and '"instructions"' in body

    def validate_input(self) -> None:
        """Raise an error unless the response is a page of the user's posts.

        An empty page is valid: it follows the last post, and protected accounts have only empty pages.

        Raises:
            TargetNotFound: the user does not exist.
            TargetRestricted: the user is suspended or withheld, or all posts on the page are withheld.
            UpstreamBlocked: guests may not use the query, or the platform rejected the guest token.
            UpstreamRateLimited: the platform's rate limit is reached.
            ExtractionFailed: the query id or the feature flags in the request are out of date, the timeline is missing,
                or no post is recognised.
        """
        self.raise_for_failures()
        result = self._result
        if isinstance(result, UnavailableUser) or (
            isinstance(result, TimelineResponse) and result.kind == "UserUnavailable"
        ):
            self._raise_for_unavailable(result.reason)
        if not self._instructions:
            self._raise_without_data()
            self._raise_for_missing_timeline()
        self.raise_for_other_profile(self._profile.screen_name or "" if self._profile else "")
        unread = self._timeline.unread
        if self._timeline.has_empty_parts and self._is_web:
            listed = (each["instructions"] for each in all_dicts(self._plain) if "instructions" in each)
            unread += lacking_parts(dicts(next((each for each in listed if isinstance(each, list)), [])))
        if unread:
            self.unread += [each._replace(path=join(self._root, each.path)) for each in unread]
        self.raise_if_no_row_is_understood()
        if self.rows and not any(row.post for row in self.rows):
            raise TargetRestricted("All posts of the page are withheld.", reason="tombstone")
        handles = {handle.casefold(): handle for row in self.rows if (handle := row.handle)}
        if self.requested_handle.casefold() not in handles:
            self.raise_for_other_profile(next(iter(handles.values()), ""))

    @field
    def next_cursor(self) -> str | None:
        """The platform's cursor for the next page.

        "" if this page is empty, repeats the cursor that was sent, or is marked as the end of the timeline. None if
        the cursor could not be read: its entry has no value, or entries could not be read and there is no cursor.
        """
        if not self.rows or self.is_terminated:
            return ""
        found = self._timeline.cursor
        if found == "" and any(".entries[]" in each.path and each.loses_rows for each in self.unread):
            return None
        return "" if found == text(self.page_params.get("cursor")) else found

    @property
    def is_terminated(self) -> bool:
        """Whether the platform states that the timeline ends with this page."""
        return self._timeline.is_terminated

    @cached_property
    def users(self) -> Sequence[User]:
        """The profile's user. Most layouts have the user only in the user's posts."""
        return [self._profile] if self._profile else super().users

    @cached_property
    def owner(self) -> str:
        return self.requested_handle or (self._profile and self._profile.screen_name) or owner_of(self.rows)

    @cached_property
    def rows(self) -> list[Row]:
        return self._timeline.rows

    @cached_property
    def _timeline(self) -> Timeline:
        return timeline_of(self._instructions)

    @property
    def _root(self) -> str:
        """The path of the object with the instructions."""
        paths = next(each.paths for each in values(TimelineResponse) if each.name == "instructions")
        roots = [path.removesuffix(".instructions[]") for path in paths]
        return next((root for root in roots if dig(self._plain, *steps(root))), "timeline")

    @property
    def _instructions(self) -> Sequence[Instruction | WebInstruction]:
        return self._result.instructions if isinstance(self._result, TimelineResponse | WebProfile) else ()

    @cached_property
    def _profile(self) -> User | None:
        """The user beside the timeline, None if the response has none."""
        return self._result if isinstance(self._result, User) and self._result.screen_name else None

    @cached_property
    def _result(self) -> TimelineResponse | WebProfile | UnavailableUser | None:
        if self._is_web:
            return self.payload(WebResponse, self.response.body, what="response").profile
        return self.payload(TimelineResponse, self.response.body, what="response")

    def _raise_for_missing_timeline(self) -> None:
        """Raise an error unless the platform left out the timeline on purpose, as for a protected account."""
        user = dig(self._plain, "data", "user_result_by_screen_name" if self._is_web else "user", "result")
        if not isinstance(user, dict):
            self._raise_for_unread("The response has no user.", USER_PATH, "no_user")
        present = TIMELINE_KEYS & user.keys()
        path = [*USER_PATH, "timeline", "timeline", "instructions"]
        if user and not present:
            self._raise_for_unread("The response has no timeline.", path, "no_timeline")
        empty: tuple[object, ...] = (None, {}, {"timeline": {}})
        if any(user[key] not in empty and dig(user[key], "timeline", "instructions") != [] for key in present):
            self._raise_for_unread("The timeline has no instructions.", path, "no_timeline")


@attrs.define(slots=False)
class GuestTokenPage(PlatformPage):
    """The response with a guest token, which the platform issues to visitors without an account."""

    source: ClassVar[str] = "guest_token"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return '"guest_token"' in body

    def validate_input(self) -> None:
        """Raise an error unless the response contains a guest token.

        Raises:
            UpstreamBlocked: the platform issued no token.
            UpstreamRateLimited: too many guest tokens were requested.
        """
        if self.response.status == 429:
            raise _rate_limited(self)
        if self.response.status in {400, 401, 403, 404}:
            raise self._refusal_error()
        self.raise_for_failures()
        payload = decode(self.response.body, what="response") if self.response.body.lstrip().startswith(b"{") else {}
        if not payload or "errors" in payload:
            raise self._refusal_error()
        if not self._token:
            raise missing_error("The response has no guest token.", ["guest_token"], reason="blind")

    @field
    def token(self) -> str:
        return self._token

    @cached_property
    def _token(self) -> str:
        return text(dig(decode(self.response.body, what="response"), "guest_token"))

    def _refusal_error(self) -> UpstreamBlocked:
        return UpstreamBlocked(
            "The platform issued no guest token.", upstream_status=self.response.status, reason=TOKEN_REFUSED
        )
