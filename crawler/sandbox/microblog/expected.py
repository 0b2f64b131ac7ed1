"""The records that must be extracted from the simulated microblog. The records depend on which sources respond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crawler.sandbox.microblog.account import STALE, Account, Media, Post, date_text
from crawler.sandbox.skeletons import Skeletons

fill = Skeletons(__file__)

NOT_ON_PAGES = {"favourites_count", "listed_count", "media_count", "profile_banner_url"}
ON_FRAGMENTS = {
    "followers_count",
    "friends_count",
    "is_blue_verified",
    "name",
    "profile_image_url_https",
    "protected",
    "screen_name",
    "statuses_count",
    "verified_type",
}
"""The only fields that the user object of a post's author has in the newest client's format."""
TEXTS = {
    "created_at",
    "description",
    "location",
    "name",
    "profile_banner_url",
    "profile_image_url_https",
    "screen_name",
    "url",
    "verified_type",
}


@dataclass(frozen=True, slots=True)
class Exposed:
    """The data that the platform shows for a target, and the sources that respond without a fault."""

    account: Account
    sources: frozenset[str]
    served: list[Post]
    """The posts on the requested page of the timeline. ``first_served``: the posts on its first page."""
    first_served: list[Post]
    number: int
    """The number of the requested page, from 1."""
    more: bool


def record(exposed: Exposed) -> dict[str, Any]:
    """Build the expected record of an account: its profile and its posts."""
    posts = _posts(exposed)
    is_complete = "timeline" not in exposed.sources and len(posts) >= exposed.account.user.posts
    return {
        "data": {"additional": {"profile_demographics": _profile(exposed)}, "main": posts},
        "hasMore": exposed.more and not is_complete and not exposed.account.user.protected,
        "nextCursor": "",
    }


def _profile(exposed: Exposed) -> dict[str, Any]:
    user = exposed.account.user
    whole = fill("profile", user=user, created=date_text(user.created))
    newer = {
        name: value for name, value in whole.items() if exposed.account.plan.shape == "B" or name != "listed_count"
    }
    fragment = {name: value for name, value in whole.items() if name in ON_FRAGMENTS}
    known: dict[str, dict[str, Any]] = {
        "user": newer,
        "timeline": (fragment if exposed.account.plan.shape == "D" else newer) if exposed.served else {},
        "page": {name: value for name, value in whole.items() if name not in NOT_ON_PAGES},
        "embed": whole | {"followers_count": user.followers - STALE} if exposed.account.embedded else {},
    }
    sources = set(exposed.sources)
    if exposed.number > 1:
        sources &= {"timeline", "user"}
    elif exposed.account.embedded and "embed" in exposed.sources:
        sources -= {"user"}  # the embed contains the whole profile
    found: dict[str, Any] = {name: "" if name in TEXTS else None for name in whole}
    for source in ("embed", "page", "timeline", "user"):
        if source in sources:
            found |= known[source]
    return found | ({"profile_image_url_https": user.large_picture} if "page" in sources else {})


def _posts(exposed: Exposed) -> list[dict[str, Any]]:
    timeline = exposed.served if "timeline" in exposed.sources else []
    newest = exposed.account.newest if "page" in exposed.sources else []
    first = ([exposed.account.pinned] if exposed.account.pinned else []) + exposed.first_served
    early = [post for post in newest if post not in first]
    if exposed.number > 1:
        return [post_record(post) for post in timeline if post != exposed.account.pinned and post not in early]
    if timeline:
        top = [exposed.account.pinned] if exposed.account.pinned else []
        rest = [post for post in timeline if post != exposed.account.pinned]
        return [post_record(post) for post in [*top, *early, *rest]]
    embedded = exposed.account.embedded if "embed" in exposed.sources else []
    late = [post for post in embedded if post not in newest]
    return [post_record(post) for post in newest] + [post_record(post, embedded=True) for post in late]


def post_record(post: Post, *, embedded: bool = False) -> dict[str, Any]:
    """Build the expected record of a post. In a post that is read from an embed, views and bookmarks are null."""
    inner = post.repost_of
    shown = inner or post
    media, files = shown.media, _files(shown.media)
    return fill(
        "post",
        post=post,
        replies=None if inner else post.replies,
        likes=None if inner else post.likes,
        saves=None if inner or embedded else post.saves,
        shares=shown.shares,
        views=None if embedded else post.views,
        hashtags=list(shown.tags),
        reply_handle=post.reply_handle or None,
        reply_id=post.reply_id or None,
        is_quote=bool(post.quote_id) and inner is None,
        is_reply=bool(post.reply_id),
        is_repost=inner is not None,
        quoted=_inner(post.quote_of, embedded=embedded) if post.quote_of else None,
        reposted=_inner(inner, embedded=embedded) if inner else None,
        thumbnail=media[0].thumbnail if media else None,
        files=files,
        video=files["high"],
    )


def _inner(post: Post, *, embedded: bool) -> dict[str, Any]:
    return fill("inner post", post=post, views=None if embedded else post.views)


def _files(media: tuple[Media, ...]) -> dict[str, str | None]:
    urls = [url for _, url in sorted(media[0].files)] if media else []
    names: dict[str, str | None] = dict.fromkeys(("high", "low", "medium", "watermarked"))
    if urls:
        names["high"] = urls[-1]
    if len(urls) >= 2:
        names["low"] = urls[0]
    if len(urls) >= 3:
        names["medium"] = urls[(len(urls) - 1) // 2]
    return names
