"""Responses of the professional network without a profile, recognised by status, path and markup."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from web_poet import HttpResponse

from crawler.errors import TargetNotFound, UpstreamBlocked

HEADING = "top-card-layout__title"
"""The class of a heading that all profile pages have, and no other page."""
PROFILE_MARKS = (HEADING, '"Person"', "public_profile_v3", 'content="profile"')
"""A profile page, or a saved part of one, contains at least one. The not-found page contains the third as well."""
NOT_FOUND_MARKS = ("page-not-found__headline", "<title>Profile Not Found")

# Each is a block, regardless of the HTTP status.
BLOCK_PATTERNS = (
    (re.compile(r"auth_wall_[a-z_]+[\"']|<title>\s*(?:Sign Up|LinkedIn Login, Sign in) \| "), "login_wall"),
    (re.compile(r"\"/authwall\?trk=\"\s*\+"), "refused_with_script"),
    (re.compile(r"\bccookie="), "challenge"),
    (re.compile(r"d_homepage-guest-home|<title>\s*LinkedIn: Log In or Sign Up"), "guest_home"),
)
BLOCK_PATHS = {
    "authwall": "login_wall",
    "uas": "login_wall",
    "login": "login_wall",
    "signup": "login_wall",
    "checkpoint": "challenge",
}
OTHER_PAGES = frozenset({"company", "school", "showcase", "pub", "posts", "pulse", "jobs", "learning", "404"})
"""First path segments of other kinds of pages, to which a member's name may redirect."""

BLOCKED_STATUS = 999
"""The platform's own status for a visitor that it blocks. It is unrelated to the member."""
BLOCK_SECONDS = 3_600
"""How long such a block lasts at least, as measured by others. Each further request prolongs it."""
_LASTING_BLOCKS = frozenset({"status_999", "refused_with_script"})


def is_block(body: str) -> bool:
    """Whether a body is a login wall, a challenge or another block."""
    return any(pattern.search(body) for pattern, _ in BLOCK_PATTERNS)


def raise_for_blocks(response: HttpResponse) -> None:
    """Raise for login walls, challenges and other blocks.

    Raises:
        UpstreamBlocked: with ``retry_after`` for status 999, which blocks the visitor for an hour or more.
    """
    reason = _block_reason(response)
    if reason is not None:
        raise UpstreamBlocked(
            "The platform blocked this visitor before it served the profile. The member may exist.",
            upstream_status=response.status,
            reason=reason,
            retry_after=BLOCK_SECONDS if reason in _LASTING_BLOCKS else None,
        )


def _block_reason(response: HttpResponse) -> str | None:
    if response.status == BLOCKED_STATUS:
        return "status_999"
    first = _first_segment(response)
    if first in BLOCK_PATHS:
        return BLOCK_PATHS[first]
    if HEADING in response.text:
        return None  # a profile: members' texts may contain any of the patterns
    return next((reason for pattern, reason in BLOCK_PATTERNS if pattern.search(response.text)), None)


def raise_for_not_found(response: HttpResponse) -> None:
    """Raise for the platform's own not-found page, which may have any status. Private profiles return it too.

    Raises:
        TargetNotFound: the same error for missing and private profiles.
    """
    if HEADING not in response.text and any(mark in response.text for mark in NOT_FOUND_MARKS):
        raise TargetNotFound(
            "The platform has no such public profile.", upstream_status=response.status, reason="not_found"
        )


def raise_for_other_pages(response: HttpResponse) -> None:
    """Raise for a page without a profile to which the member's name redirected.

    Raises:
        UpstreamBlocked: the platform's home page.
        TargetNotFound: a page of another kind.
    """
    status = response.status
    if urlsplit(str(response.url)).path == "/":
        raise UpstreamBlocked(
            "The platform returned its home page instead of the profile.", upstream_status=status, reason="guest_home"
        )
    if _first_segment(response) in OTHER_PAGES:
        raise TargetNotFound("The page is not a member's profile.", upstream_status=status, reason="wrong_page_kind")


def _first_segment(response: HttpResponse) -> str:
    return urlsplit(str(response.url)).path.lstrip("/").partition("/")[0]
