"""The simulated microblog's users in the formats of three API generations."""

from __future__ import annotations

import html
from base64 import b64encode
from typing import Any

from crawler.sandbox.microblog.account import User, date_text
from crawler.sandbox.skeletons import ABSENT, Skeletons

OLDEST, OLD, NEW = "A", "B", "C"

fill = Skeletons(__file__)


def b64(text: str) -> str:
    """Encode an id in base64, as in records."""
    return b64encode(text.encode()).decode()


def user_payload(user: User, shape: str) -> dict[str, Any]:
    """Build a user in the format of an API generation."""
    common = fill(
        "common",
        user=user,
        id=b64(f"User:{user.id}"),
        label=fill("label") if user.kind else {},
        business={"affiliates_count": 100} if user.kind else {},
        shape="Square" if user.kind else "Circle",
    )
    if shape == OLDEST:
        return common | {"legacy": oldest_user(user), "parody_commentary_fan_label": "None", "user_seed_tweet_count": 0}
    newer = common | fill("newer", **_texts(user))
    if shape == NEW:
        return newer | fill("newest", user=user)
    legacy = oldest_user(user)
    for moved in ("created_at", "location", "name", "profile_image_url_https", "screen_name", "verified"):
        del legacy[moved]
    return newer | {"legacy": fill("older legacy") | legacy | {"url": user.link, "profile_banner_url": user.banner}}


def oldest_user(user: User, *, stale: int = 0) -> dict[str, Any]:
    """Build a user in the oldest format, as in embeds. ``stale`` is subtracted from the follower count."""
    return fill(
        "legacy",
        **_texts(user),
        followers=user.followers - stale,
        protected=user.protected or ABSENT,
        banner=user.banner or ABSENT,
        link=user.link or ABSENT,
    )


def _texts(user: User) -> dict[str, Any]:
    urls = {"url": {"urls": [fill("link", user=user)]}} if user.link else {}
    return {
        "user": user,
        "created": date_text(user.created),
        "name": html.escape(user.name),
        "about": html.escape(user.about, quote=False),
        "kind": user.kind or ABSENT,
        "bio": {"description": {}, **urls},
    }
