"""Photo app: converts the parts of a post that have nearly the same keys in all forms of the payload."""

from __future__ import annotations

import re
from typing import Any

from crawler.platforms.photoapp import PLATFORM
from crawler.reading.json import dicts, dig
from crawler.reading.values import absolute_url, count, flag, iso_duration, number, text

ORIGIN = PLATFORM.origin

# Each account has a secondary id in addition to its classic id. All known secondary ids match this pattern.
_APP_ID = re.compile(r"17841\d{12}")
# A post's numeric id, which occurs as "POLARIS_<id>", "<id>_<owner's id>" or "<id>".
_ID = re.compile(r"(?:POLARIS_)?(?P<id>\d+)(?:_\d+)?", re.ASCII)

_MANIFEST_DURATION = re.compile(r'mediaPresentationDuration\s*=\s*\\?["\'](?P<duration>[^"\'\\]{1,40})')

IMAGE, VIDEO, CAROUSEL = 1, 2, 8
KINDS = {IMAGE: "XDTGraphImage", VIDEO: "XDTGraphVideo", CAROUSEL: "XDTGraphSidecar"}
_KIND_WORDS = (("Sidecar", CAROUSEL), ("Carousel", CAROUSEL), ("Video", VIDEO), ("Image", IMAGE))


def url(value: object) -> str:
    """Return a URL in absolute form, or "" for a value that is not a URL."""
    return absolute_url(ORIGIN, value)


def post_id(*candidates: object) -> str:
    """Return the numeric id in the first candidate that contains one, or ""."""
    for candidate in candidates:
        found = _ID.fullmatch(text(candidate))
        if found:
            return found["id"]
    return ""


def kind_of_name(typename: object) -> int | None:
    """Return the media type for the platform's type name (``__typename``) of a post in any payload format, or None."""
    name = text(typename)
    return next((kind for word, kind in _KIND_WORDS if word in name), None)


def account_id(account: object) -> str:
    """Return an account's classic numeric id, or "". Some payload formats have it under ``pk``, others under ``id``."""
    classic = text(dig(account, "pk"))
    other = text(dig(account, "id"))
    return classic or ("" if _APP_ID.fullmatch(other) else other)


def app_id(account: object) -> str:
    """Return an account's secondary id (17841…), or "" if the data does not have it.

    It is the value of ``id``, if that differs from ``pk`` or matches the pattern of secondary ids.
    """
    classic, other = text(dig(account, "pk")), text(dig(account, "id"))
    return other if (classic and other != classic) or _APP_ID.fullmatch(other) else ""


def owner(account: object) -> dict[str, Any]:
    """Build the contract's object for the owner of the post."""
    classic = account_id(account)
    return {
        "__typename": text(dig(account, "__typename")),
        "full_name": text(dig(account, "full_name")),
        "id": classic,
        "app_id": app_id(account),
        "is_private": flag(dig(account, "is_private")),
        "is_unpublished": flag(dig(account, "is_unpublished")),
        "is_verified": flag(dig(account, "is_verified")),
        "pk": classic,
        "profile_image_uri": url(dig(account, "profile_image_uri")),
        "profile_pic_url": url(dig(account, "profile_pic_url")),
        "username": text(dig(account, "username")),
        "polaris_ordered_timeline_connection": {"edges": timeline(account)},
    }


def timeline(account: object) -> list[dict[str, Any]]:
    """Return the account's newest posts, including carousels, in the page's order: pinned posts come first."""
    nodes = [edge.get("node") for edge in dicts(dig(account, "polaris_ordered_timeline_connection", "edges"))]
    return [{"node": _timeline_item(node)} for node in dicts(nodes) if node.get("code") or node.get("pk")]


def _timeline_item(node: dict[str, Any]) -> dict[str, Any]:
    typename, user = text(node.get("__typename")), node.get("user")
    return {
        "__isXIGPolarisMedia": text(node.get("__isXIGPolarisMedia")) or typename,
        "__typename": typename,
        "accessibility_caption": text(node.get("accessibility_caption")),
        "caption": {"text": text(dig(node, "caption", "text"))},
        "code": text(node.get("code")),
        "display_uri": url(node.get("display_uri")),
        "id": text(node.get("id")),
        "media_type": count(node.get("media_type")),
        "pk": text(node.get("pk")),
        "product_type": text(node.get("product_type")),
        "seo_canonical_url": text(node.get("seo_canonical_url")) or None,
        "user": {key: text(dig(user, key)) for key in ("id", "pk", "username")},
    }


def coauthors(accounts: object) -> list[dict[str, Any]]:
    """Return the accounts that published the post together with its owner."""
    return [
        {
            "id": account_id(account),
            "username": text(account.get("username")),
            "full_name": text(account.get("full_name")),
            "is_verified": flag(account.get("is_verified")),
            "profile_pic_url": url(account.get("profile_pic_url")),
        }
        for account in dicts(accounts)
    ]


def tag(account: object, x: object, y: object) -> dict[str, Any]:
    """Build a tagged account with its position in the picture, in the contract's nesting."""
    user = {
        "full_name": text(dig(account, "full_name")),
        "id": account_id(account),
        "is_verified": flag(dig(account, "is_verified")),
        "profile_pic_url": url(dig(account, "profile_pic_url")),
        "username": text(dig(account, "username")),
    }
    return {"node": {"user": user, "x": number(x), "y": number(y)}}


def comment(node: dict[str, Any]) -> dict[str, Any]:
    """Build a comment in the contract's nesting, from any form of the payload."""
    writer = node.get("user") if isinstance(node.get("user"), dict) else node.get("owner")
    likes = node.get("comment_like_count")
    return {
        "node": {
            "id": text(node.get("pk")) or text(node.get("id")),
            "text": text(node.get("text")),
            "created_at": count(node.get("created_at")),
            "owner": {
                "id": account_id(writer),
                "username": text(dig(writer, "username")),
                "is_verified": flag(dig(writer, "is_verified")),
                "profile_pic_url": url(dig(writer, "profile_pic_url")),
            },
            "edge_liked_by": {"count": count(dig(node, "edge_liked_by", "count") if likes is None else likes)},
        }
    }


def comments(edges: object) -> list[dict[str, Any]]:
    """Return the comments that the page shows."""
    return [comment(node) for node in dicts([edge.get("node") for edge in dicts(edges)])]


def captions(caption: object) -> dict[str, Any]:
    """Build the caption in the contract's nesting. A post without a caption gives an empty list."""
    return {"edges": [{"node": {"text": text(caption)}}] if text(caption) else []}


def location(place: object) -> dict[str, Any] | None:
    """Build the contract's object for the place that the owner named, or None."""
    if not isinstance(place, dict) or not place:
        return None
    return {
        "id": text(place.get("pk")) or text(place.get("id")),
        "has_public_page": flag(place.get("has_public_page")),
        "name": text(place.get("name")),
        "slug": text(place.get("slug")),
        "address_json": text(place.get("address_json")) or None,
    }


def manifest_duration(manifest: object) -> float | None:
    """Return a video's exact duration in seconds from the manifest of its streams, or None."""
    found = _MANIFEST_DURATION.search(text(manifest))
    return iso_duration(found["duration"]) if found else None


def public_count(value: object, *, hidden: object) -> int | None:
    """Return a count, or None if it is hidden: the flag ``hidden`` is true, or the number is negative."""
    return None if hidden is True else count(value)


def nonzero_count(value: object, *, hidden: object) -> int | None:
    """Return a number of plays or views. None if it is hidden or 0: the platform fills in 0 for undisclosed counts."""
    return public_count(value, hidden=hidden) or None
