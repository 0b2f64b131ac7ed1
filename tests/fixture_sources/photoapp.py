"""Photo app: a post of each kind, a post in each format, a share link and reels.

Most failures of the photo app are in ``tests/platforms/photoapp/test_blocks.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from crawler.errors import TargetNotFound
from crawler.platforms.photoapp.pages import EmbedPage, PostPage, ReelsPage, SharePage
from crawler.sandbox.photoapp.people import CAROUSEL, PHOTO, VIDEO, Post
from crawler.sandbox.photoapp.site import Site
from crawler.sandbox.protocol import FakeRequest
from tests.make_fixtures import Case

ORIGIN = "https://www.instagram.com"
KINDS = {"photo": PHOTO, "video": VIDEO, "carousel": CAROUSEL}


def cases() -> Iterator[Case]:
    """Yield the cases of the photo app."""
    site = Site(light=True)
    posts = [site.posts[code] for code in site.listed]
    for name, kind in KINDS.items():
        post = next(each for each in posts if each.kind == kind and each.layout == "wrapped" and each.caption)
        yield _page(site, f"page-{name}", post)
    for layout in ("dict", "item"):
        yield _page(site, f"page-as-{layout}", next(each for each in posts if each.layout == layout))
    video = next(each for each in posts if each.is_video)
    params: dict[str, Any] = {"shortcode": video.code}
    for form in ("graph", "item"):
        body = orjson.dumps({"data": site.data(video, form), "status": "ok"})
        yield Case(PostPage, f"{form}-video", f"{ORIGIN}/graphql/query", 200, body, params)
    path = f"/p/{video.code}/embed/captioned/"
    truth = site.expected_record({"url": f"{ORIGIN}/p/{video.code}/", "form": "embed"})["data"]["xdt_shortcode_media"]
    yield Case(EmbedPage, "embed-video", ORIGIN + path, 200, site.page(FakeRequest(path))[2], params, truth)
    null = site.damaged("embed-null", FakeRequest(path))[2]
    yield Case(EmbedPage, "embed-null", ORIGIN + path, 200, null, params, (TargetNotFound, "missing_or_private"))
    token, code = next(iter(site.shares.items()))
    status, headers, body = site.page(FakeRequest(f"/share/p/{token}/"))
    yield Case(SharePage, "share", f"{ORIGIN}/share/p/{token}/", status, body, {}, {"shortcode": code}, headers)
    reels = site.reels_page(site.accounts[0])
    yield Case(ReelsPage, "reels", f"{ORIGIN}/{site.accounts[0].username}/reels/", 200, reels, {})


def _page(site: Site, name: str, post: Post) -> Case:
    path = f"/p/{post.code}/"
    return Case(PostPage, name, ORIGIN + path, 200, site.page(FakeRequest(path))[2], {"shortcode": post.code})
