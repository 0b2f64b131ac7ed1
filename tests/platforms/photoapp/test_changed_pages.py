"""The photo app's pages after a change of their keys, and posts that lack a key (findings PH-1, PH-4 to PH-6, PH-9)."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed, ScrapeError, UpstreamRateLimited
from crawler.platforms.photoapp.link import code_of_id
from crawler.platforms.photoapp.pages import EmbedPage, PostPage
from crawler.sandbox.photoapp.site import EXAMPLE, Site
from crawler.sandbox.protocol import FakeRequest

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
    """A post as the logged-out page has it, without its wrapper."""
    data = copy.deepcopy(SITE.data(SITE.posts[EXAMPLE], "page"))
    return {**data["xig_polaris_media"]["if_not_gated_logged_out"], **changed}


# PH-1


@pytest.mark.parametrize(
    "post",
    [
        {"code": EXAMPLE, "media_type": 1, "taken_at": 1_760_000_000, "image_versions2": {}},
        {"pk": PK, "like_count": 3},
        {"id": f"POLARIS_{PK}", "display_url": "https://cdn.example/a.jpg"},
        {"short": EXAMPLE, "taken_at": 1},
        {"short": EXAMPLE, **{f"key{number}": None for number in range(14)}},
    ],
)
@pytest.mark.parametrize("code", [EXAMPLE, ""])
def test_ph_1_a_post_under_an_unknown_key_is_not_a_throttled_page(post: dict[str, Any], code: str) -> None:
    several = sum(key in post for key in ("media_type", "taken_at", "image_versions2")) > 1
    error = error_of(page_of(html({"new_root": post}), code=code))
    if code or several:
        assert isinstance(error, ExtractionFailed)
        assert (error.reason, error.details[0]["loc"]) == ("blind", ["xig_polaris_media"])
    else:  # without a requested post, one key is too little
        assert isinstance(error, UpstreamRateLimited)


@pytest.mark.parametrize(
    "data",
    [
        {"params": {"shortcode": EXAMPLE, "locale": "en"}},
        {"other": {"code": "DbSandbox02", "media_type": 1}},
        {"note": f"media_type of {EXAMPLE}"},
    ],
)
def test_ph_1_a_page_that_only_names_the_post_is_a_throttled_page(data: dict[str, Any]) -> None:
    error = error_of(page_of(html(data)))
    assert isinstance(error, UpstreamRateLimited)
    assert error.reason == "throttled_shell"


def test_ph_1_a_renamed_root_of_the_embed_page_is_not_a_missing_post() -> None:
    body = SITE.page(FakeRequest(f"/p/{EXAMPLE}/embed/captioned/"))[2]
    error = error_of(page_of(body.replace(b"shortcode_media", b"new_media"), kind=EmbedPage))
    assert isinstance(error, ExtractionFailed)
    assert error.reason == "blind"


# PH-4, PH-5, PH-6


@pytest.mark.parametrize("value", [True, False, None])
def test_ph_4_a_statement_about_the_visitor_does_not_fill_comments_disabled(*, value: bool | None) -> None:
    post = asyncio.run(page_of(html({"xig_polaris_media": media(commenting_disabled_for_viewer=value)})).to_item())
    assert post["comments_disabled"] is None
    post = asyncio.run(page_of(html({"xig_polaris_media": media(comments_disabled=True)})).to_item())
    assert post["comments_disabled"] is True


def test_ph_5_the_shortcode_follows_from_the_id() -> None:
    found = media()
    del found["code"]
    post = asyncio.run(page_of(html({"xig_polaris_media": found})).to_item())
    assert (post["id"], post["shortcode"]) == (PK, EXAMPLE) == (PK, code_of_id(PK))


def test_ph_6_an_item_of_the_app_is_read() -> None:
    picture = {
        "candidates": [{"url": f"https://cdn.example/{n}.jpg", "width": n, "height": n} for n in (1080, 320, 640)]
    }
    item = {
        "pk": int(PK),
        "code": EXAMPLE,
        "taken_at": 1_760_000_000,
        "media_type": 8,
        "user": {"pk": 12, "username": "someone"},
        "carousel_media": [{"original_height": 900, "original_width": 720, "image_versions2": picture}],
        "image_versions2": picture,
        "preview_comments": [{"pk": 5, "text": "first", "created_at": 9, "user": {"pk": 3, "username": "other"}}],
    }
    post = asyncio.run(page_of(orjson.dumps({"items": [item]})).to_item())
    assert post["dimensions"] == {"height": 900, "width": 720}
    assert post["thumbnail_src"] == "https://cdn.example/320.jpg"
    assert [edge["node"]["text"] for edge in post["edge_media_to_comment"]["edges"]] == ["first"]
    video = {**item, "media_type": 2, "video_duration": 12.5, "carousel_media": None}
    assert asyncio.run(page_of(orjson.dumps({"items": [video]})).to_item())["video_duration"] == 12.5


# PH-9


@pytest.mark.parametrize("key", ["caption", "like_count", "comment_count", "usertags", "coauthor_producers"])
def test_ph_9_a_post_without_a_key_that_every_post_has_is_a_warning(key: str) -> None:
    body = SITE.page(FakeRequest(f"/p/{EXAMPLE}/"))[2]
    whole = page_of(body)
    asyncio.run(whole.to_item())
    assert whole.skipped == []
    renamed = page_of(body.replace(b'"%b"' % key.encode(), b'"new_key"'))
    asyncio.run(renamed.to_item())
    (error,) = renamed.skipped
    assert error.reason == "missing_part"
    assert ["xig_polaris_media", key] in [detail["loc"][:2] for detail in error.details]
