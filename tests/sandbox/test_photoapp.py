"""The simulated photo app: pages with the structure and size of real ones, expected records, and faults."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import orjson
import pytest

from crawler.sandbox.faults import COMMON
from crawler.sandbox.photoapp.site import ACCOUNT_WITHOUT_REELS, EXAMPLE, FAULTS, Site
from crawler.sandbox.protocol import FakeRequest


@cache
def site() -> Site:
    return Site()


def blocks(body: bytes) -> list[Any]:
    """Return the decoded JSON scripts of a page."""
    return [orjson.loads(each) for each in re.findall(rb"<script\b[^>]+\bdata-sjs>(.*?)</script>", body, re.DOTALL)]


def values(tree: Any, key: str) -> Iterator[Any]:
    if isinstance(tree, dict):
        if key in tree:
            yield tree[key]
        for each in tree.values():
            yield from values(each, key)
    elif isinstance(tree, list):
        for each in tree:
            yield from values(each, key)


def post_page(code: str, **headers: str) -> bytes:
    status, _, body = site().page(FakeRequest(f"/p/{code}/", headers=headers))
    assert status == 200
    return body


def test_a_page_has_the_expected_data() -> None:
    page = blocks(post_page(EXAMPLE))
    assert next(values(page, "canonicalRouteName")).endswith("PostRoute")
    (wrapper,) = values(page, "xig_polaris_media")
    record = site().expected_record({"url": f"https://www.instagram.com/p/{EXAMPLE}/"})["data"]["xdt_shortcode_media"]
    media = wrapper["if_not_gated_logged_out"]
    assert (wrapper["code"], media["pk"]) == (record["shortcode"], record["id"])
    assert media["taken_at"] == record["taken_at_timestamp"]
    assert media["user"]["id"] == record["owner"]["app_id"]
    assert len(media["user"]["polaris_ordered_timeline_connection"]["edges"]) == 12


def test_a_site_has_every_kind_and_variant() -> None:
    posts = [site().posts[code] for code in site().listed]
    assert {post.kind for post in posts} == {1, 2, 8}
    assert {post.layout for post in posts} == {"wrapped", "dict", "item"}
    assert {post.timing for post in posts if post.is_video} == {"manifest", "label", "embed", "nowhere"}
    assert {post.product for post in posts} == {"feed", "clips", "igtv", "carousel_container"}
    assert {post.hidden for post in posts} == {True, False}
    assert {post.caption is None for post in posts} == {True, False}
    assert {post.place is None for post in posts} == {True, False}
    assert {post.sound and post.sound.original for post in posts if post.is_video} == {True, False, None}
    assert any(post.coauthors and post.tags for post in posts)
    assert any(post.likes == 0 for post in posts)
    listed = [len(site().timeline(account)) for account in site().accounts]
    assert (min(listed), max(listed)) == (1, 12)


def test_pinned_posts_come_first_in_a_timeline() -> None:
    for account in site().accounts:
        pins = [post.pinned for post in site().timeline(account)]
        assert pins == sorted(pins, reverse=True)


def test_a_script_in_a_caption_does_not_end_the_data() -> None:
    code = next(code for code in site().listed if "</script>" in (site().posts[code].caption or ""))
    assert site().posts[code].caption in {
        each.get("text") for each in values(blocks(post_page(code)), "caption") if each
    }


def test_preview_tags_name_the_post() -> None:
    found = re.search(r'og:url" content="([^"]*)"', post_page(EXAMPLE).decode())
    assert found is not None
    assert html.unescape(found[1]).endswith(f"/p/{EXAMPLE}/")


def test_share_links_redirect_once() -> None:
    token, code = next(iter(site().shares.items()))
    status, headers, _ = site().page(FakeRequest(f"/share/p/{token}/"))
    assert (status, f"/{code}/" in headers["Location"]) == (302, True)


def test_unknown_paths_are_the_error_page_with_status_200() -> None:
    status, _, body = site().page(FakeRequest("/p/nothing_here/"))
    assert (status, b"PolarisErrorRoute" in body) == (200, True)


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - COMMON.keys()))
def test_every_own_fault_changes_the_response(name: str) -> None:
    code = next(code for code, each in site().faults.items() if each == name)
    path = f"/share/p/{code}/" if name.startswith("share-") else f"/p/{code}/"
    path += "embed/captioned/" if name.startswith("embed-") else ""
    path = f"/{ACCOUNT_WITHOUT_REELS}/reels/" if name.startswith("reels-") else path
    fault = site().fault(FakeRequest(path))
    assert fault is not None
    if fault not in COMMON:
        assert site().damaged(fault.removesuffix("-once"), FakeRequest(path)) != site().page(FakeRequest(path))


def test_the_catalogue_names_all_targets() -> None:
    catalogue = json.loads(orjson.dumps(site().catalogue()))
    assert EXAMPLE in catalogue["posts"]
    assert {name: fault["params"] for name, fault in catalogue["faults"].items()} == {
        name: {"url": site().url_of_fault(name)} for name in FAULTS
    }
