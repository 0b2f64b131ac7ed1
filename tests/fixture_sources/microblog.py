"""Microblog: fixtures of every source in each of its formats, and of every kind of failure."""

from __future__ import annotations

from collections.abc import Iterator

from crawler.platforms.microblog.api import GuestTokenPage
from crawler.sandbox.microblog.site import Site
from tests.make_fixtures import Case
from tests.microblog_pages import PAGES, answer

ORIGIN = "https://x.com"

GOOD = (
    ("page", "quiet_harbor"),
    ("page", "old_lantern"),
    ("page", "closed_garden"),
    ("page", "nobody_here"),
    ("embed", "lone_wolf"),
    ("embed", "empty_shelf"),
    ("user", "quiet_harbor"),
    ("user", "old_lantern"),
    ("user", "iron_meadow"),
    ("user", "nobody_here"),
    ("timeline", "quiet_harbor"),
    ("timeline", "old_lantern"),
    ("timeline", "iron_meadow"),
    ("timeline", "relay_station"),
    ("timeline", "closed_garden"),
)
BAD = (
    ("page", "broken"),
    ("page", "challenge"),
    ("page", "no-data"),
    ("page", "soft-gone"),
    ("page", "suspended"),
    ("page", "wrong-profile"),
    ("embed", "embed-limited"),
    ("embed", "no-data"),
    ("user", "calls-as-pages"),
    ("user", "calls-for-members"),
    ("user", "missing-flag"),
    ("user", "suspended-by-call"),
    ("timeline", "blind"),
    ("timeline", "calls-failing"),
    ("timeline", "calls-limited"),
    ("timeline", "only-cursors"),
    ("timeline", "stale-ids"),
    ("timeline", "token-refused"),
)


def cases() -> Iterator[Case]:
    """The platform's fixtures."""
    site = Site(light=True)
    for source, handle in GOOD:
        yield _case(site, source, handle, handle.replace("_", "-"))
    for source, fault in BAD:
        handle = next(handle for handle, name in site.faults.items() if name == fault)
        yield _case(site, source, handle, fault)
    for name, status, body in (
        ("token", 200, b'{"guest_token":"2107302643823767876"}'),
        ("no-token", 403, b"Forbidden."),
    ):
        yield Case(GuestTokenPage, name, f"{ORIGIN}/1.1/guest/activate.json", status, body, {})


def _case(site: Site, source: str, handle: str, name: str) -> Case:
    status, _, body = answer(site, source, handle)
    return Case(PAGES[source], name, f"{ORIGIN}/{handle}", status, body, {"username": handle})
