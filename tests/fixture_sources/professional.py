"""Professional network: profiles in full, masked and sparse, and every failure of a page."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from crawler.platforms.page import PlatformPage
from crawler.platforms.professional.content import ContentPage
from crawler.platforms.professional.pages import ProfilePage
from crawler.sandbox.professional.site import Site
from crawler.sandbox.protocol import FakeRequest
from tests.make_fixtures import Case

ORIGIN = "https://www.linkedin.com"

MEMBERS = ("mara-lindqvist", "tomas-okafor-4a0756", "masked-linked", "masked-described", "nobody-yet", "נועה-בן-עמי")
FAULTS = (
    "blind",
    "challenge",
    "guest-home",
    "login-wall-page",
    "nameless",
    "no-address",
    "no-profile",
    "not-found",
    "not-found-404",
    "script-200",
    "status-999",
    "status-999-empty",
    "wrong-member",
)
WITH_CONTENT = ("mara-lindqvist", "forty-positions", "tomas-okafor-4a0756")
"""Members with activity in tabs, in a list, and in a list with linked data."""
REDIRECTED = {"company": "/company/x", "login-wall": "/authwall?trk=bf", "checkpoint": "/checkpoint/x", "home": "/"}


def cases() -> Iterator[Case]:
    """The platform's fixtures."""
    site = Site(light=True)
    names = {"נועה-בן-עמי": "right-to-left"}
    for slug in MEMBERS:
        yield _case(names.get(slug, slug), slug, *site.page(FakeRequest(f"/in/{slug}")))
    for name in FAULTS:
        yield _case(name, name, *site.damaged(name, FakeRequest(f"/in/{name}")))
    for name, path in REDIRECTED.items():
        status, _, body = site.page(FakeRequest(path.partition("?")[0]))
        yield Case(ProfilePage, name, ORIGIN + path, status, body, {"slug": name})
    yield _case("empty-body", "somebody", 200, {}, b"")
    yield _case("rate-limited", "somebody", 429, {}, b"slow down")
    yield _case("server-error", "somebody", 503, {}, b"<h1>Sorry</h1>")
    for slug in WITH_CONTENT:
        yield _case(slug, slug, *site.page(FakeRequest(f"/in/{slug}")), kind=ContentPage)
    for name in ("not-found", "status-999"):
        yield _case(name, name, *site.damaged(name, FakeRequest(f"/in/{name}")), kind=ContentPage)


def _case(
    name: str,
    slug: str,
    status: int,
    _headers: dict[str, str],
    body: bytes,
    *,
    kind: type[PlatformPage] = ProfilePage,
) -> Case:
    return Case(kind, name, f"{ORIGIN}/in/{quote(slug)}", status, body, {"slug": slug})
