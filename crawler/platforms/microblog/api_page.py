"""Microblog: the base class of page objects for API responses, which raises the errors that the platform reports."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import attrs

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
from crawler.platforms.page import PlatformPage, missing_error
from crawler.reading.json import decode, dicts, dig
from crawler.reading.values import count, retry_after_seconds, text

_WEB_ROOT = re.compile(rb'"user_result_by_screen_name"|"data"\s*:\s*\{\s*"user_results"')
"""The keys in responses to the newest web client's queries, and to an older client's query for a user."""
ROOT_BYTES = 2_000
"""The keys that identify the kind of response are within this number of bytes from its start."""
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

_REPORTED: dict[int, tuple[type[ScrapeError], str]] = {
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
"""For each error code of the platform, the error's class and reason."""


def rate_limited(page: PlatformPage) -> UpstreamRateLimited:
    """Create the error for a rate limit, with the seconds until the limit resets if the response headers state them."""
    headers = page.response.headers
    reset = count(headers.get("x-rate-limit-reset"))
    wait = retry_after_seconds(headers.get("Retry-After"))
    if wait is None and reset is not None:
        wait = min(max(0, reset - int(time.time())), 86_400)
    return UpstreamRateLimited(
        "The platform's rate limit is reached.",
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
            raise rate_limited(self)
        if status == 404 and self._message.casefold().startswith(STALE_MESSAGE):
            raise self._stale_error()
        if status == 422:
            raise missing_error(
                f"The platform rejected the query's variables: {self._message or 'no reason stated'}.",
                ["variables"],
                reason=WRONG_VARIABLES,
            )
        if not (status is None or 200 <= status < 300) and self._errors and not self._has_data:
            raise self._reported_error()
        if status in {404, 410}:
            raise UpstreamBlocked(
                "The platform refused the query: it is not open to guests.",
                reason=REFUSED_QUERY,
            )
        if status == 403 and not self._is_markup:
            raise UpstreamBlocked("The platform rejected the guest token.", reason=TOKEN_REFUSED)
        super().raise_for_failures()
        if self._is_markup:
            raise UpstreamBlocked("Expected JSON, received an HTML page.", reason="challenge")

    @cached_property
    def _first_character(self) -> bytes:
        """The first character of the response that is not white space, b"" if there is none."""
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
        """The message in a response with neither data nor a list of errors, "" if there is none."""
        return text(dig(self._plain, "message"))[:200] if self._is_object else ""

    def _stale_error(self) -> ExtractionFailed:
        return missing_error(
            "Query not found: its id is out of date.",
            ["data"],
            reason=STALE_QUERY,
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
            return rate_limited(self)
        if code == 336:
            flags = [["features", name] for name in dict.fromkeys(_FLAG.findall(text(error.get("message"))))]
            return missing_error(message, *flags, reason=MISSING_FLAGS)
        if code in _REPORTED:
            kind, reason = _REPORTED[code]
            detail: Detail = {"loc": ["errors", 0], "msg": message, "type": "query_error"}
            return kind(
                f"The platform returned error {code}: {message}",
                details=[detail] if kind is ExtractionFailed else None,
                reason=reason,
            )
        if status in {401, 403}:
            return UpstreamBlocked(f"The platform returned an error: {message}", reason=TOKEN_REFUSED)
        return UpstreamError(f"The platform returned an error: {message}", reason="server_error")

    def _raise_for_unavailable(self, reason: str | None, what: str = "account") -> None:
        """Raise the error for a placeholder that states why a user or post is not shown."""
        reason = reason or "unavailable"
        if reason in {"NotFound", "Deactivated", "Deleted"}:
            raise TargetNotFound(f"The {what} is unavailable: {reason}.", reason="not_found")
        raise TargetRestricted(f"The {what} is unavailable: {reason}.", reason=reason.lower())

    def _raise_without_data(self) -> None:
        """Raise an error for a response without the requested data, if it states why.

        For an unknown handle, the platform responds with an empty object as ``data``.
        """
        if self._errors and not self._has_data:
            raise self._reported_error()
        data = dig(self._plain, "data")
        if not isinstance(data, dict):
            raise missing_error("The response contains no data object.", ["data"], reason="no_data_block")
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
        """Raise an error for missing data.

        Its details list the contract's paths that could not be read, or the expected path if there are none.
        """
        paths = [[each.path] for each in self.unread[:10]]
        raise missing_error(message, *(paths or [list(path)]), reason=reason)
