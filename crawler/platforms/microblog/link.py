"""Microblog: reads links to profiles."""

from __future__ import annotations

import re

from crawler.platforms.links import Found, Grammar, PlatformLinks, Url
from crawler.platforms.microblog import PLATFORM

OLD_DOMAIN = "twitter.com"
HOSTS = re.compile(rf"(?:(?:www|m|mobile)\.)?(?:{re.escape(PLATFORM.domain)}|{re.escape(OLD_DOMAIN)})")
HANDLE = Grammar(r"@?[A-Za-z0-9_]{1,15}", "a handle has 1 to 15 letters, digits and underscores")
"""A handle. The @ in front of it is not part of it."""
RESERVED = frozenset(
    """
    about account compose download explore hashtag home i intent jobs login logout messages notifications oauth privacy
    search settings share signup tos who_to_follow
    """.split()  # noqa: SIM905  # a list of quoted words would need four times as many lines
)
"""The first path segments of the site's own pages, which are therefore not handles of profiles."""
_OTHER_PAGES = frozenset(
    {"followers", "following", "list", "lists", "moments", "status", "statuses", "verified_followers"}
)
"""The segments after a handle that lead to something else than the profile's posts."""


def target_of(url: Url) -> Found | None:
    """Return the profile that a URL leads to. The URL may also lead to one of the profile's tabs, or follow button.

    Before 2012, the path stood in the fragment: ``/#!/handle``.
    """
    if url.path in {"", "/"} and url.fragment.startswith("!/"):
        url = url._replace(path=url.fragment.removeprefix("!"))
    match url.segments():
        case ["intent", "user" | "follow"]:
            handle = url.arguments().get("screen_name", "")
        case [handle, tab, *_] if tab in _OTHER_PAGES:
            return None
        case [handle, *_] if handle.lower() not in RESERVED:
            pass
        case _:
            return None
    return ("profile", {"username": handle.removeprefix("@")}) if HANDLE.matches(handle) else None


LINKS = PlatformLinks(
    platform=PLATFORM,
    hosts=HOSTS,
    scrapers={"profile": ("microblog-profile",)},
    target_of=target_of,
    expected=f"expected a profile of {PLATFORM.domain} or {OLD_DOMAIN}: /<handle>",
    other_pages={
        "a post": re.compile(r"/(i/web|i|[^/]+)/status(es)?/"),
        "a list, community or space": re.compile(r"/i/(lists|communities|spaces)/|/[^/]+/lists?(/|$)"),
        "a list of people": re.compile(r"/[^/]+/(verified_)?follow(ers|ing)"),
        "a search": re.compile(r"/search|/hashtag/"),
        "a login page": re.compile(r"/login|/i/flow/"),
        "the home page": re.compile(r"/?$|/home"),
    },
    short_hosts=frozenset({"t.co", f"pic.{PLATFORM.domain}", f"pic.{OLD_DOMAIN}"}),
    redirects=re.compile(r"[^/]+/(login|i/flow/(login|signup))(/|$)"),
    destinations=("redirect_after_login",),
)
