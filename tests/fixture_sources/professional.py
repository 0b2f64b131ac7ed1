"""Professional network: profiles in full, masked and sparse, and every failure of a page."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

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


def _case(name: str, slug: str, status: int, _headers: dict[str, str], body: bytes) -> Case:
    return Case(ProfilePage, name, f"{ORIGIN}/in/{quote(slug)}", status, body, {"slug": slug})
