"""The simulated platforms: reproducible by their seeds, with pages of the size of real ones."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zlib
from functools import cache
from importlib import import_module
from typing import Any

import orjson
import pytest

from crawler.sandbox.photoapp.site import EXAMPLE
from crawler.sandbox.protocol import FakeRequest
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


# The blocks of a whole page
