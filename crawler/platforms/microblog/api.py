"""Microblog: page objects for responses of the platform's client API: a user, a user's posts, a guest token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import attrs
from web_poet import field

from crawler.errors import TargetNotFound, TargetRestricted, UpstreamBlocked, quoted
from crawler.platforms.microblog.base import (
    TOKEN_REFUSED,
    USER_KEYS,
    ApiPage,
    rate_limited,
    unavailable_error,
)
from crawler.platforms.microblog.payload import (
    Instruction,
    TimelineResponse,
    UnavailableUser,
    User,
    UserResponse,
    WebInstruction,
    WebProfile,
    WebResponse,
)
from crawler.platforms.microblog.timeline import Row, Timeline, lacking_parts, owner_of, timeline_of
from crawler.platforms.page import PlatformPage, missing_error
from crawler.reading.contract import join
from crawler.reading.documents import all_dicts, decode, dicts, dig, is_json
from crawler.reading.values import text

USER_PATH = ("data", "user", "result")
EMPTY_TIMELINES: tuple[object, ...] = ({}, {"timeline": {}})


@attrs.define(slots=False)
class UserPage(ApiPage):
    """The response to the query for a user by handle, in any of the API's formats."""

    source: ClassVar[str] = "user"

    def validate_input(self) -> None:
        """Raise an error unless the response contains the requested user.

        Raises:
            TargetNotFound: the handle does not exist: the query's data is ``{}``.
            TargetRestricted: the account is suspended, withheld or protected.
            UpstreamBlocked: guests may not use the query, or the platform rejected the guest token.
            UpstreamRateLimited: the platform's rate limit is reached.
            UpstreamError: the request failed.
            ExtractionFailed: the query id or the feature flags in the request are out of date, or the user object is
                null, not recognised, or another user's.
        """
        self.raise_for_failures()
        if isinstance(self._result, UnavailableUser):
            raise unavailable_error(self._result.reason, *USER_PATH)
        if not self.users or not self.users[0].screen_name:
            if not self._errors and (dig(self._plain, "data") == {} or dig(self._plain, "data", "user") == {}):
                raise TargetNotFound("The profile does not exist.", details=quoted("{}", "data"), reason="not_found")
            self._raise_without_user("The response contains no user with a handle.", "blind")
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

    ``page_params`` also contains ``cursor``: the platform's cursor that was sent with the request.
    """

    source: ClassVar[str] = "timeline"

    @classmethod
    def recognise(cls, body: str) -> bool:
        return super().recognise(body) and '"instructions"' in body

    def validate_input(self) -> None:
        """Raise an error unless the response is a page of the user's posts.

        An empty page is valid: such a page follows the last post, and protected accounts have only empty pages.

        Raises:
            TargetNotFound: the user does not exist.
            TargetRestricted: the user is suspended or withheld, or all posts on the page have placeholders.
            UpstreamBlocked: guests may not use the query, or the platform rejected the guest token.
            UpstreamRateLimited: the platform's rate limit is reached.
            UpstreamError: the request failed.
            ExtractionFailed: the query id or the feature flags in the request are out of date, the user is null, the
                timeline is missing or another user's, or no post can be read.
        """
        self.raise_for_failures()
        result = self._result
        if isinstance(result, UnavailableUser) or (
            isinstance(result, TimelineResponse) and result.kind == "UserUnavailable"
        ):
            raise unavailable_error(result.reason, *USER_PATH)
        if not self._instructions and (self._errors or not self._is_empty):
            self._raise_without_user("The response contains no timeline.", "no_timeline")
        self.raise_for_other_profile(self._profile.screen_name or "" if self._profile else "")
        unread = self._timeline.unread
        if self._timeline.has_empty_parts:
            listed = (each["instructions"] for each in all_dicts(self._plain) if "instructions" in each)
            unread += lacking_parts(dicts(next((each for each in listed if isinstance(each, list)), [])))
        self.unread += [each._replace(path=join(self._root, each.path)) for each in unread]
        self.raise_if_no_row_is_understood()
        if self.rows and not any(row.post for row in self.rows):
            kinds = sorted({row.placeholder for row in self.rows})
            details = quoted(", ".join(kinds), *self._root.split("."), "instructions")
            raise TargetRestricted("All posts on the page are withheld.", details=details, reason="tombstone")
        handles = {handle.casefold(): handle for row in self.rows if (handle := row.handle)}
        if self.requested_handle.casefold() not in handles:
            self.raise_for_other_profile(next(iter(handles.values()), ""))

    @field
    def next_cursor(self) -> str | None:
        """The platform's cursor for the next page.

        "" if this page is empty, repeats the cursor that was sent, or is marked as the end of the timeline. None if the
        cursor could not be read: its entry has no value, or the cursor may be in an entry that could not be read.
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
        """The profile's user. In most formats, only the posts contain it, as their author."""
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
        """The path of the object that contains the timeline's instructions."""
        return "timeline" if self._is_web else "data.user.result.timeline.timeline"

    @property
    def _instructions(self) -> Sequence[Instruction | WebInstruction]:
        return self._result.instructions if isinstance(self._result, TimelineResponse | WebProfile) else ()

    @cached_property
    def _profile(self) -> User | None:
        """The user object next to the timeline, None if the response has none."""
        return self._result if isinstance(self._result, User) and self._result.screen_name else None

    @cached_property
    def _result(self) -> TimelineResponse | WebProfile | UnavailableUser | None:
        if self._is_web:
            return self.payload(WebResponse, self.response.body, what="response").profile
        return self.payload(TimelineResponse, self.response.body, what="response")

    @property
    def _is_empty(self) -> bool:
        """Whether the platform sent the empty page of an account without posts, or of a protected one.

        The user or its timeline is ``{}``, or the timeline has an empty list of instructions.
        """
        users = (dig(self._plain, "data", key, "result") for key in USER_KEYS)
        user = next((each for each in users if each is not None), None)
        held = [value for key, value in user.items() if "timeline" in key] if isinstance(user, dict) else []
        return user == {} or any(
            each in EMPTY_TIMELINES or dig(each, "timeline", "instructions") == [] for each in held
        )


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
            UpstreamBlocked: the platform refused to issue a token.
            UpstreamRateLimited: too many guest tokens were requested.
            UpstreamError: the request failed.
            ExtractionFailed: the response is JSON without a token and without a list of errors.
        """
        if self.response.status == 429:
            raise rate_limited(self)
        refusal = UpstreamBlocked("The platform issued no guest token.", reason=TOKEN_REFUSED)
        if self.response.status in {400, 401, 403, 404}:
            raise refusal
        self.raise_for_failures()
        if not self._payload or "errors" in self._payload:
            raise refusal
        if not self.token:
            raise missing_error("The response contains no guest token.", ["guest_token"], reason="blind")

    @field
    def token(self) -> str:
        return text(dig(self._payload, "guest_token"))

    @cached_property
    def _payload(self) -> Any:
        """The decoded response. {} if it is not JSON."""
        return decode(self.response.body, what="response") if is_json(self.response.body) else {}
