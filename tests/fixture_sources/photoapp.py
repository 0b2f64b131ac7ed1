"""Photo app: fixtures of every kind of post in each format, and of every kind of failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from crawler.platforms.photoapp.pages import EmbedPage, PostPage, ReelsPage
from crawler.platforms.photoapp.share import SharePage
from crawler.sandbox.photoapp.people import CAROUSEL, PHOTO, VIDEO, Post
from crawler.sandbox.photoapp.site import Site
from crawler.sandbox.protocol import FakeRequest
from tests.make_fixtures import Case

ORIGIN = "https://www.instagram.com"
KINDS = {"photo": PHOTO, "video": VIDEO, "carousel": CAROUSEL}

FAULTS = (
    "age-gate",
    "blind",
    "broken-json",
    "checkpoint",
    "deep-json",
    "limit-code",
    "login-route",
    "missing-owner",
    "no-data",
    "null-post",
    "og-only",
    "please-wait",
    "private",
    "region-gate",
    "sensitive",
    "shell",
    "soft-gone",
    "wrong-post",
)


def cases() -> Iterator[Case]:
    """The platform's fixtures."""
    site = Site(light=True)
    posts = [site.posts[code] for code in site.listed]
    for name, kind in KINDS.items():
        post = next(each for each in posts if each.kind == kind and each.layout == "wrapped" and each.caption)
        yield _page(site, f"page-{name}", post)
    for layout in ("dict", "item"):
        yield _page(site, f"page-as-{layout}", next(each for each in posts if each.layout == layout))
    video = next(each for each in posts if each.is_video)
    for form in ("graph", "item"):
        body = orjson.dumps({"data": site.data(video, form), "status": "ok"})
        yield Case(PostPage, f"{form}-video", f"{ORIGIN}/graphql/query", 200, body, {"shortcode": video.code})
    path = f"/p/{video.code}/embed/captioned/"
    body = site.page(FakeRequest(path))[2]
    yield Case(EmbedPage, "embed-video", ORIGIN + path, 200, body, {"shortcode": video.code})
    null = site.damaged("embed-null", FakeRequest(path))[2]
    yield Case(EmbedPage, "embed-null", ORIGIN + path, 200, null, {"shortcode": video.code})
    share = f"/share/p/{next(iter(site.shares))}/"
    status, headers, body = site.page(FakeRequest(share))
    yield Case(SharePage, "share", ORIGIN + share, status, body, {}, headers)
    reels = site.reels_page(site.accounts[0])
    yield Case(ReelsPage, "reels", f"{ORIGIN}/{site.accounts[0].username}/reels/", 200, reels, {})
    for code, fault in site.faults.items():
        if fault in FAULTS:
            status, _, body = site.damaged(fault, FakeRequest(f"/p/{code}/"))
            yield Case(PostPage, fault, f"{ORIGIN}/p/{code}/", status, body, {"shortcode": code})
    params: dict[str, Any] = {"shortcode": "DaSandbox01"}
    yield Case(PostPage, "empty-body", f"{ORIGIN}/p/DaSandbox01/", 200, b"", params)
    yield Case(PostPage, "rate-limited", f"{ORIGIN}/p/DaSandbox01/", 429, b"slow down", params)


def _page(site: Site, name: str, post: Post) -> Case:
    path = f"/p/{post.code}/"
    return Case(PostPage, name, ORIGIN + path, 200, site.page(FakeRequest(path))[2], {"shortcode": post.code})
