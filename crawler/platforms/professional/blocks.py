"""Professional network: raises the matching error for a response without a profile."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from web_poet import HttpResponse

from crawler.errors import TargetNotFound, UpstreamBlocked

HEADING = "top-card-layout__title"
"""The CSS class of a heading that every profile page has. Company pages have it, too (capture 64c005d46817)."""
PROFILE_MARKS = (HEADING, '"Person"', "public_profile_v3", 'content="profile"')
"""Texts of which a profile page, or a saved part of one, contains at least one. The not-found page also contains
``public_profile_v3``."""
NOT_FOUND_MARKS = ("page-not-found__headline", "<title>Profile Not Found")

# Each pattern identifies a block, whatever the HTTP status.
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
"""First path segments of pages other than profiles, to which a profile's URL may redirect."""

BLOCKED_STATUS = 999
"""The platform's own HTTP status for blocked visitors, whichever member they request."""
BLOCK_SECONDS = 3_600
"""Minimum duration of a block with status 999, in seconds, according to published measurements. Each request prolongs
it."""
_LASTING_BLOCKS = frozenset({"status_999", "refused_with_script"})


def is_block(body: str) -> bool:
    """Whether a response body is a login wall, a challenge or another block."""
    return any(pattern.search(body) for pattern, _ in BLOCK_PATTERNS)


def raise_for_blocks(response: HttpResponse) -> None:
    """Raise an error for a login wall, a challenge or another block.

    Raises:
        UpstreamBlocked: the visitor is blocked. For a block that lasts, such as HTTP status 999, ``retry_after`` is
            ``BLOCK_SECONDS``.
    """
    reason = _block_reason(response)
    if reason is not None:
        message = "The platform blocked this visitor before it served the profile. The member may exist."
        seconds = BLOCK_SECONDS if reason in _LASTING_BLOCKS else None
        raise UpstreamBlocked(message, reason=reason, retry_after=seconds)


def has_heading(response: HttpResponse) -> bool:
    """Whether the response has the heading of a profile or company page, and is therefore neither a block nor the
    not-found page. The bytes are searched first, because decoding them is slow.
    """
    return response.body.find(HEADING.encode()) >= 0 or HEADING in response.text


def _block_reason(response: HttpResponse) -> str | None:
    if response.status == BLOCKED_STATUS:
        return "status_999"
    first = _first_segment(response)
    if first in BLOCK_PATHS:
        return BLOCK_PATHS[first]
    if has_heading(response):
        return None  # the texts of a profile may contain any of the patterns
    return next((reason for pattern, reason in BLOCK_PATTERNS if pattern.search(response.text)), None)


def raise_for_not_found(response: HttpResponse) -> None:
    """Raise an error for the platform's not-found page, which may have any HTTP status.

    Raises:
        TargetNotFound: the profile is missing or private: the platform shows the same page for both.
    """
    if not has_heading(response) and any(mark in response.text for mark in NOT_FOUND_MARKS):
        raise TargetNotFound("The platform has no such public profile.", reason="not_found")


def raise_for_other_pages(response: HttpResponse) -> None:
    """Raise an error if the profile's URL redirected to another kind of page.

    Raises:
        UpstreamBlocked: the page is the platform's home page.
        TargetNotFound: the page is, for example, a company's or a school's.
    """
    if urlsplit(str(response.url)).path == "/":
        raise UpstreamBlocked("The platform returned its home page instead of the profile.", reason="guest_home")
    if _first_segment(response) in OTHER_PAGES:
        raise TargetNotFound("The page is not a member's profile.", reason="wrong_page_kind")


def _first_segment(response: HttpResponse) -> str:
    return urlsplit(str(response.url)).path.lstrip("/").partition("/")[0]
