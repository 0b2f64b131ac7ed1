"""Professional network: full, masked and sparse profiles, and failures.

``tests/platforms/professional/test_pages.py`` covers further failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from crawler.errors import TargetNotFound, UpstreamBlocked, UpstreamError, UpstreamRateLimited
from crawler.platforms.page import PlatformPage
from crawler.platforms.professional.pages import ContentPage, ProfilePage
from crawler.sandbox.professional.site import Site
from crawler.sandbox.protocol import FakeRequest, FakeResponse
from tests.make_fixtures import Case, Failure

ORIGIN = "https://www.linkedin.com"

MEMBERS = {
    **{slug: slug for slug in ("mara-lindqvist", "tomas-okafor-4a0756", "masked-linked", "masked-described")},
    "nobody-yet": "nobody-yet",
    "right-to-left": "נועה-בן-עמי",
}
WITH_CONTENT = ("mara-lindqvist", "forty-positions", "tomas-okafor-4a0756")
"""The members whose content is a case. Their pages show activity in tabs, in a list, and in a list with linked data."""
REDIRECTED: dict[str, tuple[str, Failure]] = {
    "company": ("/company/x", (TargetNotFound, "wrong_page_kind")),
    "login-wall": ("/authwall?trk=bf", (UpstreamBlocked, "login_wall")),
    "checkpoint": ("/checkpoint/x", (UpstreamBlocked, "challenge")),
    "home": ("/", (UpstreamBlocked, "guest_home")),
}


def cases() -> Iterator[Case]:
    """Yield the cases of the professional network."""
    site = Site(light=True)
    for name, slug in MEMBERS.items():
        truth = site.expected_record({"url": f"{ORIGIN}/in/{slug}"})
        yield _case(name, slug, site.page(FakeRequest(f"/in/{slug}")), truth)
    for name, (path, failure) in REDIRECTED.items():
        status, _, body = site.page(FakeRequest(path.partition("?")[0]))
        yield Case(ProfilePage, name, ORIGIN + path, status, body, {"slug": name}, failure)
    for name, status, body, failure in (
        ("empty-body", 200, b"", (UpstreamBlocked, "empty_body")),
        ("rate-limited", 429, b"slow down", (UpstreamRateLimited, "rate_limited")),
        ("server-error", 503, b"<h1>Sorry</h1>", (UpstreamError, "server_error")),
    ):
        yield _case(name, "somebody", (status, {}, body), failure)
    for slug in WITH_CONTENT:
        truth = site.expected_record({"username": slug})
        yield _case(slug, slug, site.page(FakeRequest(f"/in/{slug}")), truth, ContentPage)
    for name, failure in (
        ("not-found", (TargetNotFound, "not_found")),
        ("status-999", (UpstreamBlocked, "status_999")),
    ):
        yield _case(name, name, site.damaged(name, FakeRequest(f"/in/{name}")), failure, ContentPage)


def _case(
    name: str,
    slug: str,
    response: FakeResponse,
    expected: Failure | dict[str, Any],
    page: type[PlatformPage] = ProfilePage,
) -> Case:
    status, _, body = response
    return Case(page, name, f"{ORIGIN}/in/{quote(slug)}", status, body, {"slug": slug}, expected)
