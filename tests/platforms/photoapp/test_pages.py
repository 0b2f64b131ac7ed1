"""The photo app's page objects on the sandbox's pages: every response format with many seeds, and damaged pages."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import orjson
import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed
from crawler.pipelines import validated
from crawler.platforms.photoapp.pages import EmbedPage, PostPage, ReelsPage
from crawler.platforms.photoapp.schema import Post
from crawler.sandbox.photoapp.page import prefetched
from crawler.sandbox.photoapp.site import Site
from crawler.sandbox.protocol import FakeRequest

SITE = Site(light=True)
FORMS: dict[str, type[PostPage]] = {"page": PostPage, "item": PostPage, "embed": EmbedPage}


def read(page: type[PostPage], body: bytes, code: str = "") -> dict[str, Any]:
    response = HttpResponse("https://www.instagram.com/p/x/", body, status=200)
    found = page(response=response, page_params=PageParams({"shortcode": code} if code else {}))
    return validated(Post, asyncio.run(found.to_item()))


def answer(site: Site, code: str, form: str) -> bytes:
    if form == "page":
        return site.page(FakeRequest(f"/p/{code}/"))[2]
    if form == "embed":
        return site.page(FakeRequest(f"/p/{code}/embed/captioned/"))[2]
    post = site.posts[code]
    return site.document(post, prefetched("PolarisPostRootQuery", site.data(post, "item")))


def check_expected_record(site: Site, code: str, form: str) -> None:
    served = "item" if form == "page" and site.posts[code].layout == "item" else form
    expected = site.expected_record({"url": f"https://www.instagram.com/p/{code}/", "form": served})
    assert read(FORMS[form], answer(site, code, form), code) == expected["data"]["xdt_shortcode_media"], (code, form)


@pytest.mark.parametrize("seed", range(12))  # each post in each format
def test_posts_are_as_expected_for_seeds(seed: int) -> None:
    site = Site(seed, light=True)
    for number, code in enumerate(site.listed[seed % 3 :: 3]):
        check_expected_record(site, code, list(FORMS)[number % 3])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(200))
def test_every_post_in_every_form_is_as_expected(seed: int) -> None:
    site = Site(seed, light=True)
    for code in site.listed:
        for form in FORMS:
            check_expected_record(site, code, form)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_recognised(form: str) -> None:
    body = answer(SITE, "DaSandbox01", form).decode()
    kinds = (ReelsPage, EmbedPage, PostPage)  # the order in which the scraper tries them
    assert next(kind for kind in kinds if kind.recognise(body)) is FORMS[form]


def test_reels_are_recognised_and_counted() -> None:
    owner = SITE.accounts[0]
    body = SITE.reels_page(owner)
    assert ReelsPage.recognise(body.decode())
    page = ReelsPage(response=HttpResponse("https://x/a/reels/", body, status=200), page_params=PageParams({}))
    shown = {post.pk: post.plays for post in SITE.reels(owner) if not post.hidden}
    assert asyncio.run(page.to_item()) == {"plays": shown}


def wrapped(code: str = "DaSandbox01", kind: int | None = None) -> dict[str, Any]:
    """Return the response data of a query for a post of the given type."""
    found = next(
        post
        for post in (SITE.posts[each] for each in (code, *SITE.listed))
        if kind is None or (post.kind == kind and post.layout == "wrapped" and post.timing == "manifest")
    )
    return SITE.data(found, "page")


def post_of(data: dict[str, Any]) -> dict[str, Any]:
    return read(PostPage, orjson.dumps({"data": data}))


VIDEO = wrapped(kind=2)
POSTS = [SITE.posts[code] for code in SITE.listed]


def test_a_carousel_without_a_picture_of_its_own_shows_its_first_slide() -> None:
    data = wrapped(kind=8)
    media = data["xig_polaris_media"]["if_not_gated_logged_out"]
    del media["image_versions2"], media["display_uri"]
    first = media["carousel_media"][0]["image_versions2"]["candidates"][0]["url"]
    assert post_of(data)["display_url"] == first


@pytest.mark.parametrize("kept", [("code",), ("pk",)])
def test_a_post_is_identified_by_its_code_or_its_id(kept: tuple[str, ...]) -> None:
    data = copy.deepcopy(VIDEO)
    wrapper = data["xig_polaris_media"]
    code = wrapper["code"]
    for key in {"code", "pk", "id"} - {*kept}:
        del wrapper[key]
    if "pk" in kept:
        del wrapper["if_not_gated_logged_out"]["code"]
    body = orjson.dumps({"data": data})
    with pytest.raises(ExtractionFailed) as raised:
        read(PostPage, body, "AnotherCode")
    assert raised.value.reason == "wrong_post"
    if "code" in kept:
        assert read(PostPage, body, code)["shortcode"] == code


@pytest.mark.parametrize("kind", [1, 8])
def test_the_sound_of_a_photo_is_part_of_the_record(kind: int) -> None:
    data = wrapped(kind=kind)
    clips = next(
        post["clips_metadata"]
        for post in (SITE.data(each, "page")["xig_polaris_media"]["if_not_gated_logged_out"] for each in POSTS)
        if (post.get("clips_metadata") or {}).get("music_info")
    )
    data["xig_polaris_media"]["if_not_gated_logged_out"]["clips_metadata"] = clips
    sound = post_of(data)["clips_music_attribution_info"]
    assert sound["song_name"] == clips["music_info"]["music_asset_info"]["title"]
    assert sound["uses_original_audio"] is False
