"""Microblog: responses of every source, and failures.

``tests/platforms/microblog/test_pages.py`` covers further failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from web_poet.testing import Fixture

from crawler.errors import TargetNotFound, UpstreamBlocked, UpstreamRateLimited
from crawler.platforms.microblog.api import GuestTokenPage
from crawler.platforms.microblog.pages import ProfilePage
from crawler.sandbox.microblog.site import Site
from tests.make_fixtures import TESTS, Case, Failure
from tests.microblog_pages import PAGES, answer

ORIGIN = "https://x.com"
MADE_BY_HAND = TESTS / "fixtures" / "crawler.platforms.microblog.pages.ProfilePage" / "transcribed-streamed"
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

LACKING = ("location", "profile_banner_url", "url")
COUNTS = ("comment_count", "like_count", "share_count", "view_count")


def cases() -> Iterator[Case]:
    """Yield the cases of the microblog."""
    site = Site(light=True)
    handles = {name: handle for handle, name in site.faults.items()}
    for source, names in GOOD.items():
        for handle in names:
            yield _case(site, source, handle, handle.replace("_", "-"), _truth(site, source, handle))
    for source in ("page", "user"):
        yield _case(site, source, "nobody_here", "nobody-here", (TargetNotFound, "not_found"))
    for (source, fault), failure in BAD.items():
        yield _case(site, source, handles[fault], fault, failure)
    yield _case(site, "embed", "empty_shelf", "empty-shelf", NOTHING)
    yield _case(site, "timeline", "closed_garden", "closed-garden", NOTHING)
    yield _case(site, "timeline", handles["only-cursors"], "only-cursors", NOTHING)
    yield _case(site, "page", handles["only-page"], "only-page", _truth(site, "page", handles["only-page"]))
    yield _case(site, "embed", "lone_wolf", "lone-wolf", _truth(site, "embed", "lone_wolf"))
    yield _streamed()
    for name, status, body, expected in (
        ("token", 200, b'{"guest_token":"2107302643823767876"}', {"token": "2107302643823767876"}),
        ("no-token", 403, b"Forbidden.", (UpstreamBlocked, "token_refused")),
    ):
        yield Case(GuestTokenPage, name, f"{ORIGIN}/1.1/guest/activate.json", status, body, {}, expected)


def _truth(site: Site, source: str, handle: str) -> dict[str, Any]:
    """Return the sandbox's truth of an account as the item of a source."""
    account = site.account(handle)
    data = site.expected_record({"username": handle, "source": source})["data"]
    profile = data["additional"]["profile_demographics"]
    # A text that these formats may lack is null in the item. The spider replaces it by "".
    texts = (
        LACKING if source == "page" else (*LACKING, "created_at", "description") if account.plan.shape == "D" else ()
    )
    profile |= {name: None for name in texts if profile[name] == ""}
    item = NOTHING | {"user_id": account.user.id, "profile": profile, "posts": data["main"]}
    if source == "timeline":
        item |= {"next_cursor": site.cursor(2), "pinned": account.pinned.id if account.pinned else ""}
    return item


def _case(site: Site, source: str, handle: str, name: str, expected: Failure | dict[str, Any] | None = None) -> Case:
    status, _, body = answer(site, source, handle)
    return Case(PAGES[source], name, f"{ORIGIN}/{handle}", status, body, {"username": handle}, expected)


def _streamed() -> Case:
    """Return the case of a page in the newest format: its user and its timeline are the results of streamed queries.

    The fixture is made by hand: the structure is that of a recorded page, and the content is invented.
    """
    made: Any = Fixture(MADE_BY_HAND).get_page(ProfilePage)
    return Case(
        ProfilePage, "streamed", f"{ORIGIN}/glass_ferry", 200, bytes(made.response.body), dict(made.page_params)
    )
