"""Microblog: the answers of the calls that the platform's own client makes: a user, a user's posts, a guest's token."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
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
)
from crawler.platforms.microblog.base import MicroblogPage
from crawler.platforms.microblog.node import Node
from crawler.platforms.microblog.timeline import Row, kind_of, owner_of, rows_of_instructions
from crawler.platforms.microblog.user import screen_name
from crawler.platforms.page import PlatformPage, missing
from crawler.reading.json import decode, dicts, dig, find_all
from crawler.reading.values import count, retry_after_seconds, text

USER_PATHS = (
    ("data", "user", "result"),
    ("data", "user_result_by_screen_name", "result"),
    ("data", "user_result_by_rest_id", "result"),
)
TIMELINE_KEYS = frozenset({"timeline", "timeline_v2", "timeline_response", "profile_timeline_v2"})
SINGLE_POST_PATHS = (("data", "tweetResult", "result"), ("data", "tweet_result", "result"))

TOKEN_REFUSED = "token_refused"  # noqa: S105  # a reason, no secret
STALE_QUERY = "stale_query_id"
MISSING_FLAGS = "missing_flags"
BAD_REQUEST = "bad_request"

_FLAG = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+){2,}\b", re.ASCII)

_ERRORS: dict[int, Callable[..., ScrapeError]] = {}
"""What the platform's own error codes mean; the arguments are the message, upstream_status and reason."""
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
    """The error of a limit that is reached, with the seconds until it is lifted where the answer tells them."""
    headers = page.response.headers
    reset = count(headers.get("x-rate-limit-reset"))
    wait = retry_after_seconds(headers.get("Retry-After"))
    if wait is None and reset is not None:
        wait = min(max(0, reset - int(time.time())), 86_400)
    return UpstreamRateLimited(
        "The platform asks for fewer requests.",
        upstream_status=page.response.status,
        reason="rate_limited",
        retry_after=wait,
    )


@attrs.define(slots=False)
class ApiPage(MicroblogPage):
    """An answer in JSON, as data or as the platform's own errors."""

    @classmethod
    def recognise(cls, body: str) -> bool:
        return body.lstrip().startswith("{") and ('"data"' in body or '"errors"' in body)

    def raise_for_failures(self) -> None:
        """As on every platform; here a missing call means that its id is out of date, and errors have codes.

        Raises:
            ScrapeError: what the platform's error code stands for; data beside an error is taken all the same.
        """
        if self._errors and not self._has_data:
            raise self._reported()
        status = self.response.status
        if status == 429:
            raise _rate_limited(self)
        if status in {404, 410}:
            raise ExtractionFailed(
                "The platform has no such call: its id is out of date, or it is not for guests.",
                upstream_status=status,
                reason=STALE_QUERY,
            )
        if status == 403 and not self._is_markup:
            raise UpstreamBlocked("The guest's token is refused.", upstream_status=status, reason=TOKEN_REFUSED)
        super().raise_for_failures()
        if self._is_markup:
            raise UpstreamBlocked("A page instead of data.", upstream_status=status, reason="challenge")

    @property
    def _is_markup(self) -> bool:
        return self.response.body.lstrip().startswith(b"<")

    @cached_property
    def payload(self) -> Any:
        """The answer's JSON."""
        return decode(self.response.body, what="answer")

    @cached_property
    def _errors(self) -> list[dict[str, Any]]:
        if not self.response.body.lstrip().startswith(b"{"):
            return []
        return dicts(dig(self.payload, "errors"))

    @property
    def _has_data(self) -> bool:
        found = dig(self.payload, "data")
        return isinstance(found, dict) and any(value for value in found.values())

    def _reported(self) -> ScrapeError:
        error, status = self._errors[0], self.response.status
        code = count(error.get("code")) or count(dig(error, "extensions", "code")) or 0
        message = text(error.get("message"))[:200]
        if code == 34 and status == 404:
            return ExtractionFailed("The call's id is out of date.", upstream_status=status, reason=STALE_QUERY)
        if code == 88:
            return _rate_limited(self)
        if code == 336:
            flags = [["features", name] for name in dict.fromkeys(_FLAG.findall(text(error.get("message"))))]
            return missing(message, *flags, reason=MISSING_FLAGS, upstream_status=status)
        if code in _ERRORS:
            return _ERRORS[code](
                f"The platform says: {message} (code {code}).", upstream_status=status, reason=_REASONS[code]
            )
        if status in {401, 403}:
            return UpstreamBlocked(f"The platform says: {message}.", upstream_status=status, reason=TOKEN_REFUSED)
        return UpstreamError(f"The platform reports an error: {message}", upstream_status=status, reason="server_error")

    @cached_property
    def _answered_user(self) -> Node:
        """The object that the answer gives for the user, an empty node where there is none."""
        return next((node for path in USER_PATHS if (node := Node(dig(self.payload, *path)))), Node(None))

    def _raise_for_unavailable(self) -> None:
        """Raises for a user, or a post, of whom the platform only says why it does not show them."""
        posts = [Node(dig(self.payload, *path)) for path in SINGLE_POST_PATHS]
        for node in (self._answered_user, *posts):
            if text(node.get("__typename")) in {"UserUnavailable", "TweetUnavailable", "TweetTombstone"}:
                reason = text(node.get("reason")) or text(node.get("unavailable_reason")) or "unavailable"
                if reason in {"NotFound", "Deactivated", "Deleted"}:
                    raise TargetNotFound(f"The account is {reason}.", reason="not_found")
                raise TargetRestricted(f"The account is not shown: {reason}.", reason=reason.lower())

    def _raise_for_nobody(self) -> None:
        """Raises where the answer has no user at all: that is how the platform says that there is none."""
        data = dig(self.payload, "data")
        if not isinstance(data, dict):
            raise missing("The answer has no data.", ["data"], reason="no_data_block")
        if not data or all(not value for value in data.values()):
            raise TargetNotFound("The platform has no such profile.", reason="not_found")


@attrs.define(slots=False)
class UserPage(ApiPage):
    """A user by handle, in the three generations of the calls."""

    source: ClassVar[str] = "user"

    def validate_input(self) -> None:
        """Decides whether this is the user that was asked for.

        Raises:
            TargetNotFound: there is no such handle.
            TargetRestricted: the account is suspended or withheld.
            UpstreamBlocked: the call is not for guests, or the token is refused.
            UpstreamRateLimited: too many calls.
            ExtractionFailed: the call's id or flags are out of date, or the user is not understood.
        """
        self.raise_for_failures()
        self._raise_for_nobody()
        self._raise_for_unavailable()
        if not screen_name(self.user):
            if self._errors:
                raise self._reported()
            raise missing("The user has no handle.", [*USER_PATHS[0], "core", "screen_name"], reason="blind")
        self.raise_for_others(screen_name(self.user))

    @cached_property
    def user(self) -> Node:
        return self._answered_user


@attrs.define(slots=False)
class TimelinePage(ApiPage):
    """A page of a user's posts. ``page_params``: also ``cursor``, the platform's, as sent."""

    source: ClassVar[str] = "timeline"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return super().recognise(body) and '"instructions"' in body

    def validate_input(self) -> None:
        """Decides whether this is a page of posts. One without any is one, too: past the end, or a protected account.

        Raises:
            TargetNotFound: there is no such user.
            TargetRestricted: the user is suspended or withheld; nothing but posts that are not shown.
            UpstreamBlocked: the call is not for guests, or the token is refused.
            UpstreamRateLimited: too many calls.
            ExtractionFailed: the call's id or flags are out of date; no timeline; posts that are not understood.
        """
        self.raise_for_failures()
        self._raise_for_nobody()
        self._raise_for_unavailable()
        told = self._answered_user
        if not self._instructions:
            if self._errors:
                raise self._reported()
            if told and not TIMELINE_KEYS & told.value.keys():
                raise missing("The answer has no timeline.", [*USER_PATHS[0], "timeline"], reason="no_timeline")
        self.raise_for_others(screen_name(told))
        if self._is_unrecognised:
            raise missing("Entries are there, but no posts.", ["entries", "tweet_results"], reason="blind")
        if self.rows and not any(row.result for row in self.rows if row.result.get("__typename") != "TweetTombstone"):
            raise TargetRestricted("Nothing but posts that are not shown.", reason="tombstone")
        authors = {row.handle.casefold(): row.handle for row in self.rows if row.handle}
        if self.asked.casefold() not in authors:
            self.raise_for_others(next(iter(authors.values()), ""))
        _ = self.records  # raises for posts that are not understood

    @field
    def next_cursor(self) -> str:
        """The platform's cursor, "" where it leads nowhere: no posts here, the same one again, or the end is told."""
        if not self.rows or "Bottom" in self._ends:
            return ""
        found = next((value for kind, value in self._cursors if kind == "Bottom"), "")
        return "" if found == text(self.page_params.get("cursor")) else found

    @cached_property
    def user(self) -> Node:
        """The newest client asks for profile and posts in one call."""
        return self._answered_user if screen_name(self._answered_user) else super().user

    @cached_property
    def owner(self) -> str:
        return self.asked or screen_name(self._answered_user) or owner_of(self.rows)

    @cached_property
    def rows(self) -> list[Row]:
        return list(rows_of_instructions(self._instructions))

    @property
    def _is_unrecognised(self) -> bool:
        """Whether there are entries that are named after posts, and nothing is found in any."""
        named = (text(entry.get("entryId")) or text(entry.get("entry_id")) for entry in self._all_entries)
        return not self.rows and any(each.startswith("tweet-") for each in named)

    @cached_property
    def _all_entries(self) -> list[Node]:
        """Those that replace another one first."""
        replacing = [each.node("entry") for each in self._instructions if kind_of(each) == "TimelineReplaceEntry"]
        return replacing + [entry for each in self._instructions for entry in each.nodes("entries")]

    @cached_property
    def _instructions(self) -> list[Node]:
        found = next((each for each in find_all(self.payload, "instructions") if isinstance(each, list)), None)
        return [Node(each) for each in dicts(found)]

    @cached_property
    def _cursors(self) -> list[tuple[str, str]]:
        """Kind and value of each cursor, those that replace another one first."""
        found = [entry.node("content", "itemContent") or entry.node("content") for entry in self._all_entries]
        return [
            (text(each.get("cursorType")) or text(each.get("cursor_type")), text(each.get("value"))) for each in found
        ]

    @cached_property
    def _ends(self) -> str:
        """The directions in which the timeline says that it ends."""
        ends = (each for each in self._instructions if kind_of(each) == "TimelineTerminateTimeline")
        return " ".join(text(each.get("direction")) for each in ends)


@attrs.define(slots=False)
class GuestTokenPage(PlatformPage):
    """The token that the platform hands to a visitor without an account."""

    source: ClassVar[str] = "guest_token"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return '"guest_token"' in body

    def validate_input(self) -> None:
        """Decides whether there is a token.

        Raises:
            UpstreamBlocked: the platform hands out none.
            UpstreamRateLimited: too many were asked for.
        """
        if self.response.status == 429:
            raise _rate_limited(self)
        if self.response.status in {400, 401, 403, 404}:
            raise self._none()
        self.raise_for_failures()
        if not self.response.body.lstrip().startswith(b"{") or not self._token:
            raise self._none()

    @field
    def token(self) -> str:
        return self._token

    @cached_property
    def _token(self) -> str:
        return text(dig(decode(self.response.body, what="answer"), "guest_token"))

    def _none(self) -> UpstreamBlocked:
        return UpstreamBlocked(
            "The platform hands out no guest token.", upstream_status=self.response.status, reason=TOKEN_REFUSED
        )
