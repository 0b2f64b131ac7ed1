"""Microblog: reads links to profiles."""

from __future__ import annotations

import re

from crawler.platforms.links import Found, PlatformLinks, Url, decoded
from crawler.platforms.microblog import PLATFORM

OLD_DOMAIN = "twitter.com"
HOSTS = re.compile(rf"(?:(?:www|m|mobile)\.)?(?:{re.escape(PLATFORM.domain)}|{re.escape(OLD_DOMAIN)})")
PROFILE_PATH = re.compile(
    r"/@?(?P<handle>[A-Za-z0-9_]{1,15})(?:/(?:articles|highlights|likes|media|with_replies))?/?", re.ASCII
)
RESERVED = frozenset(
    """
    about account compose download explore hashtag home i intent jobs login logout messages notifications oauth privacy
    search settings share signup tos who_to_follow
    """.split()  # noqa: SIM905  # a list of quoted words would need four times as many lines
)
"""The first path segments of the site's own pages, which are therefore not handles of profiles."""


def target_of(url: Url) -> Found | None:
    """Return the profile that a URL leads to. The URL may also lead to one of the profile's tabs."""
    found = PROFILE_PATH.fullmatch(decoded(url.path) or "")
    return ("profile", {"username": found["handle"]}) if found and found["handle"].lower() not in RESERVED else None


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
)
