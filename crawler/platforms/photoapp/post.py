"""Photo app: converts a post in any format to the contract's post (specification 2.2)."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from crawler.errors import ExtractionFailed
from crawler.platforms.photoapp import PLATFORM
from crawler.platforms.photoapp.payload import (
    CAROUSEL,
    IMAGE,
    VIDEO,
    Embedded,
    Id,
    Item,
    Listed,
    Owner,
    Person,
    Place,
    Post,
    RelayComment,
    Slide,
    Tag,
)
from crawler.platforms.photoapp.urls import code_of_id, id_of_code, shortcode_of
from crawler.reading.contract import Count
from crawler.reading.documents import decode, dig
from crawler.reading.values import absolute_url, count, iso_duration, number, text

ORIGIN = PLATFORM.origin
KINDS = {IMAGE: "XDTGraphImage", VIDEO: "XDTGraphVideo", CAROUSEL: "XDTGraphSidecar"}
PROGRESSIVE = 101
"""The ``type`` of a video's versions that are complete, playable files."""

_MANIFEST_DURATION = re.compile(r'mediaPresentationDuration\s*=\s*\\?["\'](?P<duration>[^"\'\\]{1,40})')

Row = dict[str, Any]


class Identity(NamedTuple):
    """The identity of a post: one number, which the platform states several times, as a shortcode and as an id."""

    code: str
    """The shortcode, "" if the response states neither a shortcode nor a numeric id."""
    pk: str
    """The numeric id, computed from the shortcode. "" if ``code`` is empty."""
    contradicts: bool
    """Whether another statement differs, such as an id that a JavaScript client has rounded to ``…000``."""


def identity_of(codes: Sequence[str | None], ids: Iterable[Id | None]) -> Identity:
    """Return the identity that shortcodes and numeric ids state. The first shortcode decides, without one the first id.

    >>> identity_of(["DeAZ0uAgNuA", None], [3999310043081137024, "POLARIS_3999310043081137024"])
    Identity(code='DeAZ0uAgNuA', pk='3999310043081137024', contradicts=False)
    >>> identity_of(["DeAZ0uAgNuA"], [3999310043081137000, None]).contradicts
    True
    >>> identity_of([None], ["3999310043081137024_787132"])
    Identity(code='DeAZ0uAgNuA', pk='3999310043081137024', contradicts=False)
    >>> identity_of(["DeAZ0uAgNuA" + 28 * "x"], ["3999310043081137024"]).code
    'DeAZ0uAgNuA'
    """
    numbers = [str(each).removeprefix("POLARIS_").partition("_")[0] for each in ids if each is not None]
    coded = {code: id_of_code(code) for code in (shortcode_of(each) for each in codes if each)}
    code, pk = next((stated for stated in coded.items() if stated[1]), ("", ""))
    if not code:
        code = next(filter(None, map(code_of_id, numbers)), "")
        pk = id_of_code(code)
    return Identity(code, pk, {*numbers, *coded.values()} != {pk})


def photo_post(post: Post, identity: Identity, comments: Sequence[RelayComment] = ()) -> Row:
    """Build the contract's post. ``comments``: the comments in the object that contains the post."""
    is_video = post.kind == VIDEO
    return {
        "__typename": KINDS[post.kind],
        "accessibility_caption": post.alt or "",
        "clips_music_attribution_info": _music(post),
        "coauthor_producers": [_coauthor(each) for each in post.coauthors],
        "comments_disabled": post.closes_comments,
        "dimensions": {"height": count(post.height) or None, "width": count(post.width) or None},
        "display_url": picture(post),
        "edge_media_preview_like": {"count": _likes(post)},
        "edge_media_to_caption": {"edges": [{"node": {"text": post.caption}}] if post.caption else []},
        "edge_media_to_comment": {
            "count": count(post.comment_count),
            "edges": [{"node": _comment(each)} for each in comments or post.comments],
        },
        "edge_media_to_tagged_user": {"edges": [{"node": _tag(each, each.user)} for each in post.tags if each.user]},
        "has_audio": post.has_audio,
        "id": identity.pk,
        "is_ad": post.is_ad,
        "is_affiliate": post.is_affiliate,
        "is_paid_partnership": post.is_paid,
        "is_video": is_video,
        "like_and_view_counts_disabled": post.hides_counts,
        "location": _location(post.place) if post.place else None,
        "owner": _owner(post.owner),
        "product_type": post.product_type or "",
        "shortcode": identity.code,
        "taken_at_timestamp": count(post.taken_at),
        "thumbnail_src": _url(post.thumbnail) or _smallest_picture(post),
        "video_duration": (exact_duration(post) or _file_duration(post)) if is_video else None,
        "video_play_count": nonzero_count(post.plays, hidden=post.hides_counts) if is_video else None,
        "video_url": _video_url(post) if is_video else None,
        "video_view_count": nonzero_count(post.views, hidden=post.hides_counts) if is_video else None,
    }


def picture(post: Post) -> str:
    """Return the URL of the largest picture, or "". If a carousel has no picture, that of its first slide is used."""
    parts: list[Post | Slide] = [post, *post.slides]
    for each in parts:
        if each.pictures:
            return _url(each.pictures[0].url)
    return _url(post.picture) or _url(post.thumbnail)


def nonzero_count(value: Count | None, *, hidden: bool | None) -> int | None:
    """Return a number of plays or views. None if it is hidden or 0, which the platform sends for hidden counts."""
    return None if hidden else count(value) or None


def exact_duration(post: Post) -> float | None:
    """Return the duration of a video in seconds that the post or its streams' manifest states, or None."""
    found = _MANIFEST_DURATION.search(post.manifest or "")
    seconds = number(post.seconds) or 0.0
    return seconds if seconds > 0 else iso_duration(found["duration"]) if found else None


def _url(value: str | None) -> str:
    return absolute_url(ORIGIN, value)


def _likes(post: Post) -> int | None:
    """Return the number of likes, None if it is hidden. The embed page contains 0 instead of a hidden number."""
    if isinstance(post, Embedded) and post.hides_counts is None:
        return count(post.likes) or None
    return None if post.hides_counts else count(post.likes)


def _smallest_picture(post: Post) -> str:
    """Return the URL of the smallest picture, for items without ``display_uri`` (capture 6c9088afd4ec)."""
    sized = [each for each in post.pictures if each.width] if isinstance(post, Item) else []
    return _url(min(sized, key=lambda each: each.width or 0).url) if sized else ""


def _video_url(post: Post) -> str | None:
    versions = sorted(post.versions, key=lambda each: each.type != PROGRESSIVE)
    return _url(versions[0].url if versions else post.video_url) or None


def _file_duration(post: Post) -> float | None:
    """Return the duration in whole seconds from a label in the video's URL, or None."""
    durations = (number(dig(_label(each.url), "duration_s")) for each in post.versions)
    return next((seconds for seconds in durations if seconds and seconds > 0), None)


def _label(address: str) -> Any:
    """Decode the label in a media URL, which contains properties of the file. Return None if it cannot be decoded."""
    try:
        (packed,) = parse_qs(urlsplit(address).query).get("efg", [""])[:1]
        return decode(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode(), what="efg") if packed else None
    except (NotBase64, UnicodeError, ValueError, ExtractionFailed):
        return None


def _music(post: Post) -> Row | None:
    sound = post.sound
    if sound is None:
        return None
    return {
        "artist_name": sound.artist or "",
        "song_name": sound.title or "",
        "uses_original_audio": sound.is_original,
        "should_mute_audio": sound.is_muted,
        "should_mute_audio_reason": sound.mute_reason or "",
        "audio_id": text(sound.id),
    }


def _location(place: Place) -> Row:
    return {
        "id": text(place.id),
        "has_public_page": place.has_public_page,
        "name": place.name or "",
        "slug": place.slug or "",
        "address_json": place.address or None,
    }


def _owner(owner: Owner) -> Row:
    pk, other = str(owner.pk), text(owner.other_id)
    return {
        "__typename": owner.typename or "",
        "full_name": owner.full_name or "",
        "id": pk,
        "app_id": other if other != pk else "",
        "is_private": owner.is_private,
        "is_unpublished": owner.is_unpublished,
        "is_verified": owner.is_verified,
        "pk": pk,
        "profile_image_uri": _url(owner.small_picture),
        "profile_pic_url": _url(owner.picture),
        "username": owner.username,
        "polaris_ordered_timeline_connection": {"edges": [{"node": _listed(each)} for each in owner.newest]},
    }


def _listed(post: Listed) -> Row:
    return {
        "__isXIGPolarisMedia": post.typename or "",
        "__typename": post.typename or "",
        "accessibility_caption": post.alt or "",
        "caption": {"text": (post.caption and post.caption.text) or ""},
        "code": post.code,
        "display_uri": _url(post.picture),
        "id": post.id or "",
        "media_type": count(post.media_type),
        "pk": post.pk,
        "product_type": post.product_type or "",
        "seo_canonical_url": post.link or None,
        "user": {"id": post.user_id or "", "pk": post.user_pk or "", "username": post.user_name or ""},
    }


def _account(account: Person) -> Row:
    return {
        "id": str(account.pk),
        "username": account.username,
        "is_verified": account.is_verified,
        "profile_pic_url": _url(account.picture),
    }


def _coauthor(account: Person) -> Row:
    return {**_account(account), "full_name": account.full_name or ""}


def _tag(tag: Tag, user: Person) -> Row:
    return {"user": _coauthor(user), "x": number(tag.x), "y": number(tag.y)}


def _comment(comment: RelayComment) -> Row:
    unknown = {"id": "", "username": "", "is_verified": None, "profile_pic_url": ""}
    return {
        "id": str(comment.pk),
        "text": comment.text or "",
        "created_at": count(comment.created_at),
        "owner": _account(comment.author) if comment.author else unknown,
        "edge_liked_by": {"count": count(comment.likes)},
    }
