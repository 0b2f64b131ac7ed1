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
    yield Case(PostPage, "item-video", f"{ORIGIN}/p/{video.code}/", 200, item, params, _truth(site, video, "item"))
    path = f"/p/{video.code}/embed/captioned/"
    body = site.page(FakeRequest(path))[2]
    yield Case(EmbedPage, "embed-video", ORIGIN + path, 200, body, params, _truth(site, video, "embed"))
    null = site.damaged("embed-null", FakeRequest(path))[2]
    yield Case(EmbedPage, "embed-null", ORIGIN + path, 200, null, params, (ExtractionFailed, "no_data_block"))
    broken = site.damaged("embed-broken", FakeRequest(path))[2]
    yield Case(EmbedPage, "embed-broken", ORIGIN + path, 200, broken, params, (TargetNotFound, "missing_or_private"))
    yield _embed_in_html(site)
    token, code = next(iter(site.shares.items()))
    status, headers, body = site.page(FakeRequest(f"/share/p/{token}/"))
    yield Case(SharePage, "share", f"{ORIGIN}/share/p/{token}/", status, body, {}, {"shortcode": code}, headers)
    account = site.accounts[0]
    plays = {post.pk: post.plays for post in site.reels(account) if not post.hidden}
    url = f"{ORIGIN}/{account.username}/reels/"
    yield Case(ReelsPage, "reels", url, 200, site.reels_page(account), {}, {"plays": plays})


def _embed_in_html(site: Site) -> Case:
    """Return an embed page with the post in its HTML, which has neither its size nor the owner's badge."""
    post = site.posts[EXAMPLE]
    truth = _truth(site, post, "embed")
    owner = truth["owner"] | {"is_verified": None, "profile_pic_url": post.owner.picture}
    expected = truth | {"owner": owner, "dimensions": {"height": None, "width": None}, "taken_at_timestamp": None}
    page = embed.simple(post)
    return Case(
        EmbedPage, "embed-html", f"{ORIGIN}/p/{EXAMPLE}/embed/captioned/", 200, page, {"shortcode": EXAMPLE}, expected
    )


def _page(site: Site, name: str, post: Post) -> Case:
    path, truth = f"/p/{post.code}/", _truth(site, post, "item" if post.layout == "item" else "page")
    return Case(PostPage, name, ORIGIN + path, 200, site.page(FakeRequest(path))[2], {"shortcode": post.code}, truth)


def _truth(site: Site, post: Post, form: str) -> dict[str, Any]:
    """Return the expected item of a post in a payload format: ``page``, ``item`` or ``embed``."""
    record = site.expected_record({"url": f"{ORIGIN}/p/{post.code}/", "form": form})
    media: dict[str, Any] = record["data"]["xdt_shortcode_media"]
    return media
