"""Microblog: responses of every source, and failures.

``tests/platforms/microblog/test_pages.py`` covers further failures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crawler.errors import TargetNotFound, UpstreamBlocked, UpstreamRateLimited
from crawler.platforms.microblog.api import GuestTokenPage
from crawler.platforms.microblog.pages import ProfilePage
from crawler.platforms.microblog.schema import Demographics
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

    The structure is that of a recorded page, the content is invented, and the expected data was written by hand.
    """
    body = Path(__file__).with_name("microblog_streamed.html").read_bytes()
    author = "https://pbs.twimg.com/profile_images/71/hull_normal.jpg"
    common: dict[str, Any] = {
        "creator_handle": "glass_ferry",
        "profile_picture_url": author,
        "save_count": None,
        "hashtags": [],
    }
    common |= {"is_quote": False, "is_reply": False, "is_repost": False, "quoted_post": None, "reposted_post": None}
    common |= {"in_reply_to_handle": None, "in_reply_to_post_id": None, "thumbnail_url": None, "video_url": None}
    common["video_urls_by_quality"] = dict.fromkeys(("high", "low", "medium", "watermarked"))
    low, high = (f"https://video.twimg.com/88/{name}.mp4?tag=29" for name in ("480x270/low", "1280x720/high"))
    posts: list[dict[str, Any]] = [
        {
            "post_id": "2090000000000000001",
            "caption": "The winter #timetable is out.\nhttps://example.org/winter",
            "hashtags": ["timetable"],
            "upload_timestamp": 1_787_130_000,
            **dict(zip(COUNTS, (6, 71, 9, 9_041), strict=True)),
        },
        {
            "post_id": "2098000000000000002",
            "caption": "Today the pilot explains why the tide & wind decide.",
            "upload_timestamp": 1_789_037_380,
            "thumbnail_url": "https://pbs.twimg.com/amplify_video_thumb/88/img/bow.jpg",
            "video_url": high,
            "video_urls_by_quality": {"high": high, "low": low, "medium": None, "watermarked": None},
            **dict(zip(COUNTS, (1, 15, 2, 1_203), strict=True)),
        },
        {
            "post_id": "2098100000000000003",
            "caption": "Rails & ropes, painted again.",
            "upload_timestamp": 1_789_061_222,
            "thumbnail_url": "https://pbs.twimg.com/media/rails.jpg",
            "save_count": 2,
            **dict(zip(COUNTS, (4, 33, 5, 655), strict=True)),
        },
    ]
    profile = dict.fromkeys(Demographics.model_fields) | {
        "created_at": "Tue May 13 16:53:20 +0000 2014",
        "description": "Ferries <3",
        "followers_count": 8_123,
        "friends_count": 41,
        "statuses_count": 230,
        "is_blue_verified": True,
        "protected": False,
        "verified": False,
        "location": "Quay 7",
        "name": "Glass & Ferry",
        "profile_image_url_https": author,
        "screen_name": "glass_ferry",
        "verified_type": "",
    }
    data = {
        "next_cursor": "",
        "pinned": "2090000000000000001",
        "posts": [common | post | {"post_url": f"{ORIGIN}/glass_ferry/status/{post['post_id']}"} for post in posts],
        "profile": profile,
        "user_id": "7100",
    }
    return Case(ProfilePage, "streamed", f"{ORIGIN}/glass_ferry", 200, body, {"username": "glass_ferry"}, data)
