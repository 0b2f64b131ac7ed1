"""Microblog: the base class of the page objects for all sources of a profile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
from web_poet import field

from crawler.errors import UpstreamBlocked, UpstreamRateLimited
from crawler.platforms.microblog.payload_user import User
from crawler.platforms.microblog.timeline import Row, owner_of, records_of
from crawler.platforms.microblog.unread import Contradictions
from crawler.platforms.microblog.user import merged, profile
from crawler.platforms.page import PlatformPage, mismatch_error, missing_error
from crawler.reading.values import text

LOGIN_PATH = "/i/flow/login"
CHALLENGE_MARKS = (
    "/cdn-cgi/challenge-platform/",
    "<title>Just a moment...</title>",
    "cf-browser-verification",
    "<title>Attention Required! | Cloudflare</title>",
)
RATE_LIMIT_PREFIXES = ("Rate limit exceeded", "429 Too Many Requests")
"""The beginnings of the platform's plain-text messages about a rate limit."""

_LOGIN_TITLE = re.compile(r"<title[^>]{0,200}+>\s*Log in to X")


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

    def raise_for_blocks(self) -> None:
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
            ExtractionFailed: all posts lack mandatory parts.
        """
        if not self.records:
            lost = [[each.path] for each in self.unread if each.loses_rows]
            if lost:
                raise missing_error("No post in the timeline could be read.", *lost[:10], reason="blind")

    def raise_for_other_profile(self, handle: str) -> None:
        """Raise an error if the handle is not the requested one. An empty handle is accepted."""
        if self.requested_handle and handle and handle.casefold() != self.requested_handle.casefold():
            message = f"The response is for the profile {handle!r}, not {self.requested_handle!r}."
            raise mismatch_error(message, ["screen_name"], self.requested_handle)


def is_rate_limit_text(body: str) -> bool:
    """Whether a response body is one of the platform's plain-text messages for a rate limit."""
    return body.strip().startswith(RATE_LIMIT_PREFIXES)
