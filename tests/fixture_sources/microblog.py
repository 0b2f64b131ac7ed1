"""Microblog: responses of every source, and failures.

``tests/platforms/microblog/test_pages.py`` covers further failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crawler.errors import TargetNotFound, UpstreamBlocked, UpstreamRateLimited
from crawler.platforms.microblog.api import GuestTokenPage
from crawler.sandbox.microblog.site import Site
from tests.make_fixtures import Case, Failure
from tests.microblog_pages import PAGES, answer

ORIGIN = "https://x.com"
NOTHING: dict[str, Any] = {"next_cursor": "", "pinned": "", "posts": [], "profile": {}, "user_id": ""}

GOOD = {
    "page": ("quiet_harbor", "old_lantern", "closed_garden"),
    "user": ("quiet_harbor", "old_lantern", "iron_meadow"),
    "timeline": ("quiet_harbor", "old_lantern", "iron_meadow", "relay_station"),
}
BAD: dict[tuple[str, str], Failure] = {
    ("embed", "embed-limited"): (UpstreamRateLimited, "rate_limited"),
    ("user", "calls-as-pages"): (UpstreamBlocked, "challenge"),
    ("user", "calls-for-members"): (UpstreamBlocked, "login_required"),
    ("timeline", "token-refused"): (UpstreamBlocked, "token_refused"),
}


def cases() -> Iterator[Case]:
    """Yield the cases of the microblog."""
    site = Site(light=True)
    handles = {name: handle for handle, name in site.faults.items()}
    for source, names in GOOD.items():
        for handle in names:
            yield _case(site, source, handle, handle.replace("_", "-"))
    for source in ("page", "user"):
        yield _case(site, source, "nobody_here", "nobody-here", (TargetNotFound, "not_found"))
    for (source, fault), failure in BAD.items():
        yield _case(site, source, handles[fault], fault, failure)
    yield _case(site, "embed", "empty_shelf", "empty-shelf", NOTHING)
    yield _case(site, "timeline", "closed_garden", "closed-garden", NOTHING)
    yield _case(site, "timeline", handles["only-cursors"], "only-cursors", NOTHING)
    # The page object keeps a null that the spider replaces by "". The embed's counts are older, and some are missing.
    page = _truth(site, handles["only-page"], profile_banner_url=None)
    yield _case(site, "page", handles["only-page"], "only-page", page)
    embed = _truth(site, "lone_wolf", followers_count=18_353_642)
    embed["posts"] = [post | {"save_count": None, "view_count": None} for post in embed["posts"]]
    yield _case(site, "embed", "lone_wolf", "lone-wolf", embed)
    for name, status, body, expected in (
        ("token", 200, b'{"guest_token":"2107302643823767876"}', {"token": "2107302643823767876"}),
        ("no-token", 403, b"Forbidden.", (UpstreamBlocked, "token_refused")),
    ):
        yield Case(GuestTokenPage, name, f"{ORIGIN}/1.1/guest/activate.json", status, body, {}, expected)


def _truth(site: Site, handle: str, **other: Any) -> dict[str, Any]:
    """Return the sandbox's truth of an account as an item. ``other``: the profile's values that differ in a source."""
    data = site.expected_record({"username": handle})["data"]
    profile = data["additional"]["profile_demographics"] | other
    return NOTHING | {"user_id": site.account(handle).user.id, "profile": profile, "posts": data["main"]}


def _case(site: Site, source: str, handle: str, name: str, expected: Failure | dict[str, Any] | None = None) -> Case:
    status, _, body = answer(site, source, handle)
    return Case(PAGES[source], name, f"{ORIGIN}/{handle}", status, body, {"username": handle}, expected)
