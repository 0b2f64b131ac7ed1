"""Professional network: raises the matching error for a response that says why it is not the profile.

Each of these statements has a mark: a text, an address or a status that recorded responses of its kind have, and that
the error's details quote. A response without a mark is no statement about the member.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from web_poet import HttpResponse

from crawler.errors import Detail, TargetNotFound, UpstreamBlocked, quoted

HEADING = "top-card-layout__title"
"""The CSS class of a heading that every profile page has. Pages of companies and jobs have it, too (captures
64c005d46817 and 682e9ace68dc)."""
PROFILE_MARKS = (HEADING, '"Person"', "public_profile_v3", 'content="profile"')
"""Texts of which a profile page, or a saved part of one, contains at least one."""

NOT_FOUND, HOME = "not_found", "guest_home"
# Each pattern matches the mark of a page that is not a profile, whatever the HTTP status.
_MARKS = {
    "login_wall": re.compile(r"[\"']auth_wall_[a-z]|<title>\s*(?:Sign Up|LinkedIn Login, Sign in) \| "),
    "refused_with_script": re.compile(r"\"/authwall\?trk=\"\s*\+"),
    "challenge": re.compile(r"\bccookie="),
    HOME: re.compile(r"d_homepage-guest-home|<title>\s*LinkedIn: Log In or Sign Up"),
    NOT_FOUND: re.compile(r"page-not-found__headline|<title>\s*Profile Not Found"),
}
_PATHS = {
    "authwall": "login_wall",
    "uas": "login_wall",
    "login": "login_wall",
    "signup": "login_wall",
    "checkpoint": "challenge",
}
_OTHER_PAGES = frozenset({"company", "school", "showcase", "pub", "posts", "pulse", "jobs", "learning", "404"})
"""First path segments of pages other than profiles, to which a profile's URL may redirect."""

BLOCKED_STATUS = 999
"""The platform's own HTTP status for blocked visitors, whichever member they request."""
BLOCK_SECONDS = 3_600
"""Minimum duration of a block with status 999, in seconds, according to published measurements. Each request prolongs
it."""
_LASTING_BLOCKS = frozenset({"status_999", "refused_with_script"})


def has_mark(body: str) -> bool:
    """Whether a response body is a block or the not-found page."""
    return any(pattern.search(body) for pattern in _MARKS.values())


def has_heading(response: HttpResponse) -> bool:
    """Whether the response has the heading of a page of a member, a company or a job.

    The bytes are searched first, because decoding them is slow.
    """
    return response.body.find(HEADING.encode()) >= 0 or HEADING in response.text


def raise_for_refusals(response: HttpResponse) -> None:
    """Raise an error for a login wall, a challenge or another block, and for the not-found page, with any HTTP status.

    Raises:
        UpstreamBlocked: the visitor is blocked. For a block that lasts, such as HTTP status 999, ``retry_after`` is
            ``BLOCK_SECONDS``.
        TargetNotFound: the profile is missing or private: the platform shows the same page for both.
    """
    found = _refusal(response)
    if found is None:
        return
    reason, mark = found
    if reason == NOT_FOUND:
        raise TargetNotFound("The platform has no such public profile.", reason=reason, details=mark)
    message = "The platform blocked this visitor before it served the profile. The member may exist."
    seconds = BLOCK_SECONDS if reason in _LASTING_BLOCKS else None
    raise UpstreamBlocked(message, reason=reason, retry_after=seconds, details=mark)


def _refusal(response: HttpResponse) -> tuple[str, list[Detail]] | None:
    """Return the reason and the mark of a refusal, or None if the response has no mark."""
    if response.status == BLOCKED_STATUS:
        return "status_999", quoted(str(response.status), "status")
    path = urlsplit(str(response.url)).path
    if _first_segment(path) in _PATHS:
        return _PATHS[_first_segment(path)], quoted(path, "url")
    if not has_heading(response):  # the texts of a profile may contain any of the marks
        searches = ((reason, pattern.search(response.text)) for reason, pattern in _MARKS.items())
        return next(((reason, quoted(found[0], "body")) for reason, found in searches if found), None)
    return None


def raise_for_other_pages(response: HttpResponse, canonical: str) -> None:
    """Raise an error if a response without a profile is another kind of page, by its URL or its canonical URL.

    Raises:
        UpstreamBlocked: the page is the platform's home page.
        TargetNotFound: the page is, for example, a company's or a school's.
    """
    for place, url in (("url", str(response.url)), ("canonical", canonical)):
        path = urlsplit(url).path
        if path == "/":
            message = "The platform returned its home page instead of the profile."
            raise UpstreamBlocked(message, reason=HOME, details=quoted(path, place))
        if _first_segment(path) in _OTHER_PAGES:
            message = "The page is not a member's profile."
            raise TargetNotFound(message, reason="wrong_page_kind", details=quoted(path, place))


def _first_segment(path: str) -> str:
    return path.lstrip("/").partition("/")[0]
