"""Pages of the photo app without data, with renamed keys or with contradictions, and posts that lack a key."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ScrapeError
from crawler.platforms.photoapp.pages import EmbedPage, PostPage
from crawler.sandbox.photoapp import embed
from crawler.sandbox.photoapp.people import PHOTO
from crawler.sandbox.photoapp.site import EXAMPLE, Site

SITE = Site(light=True)
PK = SITE.posts[EXAMPLE].pk
ROUTE = '<script type="application/json">{"canonicalRouteName":"comet.igweb.PolarisPostRoute"}</script>'
PREVIEW = f'<meta property="og:url" content="https://www.instagram.com/p/{EXAMPLE}/" />'


def page_of(body: str | bytes, *, code: str = EXAMPLE, kind: type[PostPage] = PostPage) -> PostPage:
    content = body.encode() if isinstance(body, str) else body
    response = HttpResponse(f"https://www.instagram.com/p/{EXAMPLE}/", content, status=200)
    return kind(response=response, page_params=PageParams({"shortcode": code} if code else {}))


def error_of(page: PostPage) -> ScrapeError:
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page.to_item())
    return raised.value


def html(data: Any) -> str:
    text = orjson.dumps(data).decode().replace("</", "<\\/")
    script = f'<script type="application/json">{text}</script>'
    return f"<html><head>{PREVIEW}</head><body>{ROUTE}{script}</body></html>"


def media(**changed: Any) -> dict[str, Any]:
    """Return a post in the format of the logged-out page, with some values changed."""
    wrapper = copy.deepcopy(SITE.data(SITE.posts[EXAMPLE], "page"))["xig_polaris_media"]
    wrapper["if_not_gated_logged_out"] |= changed
    return {"xig_polaris_media": wrapper}


def post_of(page: PostPage) -> dict[str, Any]:
    return asyncio.run(page.to_item())


def test_an_embed_page_of_a_photo_has_the_post_in_its_html() -> None:
    post = replace(
        SITE.posts[EXAMPLE], kind=PHOTO, caption="Two\nlines & <b> #tag", likes=12_345, comment_count=2, hidden=False
    )
    page = page_of(embed.simple(post), kind=EmbedPage)
    found = post_of(page)
    assert (page.unread, page.has_time) == ([], False)
    assert (found["id"], found["shortcode"], found["__typename"]) == (PK, EXAMPLE, "XDTGraphImage")
    assert found["edge_media_to_caption"]["edges"] == [{"node": {"text": "Two\nlines & <b> #tag"}}]
    assert found["edge_media_preview_like"] == {"count": 12_345}
    assert found["edge_media_to_comment"] == {"count": 2, "edges": []}
    assert found["display_url"] == post.image("e35_s1080x1080")
    owner = post.owner
    assert [found["owner"][key] for key in ("id", "username", "profile_pic_url", "is_verified")] == [
        owner.pk,
        owner.username,
        owner.picture,
        None,
    ]
    no_url = page_of(embed.simple(post).replace(b"https://www.instagram.com/p/", b"http://[broken"), kind=EmbedPage)
    assert post_of(no_url)["shortcode"] == EXAMPLE
    for rounded in (b"12.3K likes", b"12.345 likes", b"12 K likes"):
        page = page_of(embed.simple(post).replace(b"12,345 likes", rounded), kind=EmbedPage)
        assert post_of(page)["edge_media_preview_like"] == {"count": None}
    of_unknown_kind = page_of(embed.simple(post).replace(b"data-media-type", b"data-kind"), kind=EmbedPage)
    assert error_of(of_unknown_kind).code == "EXTRACTION_FAILED"


# The embed page


def embedded(**changed: Any) -> bytes:
    found = embed.embedded(SITE.posts[EXAMPLE]) | changed
    return embed.page({"gql_data": {"shortcode_media": found}})


@pytest.mark.parametrize(("likes", "shown"), [(0, None), (-1, None), (12, 12)])
def test_the_embed_page_has_0_in_place_of_a_hidden_number_of_likes(likes: int, shown: int | None) -> None:
    page = page_of(embedded(edge_liked_by={"count": likes}), kind=EmbedPage)
    assert post_of(page)["edge_media_preview_like"] == {"count": shown}


# The JSON block is cut out of the page without decoding the rest of the page


def block(**beside: Any) -> str:
    return html({"require": [["x", {"result": {"data": media(), **beside, "extensions": {"is_final": True}}}]]})


@pytest.mark.parametrize("beside", [{}, {"errors": [{"message": "execution error"}]}, {"a": {"extensions": {}}}])
def test_the_post_is_found_whatever_follows_it(beside: dict[str, Any]) -> None:
    page = page_of(block(**beside))
    assert post_of(page)["id"] == PK
    assert page.unread == []


def test_a_post_in_a_later_block_is_found() -> None:
    other = SITE.data(SITE.posts[SITE.listed[1]], "page")
    first = html({"result": {"data": other, "extensions": {}}})
    assert post_of(page_of(first + block()))["id"] == PK
