"""Photo app: parses links to a post, and the shortcode in them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crawler.platforms.links import split_link
from crawler.platforms.photoapp import PLATFORM

_HOST = PLATFORM.domain
HOSTS = frozenset({_HOST, f"www.{_HOST}", "instagr.am", "www.instagr.am"})

_CODE = r"[A-Za-z0-9_-]{1,64}"
# Only user names may precede the kind. These paths are the platform's own and lead to other pages.
_NAME = r"(?!(?:accounts|direct|explore|share|stories)/)[A-Za-z0-9._]{1,30}/"
POST_PATH = re.compile(
    rf"/(?:{_NAME})?(?:p|reel|reels|tv)/(?!audio(?:/|$))(?P<code>{_CODE})(?:/embed(?:/captioned)?)?/?"
)
SHARE_PATH = re.compile(rf"/share/(?:(?P<kind>p|reel|reels|tv)/)?(?!(?:p|reel|reels|tv)/?$)(?P<token>{_CODE})/?")

CODE_LENGTH = 11
"""Characters of a shortcode. Older ones have fewer."""
PRIVATE_SUFFIX = 28
"""Characters that are appended to a private post's shortcode."""

ACCEPTED = (
    f"expected the URL of a post on {', '.join(sorted(HOSTS))}: /p/<code>, /reel/<code>, /reels/<code> or /tv/<code>, "
    "each also after /<user name>; or a share link: /share/<token>, /share/p/<token>, /share/reel/<token>"
)


@dataclass(frozen=True, slots=True)
class Link:
    """The target of a URL: a post by its shortcode, or a share link, which redirects to a post."""

    shortcode: str | None = None
    share: str | None = None
    """Path of the share link below the origin, without slashes at its ends."""


def shortcode_of(code: str) -> str:
    """Strip a code's suffix: the key of a private post, or junk.

    >>> shortcode_of("DeAZ0uAgNuA"), shortcode_of("DeAZ0uAgNuA" + 28 * "x"), shortcode_of("BcQcdiXltb" + 28 * "x")
    ('DeAZ0uAgNuA', 'DeAZ0uAgNuA', 'BcQcdiXltb')
    """
    return (code[:-PRIVATE_SUFFIX] if len(code) > PRIVATE_SUFFIX else code)[:CODE_LENGTH]


def link_of_path(path: str) -> Link | None:
    """Parse a URL path of the platform. None for any page but a post or a share link."""
    post = POST_PATH.fullmatch(path)
    if post:
        return Link(shortcode=shortcode_of(post["code"]))
    share = SHARE_PATH.fullmatch(path)
    if share:
        return Link(share="/".join(part for part in ("share", share["kind"], share["token"]) if part))
    return None


def link_of_url(url: str) -> Link:
    """Parse the URL of a post or a share link. The rest of the URL is discarded.

    >>> link_of_url("https://www.instagram.com/natgeo/reel/DdG4RIxIPyf/?igsh=x").shortcode
    'DdG4RIxIPyf'
    >>> link_of_url("https://instagr.am/share/p/BAPkVzN3fE").share
    'share/p/BAPkVzN3fE'

    Raises:
        ValueError: any other host or kind of page.
    """
    host, path = split_link(url, ACCEPTED)
    link = link_of_path(path)
    if host not in HOSTS or link is None:
        raise ValueError(ACCEPTED)
    return link


_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def code_of_id(pk: str) -> str:
    """Encode a post's numeric id as its shortcode, the same number in base 64. "" for an invalid id.

    >>> code_of_id("3999310043081137024"), code_of_id("")
    ('DeAZ0uAgNuA', '')
    """
    number = int(pk) if pk.isascii() and pk.isdigit() and len(pk) < 25 else 0
    code = ""
    while number:
        number, digit = divmod(number, 64)
        code = _DIGITS[digit] + code
    return code
