"""The simulated photo app's current payloads: the post in the logged-out page and the item of the web-info query."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

import orjson

from crawler.sandbox.photoapp.people import CAROUSEL, PHOTO, VIDEO, Post, hash_of
from crawler.sandbox.skeletons import ABSENT, Skeletons

if TYPE_CHECKING:
    from collections.abc import Sequence

fill = Skeletons(__file__)

_TYPES = {PHOTO: "XIGPolarisImageMedia", VIDEO: "XIGPolarisVideoMedia", CAROUSEL: "XIGPolarisCarouselMedia"}
EDGE_HOST = "instagram.fakx4-1.fna.fbcdn.net"
SIZES = (
    *("e35", "e35_s1080x1080", "e35_s750x750", "e35_s720x720", "e35_s640x640", "e35_s480x480", "e35_s320x320"),
    *("c0.0.1080.1080a_e35_s1080x1080", "c0.0.1080.1080a_e35_s750x750", "c0.0.1080.1080a_e35_s640x640"),
    *("c0.0.1080.1080a_e35_s480x480", "c0.0.1080.1080a_e35_s320x320", "c0.0.1080.1080a_e35_s240x240"),
)
"""The sizes of a picture in payloads: first the uncropped ones, the largest first, then the cropped ones."""


def video_url(post: Post) -> str:
    """Return the URL of the video's file. In some URLs, a label contains the duration in whole seconds."""
    label: dict[str, Any] = {"vencode_tag": "xpv_progressive.CLIPS.C3.720.dash_baseline_1_v1", "asset_id": 1}
    if post.timing in {"manifest", "label"}:
        label["duration_s"] = int(post.duration)
    packed = urlsafe_b64encode(orjson.dumps(label)).decode().rstrip("=")
    return f"https://{EDGE_HOST}/o1/v/t2/f2/m86/{hash_of(post.pk)}.mp4?_nc_cat=1&efg={packed}&oe=6AC41122"


def typename(post: Post) -> str:
    """Return the type name of this kind of post in the newest format."""
    return _TYPES[post.kind]


def wrapper(post: Post, timeline: Sequence[Post]) -> dict[str, Any]:
    """Build ``xig_polaris_media``: the post, its comments, and null as the ruling, which only withheld posts have."""
    return fill(
        "wrapper",
        post=post,
        outer="XDTMediaDict" if post.layout == "dict" else typename(post),
        media=media(post, timeline),
        id=_page_id(post),
        comments=[fill("comment", comment=each, cursor=hash_of(each.pk)) for each in post.comments],
        more=post.comment_count > len(post.comments),
    )


def _page_id(post: Post) -> str:
    return f"{post.pk}_{post.owner.pk}" if post.layout == "dict" else f"POLARIS_{post.pk}"


def media(post: Post, timeline: Sequence[Post]) -> dict[str, Any]:
    """Build ``if_not_gated_logged_out``, the post. A key that this kind of post does not use is absent, not null."""
    found = fill(
        "media",
        **_common(post),
        typename=typename(post),
        timeline=[{"node": timeline_item(each)} for each in timeline],
        coauthors=[fill("account", account=each) for each in post.coauthors],
        clips=_clips(post) if post.is_video else ABSENT,
        id=_page_id(post),
        alt=post.alt or None,
        picture=post.image("e35_s640x640"),
        images=_images(post),
    )
    slides = _slides(post) if post.kind == CAROUSEL else ABSENT
    tags = [fill("tag", account=account, x=x, y=y) for account, x, y in post.tags]
    return found | (_video(post) if post.is_video else {}) | fill("media end", slides=slides, tags=tags)


def timeline_item(post: Post) -> dict[str, Any]:
    """Build a post as it appears in its owner's timeline."""
    return fill(
        "timeline item",
        post=post,
        typename=typename(post),
        alt=post.alt or None,
        caption=None if post.caption is None else {"text": post.caption},
        picture=post.image("e35_s640x640"),
        slides=post.slides if post.kind == CAROUSEL else ABSENT,
    )


def clip(post: Post) -> dict[str, Any]:
    """Build a reel as it appears on its owner's reels page, with its play count."""
    picture = post.image("e35_s640x640")
    return fill("clip", post=post, typename=typename(post), picture=picture, cursor=hash_of(post.pk))


def item(post: Post) -> dict[str, Any]:
    """Build the post in the format of the web-info query. Many of its keys have values only for signed-in visitors."""
    no_video = dict.fromkeys(("video_versions", "has_audio"))
    tags = [fill("tag", account=account, x=x, y=y) for account, x, y in post.tags]
    for tag in tags:
        tag["user"] |= {"pk": tag["user"]["id"], "aigm_account_label_info": None}
    found = fill(
        "item",
        **_common(post),
        large_picture=post.owner.picture.replace("150x150", "320x320"),
        coauthors=[fill("account", account=each) | {"id": each.pk} for each in post.coauthors],
        pictures=_images(post)["candidates"],
        slides=_slides(post) if post.kind == CAROUSEL else None,
        slide_count=post.slides or None,
        closed=True if post.closed else None,
        tags={"in": tags} if tags else None,
        clips=_clips(post) if post.is_video else None,
        square=post.image("c0.0.1080.1080a_e35_s1080x1080"),
        token=hash_of(post.code),
    )
    return found | (_video(post) if post.is_video else no_video)


def _common(post: Post) -> dict[str, Any]:
    """Return the fields that the formats of ``media`` and ``item`` have in common."""
    caption = fill("caption", post=post, short_pk=post.pk[:17], written=post.taken_at - 2)
    return {
        "post": post,
        "place": None if post.place is None else fill("place", place=post.place),
        "caption": None if post.caption is None else caption,
    }


def _images(post: Post) -> dict[str, Any]:
    sized = {"height": post.height, "width": post.width} if post.is_video else {}
    first = {"first_frame": {"url": post.image("e35_first", EDGE_HOST)}} if post.is_video else None
    candidates = [{"url": post.image(size, EDGE_HOST), **sized} for size in SIZES]
    return {"candidates": candidates, "additional_candidates": first}


def _slides(post: Post) -> list[dict[str, Any]]:
    """Build the slides of a carousel. Each slide has its own id, and contains placeholders instead of counts."""
    return [_slide(post, number, VIDEO if number % 3 == 2 else PHOTO) for number in range(post.slides)]


def _slide(post: Post, number: int, kind: int) -> dict[str, Any]:
    versions = [{"type": 101, "url": video_url(post)}]
    return fill(
        "slide",
        post=post,
        typename=_TYPES[kind],
        alt=post.alt or None,
        code=f"{post.code[:-1]}{'abcdefghijk'[number]}",
        pk=str(int(post.pk) + number + 1),
        kind=kind,
        picture=post.image(f"e35_slide{number}"),
        height=post.height + 10,
        width=post.width + 10,
        pictures=[{"url": post.image(f"e35_slide{number}_{size}", EDGE_HOST)} for size in SIZES[:4]],
        audio=True if kind == VIDEO else ABSENT,
        versions=versions if kind == VIDEO else ABSENT,
    )


def _video(post: Post) -> dict[str, Any]:
    hours, rest = divmod(post.duration, 3600)
    minutes, seconds = divmod(rest, 60)
    manifest = (
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
        f'mediaPresentationDuration="PT{int(hours)}H{int(minutes)}M{seconds:.3f}S"><Period id="0"/></MPD>'
    )
    if post.timing != "manifest":
        return fill("video", post=post, url=video_url(post), dash=None, manifest=ABSENT)
    return fill("video", post=post, url=video_url(post), dash=1, manifest=manifest)


def _clips(post: Post) -> dict[str, Any] | None:
    """Return the sound of a video. Every recorded reel has the object, also without the name of its sound."""
    sound = post.sound
    if sound is None:
        return fill("clips", kind="licensed_music", music=None, own=None) if post.product == "clips" else None
    if sound.original:
        return fill("clips", kind="original_sounds", music=None, own=fill("original sound", post=post, sound=sound))
    return fill("clips", kind="licensed_music", music=fill("licensed music", sound=sound), own=None)
