"""Professional network: reads links to members' profiles, and builds the request for a profile page. The response
contains all data of a record.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from scrapy import Request

from crawler.platforms.links import Found, Grammar, PlatformLinks, Url, decoded
from crawler.platforms.professional import PLATFORM
from crawler.platforms.requests import NAVIGATION_HEADERS

DOMAIN = PLATFORM.domain
# The site, its mobile site and its country editions ("uk.", "se."). Other hosts of the domain do not serve profiles.
HOSTS = re.compile(rf"(?:(?:www|m|[a-z]{{2}})\.)?{re.escape(DOMAIN)}")
SLUG = Grammar(
    r"(?!\.{1,2}$)[^\s/\\?#%&=<>\"|*]{1,150}", "a member's name is the part after /in/ in the URL of the profile"
)
"""A member's decoded name from a URL: mostly letters of any script and hyphens, no special URL characters."""

_EXPECTED = (
    f"expected a member's profile: https://www.{DOMAIN}/in/<name> (not a company, school, post or directory page)"
)
_EXPECTED_NAME = f"expected a member's name as in https://www.{DOMAIN}/in/<name>, or the URL of the member's profile"


def slug_of_url(url: str) -> str:
    """Return the member's name in a profile's URL, decoded. The rest of the URL is ignored.

    >>> slug_of_url("https://uk.linkedin.com/in/jos%C3%A9-mar%C3%ADa-1a2b/es?trk=x")
    'josé-maría-1a2b'
    >>> slug_of_url("www.linkedin.com/in/jane-doe")
    'jane-doe'

    Raises:
        LinkError: the URL has another host, or is not the URL of a profile.
    """
    return unquote(LINKS.read(url).params["url"].rpartition("/")[2])


def slug_of_username(username: str) -> str:
    """Return a member's name, decoded, from the name itself or from a profile's URL.

    >>> slug_of_username("jos%C3%A9-mar%C3%ADa"), slug_of_username("www.linkedin.com/in/jane-doe")
    ('josé-maría', 'jane-doe')

    Raises:
        ValueError: the text is neither a name nor a profile's URL.
    """
    if "/" in username:
        return slug_of_url(username)
    slug = _slug_of(username)
    if slug is None:
        raise ValueError(_EXPECTED_NAME)
    return slug


def _slug_of(segment: str) -> str | None:
    """Return the member's name in a path segment, decoded. None if the segment is not a name."""
    slug = decoded(segment)
    return slug if slug and SLUG.matches(slug) else None


def target_of(url: Url) -> Found | None:
    """Return the profile to which a URL leads, also the URL of a part or a translation of the profile; else None.

    ``/mwlite`` begins paths on the mobile site, ``/comm`` those in mails.
    """
    match url.segments():
        case ["in", slug, *_] | ["mwlite" | "comm", "in", slug, *_] if SLUG.matches(slug):
            return "profile", {"url": f"{PLATFORM.origin}/in/{quote(slug, safe='')}"}
    return None


LINKS = PlatformLinks(
    platform=PLATFORM,
    hosts=HOSTS,
    scrapers={"profile": ("professional-profile", "professional-profile-v4")},
    target_of=target_of,
    expected=_EXPECTED,
    other_pages={
        "a company": re.compile(r"/(company|showcase)/"),
        "a school": re.compile(r"/school/"),
        "a job or a search for jobs": re.compile(r"/jobs/"),
        "a post": re.compile(r"/(posts|feed/update)/"),
        "an article": re.compile(r"/pulse/"),
        "a search": re.compile(r"/search/"),
        "a directory of names": re.compile(r"/pub/dir/"),
        "a profile's address of before 2015": re.compile(r"/pub/"),
        "a login page": re.compile(r"/(authwall|login|uas)"),
        "a profile without a name": re.compile(r"/in/?$"),
        "the home page": re.compile(r"/?$"),
    },
    short_hosts=frozenset({"lnkd.in"}),
    redirects=re.compile(r"[^/]+/(authwall|login|uas/login|checkpoint|signup|redir|safety)(/|$)"),
    destinations=("sessionRedirect", "session_redirect", "url"),
)


def profile_request(slug: str) -> Request:
    """Build the request for a member's page. ``slug``: the name in the URL, which ``meta["page_params"]`` also has."""
    url = f"{PLATFORM.origin}/in/{quote(slug, safe='')}"
    # Requests that have all headers of a browser are blocked less often (2026-03).
    return Request(url, headers=NAVIGATION_HEADERS, meta={"page_params": {"slug": slug}})
