"""What the professional network serves in place of a profile, told apart by status, path and markup."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from web_poet import HttpResponse

from crawler.errors import TargetNotFound, UpstreamBlocked

HEADING = "top-card-layout__title"
"""The class of the heading that each profile page has, and no other page."""
MARKS = (HEADING, '"Person"', "public_profile_v3", 'content="profile"')
"""What a profile page has at least one of; a saved part of one, too. The not-found page has the third as well."""
NOT_FOUND_MARKS = ("page-not-found__headline", "<title>Profile Not Found")

# Each is a wall, whatever its status.
WALLS = (
    (re.compile(r"auth_wall_[a-z_]+[\"']|<title>\s*(?:Sign Up|LinkedIn Login, Sign in) \| "), "login_wall"),
    (re.compile(r"\"/authwall\?trk=\"\s*\+"), "refused_with_script"),
    (re.compile(r"\bccookie="), "challenge"),
    (re.compile(r"d_homepage-guest-home|<title>\s*LinkedIn: Log In or Sign Up"), "guest_home"),
)
WALL_PATHS = {
    "authwall": "login_wall",
    "uas": "login_wall",
    "login": "login_wall",
    "signup": "login_wall",
    "checkpoint": "challenge",
}
OTHER_PAGES = frozenset({"company", "school", "showcase", "pub", "posts", "pulse", "jobs", "learning", "404"})
"""First segments of other kinds of pages, to which a member's name may lead."""

REFUSED = 999
"""The platform's own status: this visitor is not served. It says nothing of the member."""
REFUSED_FOR = 3_600
"""Seconds for which whoever got one gets no other: an hour at least, as measured by others; each try prolongs it."""
_REFUSALS = frozenset({"status_999", "refused_with_script"})


def is_wall(body: str) -> bool:
    """Whether a body is one of the walls."""
    return any(wall.search(body) for wall, _ in WALLS)


def raise_for_blocks(response: HttpResponse) -> None:
    """Raises for what turns the visitor away.

    Raises:
        UpstreamBlocked: with ``retry_after`` for status 999, which is meant for the visitor and lasts.
    """
    reason = _wall(response)
    if reason is not None:
        raise UpstreamBlocked(
            "The platform does not serve this visitor; it says nothing of the member.",
            upstream_status=response.status,
            reason=reason,
            retry_after=REFUSED_FOR if reason in _REFUSALS else None,
        )


def _wall(response: HttpResponse) -> str | None:
    if response.status == REFUSED:
        return "status_999"
    first = _first_segment(response)
    if first in WALL_PATHS:
        return WALL_PATHS[first]
    if HEADING in response.text:
        return None  # members may write of anything
    return next((reason for wall, reason in WALLS if wall.search(response.text)), None)


def raise_for_not_found(response: HttpResponse) -> None:
    """Raises for the platform's own not-found page, whose status is not known. Private profiles have it, too.

    Raises:
        TargetNotFound: always the same for missing and private.
    """
    if HEADING not in response.text and any(mark in response.text for mark in NOT_FOUND_MARKS):
        raise TargetNotFound(
            "The platform has no such public profile.", upstream_status=response.status, reason="not_found"
        )


def raise_for_other_pages(response: HttpResponse) -> None:
    """Raises for a page without a profile that the member's name led to.

    Raises:
        UpstreamBlocked: the platform's home page.
        TargetNotFound: a page of another kind.
    """
    status = response.status
    if urlsplit(str(response.url)).path == "/":
        raise UpstreamBlocked("The platform shows its home page instead.", upstream_status=status, reason="guest_home")
    if _first_segment(response) in OTHER_PAGES:
        raise TargetNotFound("The page is no member's profile.", upstream_status=status, reason="wrong_page_kind")


def _first_segment(response: HttpResponse) -> str:
    return urlsplit(str(response.url)).path.lstrip("/").partition("/")[0]
