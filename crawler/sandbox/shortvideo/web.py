"""The simulated short-video site's posts in the format of the website's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.sandbox.skeletons import ABSENT, Skeletons

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawler.sandbox.shortvideo.world import Person, Post, Sound

fill = Skeletons(__file__)

CDN = "https://p16-sign.tiktokcdn.example"
MIRROR = "https://p19-sign.tiktokcdn.example"
FIGURES = ("collect", "comment", "digg", "play", "share", "repost")


def urls(key: str) -> list[str]:
    """Return the URLs of a picture, one for each mirror server."""
    return [f"{host}/tos-photomode/{key}~tplv.jpeg?x-expires=1795500000" for host in (CDN, MIRROR)]


def avatar(person: Person, size: int) -> str:
    """Return the URL of an account's picture."""
    return f"{CDN}/tos-avt/{person.id}~c5_{size}x{size}.jpeg?x-expires=1795500000"


def sound_url(sound: Sound) -> str:
    """Return the URL of a sound."""
    return f"https://v16-webapp.tiktokcdn.example/music/{sound.id}.mp3"


def sound_cover(sound: Sound, size: str) -> str:
    """Return the URL of the picture that belongs to a sound."""
    return f"{CDN}/tos-music/{sound.id}_{size}.jpeg"


def show_url(post: Post) -> str:
    """Return the URL of the video that the platform rendered from a post's pictures."""
    return f"https://v16-webapp.tiktokcdn.example/show/{post.id}.mp4"


def rounded(number: int) -> int:
    """Round a number to three significant digits, as the platform does. Numbers below 10,000 are not rounded."""
    digits = len(str(number)) - 3
    return number if digits <= 1 else round(number, -digits)


def answer(keyword: str, rows: Sequence[Post], **fields: Any) -> dict[str, Any]:
    """Build a response of the search API. ``fields``: ``cursor``, ``more`` and ``log_id``."""
    return fill("answer", keyword=keyword, rows=[item(post) for post in rows], **fields)


def item(post: Post) -> dict[str, Any]:
    """Build a row of results in the format of the website's search API."""
    figures = {f"{name}Count": figure for name, figure in zip(FIGURES, post.figures, strict=False)}
    found = fill(
        "item",
        post=post,
        video=_video(post),
        rounded={name: rounded(figure) for name, figure in figures.items() if name != "repostCount"},
        exact={name: str(figure) for name, figure in figures.items()},
        tags=[_tag(post)],
        withheld=post.hidden and not post.person.private,
        music=_music(post.sound) if post.sound else ABSENT,
        paid=ABSENT if post.paid is None else post.paid,
        room={"status": 2, "title": "live"} if post.kind == "live" else ABSENT,
        pictures=_pictures(post) if post.kind in {"photo", "empty"} else ABSENT,
    )
    return found | (fill("anchored") if post.anchored else {})


def anchors() -> list[dict[str, Any]]:
    """Build the links to effects and products that some posts contain."""
    links: list[dict[str, Any]] = fill("anchored")["anchors"]
    return links


def _pictures(post: Post) -> dict[str, Any]:
    shown = [] if post.kind == "empty" else post.pictures
    key, width, height = post.pictures[-1]
    cover = fill("picture", urls=urls(f"{key}-cover") if post.covered else [], width=width, height=height)
    return {
        "images": [fill("picture", urls=urls(key), width=width, height=height) for key, width, height in shown],
        "title": "A title of its own",
        "cover": cover,
        "shareCover": cover,
    }


def _music(sound: Sound) -> dict[str, Any]:
    return fill(
        "music",
        sound=sound,
        licensed=not sound.original,
        songs={} if sound.original else fill("songs", sound=sound),
        album=ABSENT if sound.original else sound.album,
    )


def _tag(post: Post) -> dict[str, Any]:
    if not post.anchored:
        return fill("tag", user_id=ABSENT, handle=ABSENT, sec_uid=ABSENT)
    return fill("tag", user_id=post.person.id, handle=post.person.handle, sec_uid="")


def _video(post: Post) -> dict[str, Any]:
    """Build the video object of a post. For a post that is not a video, this object has only a few fields."""
    if post.kind == "video":
        return fill("video", post=post)
    return fill(
        "photo video",
        post=post,
        cover=f"{CDN}/cover/{post.id}.jpeg" if post.covered else "",
        origin=f"{CDN}/origin/{post.id}.jpeg" if post.covered else "",
        address=show_url(post) if post.rendered else "",
    )
