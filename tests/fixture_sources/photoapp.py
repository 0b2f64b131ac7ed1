"""Photo app: a post of each kind, a post in each format, a share link and reels.

Most failures of the photo app are in ``tests/platforms/photoapp/test_blocks.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crawler.errors import ExtractionFailed, TargetNotFound
from crawler.platforms.photoapp.pages import EmbedPage, PostPage, ReelsPage, SharePage
from crawler.sandbox.photoapp import embed
from crawler.sandbox.photoapp.page import prefetched
from crawler.sandbox.photoapp.people import CAROUSEL, PHOTO, VIDEO, Post
from crawler.sandbox.photoapp.site import EXAMPLE, Site
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
    item = site.document(video, prefetched("PolarisPostRootQuery", site.data(video, "item")))
    yield Case(PostPage, "item-video", f"{ORIGIN}/p/{video.code}/", 200, item, params)
    path = f"/p/{video.code}/embed/captioned/"
    truth = site.expected_record({"url": f"{ORIGIN}/p/{video.code}/", "form": "embed"})["data"]["xdt_shortcode_media"]
    yield Case(EmbedPage, "embed-video", ORIGIN + path, 200, site.page(FakeRequest(path))[2], params, truth)
    null = site.damaged("embed-null", FakeRequest(path))[2]
    yield Case(EmbedPage, "embed-null", ORIGIN + path, 200, null, params, (ExtractionFailed, "no_data_block"))
    broken = site.damaged("embed-broken", FakeRequest(path))[2]
    yield Case(EmbedPage, "embed-broken", ORIGIN + path, 200, broken, params, (TargetNotFound, "missing_or_private"))
    yield _embed_in_html(site)
    token, code = next(iter(site.shares.items()))
    status, headers, body = site.page(FakeRequest(f"/share/p/{token}/"))
    yield Case(SharePage, "share", f"{ORIGIN}/share/p/{token}/", status, body, {}, {"shortcode": code}, headers)
    reels = site.reels_page(site.accounts[0])
    yield Case(ReelsPage, "reels", f"{ORIGIN}/{site.accounts[0].username}/reels/", 200, reels, {})


def _embed_in_html(site: Site) -> Case:
    """Return an embed page with the post in its HTML, which has neither its size nor the owner's badge."""
    post = site.posts[EXAMPLE]
    url = f"{ORIGIN}/p/{EXAMPLE}/"
    truth = site.expected_record({"url": url, "form": "embed"})["data"]["xdt_shortcode_media"]
    owner = truth["owner"] | {"is_verified": None, "profile_pic_url": post.owner.picture}
    expected = truth | {"owner": owner, "dimensions": {"height": None, "width": None}, "taken_at_timestamp": None}
    page = embed.simple(post)
    return Case(EmbedPage, "embed-html", f"{url}embed/captioned/", 200, page, {"shortcode": EXAMPLE}, expected)


def _page(site: Site, name: str, post: Post) -> Case:
    path = f"/p/{post.code}/"
    return Case(PostPage, name, ORIGIN + path, 200, site.page(FakeRequest(path))[2], {"shortcode": post.code})
