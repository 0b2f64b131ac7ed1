"""The simulated photo app: pages with the structure and size of real ones, expected records, and faults."""

from __future__ import annotations

import json
from functools import cache

import orjson

from crawler.sandbox.photoapp.site import EXAMPLE, FAULTS, Site


@cache
def site() -> Site:
    return Site()


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


def test_the_catalogue_names_all_targets() -> None:
    catalogue = json.loads(orjson.dumps(site().catalogue()))
    assert EXAMPLE in catalogue["posts"]
    assert {name: fault["params"] for name, fault in catalogue["faults"].items()} == {
        name: {"url": site().url_of_fault(name)} for name in FAULTS
    }
