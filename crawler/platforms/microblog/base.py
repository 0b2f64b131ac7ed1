"""Microblog: the base class of the page objects for all sources of a profile."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import attrs
from web_poet import field

from crawler.errors import UpstreamBlocked, UpstreamRateLimited
from crawler.platforms.microblog.node import Node
from crawler.platforms.microblog.timeline import Row, author_node, lacking, owner_of, records_of
from crawler.platforms.microblog.user import profile, screen_name
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
"""How the platform's plain-text messages for a rate limit begin."""

_LOGIN_TITLE = re.compile(r"<title[^>]{0,200}+>\s*Log in to X")


@attrs.define(slots=False)
class MicroblogPage(PlatformPage):
    """Base class for the responses of all sources. ``page_params`` has ``username``: the requested handle without @.

    Fields: ``profile`` (with the data model's keys; None for values that the source does not expose; {} if the source
    has no user), ``user_id``, ``posts`` (as the data model describes them), ``pinned`` (the pinned post's id, or "")
    and ``next_cursor`` (the platform's cursor, or "" if this source has no next page).
    """

    @field
    def profile(self) -> dict[str, Any]:
        return profile(self.user) if screen_name(self.user) else {}

    @field
    def user_id(self) -> str:
        return text(self.user.get("rest_id")) or text(self.user.get("legacy", "id_str"))

    @field
    def posts(self) -> list[dict[str, Any]]:
        return self.records

    @field
    def pinned(self) -> str:
        return next((row.post.id for row in self.rows if row.pinned), "")

    @field
    def next_cursor(self) -> str:
        return ""

    # Defaults that the page objects of some sources override

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of the timeline, with posts or placeholders. Empty if the source has no timeline."""
        return []

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """The posts in the timeline, as the data model describes them."""
        return records_of(self.rows, self.owner)

    @cached_property
    def user(self) -> Node:
        """The user whose profile was requested, or an empty node if the response does not have this user."""
        return author_node(self.rows, self.owner)

    @property
    def requested_handle(self) -> str:
        """The requested handle, or "" if it is unknown, as for a saved response."""
        return text(self.page_params.get("username")).removeprefix("@")

    @cached_property
    def owner(self) -> str:
        """The requested handle. If the requested handle is "", the most frequent author's in the timeline."""
        return self.requested_handle or owner_of(self.rows)

    # Validation methods that the page objects of all sources use

    def raise_for_blocks(self) -> None:
        """Raise an error for a login page, a challenge or a rate limit. Call this only for a page without data."""
        body = self.response.text
        if is_rate_limit_text(body):
            raise UpstreamRateLimited(
                "The platform's rate limit is reached.", upstream_status=self.response.status, reason="rate_limited"
            )
        if any(mark in body for mark in CHALLENGE_MARKS):
            raise UpstreamBlocked(
                "The platform returned a challenge page.", upstream_status=self.response.status, reason="challenge"
            )
        if LOGIN_PATH in str(self.response.url) or _LOGIN_TITLE.search(body):
            raise UpstreamBlocked(
                "The platform returned its login page.", upstream_status=self.response.status, reason="login_wall"
            )

    def raise_if_no_row_is_understood(self) -> None:
        """Raise an error if no post can be read. If only some cannot be read, add an error to ``skipped``.

        Raises:
            ExtractionFailed: all posts lack mandatory parts.
        """
        paths = [path for row in self.rows for path in lacking(row)]
        if not paths:
            return
        error = missing_error("Posts of the timeline lack mandatory parts.", *paths[:10], reason="blind")
        if not any(row.post.id and not lacking(row) and not row.is_withheld for row in self.rows):
            raise error
        self.skip(error)

    def raise_for_other_profile(self, handle: str) -> None:
        """Raise an error if the handle is not the requested one. An empty handle is accepted."""
        if self.requested_handle and handle and handle.casefold() != self.requested_handle.casefold():
            message = f"The response is for the profile {handle!r}, not {self.requested_handle!r}."
            raise mismatch_error(message, ["screen_name"], self.requested_handle)


def is_rate_limit_text(body: str) -> bool:
    """Whether a response body is one of the platform's plain-text messages for a rate limit."""
    return body.strip().startswith(RATE_LIMIT_PREFIXES)
