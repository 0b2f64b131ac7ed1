"""The records that must be extracted from the simulated photo app, depending on the format of the payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.sandbox.photoapp.embed import shown_size
from crawler.sandbox.photoapp.media import EDGE_HOST, typename, video_url
from crawler.sandbox.photoapp.people import CAROUSEL, PHOTO, VIDEO, Account, Post
from crawler.sandbox.skeletons import Skeletons

if TYPE_CHECKING:
    from collections.abc import Sequence

_TYPES = {PHOTO: "XDTGraphImage", VIDEO: "XDTGraphVideo", CAROUSEL: "XDTGraphSidecar"}
_THUMBNAILS = {"page": "e35_s640x640", "item": "c0.0.1080.1080a_e35_s1080x1080"}

fill = Skeletons(__file__)


def record(post: Post, form: str, timeline: Sequence[Post]) -> dict[str, Any]:
    """Build a post's record for a payload format: ``page`` (the logged-out page), ``item`` or ``embed``."""
    embed = form == "embed"
    height, width = shown_size(post) if embed else (post.height, post.width)
    licensed = post.sound is not None and not post.sound.original
    return fill(
        "post",
        post=post,
        typename=_TYPES[post.kind],
        alt=post.alt if form == "page" else "",
        music=None if embed else _music(post),
        coauthors=[] if embed else [_coauthor(each) for each in post.coauthors],
        closed=True if form == "item" and post.closed else None,
        height=height,
        width=width,
        picture=post.image("e35_s1080x1080") if embed else post.image("e35", EDGE_HOST),
        likes=None if post.hidden else post.likes or (None if embed else 0),
        captions=[] if post.caption is None else [{"node": {"text": post.caption}}],
        comments=[fill("comment", comment=each) for each in post.comments] if form == "page" else [],
        tags=[] if embed else [fill("tag", account=account, x=x, y=y) for account, x, y in post.tags],
        audio=post.audio if post.is_video and not embed else None,
        paid=post.paid if form == "item" else None,
        hidden=None if embed else post.hidden,
        place=None if embed else _place(post),
        owner=_owner(post.owner, form, timeline),
        product="" if embed else post.product,
        thumbnail="" if embed else post.image(_THUMBNAILS[form]),
        duration=_duration(post, form),
        video=video_url(post) if post.is_video and not (embed and licensed) else None,
    )


def _duration(post: Post, form: str) -> float | None:
    if not post.is_video or post.timing == "nowhere":
        return None
    if form == "embed" or post.timing == "manifest":
        return post.duration
    return float(int(post.duration)) if post.timing == "label" else None


def _owner(owner: Account, form: str, timeline: Sequence[Post]) -> dict[str, Any]:
    known, page = form != "embed", form == "page"
    return fill(
        "owner",
        owner=owner,
        typename={"page": "User", "item": "XDTUserDict"}.get(form, ""),
        full_name=owner.full_name if known else "",
        app_id=owner.app_id if page else "",
        private=False if known else None,
        small_picture=owner.small_picture if page else "",
        picture=owner.picture if known else "",
        timeline=[_listed(each) for each in timeline] if page else [],
    )


def _listed(post: Post) -> dict[str, Any]:
    picture = post.image("e35_s640x640")
    return fill("listed", post=post, typename=typename(post), caption=post.caption or "", picture=picture)


def _coauthor(account: Account) -> dict[str, Any]:
    return fill("coauthor", account=account)


def _music(post: Post) -> dict[str, Any] | None:
    if post.sound is None:
        return None
    return fill("music", sound=post.sound, reason="This song is not available" if post.sound.muted else "")


def _place(post: Post) -> dict[str, Any] | None:
    if post.place is None:
        return None
    place_id, name, _ = post.place
    return fill("place", id=place_id, name=name)
