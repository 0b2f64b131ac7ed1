"""The simulated photo app's embed page: the post as JSON or only in the HTML, and a broken embed."""

from __future__ import annotations

from html import escape
from typing import Any

import orjson

from crawler.sandbox.photoapp.media import video_url
from crawler.sandbox.photoapp.people import CAROUSEL, PHOTO, VIDEO, Post
from crawler.sandbox.skeletons import ABSENT, Fragments, Skeletons

fill, render = Skeletons(__file__), Fragments(__file__)

_TYPES = {PHOTO: "GraphImage", VIDEO: "GraphVideo", CAROUSEL: "GraphSidecar"}
SHOWN_WIDTH = 1080


def shown_size(post: Post) -> tuple[int, int]:
    """Return the height and width at which the picture is shown, unlike the size of the uploaded picture."""
    return round(post.height * SHOWN_WIDTH / post.width), SHOWN_WIDTH


def page(context: dict[str, Any] | None, content: str = "") -> bytes:
    """Render the embed page. Its JSON is within a JSON string; without it, the post can be in the HTML ``content``."""
    inner = None if context is None else orjson.dumps(context).decode()
    options = fill("options", is_rich=context is not None, context=inner)
    call = orjson.dumps(["PolarisEmbedSimple", "init", [], [options]]).replace(b"</", b"<\\/").decode()
    return render("page", content=content, call=call).encode()


def simple(post: Post) -> bytes:
    """Render the embed page of a post that is only in the HTML, as for most photos."""
    likes = f"{post.likes:,} likes" if post.likes != 1 else "1 like"
    caption = escape(post.caption or "").replace("\n", "<br />")
    images = ",".join(f"{post.image(f'e35_s{side}x{side}')} {side}w" for side in (1080, 640))
    return page(
        None, render("simple", post=post, kind=_TYPES[post.kind], likes=likes, caption=caption, images=escape(images))
    )


def broken() -> bytes:
    """Render the embed page of a post that does not exist or is private, or whose owner has disabled embed pages."""
    return page(None, render("broken"))


def embedded(post: Post) -> dict[str, Any]:
    """Build ``gql_data.shortcode_media``, the post in the page's JSON."""
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
