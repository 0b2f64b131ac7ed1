"""The simulated platforms: reproducible by their seeds, with pages of the size and the key paths of real ones."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import orjson
import pytest

from crawler.sandbox.photoapp.site import EXAMPLE
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.videosite.extra import player
from crawler.sandbox.videosite.item import lockup
from crawler.sandbox.videosite.lists import tab_data, token
from scripts.captures import CAPTURES, body_of
from tests.crawls import ROOT

PAGES = {
    "microblog": FakeRequest("/quiet_harbor"),
    "photoapp": FakeRequest(f"/p/{EXAMPLE}/"),
    "professional": FakeRequest("/in/mara-lindqvist"),
    "retail": FakeRequest("/browse/4044", {"page": "2"}),
    "shortvideo": FakeRequest("/search/photo", {"q": "whales"}),
    "videosite": FakeRequest("/@harborlights/videos"),
}


@cache
def site(platform: str, seed: int = 1, *, light: bool = False) -> Any:
    return import_module(f"crawler.sandbox.{platform}.site").Site(seed, light=light)


def digest(platform: str, seed: int) -> str:
    """Return the hash of a platform's catalogue, of its example page and of the records of its example targets."""
    seeded = site(platform, seed)
    catalogue = seeded.catalogue() | {"clicks": None}
    seen = [catalogue, *(seeded.expected_record(target["params"]) for target in catalogue["targets"])]
    return hashlib.sha256(orjson.dumps(seen) + seeded.page(PAGES[platform])[2]).hexdigest()


def digests(seed: int) -> list[str]:
    return [digest(platform, seed) for platform in PAGES]


def test_a_seed_gives_the_same_platforms_in_every_process() -> None:
    code = "import json; from tests.sandbox import test_realism; print(json.dumps(test_realism.digests(1)))"
    environment = {**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    other = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT, env=environment)
    assert json.loads(other.stdout) == digests(1)


def test_another_seed_gives_other_platforms() -> None:
    assert not set(digests(1)) & set(digests(2))


@pytest.mark.parametrize(
    ("platform", "smallest", "largest", "light"),
    [
        ("photoapp", 600_000, 1_200_000, 60_000),
        ("professional", 300_000, 600_000, 200_000),
        ("retail", 600_000, 1_200_000, 100_000),
        ("shortvideo", 150_000, 600_000, 600_000),
        ("videosite", 300_000, 1_500_000, 100_000),
    ],
)
def test_pages_have_the_size_of_real_ones(platform: str, smallest: int, largest: int, light: int) -> None:
    body = site(platform).page(PAGES[platform])[2]
    assert smallest < len(body) < largest
    assert len(zlib.compress(body, 6)) > len(body) / 30  # mere padding would compress better
    assert len(site(platform, light=True).page(PAGES[platform])[2]) < light


# Key paths

needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are missing")


def key_paths(tree: object) -> set[tuple[str, ...]]:
    """Return the paths of all keys. "[]" stands for the indexes of lists, "#" for keys that are ids."""
    found: set[tuple[str, ...]] = set()
    waiting: list[tuple[object, tuple[str, ...]]] = [(tree, ())]
    while waiting:
        node, above = waiting.pop()
        if isinstance(node, dict):
            for key, value in node.items():
                path = (*above, "#" if key.isdecimal() else key)
                found.add(path)
                waiting.append((value, path))
        elif isinstance(node, list):
            waiting += [(value, (*above, "[]")) for value in node]
    return found


def values(tree: Any, key: str) -> Iterator[Any]:
    """Yield the values of a key at any depth."""
    if isinstance(tree, dict):
        if key in tree:
            yield tree[key]
        tree = list(tree.values())
    for each in tree if isinstance(tree, list) else ():
        yield from values(each, key)


def scripts(body: bytes) -> list[Any]:
    """Return the decoded JSON scripts of a page of the photo app."""
    found = re.findall(rb'<script\b[^>]*type="application/json"[^>]*>(.*?)</script>', body, re.DOTALL)
    return [orjson.loads(each) for each in found]


def media(body: bytes) -> Any:
    """Return the post in the scripts of a page of the photo app."""
    return next(values(scripts(body), "xig_polaris_media"))


def posts(form: str, key: str) -> list[Any]:
    photoapp = site("photoapp")
    return [photoapp.data(photoapp.posts[code], form)[key] for code in photoapp.listed]


def listing(body: bytes) -> Any:
    found = re.search(rb'<script id="__NEXT_DATA__" type="application/json"[^>]*>(.*?)</script>', body, re.DOTALL)
    assert found is not None
    return orjson.loads(found[1])["props"]["pageProps"]["initialData"]["searchResult"]


def listings() -> list[Any]:
    requests = [FakeRequest("/browse/4044", {"page": str(number)}) for number in (1, 2, 3)]
    requests.append(FakeRequest("/search", {"q": "kettle"}))
    return [listing(site("retail").page(request)[2]) for request in requests]


def tab(channel: str, name: str = "videos") -> list[Any]:
    return [tab_data(site("videosite").named(channel), name, heavy=True)]


def second_page() -> list[Any]:
    body = orjson.dumps({"continuation": token(site("videosite").named("harborlights"), "videos", 1, heavy=True)})
    return [orjson.loads(site("videosite").page(FakeRequest("/youtubei/v1/browse", {}, "POST", {}, body))[2])]


def video(state: str) -> tuple[Any, Any]:
    channel = site("videosite").named("harborlights")
    return channel, next(each for each in channel.items["videos"] if each.likes and each.state == state)


def metadata(body: bytes) -> Any:
    found = orjson.loads(body)[0]["body"]
    return {"microformat": (orjson.loads(found) if isinstance(found, str) else found)["microformat"]}


def web_items(body: bytes) -> Any:
    answer = orjson.loads(body)["data"]
    return {**answer, "data": None, "item_list": [each["item"] for each in answer["data"] if "item" in each]}


def answers() -> list[Any]:
    return [site("shortvideo").answer("long list", offset) for offset in range(0, 120, 12)]


@needs_captures
@pytest.mark.parametrize(
    ("capture", "read", "ours"),
    [
        ("15a62b33273a", media, lambda: posts("page", "xig_polaris_media")),
        ("add1a341397f", media, lambda: posts("page", "xig_polaris_media")),
        (
            "fbaf36080e28",
            lambda body: next(values(orjson.loads(body), "xdt_api__v1__media__shortcode__web_info")),
            lambda: posts("item", "xdt_api__v1__media__shortcode__web_info"),
        ),
        ("6096432e837b", listing, listings),
        ("b88e6b81d797", listing, listings),
        ("dcff329e5459", web_items, answers),
        ("0b05d4fd7ab0", orjson.loads, lambda: tab("harborlights")),  # lockups
        ("0bc45455dcb2", orjson.loads, second_page),  # second page of lockups
        ("abfd085daaea", orjson.loads, lambda: tab("harborlights", "streams")),
        ("e8be8f5c2067", orjson.loads, lambda: tab("harborlights", "shorts")),
        ("fc1785f1042c", orjson.loads, lambda: tab("saltmill")),  # video renderers
        ("8b73831a70c5", orjson.loads, lambda: tab("saltmill")),  # with pronouns
        ("715417246ffa", orjson.loads, lambda: tab("saltmill")),  # one video
        ("720955203aa1", orjson.loads, lambda: [lockup(*video("members"), heavy=True)["lockupViewModel"]]),
        ("35fb2eae0182", metadata, lambda: [player(*video("done"))]),
    ],
)
def test_payloads_have_the_key_paths_of_real_ones(
    capture: str, read: Callable[[bytes], Any], ours: Callable[[], list[Any]]
) -> None:
    real = key_paths(read(body_of(capture)))
    missing = real - set[tuple[str, ...]]().union(*map(key_paths, ours()))
    assert len(missing) <= 0.10 * len(real), sorted(".".join(path) for path in missing)


def calls(script: Any) -> set[str]:
    """Return the kind of a block: the names and methods of the calls in its script."""
    return {f"{name}.{method}" for name, method, *_ in script.get("require", [])}


@needs_captures
def test_the_throttled_page_has_the_skeleton_of_a_whole_one() -> None:
    """The blocks, the parameters of the route, and the link-preview tags. No result of a query is in either page."""
    real = body_of("9c42b6d6b023")
    photoapp = site("photoapp", light=True)
    (code,) = (code for code, name in photoapp.faults.items() if name == "shell")
    ours = photoapp.damaged("shell", FakeRequest(f"/p/{code}/"))[2]
    assert len(ours) <= 30_000
    assert [*map(calls, scripts(ours))] == [*map(calls, scripts(real))]
    (route,), (real_route,) = (list(values(scripts(body), "route"))[1:] for body in (ours, real))
    assert key_paths(route) == key_paths(real_route)
    assert route["params"]["shortcode"] == code
    tags = [set(re.findall(rb'property="(og:\w+)"', body)) for body in (ours, real)]
    assert tags[0] == tags[1]
    assert all(b"RelayPrefetchedStreamCache" not in body for body in (ours, real))


@needs_captures
def test_the_error_page_has_the_route_of_a_whole_one() -> None:
    real, ours = body_of("6ddfea480abf"), site("photoapp", light=True).page(FakeRequest("/p/gone_gone_g/"))[2]
    (route,), (real_route,) = (list(values(scripts(body), "route"))[1:] for body in (ours, real))
    assert key_paths(route) == key_paths(real_route)
    assert len(ours) <= 30_000
