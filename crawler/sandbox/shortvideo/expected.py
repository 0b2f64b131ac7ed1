"""The records that must be extracted from the simulated short-video site."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from crawler.sandbox.shortvideo.web import CDN, FIGURES, anchors, avatar, show_url, sound_cover, sound_url, urls
from crawler.sandbox.skeletons import Skeletons

if TYPE_CHECKING:
    from crawler.sandbox.shortvideo.world import Post, Sound

fill = Skeletons(__file__)


def picture(addresses: list[str], width: int | None = None, height: int | None = None) -> dict[str, Any]:
    """Build the expected picture object."""
    first = addresses[0] if addresses else ""
    return {"height": height, "uri": first, "url_list": addresses, "url_prefix": None, "width": width}


NOTHING = picture([])


def record(post: Post) -> dict[str, Any]:
    """Build the expected record of a post."""
    slides = [picture(urls(key), width, height) for key, width, height in post.pictures]
    key, width, height = post.pictures[-1]
    cover = picture(urls(f"{key}-cover"), width, height) if post.covered else slides[0]
    return fill(
        "post",
        post=post,
        anchors=anchors() if post.anchored else None,
        larger=picture([avatar(post.person, 1080)]),
        medium=picture([avatar(post.person, 720)]),
        thumb=picture([avatar(post.person, 100)]),
        moment=datetime.fromtimestamp(post.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        cover=cover,
        own_cover=picture([f"{CDN}/cover/{post.id}.jpeg"]) if post.covered else cover,
        origin_cover=picture([f"{CDN}/origin/{post.id}.jpeg"]) if post.covered else NOTHING,
        show=picture([show_url(post)]) if post.rendered else NOTHING,
        slides=[{"display_image": slide, "owner_watermark_image": NOTHING} for slide in slides],
        music=_music(post.sound) if post.sound else fill("no music", nothing=NOTHING),
        figures=dict(zip(FIGURES, post.figures, strict=False)),
        nothing=NOTHING,
    )


def _music(sound: Sound) -> dict[str, Any]:
    covers = {size: picture([sound_cover(sound, size)]) for size in ("large", "medium", "thumb")}
    return fill("music", sound=sound, album=sound.album or None, play=picture([sound_url(sound)]), **covers)
