"""Photo app: parses links to posts, computes the shortcodes of posts from their ids, and builds the requests for pages.

All requests are plain page loads. They need no query id (``doc_id``), which the platform changes every few months.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from binascii import a2b_base64
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from scrapy import Request

from crawler.platforms.links import Found, LinkError, PlatformLinks, Url, split_link
from crawler.platforms.photoapp import PLATFORM
from crawler.platforms.requests import NAVIGATION_HEADERS

_HOST = PLATFORM.domain
HOSTS = frozenset({_HOST, f"www.{_HOST}", f"m.{_HOST}", "instagr.am", "www.instagr.am"})

POST_SEGMENTS = frozenset({"p", "reel", "reels", "tv"})
"""The path segments before the shortcode of a post. A user name may stand in front of them."""
_CODE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_USER = re.compile(r"[A-Za-z0-9._]{1,30}")
# The beginnings of other pages' paths, which are therefore not user names.
_RESERVED = frozenset({"accounts", "direct", "explore", "share", "stories"})
_STANDARD_BASE64 = str.maketrans("-_", "+/")

CODE_LENGTH = 11
"""Number of characters in a shortcode. Older shortcodes are shorter."""
PRIVATE_SUFFIX = 28
"""Number of characters that the platform appends to the shortcode of a private post."""

ACCEPTED = (
    f"expected the URL of a post on {', '.join(sorted(HOSTS))}: /p/<code>, /reel/<code>, /reels/<code> or /tv/<code>, "
    "each also after /<user name> or before /c/<comment>; or a share link: /share/<token>, /share/p/<token>, "
    "/share/reel/<token>"
)


@dataclass(frozen=True, slots=True)
class PostLink:
    """The target of a URL: a post, by its shortcode, or a share link, which redirects to a post."""

    shortcode: str | None = None
    share: str | None = None
    """The share link's path, without slashes at its ends."""


def shortcode_of(code: str) -> str:
    """Return the shortcode in a code from a URL, without a private post's suffix or other extra characters.

    >>> shortcode_of("DeAZ0uAgNuA"), shortcode_of("DeAZ0uAgNuA" + 28 * "x"), shortcode_of("BcQcdiXltb" + 28 * "x")
    ('DeAZ0uAgNuA', 'DeAZ0uAgNuA', 'BcQcdiXltb')
    """
    return (code[:-PRIVATE_SUFFIX] if len(code) > PRIVATE_SUFFIX else code)[:CODE_LENGTH]


def link_of_path(path: str) -> PostLink | None:
    """Parse the path of one of the platform's URLs. Return None if it is neither a post's nor a share link's.

    Segments after the shortcode or token are ignored: comments, players, embedded pages.

    >>> link_of_path("/natgeo/p/DeAZ0uAgNuA/c/17846368219941196/r/17846368219941197/").shortcode
    'DeAZ0uAgNuA'
    """
    try:
        segments = Url("", path, "").segments()
    except LinkError:
        return None
    match segments:
        case ["share", kind, token, *_] if kind in POST_SEGMENTS and _CODE.fullmatch(token):
            return PostLink(share=f"share/{kind}/{token}")
        case ["share", token, *_] if token not in POST_SEGMENTS and _CODE.fullmatch(token):
            return PostLink(share=f"share/{token}")
        case [kind, code, *_] if kind in POST_SEGMENTS:
            pass
        case [user, kind, code, *_] if kind in POST_SEGMENTS and user not in _RESERVED and _USER.fullmatch(user):
            pass
        case _:
            return None
    is_code = code != "audio" and _CODE.fullmatch(code)  # /reels/audio/ is a sound
    return PostLink(shortcode=shortcode_of(code)) if is_code else None


def shortcode_in(url: str) -> str | None:
    """Return the shortcode in the URL of a post, with or without the platform's host. For any other text, return None.

    >>> shortcode_in("https://www.instagram.com/a.b/p/DeAZ0uAgNuA/?igsh=x"), shortcode_in("http://[broken")
    ('DeAZ0uAgNuA', None)
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # not a URL
        return None
    link = link_of_path(parts.path) if parts.netloc.lower() in {"", *HOSTS} else None
    return link.shortcode if link else None


def link_of_url(url: str) -> PostLink:
    """Parse the URL of a post or a share link, with or without ``https://``.

    Other parts of the URL, such as the owner's name and the query, are ignored.

    >>> link_of_url("https://www.instagram.com/natgeo/reel/DdG4RIxIPyf/?igsh=x").shortcode
    'DdG4RIxIPyf'
    >>> link_of_url("instagram.com/p/DdG4RIxIPyf/c/17846368219941196/").shortcode
    'DdG4RIxIPyf'
    >>> link_of_url("https://instagr.am/share/p/BAPkVzN3fE").share
    'share/p/BAPkVzN3fE'

    Raises:
        LinkError: the URL has another host, or is neither a post's URL nor a share link.
    """
    link = link_of_path(split_link(LINKS.read(url).params["url"]).path)
    assert link is not None
    return link


def target_of(url: Url) -> Found | None:
    """Return the kind and the params of a post's URL or a share link, or None for another URL."""
    link = link_of_path(url.path)
    if link is None:
        return None
    if link.shortcode:
        return "post", {"url": f"{PLATFORM.origin}/p/{link.shortcode}/"}
    return "share link", {"url": f"{PLATFORM.origin}/{link.share}/"}


LINKS = PlatformLinks(
    platform=PLATFORM,
    hosts=re.compile("|".join(map(re.escape, HOSTS))),
    scrapers={"post": ("photoapp-post-v4",), "share link": ("photoapp-post-v4",)},
    target_of=target_of,
    expected=ACCEPTED,
    other_pages={
        "a story or highlight": re.compile(r"/(stories|s)/"),
        "a search, hashtag or place": re.compile(r"/explore/"),
        "a sound": re.compile(r"/reels/audio"),
        "a login page": re.compile(r"/accounts/"),
        "a post without a code": re.compile(r"/(p|reel|reels|tv|share)(/|$)"),
        "the home page": re.compile(r"/?$"),
        "a profile": re.compile(r"/[A-Za-z0-9._]{1,30}(/(reels|tagged))?/?$"),
    },
    short_hosts=frozenset({"ig.me"}),
    redirects=re.compile(rf"l\.{re.escape(_HOST)}/|[^/]+/(accounts/login|challenge|consent)(/|$)"),
    redirect_hosts=frozenset({f"l.{_HOST}"}),
    destinations=("u", "next"),
)


def code_of_id(pk: str) -> str:
    """Convert a post's numeric id to its shortcode, which is the same number in base 64. For an invalid id, return "".

    >>> code_of_id("3999310043081137024"), code_of_id("")
    ('DeAZ0uAgNuA', '')
    """
    if not (pk.isascii() and pk.isdigit() and len(pk) < 25):
        return ""
    return urlsafe_b64encode(int(pk).to_bytes(12, "big")).decode().lstrip("A")


def id_of_code(code: str) -> str:
    """Convert a post's shortcode to its numeric id, the inverse of ``code_of_id``. For an invalid code, return "".

    >>> id_of_code("DeAZ0uAgNuA"), id_of_code(""), id_of_code("a.b")
    ('3999310043081137024', '', '')
    """
    try:
        packed = a2b_base64("A" * (-len(code) % 4) + code.translate(_STANDARD_BASE64), strict_mode=True)
    except ValueError:
        return ""
    return str(int.from_bytes(packed, "big") or "")


def post_request(shortcode: str) -> Request:
    """Build the request for the page of a post or reel."""
    return _page(f"{PLATFORM.origin}/p/{shortcode}/", shortcode=shortcode)


def embed_request(shortcode: str) -> Request:
    """Build the request for a post's embeddable page, which states a video's duration."""
    return _page(f"{PLATFORM.origin}/p/{shortcode}/embed/captioned/", shortcode=shortcode)


def reels_request(username: str) -> Request:
    """Build the request for the page with an account's newest reels, which shows their play counts."""
    return _page(f"{PLATFORM.origin}/{quote(username, safe='')}/reels/", username=username)


def share_request(share: str) -> Request:
    """Build the request for a share link. The redirect is not followed: only the shortcode in its URL is used."""
    request = _page(f"{PLATFORM.origin}/{share}/", share=share)
    request.meta["dont_redirect"] = True
    return request


def _page(url: str, **params: Any) -> Request:
    # Without these headers the platform omits the data (2026-10).
    return Request(url, headers=NAVIGATION_HEADERS, meta={"page_params": params})
