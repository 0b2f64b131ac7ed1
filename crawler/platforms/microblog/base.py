"""Microblog: what the pages of all its sources say, each as far as its source exposes it."""

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
from crawler.platforms.page import PlatformPage, wrong_echo
from crawler.reading.values import text

LOGIN_PATH = "/i/flow/login"
CHALLENGE_MARKS = (
    "/cdn-cgi/challenge-platform/",
    "<title>Just a moment...</title>",
    "cf-browser-verification",
    "<title>Attention Required! | Cloudflare</title>",
)
LIMIT_MARKS = ("Rate limit exceeded", "429 Too Many Requests")
"""What a limit says that comes as a line of text."""

_LOGIN_TITLE = re.compile(r"<title[^>]*>\s*Log in to X")


@attrs.define(slots=False)
class MicroblogPage(PlatformPage):
    """One source's answer. ``page_params``: ``username`` as asked, without @.

    Fields: ``profile`` (the contract's names, None for what is not exposed; {} where it has no user), ``user_id``,
    ``posts`` (contract objects), ``pinned`` (the id of the post that is first out of turn, "" where none is) and
    ``next_cursor`` (the platform's own, "" where this source does not continue).
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

    # What the sources differ in

    @cached_property
    def rows(self) -> list[Row]:
        """The places of the timeline at which posts stand; none where the source has no timeline."""
        return []

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """The timeline's posts as contract objects."""
        return records_of(self.rows, self.owner)

    @cached_property
    def user(self) -> Node:
        """The profile's user; an empty node where the source does not have it."""
        return author_node(self.rows, self.owner)

    @property
    def asked(self) -> str:
        """The handle asked for, "" where that is not known."""
        return text(self.page_params.get("username")).removeprefix("@")

    @cached_property
    def owner(self) -> str:
        """The handle of the profile."""
        return self.asked or owner_of(self.rows)

    # What the gates share

    def raise_for_blocks(self) -> None:
        """Raises where the platform shows a login or asks whether a human is there. Only for pages without data."""
        body = self.response.text
        if is_limit(body):
            raise UpstreamRateLimited(
                "The platform asks for fewer requests.", upstream_status=self.response.status, reason="rate_limited"
            )
        if any(mark in body for mark in CHALLENGE_MARKS):
            raise UpstreamBlocked(
                "The platform asks whether a human is there.", upstream_status=self.response.status, reason="challenge"
            )
        if LOGIN_PATH in str(self.response.url) or _LOGIN_TITLE.search(body):
            raise UpstreamBlocked(
                "The platform shows its login.", upstream_status=self.response.status, reason="login_wall"
            )

    def raise_for_others(self, handle: str) -> None:
        """Raises for a user who is not the one asked for."""
        if self.asked and handle and handle.casefold() != self.asked.casefold():
            message = f"The answer is another profile's: {handle!r}, asked was {self.asked!r}."
            raise wrong_echo(message, ["screen_name"], self.asked)


def is_limit(body: str) -> bool:
    """Whether a response is nothing but the line that says that a limit is reached."""
    return body.strip().startswith(LIMIT_MARKS)
