"""The simulated microblog: reproducible by its seed, with the structure of real responses, and with named faults."""

from __future__ import annotations

import pytest

from crawler.sandbox.microblog.site import FAULTS, PLANS, Site
from tests.microblog_pages import request_for

SOURCES = ("page", "embed", "user", "timeline")


def test_every_kind_of_post_exists() -> None:
    posts = [
        post
        for handle in ("quiet_harbor", "old_lantern")
        for n in range(1, 13)
        for post in Site().expected_record({"username": handle, "page": n})["data"]["main"]
    ]
    for kind in ("is_repost", "is_quote", "is_reply"):
        assert sum(post[kind] for post in posts) > 20, kind
    assert any(post["is_quote"] and post["quoted_post"] is None for post in posts), "a quote of a deleted post"
    assert any(post["in_reply_to_handle"] and not post["is_reply"] for post in posts)
    assert any(len(post["caption"]) > 500 for post in posts)
    ladders = [tuple(bool(url) for url in post["video_urls_by_quality"].values()) for post in posts]
    assert {(True, True, True, False), (True, False, False, False), (True, True, False, False)} <= set(ladders)
    assert any(post["view_count"] is None and not post["is_repost"] for post in posts)


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_every_fault_affects_a_source(name: str) -> None:
    site = Site(light=True)
    handle = next(handle for handle, fault in site.faults.items() if fault == name)
    requests = [request_for(site, source, handle) for source in SOURCES]
    faults = [site.fault(request) for request in requests]
    assert name in faults
    assert set(faults) <= {name, None}
    assert site.catalogue()["faults"][name]["params"] == {"username": handle}


def test_the_catalogue_names_the_accounts() -> None:
    assert set(Site(light=True).catalogue()["accounts"]) == set(PLANS)
    with pytest.raises(KeyError):
        Site().expected_record({"username": "nobody_here"})
