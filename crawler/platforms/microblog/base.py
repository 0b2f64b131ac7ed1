"""Microblog: the base class of the page objects of all sources."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import attrs
from web_poet import field

from crawler.errors import UpstreamBlocked, UpstreamRateLimited
from crawler.platforms.microblog.node import Node
from crawler.platforms.microblog.post import post_id
from crawler.platforms.microblog.timeline import Row, author_node, owner_of, records_of
from crawler.platforms.microblog.user import profile, screen_name
from crawler.platforms.page import PlatformPage, mismatch_error
from crawler.reading.values import text

LOGIN_PATH = "/i/flow/login"
CHALLENGE_MARKS = (
    "/cdn-cgi/challenge-platform/",
    "<title>Just a moment...</title>",
    "cf-browser-verification",
    "<title>Attention Required! | Cloudflare</title>",
)
RATE_LIMIT_PREFIXES = ("Rate limit exceeded", "429 Too Many Requests")
"""Beginnings of rate-limit responses that are one line of text."""

_LOGIN_TITLE = re.compile(r"<title[^>]*>\s*Log in to X")


@attrs.define(slots=False)
class MicroblogPage(PlatformPage):
    """One source's response. ``page_params``: ``username``, the requested handle without @.

    Fields: ``profile`` (the contract's names, None for values that are not exposed; {} without a user), ``user_id``,
    ``posts`` (contract objects), ``pinned`` (the id of the pinned post, or "") and ``next_cursor`` (the platform's
    cursor, "" where this source has no next page).
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
        return next((post_id(row.post) for row in self.rows if row.pinned), "")

    @field
    def next_cursor(self) -> str:
        return ""

    # Differences between the sources

    @cached_property
    def rows(self) -> list[Row]:
        """The timeline's rows of posts; empty where the source has no timeline."""
        return []

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """The timeline's posts as contract objects."""
        return records_of(self.rows, self.owner)

    @cached_property
    def user(self) -> Node:
        """The profile's user, or an empty node where the source does not have it."""
        return author_node(self.rows, self.owner)

    @property
    def requested_handle(self) -> str:
        """The requested handle, or "" where it is not known."""
        return text(self.page_params.get("username")).removeprefix("@")

    @cached_property
    def owner(self) -> str:
        """The handle of the profile."""
        return self.requested_handle or owner_of(self.rows)

    # Shared validation

    def raise_for_blocks(self) -> None:
        """Raise for a login page, a challenge or a rate limit. Call it only for pages without data."""
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

    def raise_for_other_profile(self, handle: str) -> None:
        """Raise for a user other than the requested one."""
        if self.requested_handle and handle and handle.casefold() != self.requested_handle.casefold():
            message = f"The response is for the profile {handle!r}, not {self.requested_handle!r}."
            raise mismatch_error(message, ["screen_name"], self.requested_handle)


def is_rate_limit_text(body: str) -> bool:
    """Whether a response is the one line of text that stands for a rate limit."""
    return body.strip().startswith(RATE_LIMIT_PREFIXES)
