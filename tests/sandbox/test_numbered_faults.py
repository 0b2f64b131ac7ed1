"""Any number of targets with the same fault: the number is part of the name, handle or shortcode."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.sandbox.microblog.site import Site as Microblog
from crawler.sandbox.photoapp.site import Site as PhotoApp
from crawler.sandbox.professional.site import Site as Professional
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.shortvideo.site import Site as ShortVideo

SITES = {"microblog": Microblog(), "photoapp": PhotoApp(), "professional": Professional(), "shortvideo": ShortVideo()}


def requests(platform: str, name: str) -> list[FakeRequest]:
    """Return a request for each path under which the site could serve a target with this name."""
    if platform == "shortvideo":
        return [FakeRequest("/search/photo", {"q": name})]
    paths = {
        "microblog": ("/{}", "/srv/timeline-profile/screen-name/{}"),
        "photoapp": ("/p/{}/", "/p/{}/embed/captioned/", "/share/p/{}/"),
        "professional": ("/in/{}",),
    }
    return [FakeRequest(path.format(name)) for path in paths[platform]]


def names(platform: str) -> list[tuple[str, str]]:
    """Return the name of each fault's target, without and with a number."""
    site: Any = SITES[platform]
    if platform == "photoapp":
        return [(code, f"FAULT017{code[-3:]}") for code in site.faults]
    if platform == "microblog":
        return [(handle, f"{handle}_17") for handle in site.faults]
    return [(name, f"{name}-17") for name in site.catalogue()["faults"]]


@pytest.mark.parametrize("platform", SITES)
def test_a_number_selects_another_target_with_the_same_fault(platform: str) -> None:
    site: Any = SITES[platform]
    found = {
        name: [[site.fault(each) for each in requests(platform, name)] for name in (name, numbered)]
        for name, numbered in names(platform)
    }
    assert any(fault for plain, _ in found.values() for fault in plain)
    for name, (plain, with_number) in found.items():
        assert with_number == plain, name


@pytest.mark.parametrize(
    ("platform", "number_only"),
    [("microblog", "quiet_harbor_17"), ("photoapp", "FAULT017999"), ("professional", "mara-lindqvist-17")],
)
def test_a_number_after_other_names_selects_nothing(platform: str, number_only: str) -> None:
    site: Any = SITES[platform]
    for request in requests(platform, number_only):
        assert site.fault(request) is None
        assert site.page(request)[2] == site.page(requests(platform, "nobody99999")[0])[2]
