"""The simulated microblog: reproducible by its seed, with the structure of real responses, and with named faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from crawler.platforms.microblog.pages import ProfilePage
from crawler.sandbox.microblog.site import FAULTS, PLANS, Site
from crawler.sandbox.protocol import FakeRequest
from scripts.captures import CAPTURES, body_of
from tests.microblog_pages import answer, page_of, request_for

SOURCES = ("page", "embed", "user", "timeline")


def test_two_accounts_have_more_than_ten_pages() -> None:
    site = Site()
    for handle in ("quiet_harbor", "old_lantern"):
        pages = [site.expected_record({"username": handle, "page": n})["data"]["main"] for n in range(1, 14)]
        ids = [post["post_id"] for page in pages for post in page]
        assert len([page for page in pages if page]) > 10
        assert len(ids) == len(set(ids)) == len(site.account(handle).posts), "each post once"


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


@pytest.mark.parametrize("path", ["/nobody_here", "/srv/timeline-profile/screen-name/nobody_here", "/a/b/c", "/"])
def test_unknown_paths_are_404(path: str) -> None:
    assert Site().page(FakeRequest(path))[0] == 404


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


INNER = ("tweet_results.result.", "quoted_status_result.result.", "retweeted_status_result.result.")
USERS = ("user_results.result.", "user_refs_results.[].result.")


def key_paths(value: Any) -> Iterator[str]:
    """Yield the key paths of a payload. Paths inside a post or user, at any depth, start at that post or user."""
    waiting: list[tuple[Any, str]] = [(value, "")]
    while waiting:
        each, path = waiting.pop()
        if isinstance(each, list):
            waiting += [(one, f"{path}.[]") for one in each]
        elif isinstance(each, dict):
            for key, child in each.items():
                below = f"{path}.{key}" if path else key
                for mark in (*INNER, "tweet.", *USERS):
                    if mark in below:
                        below = ("user " if mark in USERS else "post ") + below[below.rfind(mark) + len(mark) :]
                yield below
                waiting.append((child, below))


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded responses (../shared/captures) are missing")
@pytest.mark.parametrize(
    ("name", "source", "handle"),
    [
        ("e992000b9ff4", "timeline", "quiet_harbor"),
        ("d3ee9f8bd024", "timeline", "old_lantern"),
        ("a19ca69f7529", "timeline", "old_lantern"),
        ("be9dfa1b596b", "user", "quiet_harbor"),
        ("ef88cf9f1b4d", "user", "iron_meadow"),
        ("38331a9b3159", "user", "old_lantern"),
    ],
)
def test_responses_have_the_key_paths_of_real_ones(name: str, source: str, handle: str) -> None:
    real = set(key_paths(orjson.loads(body_of(name))))
    ours: set[str] = set()
    for seed in range(1, 4):
        for number in (1, 2) if source == "timeline" else (1,):
            site = Site(seed)
            ours |= set(key_paths(orjson.loads(answer(site, source, handle, site.cursor(number))[2])))
    assert len(real & ours) >= 0.9 * len(real), sorted(real - ours)


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded responses (../shared/captures) are missing")
def test_the_page_has_the_records_of_a_real_one() -> None:
    ours: set[tuple[str, str]] = set()
    for seed in range(1, 4):
        ours |= kinds(answer(Site(seed), "page", "quiet_harbor")[2])
    real = kinds(body_of("15e277c749c3"))
    assert len(real & ours) >= 0.9 * len(real), sorted(real - ours)


def kinds(body: bytes) -> set[tuple[str, str]]:
    """Return the type and the key of every record in a page's data."""
    page = page_of("page", body)
    assert isinstance(page, ProfilePage)
    return {(str(record.get("__typename")), key) for record in page._objects for key in record}
