"""The faults of the simulated professional network. The name in a profile's URL selects them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from crawler.sandbox.faults import COMMON, Fault
from crawler.sandbox.professional.page import document, page_key
from crawler.sandbox.professional.words import PUBLIC
from crawler.sandbox.skeletons import Fragments

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawler.sandbox.professional.people import Member
    from crawler.sandbox.protocol import FakeResponse, FaultlessResponse

FAULTS = COMMON | {
    "not-found": Fault("TARGET_NOT_FOUND", "200 with the not-found page, the same for missing and private profiles"),
    "not-found-404": Fault("TARGET_NOT_FOUND", "the not-found page with status 404"),
    "company": Fault("TARGET_NOT_FOUND", "a redirect to a company's page"),
    "directory": Fault("TARGET_NOT_FOUND", "a redirect to a list of members"),
    "login-wall": Fault("UPSTREAM_BLOCKED", "a redirect to the login wall"),
    "login-wall-page": Fault("UPSTREAM_BLOCKED", "the login wall in place of the profile"),
    "login": Fault("UPSTREAM_BLOCKED", "a redirect to the login page"),
    "checkpoint": Fault("UPSTREAM_BLOCKED", "a redirect to a challenge"),
    "challenge": Fault("UPSTREAM_BLOCKED", "200 with a challenge script and an empty page"),
    "guest-home": Fault("UPSTREAM_BLOCKED", "the home page in place of the profile"),
    "home": Fault("UPSTREAM_BLOCKED", "a redirect to the home page"),
    "status-999": Fault("UPSTREAM_BLOCKED", "status 999, which blocks the visitor and opens the circuit breaker"),
    "status-999-empty": Fault("UPSTREAM_BLOCKED", "status 999 without a body"),
    "script-200": Fault("UPSTREAM_BLOCKED", "status 200 with the script that a response with status 999 contains"),
    "wrong-member": Fault("EXTRACTION_FAILED", "a page that names two members"),
    "wrong-member-once": Fault("OK", "a page that names two members, for the first request only"),
    "other-member": Fault("EXTRACTION_FAILED", "another member's page, without a redirect"),
    "other-member-once": Fault("OK", "another member's page, for the first request only"),
    "no-profile": Fault("EXTRACTION_FAILED", "a page of the network without a profile"),
    "nameless": Fault("EXTRACTION_FAILED", "a profile without a name"),
    "no-address": Fault("EXTRACTION_FAILED", "a profile without its URL"),
    "blind": Fault("EXTRACTION_FAILED", "positions with renamed classes"),
    "blind-sections": Fault("EXTRACTION_FAILED", "sections under other names"),
    "no-linked-data": Fault("OK", "a page without linked data"),
    "broken-linked-data": Fault("OK", "truncated linked data"),
    "deep-linked-data": Fault("OK", "linked data of ten thousand nested lists"),
}
"""The faults by name. A request for a profile with such a name in its URL selects the fault."""

fill = Fragments(__file__)

BROKEN_LINKED_DATA = ("broken-linked-data", "deep-linked-data")
_LINKED = re.compile(r'(?<=<script type="application/ld\+json">).*?(?=</script>)', re.DOTALL)


def damaged(name: str, path: str, honest: FaultlessResponse, other: Callable[[], bytes]) -> FakeResponse:
    """Build the damaged response for a fault that only this platform has. ``other``: renders another member's page."""
    if name == "other-member":
        return 200, {}, other()
    if name in _REDIRECTS:
        return 302, {"Location": _REDIRECTS[name].format(back=quote(PUBLIC + path, safe=""))}, b""
    if name in _ANSWERS:
        return _ANSWERS[name]()
    status, headers, body = honest()
    return status, headers, _DAMAGES[name](body.decode()).encode()


def expected_after_fault(name: str, member: Member) -> Member:
    """Return the member without the data that a harmless fault removes from the page."""
    return replace(member, linked=False) if name in ("no-linked-data", *BROKEN_LINKED_DATA) else member


# Responses that are not a profile


def not_found() -> bytes:
    """Build the page that is shown for both missing and private profiles."""
    head = page_key("public_profile_v3_desktop", "Profile Not Found") + fill("not found head")
    return document(head, fill("not found"))


def login_wall() -> bytes:
    """Build the page with the login wall."""
    return document(page_key("auth_wall_desktop_profile", "Sign Up"), fill("login wall"))


def guest_home() -> bytes:
    """Build the home page for visitors without an account."""
    head = page_key("d_homepage-guest-home", "Log In or Sign Up") + fill("guest home head")
    return document(head, fill("guest home"))


def _challenge() -> bytes:
    return fill("challenge", hidden="".join(f"'{number:x}Zfkeyt'," for number in range(900))).encode()


def _refusal() -> bytes:
    return fill("refusal").encode()


_REDIRECTS = {
    "company": "/company/somebody-ltd",
    "directory": "/pub/dir/Some/Body",
    "login-wall": "/authwall?trk=bf&trkInfo=bf&sessionRedirect={back}",
    "login": "/uas/login?session_redirect={back}",
    "checkpoint": "/checkpoint/challenge/x",
    "home": "/",
}
_ANSWERS: dict[str, Callable[[], FakeResponse]] = {
    "not-found": lambda: (200, {}, not_found()),
    "not-found-404": lambda: (404, {}, not_found()),
    "login-wall-page": lambda: (200, {}, login_wall()),
    "challenge": lambda: (200, {}, _challenge()),
    "guest-home": lambda: (200, {}, guest_home()),
    "status-999": lambda: (999, {}, _refusal()),
    "status-999-empty": lambda: (999, {}, b""),
    "script-200": lambda: (200, {}, _refusal()),
    "no-profile": lambda: (200, {}, document(page_key("public_profile_v3_desktop", "Profile"), "<main></main>")),
}

# Profile pages with wrong data


def _wrong_member(page: str) -> str:
    return re.sub(r'<link rel="canonical"[^>]*>', _OTHER, page)


def _nameless(page: str) -> str:
    return re.sub(r"(<h1[^>]*>).*?(</h1>)", r"\1\2", _LINKED.sub("{}", page), flags=re.DOTALL)


def _no_address(page: str) -> str:
    without_urls = re.sub(r'<link rel="canonical"[^>]*>|<meta property="og:url"[^>]*>', "", page)
    return _LINKED.sub("{}", without_urls)


_OTHER = '<link rel="canonical" href="https://www.linkedin.com/in/somebody-else">'
_DAMAGES: dict[str, Callable[[str], str]] = {
    "wrong-member": _wrong_member,
    "nameless": _nameless,
    "no-address": _no_address,
    "blind": lambda page: page.replace("experience-item", "xp-entry").replace("experience-group-position", "xp-entry"),
    "blind-sections": lambda page: re.sub(
        r'[a-z-]+" data-section="([a-zA-Z-]+)">', r'x-\1" data-section="x-\1">', page
    ),
    "no-linked-data": lambda page: page.replace("application/ld+json", "text/plain"),
    "broken-linked-data": lambda page: _LINKED.sub(lambda found: found[0][: len(found[0]) // 2], page),
    "deep-linked-data": lambda page: _LINKED.sub("[" * 10_000 + "]" * 10_000, page),
}
