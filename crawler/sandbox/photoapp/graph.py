"""The simulated photo app's older payloads: the query used before 2026-06, and the data of the embed page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.sandbox.photoapp.media import video_url
from crawler.sandbox.photoapp.people import CAROUSEL, PHOTO, VIDEO, Post, hash_of
from crawler.sandbox.skeletons import ABSENT, Skeletons

if TYPE_CHECKING:
    from collections.abc import Sequence

fill = Skeletons(__file__)

_TYPES = {PHOTO: "GraphImage", VIDEO: "GraphVideo", CAROUSEL: "GraphSidecar"}
SHOWN_WIDTH = 1080


def shown_size(post: Post) -> tuple[int, int]:
    """Return the height and width at which the picture is shown, unlike the size of the uploaded picture."""
    return round(post.height * SHOWN_WIDTH / post.width), SHOWN_WIDTH


def node(post: Post, related: Sequence[Post]) -> dict[str, Any]:
    """Build ``xdt_shortcode_media``, the post in the older query's result."""
    height, width = shown_size(post)
    comments = [fill("comment", comment=each) for each in post.comments]
    resources = [
        {"src": post.image(f"e35_s{side}x{side}"), "config_width": side, "config_height": round(side * 1.25)}
        for side in (640, 750, 1080)
    ]
    found = fill(
        "post",
        post=post,
        kind=f"XDT{_TYPES[post.kind]}",
        height=height,
        width=width,
        thumbnail=post.image("c0.0.640.640a_e35_s640x640"),
        preview=hash_of(post.code),
        picture=post.image("e35_s1080x1080"),
        resources=resources,
        token=hash_of(post.pk),
        tags=[fill("tag", post=post, account=account, x=x, y=y) for account, x, y in post.tags],
        captions=_captions(post),
        more=post.comment_count > len(comments),
        comments=comments,
        first_comments=comments[:2],
        likes=-1 if post.hidden else post.likes,
        place=None if post.place is None else fill("place", place=post.place),
        coauthors=[fill("account", account=each) for each in post.coauthors],
        related=[_related(each) for each in related],
    )
    if post.kind == CAROUSEL:
        found["edge_sidecar_to_children"] = {"edges": [_slide(post, number) for number in range(post.slides)]}
    return found | (_video(post) if post.is_video else {})


def embedded(post: Post) -> dict[str, Any]:
    """Build ``gql_data.shortcode_media`` for the embed page, with some of the older query's keys."""
    height, width = shown_size(post)
    licensed = post.sound is not None and not post.sound.original
    return fill(
        "embedded",
        post=post,
        kind=_TYPES[post.kind],
        height=height,
        width=width,
        picture=post.image("e35_s1080x1080"),
        licensed=licensed,
        captions=_captions(post),
        likes=0 if post.hidden else post.likes,
        video_url=video_url(post) if post.is_video and not licensed else ABSENT,
        duration=post.duration if post.is_video and post.timing != "nowhere" else ABSENT,
    )


def _captions(post: Post) -> list[dict[str, Any]]:
    if post.caption is None:
        return []
    return [fill("caption", post=post, written=str(post.taken_at + 2), short_pk=post.pk[:17])]


def _related(post: Post) -> dict[str, Any]:
    return fill("related", post=post, kind=f"XDT{_TYPES[post.kind]}", thumbnail=post.image("e35_s640x640"))


def _slide(post: Post, number: int) -> dict[str, Any]:
    return fill(
        "slide",
        pk=str(int(post.pk) + number + 1),
        code=f"{post.code[:-1]}{'abcdefghijk'[number]}",
        picture=post.image(f"e35_slide{number}"),
    )


def _video(post: Post) -> dict[str, Any]:
    music = post.sound and fill("music", sound=post.sound)
    return fill("video", post=post, url=video_url(post), music=music)
