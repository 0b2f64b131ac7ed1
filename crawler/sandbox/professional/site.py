"""The simulated professional network: its members, their pages in every variant, and its faults."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from crawler.sandbox.faults import described, is_navigation, target, unnumbered
from crawler.sandbox.professional import faults as professional_faults
from crawler.sandbox.professional import page as professional_page
from crawler.sandbox.professional.expected import UNREAD_NOTE, content_record, record
from crawler.sandbox.professional.faults import BROKEN_LINKED_DATA, FAULTS
from crawler.sandbox.professional.people import RENAMED, MemberFactory

if TYPE_CHECKING:
    from crawler.sandbox.professional.people import Member
    from crawler.sandbox.protocol import FakeRequest, FakeResponse

__all__ = ["FAULTS", "Site"]

RANDOM_MEMBERS = 20
"""Number of random members in addition to the special members."""
OTHER = "tomas-okafor-4a0756"
"""The member whose page is served instead of the requested one if a fault requires another member's page."""
_IN = re.compile(r"/in/([^/?#]+)")

TARGETS = [
    target("a member with articles and activity", username="mara-lindqvist"),
    target("the same member", url="https://www.linkedin.com/in/mara-lindqvist"),
    target("a former name, which redirects to the same member", username="mara-before"),
    target("a member whose positions are masked", username="masked-past"),
    target("a member with 40 positions", username="forty-positions"),
    target("a member without positions", username="nobody-yet"),
    target("a member without a photo", username="no-photo"),
]


class Site:
    """The simulated network. The same seed produces the same members everywhere. ``light``: serve smaller pages."""

    def __init__(self, seed: int = 1, *, light: bool = False) -> None:
        self.light = light
        self.members: dict[str, Member] = {
            member.slug: member for member in MemberFactory(seed).members(RANDOM_MEMBERS)
        }

    def member(self, slug: str) -> Member:
        """Return the member for a profile name, a former profile name or the name of a fault.

        Raises:
            KeyError: the name is unknown.
        """
        fault = unnumbered(slug, FAULTS)
        if fault in FAULTS:
            return professional_faults.expected_after_fault(fault, self._with_fault(slug))
        return self.members[RENAMED.get(slug, slug)]

    def _with_fault(self, slug: str) -> Member:
        """Return a copy of a member with a fault's name as the profile name. The fault damages the copy's page."""
        member = self.members["mara-lindqvist"]

        def renamed(url: str) -> str:
            old = member.slug
            return url.replace(f"/posts/{old}_", f"/posts/{slug}_").replace(f"/in/{old}", f"/in/{slug}")

        activity = [
            row | {name: renamed(row[name]) for name in ("author_url", "link")} for row in member.rows["activity"]
        ]
        return replace(member, slug=slug, rows=member.rows | {"activity": activity})

    # The site

    def fault(self, request: FakeRequest) -> str | None:
        """Return the fault that the name in the requested profile's URL selects."""
        name = unnumbered(_slug(request.path), FAULTS)
        return name if name in FAULTS else None

    def limited(self, request: FakeRequest, _: int) -> FakeResponse | None:
        """Build the response with status 999 to a request for a profile above a limit by rate."""
        return self.damaged("status-999", request) if _slug(request.path) else None

    def refusal(self, request: FakeRequest) -> FakeResponse | None:
        """Build the response with status 999 to a request for a profile without the headers of a browser."""
        return None if is_navigation(request) else self.limited(request, 0)

    def page(self, request: FakeRequest) -> FakeResponse:
        """Build the undamaged response: a profile, a redirect from a former profile name, or the not-found page.

        Other paths are robots.txt and the pages to which the redirects of faults lead.
        """
        first = request.path.lstrip("/").partition("/")[0]
        if request.path == "/robots.txt":
            return 200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /\n"
        if first in {"authwall", "uas", "checkpoint"}:
            return 200, {}, professional_faults.login_wall()
        if request.path == "/":
            return 200, {}, professional_faults.guest_home()
        if first in {"company", "pub"}:
            head = professional_page.page_key("organization_guest", "Somebody Ltd")
            return 200, {}, professional_page.document(head, "<main><h1>Somebody Ltd</h1></main>")
        return self._profile(_slug(request.path))

    def _profile(self, slug: str) -> FakeResponse:
        if slug in RENAMED:
            return 302, {"Location": f"/in/{RENAMED[slug]}"}, b""
        try:
            return 200, {}, self._rendered(slug)
        except KeyError:
            return 404, {}, professional_faults.not_found()

    @lru_cache(maxsize=64)  # noqa: B019  # a site lives as long as its process; the cache makes repeated requests free
    def _rendered(self, slug: str) -> bytes:
        member = self._with_fault(slug) if unnumbered(slug, FAULTS) in FAULTS else self.members[slug]
        return professional_page.profile(member, light=self.light)

    def damaged(self, name: str, request: FakeRequest) -> FakeResponse:
        """Build the damaged response for a fault that only this platform has."""
        return professional_faults.damaged(
            name, request.path, lambda: self.page(request), lambda: self._rendered(OTHER)
        )

    def catalogue(self) -> dict[str, Any]:
        """Return the network's members, former profile names and faults."""
        return {
            "targets": TARGETS,
            "members": {
                member.slug: {"name": member.name, "masked": member.masked, "positions": len(member.positions)}
                for member in self.members.values()
            },
            "former_names": RENAMED,
            "faults": described(FAULTS, lambda name: {"username": name}),
        }

    def expected_record(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the exact record that must be extracted for a target.

        With the param ``url``, the record has the schema of ``professional-profile``; with ``username``, that of
        ``professional-profile-v4``.

        Raises:
            KeyError: the member is unknown.
        """
        if "username" in params:
            name = str(params["username"])
            return content_record(self.member(_slug(name) or unquote(name)))
        slug = _slug(str(params["url"]))
        expected = record(self.member(slug))
        if slug in BROKEN_LINKED_DATA:
            expected["data_availability"]["note"] = UNREAD_NOTE
        return expected


def _slug(path: str) -> str:
    """Return the profile name in a path or URL, or "" if there is none."""
    found = _IN.search(path)
    return unquote(found[1]) if found else ""
