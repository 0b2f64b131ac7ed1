"""The hosts and budgets of the platforms, as the sections "Limits" of ``docs/platforms`` state them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from crawler.platforms import LIMITS, platforms


class Limit(NamedTuple):
    """A documented budget, and how many downloads it allows in a window of seconds."""

    at_once: int
    delay: float
    burst: int
    gap: float
    window: int
    most: int


BUDGETS = {
    "microblog": Limit(2, 3, 18, 0, 60, 38),
    "microblog timeline": Limit(1, 21, 7, 1, 900, 49),
    "microblog embed": Limit(1, 20, 3, 2.5, 960, 51),
    "photoapp": Limit(1, 60, 10, 1, 3_600, 70),
    "professional": Limit(1, 60, 2, 2, 180, 5),
    "retail": Limit(2, 2, 5, 0, 60, 35),
    "videosite": Limit(2, 4, 64, 0, 3_600, 964),
}
DOWNLOADS = {"microblog": 5, "photoapp": 2, "professional": 1, "retail": 1, "shortvideo": 1, "videosite": 5}
ORIGINS = {
    "microblog": {"https://x.com", "https://api.x.com", "https://syndication.twitter.com"},
    "photoapp": {"https://www.instagram.com"},
    "retail": {"https://www.walmart.com"},
    "shortvideo": {"https://www.tiktok.com"},
    "videosite": {"https://www.youtube.com"},
}
IMAGES = {
    "microblog": {"*.twimg.com"},
    "photoapp": {"*.cdninstagram.com", "*.fbcdn.net"},
    "professional": {"*.licdn.com"},
    "retail": {"*.walmartimages.com", "*.walmartimages.ca"},
    "shortvideo": {"*.tiktokcdn.com", "*.tiktokcdn-us.com", "*.tiktokcdn-eu.com", "*.muscdn.com"},
    "videosite": {"*.ytimg.com", "*.ggpht.com", "*.googleusercontent.com"},
}


def budget_of(name: str) -> Mapping[str, Any]:
    platform, _, source = name.partition(" ")
    found = platforms()[platform]
    return found.sources[source] if source else {key: getattr(found, key) for key in LIMITS}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_budget_is_the_documented_one(name: str) -> None:
    limit, budget = BUDGETS[name], budget_of(name)
    found = (budget["concurrency"], budget["delay"], budget["burst"], budget.get("gap", 0))
    assert found == limit[:4]
    assert budget["burst"] + int(limit.window / budget["delay"]) == limit.most


def test_pages_in_the_browser_have_no_delay() -> None:
    shortvideo = platforms()["shortvideo"]
    assert (shortvideo.concurrency, shortvideo.delay, shortvideo.burst, shortvideo.seconds) == (2, 0, 1, 15)


def test_the_downloads_of_a_target() -> None:
    assert {name: each.downloads for name, each in platforms().items()} == DOWNLOADS


def test_requests_and_images_are_of_the_platforms_hosts() -> None:
    found = dict(platforms())
    assert {name: {*each.image_hosts} for name, each in found.items()} == IMAGES
    professional = found.pop("professional").origins
    assert {name: each.origins for name, each in found.items()} == ORIGINS
    assert len(professional) == 1 + 26 * 26
    assert professional > {f"https://{each}.linkedin.com" for each in ("www", "aa", "de", "zz")}
