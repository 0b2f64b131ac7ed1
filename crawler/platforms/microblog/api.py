"""Microblog: page objects for responses of the platform's client API: a user, a user's posts, a guest token."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
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
from crawler.platforms.microblog.node import Node
from crawler.platforms.microblog.timeline import Row, kind_of, owner_of, rows_of_instructions
from crawler.platforms.microblog.user import screen_name
from crawler.platforms.page import PlatformPage, missing_error
from crawler.reading.json import decode, dicts, dig, find_all
from crawler.reading.values import count, retry_after_seconds, text

USER_PATHS = (
    ("data", "user", "result"),
    ("data", "user_result_by_screen_name", "result"),
    ("data", "user_result_by_rest_id", "result"),
    ("data", "user_results", "result"),
)
TIMELINE_KEYS = frozenset({"timeline", "timeline_v2", "timeline_response", "profile_timeline_v2"})
STALE_MESSAGE = "query not found"
SINGLE_POST_PATHS = (("data", "tweetResult", "result"), ("data", "tweet_result", "result"))

TOKEN_REFUSED = "token_refused"  # noqa: S105  # the reason of an error, not a secret
STALE_QUERY = "stale_query_id"
MISSING_FLAGS = "missing_flags"
BAD_REQUEST = "bad_request"
WRONG_VARIABLES = "wrong_variables"
REFUSED_QUERY = "refused_query"

_NOT_SPACE = re.compile(rb"\S")
_FLAG = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+){2,}\b", re.ASCII)

_ERRORS: dict[int, Callable[..., ScrapeError]] = {}
"""Maps the platform's error codes to error classes. A class is called with message, ``upstream_status``, ``reason``."""
_REASONS: dict[int, str] = {}
for _kind, _reason, _codes in (
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
):
    for _code in _codes:
        _ERRORS[_code], _REASONS[_code] = _kind, _reason


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
        if self._errors and not self._has_data:
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
    def payload(self) -> Any:
        """The decoded response body."""
        return decode(self.response.body, what="response")

    @property
    def _is_object(self) -> bool:
        return self._first_character == b"{"

    @cached_property
    def _message(self) -> str:
        """The message of a response that has neither data nor a list of errors, "" without one."""
        return text(dig(self.payload, "message"))[:200] if self._is_object else ""

    def _stale_error(self) -> ExtractionFailed:
        return missing_error(
            "Query not found: its id is out of date.",
            ["data"],
            reason=STALE_QUERY,
            upstream_status=self.response.status,
        )

    @cached_property
    def _errors(self) -> list[dict[str, Any]]:
        return dicts(dig(self.payload, "errors")) if self._is_object else []

    @property
    def _has_data(self) -> bool:
        found = dig(self.payload, "data")
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
            detail: Detail = {"loc": ["errors", 0], "msg": message, "type": "query_error"}
            return _ERRORS[code](
                f"The platform returned error {code}: {message}",
                details=[detail] if _ERRORS[code] is ExtractionFailed else None,
                upstream_status=status,
                reason=_REASONS[code],
            )
        if status in {401, 403}:
            return UpstreamBlocked(
                f"The platform returned an error: {message}", upstream_status=status, reason=TOKEN_REFUSED
            )
        return UpstreamError(
            f"The platform returned an error: {message}", upstream_status=status, reason="server_error"
        )

    @cached_property
    def _result_user(self) -> Node:
        """The user object in the response, or an empty node."""
        return next((node for path in USER_PATHS if (node := Node(dig(self.payload, *path)))), Node(None))

    def _raise_for_unavailable(self) -> None:
        """Raise an error if the response has a placeholder with a reason in place of the user or post."""
        posts = [Node(dig(self.payload, *path)) for path in SINGLE_POST_PATHS]
        for node in (self._result_user, *posts):
            if text(node.get("__typename")) in {"UserUnavailable", "TweetUnavailable", "TweetTombstone"}:
                reason = text(node.get("reason")) or text(node.get("unavailable_reason")) or "unavailable"
                if reason in {"NotFound", "Deactivated", "Deleted"}:
                    raise TargetNotFound(f"The account is unavailable: {reason}.", reason="not_found")
                raise TargetRestricted(f"The account is unavailable: {reason}.", reason=reason.lower())

    def _raise_for_missing_user(self) -> None:
        """Raise an error if the response has no user. The platform responds like this to unknown handles."""
        data = dig(self.payload, "data")
        if not isinstance(data, dict):
            raise missing_error("The response has no data object.", ["data"], reason="no_data_block")
        if not data or all(not value for value in data.values()):
            raise TargetNotFound("The profile does not exist.", reason="not_found")


@attrs.define(slots=False)
class UserPage(ApiPage):
    """The response to the query for a user by handle, in any of the three generations of the API."""

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
        self._raise_for_missing_user()
        self._raise_for_unavailable()
        if not screen_name(self.user):
            if self._errors:
                raise self._reported_error()
            raise missing_error(
                "The user object has no handle.", [*USER_PATHS[0], "core", "screen_name"], reason="blind"
            )
        self.raise_for_other_profile(screen_name(self.user))

    @cached_property
    def user(self) -> Node:
        return self._result_user


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
                or a post is not recognised.
        """
        self.raise_for_failures()
        self._raise_for_missing_user()
        self._raise_for_unavailable()
        user = self._result_user
        if self._errors and not self._instructions:
            raise self._reported_error()
        if self._listed is None:
            self._raise_for_missing_timeline(user)
        self.raise_for_other_profile(screen_name(user))
        if not self.rows and self._unread_instructions:
            instruction, key = self._unread_instructions[0]
            path = ["instructions", kind_of(instruction), key]
            raise missing_error("The timeline's entries could not be read.", path, reason="blind")
        if self._is_unrecognised:
            raise missing_error(
                "No entry of the timeline contains a post.", ["entries", "tweet_results"], reason="blind"
            )
        hidden = self.rows and not any(row.is_unread for row in self.rows)
        if hidden and not any(row.result for row in self.rows if row.result.get("__typename") != "TweetTombstone"):
            raise TargetRestricted("All posts of the page are withheld.", reason="tombstone")
        authors = {row.handle.casefold(): row.handle for row in self.rows if row.handle}
        if self.requested_handle.casefold() not in authors:
            self.raise_for_other_profile(next(iter(authors.values()), ""))
        self.raise_if_no_row_is_understood()
        for instruction, key in self._unread_instructions:
            message = "An instruction of the timeline could not be read."
            self.skip(missing_error(message, ["instructions", kind_of(instruction), key], reason="blind"))

    @field
    def next_cursor(self) -> str:
        """The platform's cursor for the next page.

        "" if this page is empty, repeats the cursor that was sent, or is marked as the end of the timeline.
        """
        if not self.rows or "Bottom" in self._ends:
            return ""
        found = next((value for kind, value in self._cursors if kind == "Bottom"), "")
        return "" if found == text(self.page_params.get("cursor")) else found

    @cached_property
    def user(self) -> Node:
        """The profile's user. In older API generations, this response has the user object only in the user's posts."""
        return self._result_user if screen_name(self._result_user) else super().user

    @cached_property
    def owner(self) -> str:
        return self.requested_handle or screen_name(self._result_user) or owner_of(self.rows)

    @cached_property
    def rows(self) -> list[Row]:
        return list(rows_of_instructions(self._instructions))

    def _raise_for_missing_timeline(self, user: Node) -> None:
        """Raise an error unless the platform left out the timeline on purpose, as for a protected account."""
        if not any(isinstance(dig(self.payload, *path), dict) for path in USER_PATHS):
            raise missing_error("The response has no user.", USER_PATHS[0], reason="no_user")
        present = TIMELINE_KEYS & user.value.keys()
        if user and not present:
            raise missing_error("The response has no timeline.", [*USER_PATHS[0], "timeline"], reason="no_timeline")
        if any(user.value[key] not in ({}, {"timeline": {}}, None) for key in present):
            path = [*USER_PATHS[0], "timeline", "timeline", "instructions"]
            raise missing_error("The timeline has no instructions.", path, reason="no_timeline")

    @property
    def _unread_instructions(self) -> list[tuple[Node, str]]:
        """The timeline's instructions that lack their mandatory key, such as ``entries``, each with that key."""
        parts = {"TimelineAddEntries": "entries", "TimelinePinEntry": "entry", "": "type"}
        kinds = [(each, parts.get(kind_of(each), "")) for each in self._instructions]
        return [(each, key) for each, key in kinds if key and not isinstance(each.get(key), list | dict)]

    @property
    def _is_unrecognised(self) -> bool:
        """Whether the entries' ids show that they contain posts, but no post was found in any entry."""
        named = (text(entry.get("entryId")) or text(entry.get("entry_id")) for entry in self._all_entries)
        return not self.rows and any(each.startswith("tweet-") for each in named)

    @cached_property
    def _all_entries(self) -> list[Node]:
        """All entries of the timeline. Entries with which the API replaces earlier entries come first."""
        replacing = [each.node("entry") for each in self._instructions if kind_of(each) == "TimelineReplaceEntry"]
        return replacing + [entry for each in self._instructions for entry in each.nodes("entries")]

    @cached_property
    def _listed(self) -> list[Any] | None:
        """The timeline's list of instructions, None if the response has no such list."""
        return next((each for each in find_all(self.payload, "instructions") if isinstance(each, list)), None)

    @cached_property
    def _instructions(self) -> list[Node]:
        return [Node(each) for each in dicts(self._listed)]

    @cached_property
    def _cursors(self) -> list[tuple[str, str]]:
        """Kind and value of each of the platform's cursors in the timeline. The kind "Bottom" leads to the next page.

        A cursor with which the API replaces an earlier cursor comes first.
        """
        found = [entry.node("content", "itemContent") or entry.node("content") for entry in self._all_entries]
        return [
            (text(each.get("cursorType")) or text(each.get("cursor_type")), text(each.get("value"))) for each in found
        ]

    @cached_property
    def _ends(self) -> str:
        """The directions in which the timeline has no further entries, such as "Bottom", separated by spaces."""
        ends = (each for each in self._instructions if kind_of(each) == "TimelineTerminateTimeline")
        return " ".join(text(each.get("direction")) for each in ends)


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
