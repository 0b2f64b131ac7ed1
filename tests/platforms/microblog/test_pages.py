"""The microblog's page objects: expected records for the sandbox's responses, typed errors for damaged ones."""

from __future__ import annotations

import asyncio

import pytest

from crawler.errors import ScrapeError
from crawler.sandbox.microblog.site import PLANS, Site
from tests.microblog_pages import answer, joined, page_of, read, same

SITE = Site(light=True)
ALL = ("page", "embed", "user", "timeline")


def sources_of(handle: str) -> tuple[str, ...]:
    """The sources of an account's first page, as the spider requests them."""
    if PLANS[handle].protected:
        return ("page", "embed", "user")
    return ALL if not PLANS[handle].posts else ("page", "embed", "timeline")


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(n, marks=pytest.mark.soak) for n in range(4, 220))])
def test_records_are_as_expected_for_seeds(seed: int) -> None:
    site = Site(seed, light=True)
    for handle in PLANS:
        same(read(site, handle, *sources_of(handle)), site.expected_record({"username": handle}))
        for source in ALL:
            status, _, body = answer(site, source, handle)
            page = page_of(source, body, status=status, username=handle)
            asyncio.run(page.to_item())
            assert page.problems() == [], (handle, source)


@pytest.mark.parametrize(
    ("fault", "sources"),
    [
        ("page-off", ("embed", "timeline")),
        ("embed-off", ("page", "user", "timeline")),
        ("user-off", ("page", "embed", "timeline")),
        ("timeline-off", ("page", "embed")),
        ("only-page", ("page",)),
        ("only-embed", ("embed",)),
        ("only-calls", ("user", "timeline")),
    ],
)
def test_remaining_sources_give_the_record(fault: str, sources: tuple[str, ...]) -> None:
    handle = next(handle for handle, name in SITE.faults.items() if name == fault)
    data = read(SITE, handle, *sources)
    same(data, SITE.expected_record({"username": handle}))
    profile, posts = data["data"]["additional"]["profile_demographics"], data["data"]["main"]
    assert posts
    if sources == ("page",):
        assert (profile["favourites_count"], profile["listed_count"], profile["media_count"]) == (None, None, None)
        assert all(post["view_count"] is None or post["view_count"] > 0 for post in posts)
    if sources == ("embed",):
        assert {(post["view_count"], post["save_count"]) for post in posts} == {(None, None)}


def test_further_pages_continue_without_repetitions() -> None:
    for handle in ("quiet_harbor", "relay_station", "popular_tide"):
        early: list[str] = [post["post_id"] for post in SITE.expected_record({"username": handle})["data"]["main"]]
        for number in range(2, 5):
            cursor = SITE.cursor(number)
            body = answer(SITE, "timeline", handle, cursor)[2]
            page = page_of("timeline", body, username=handle, cursor=cursor)
            expected = SITE.expected_record({"username": handle, "page": number})
            fresh = [post for post in joined(page)["data"]["main"] if post["post_id"] not in early]
            assert fresh == expected["data"]["main"]
            assert asyncio.run(page.to_item())["next_cursor"] == SITE.cursor(number + 1)


def test_a_repeated_cursor_ends_the_timeline() -> None:
    cursor = SITE.cursor(3)
    body = answer(SITE, "timeline", "quiet_harbor", SITE.cursor(2))[2]
    assert asyncio.run(page_of("timeline", body, cursor=cursor).to_item())["next_cursor"] == ""


# Failures by status and by message


def test_a_flag_that_a_query_lacks_is_named() -> None:
    handle = next(handle for handle, name in SITE.faults.items() if name == "missing-flag")
    status, _, body = answer(SITE, "user", handle)
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page_of("user", body, status=status, username=handle).to_item())
    assert (raised.value.code, raised.value.reason) == ("EXTRACTION_FAILED", "missing_flags")
    assert [detail["loc"] for detail in raised.value.details] == [["features", "a_brand_new_flag_enabled"]]


def test_failure_messages_in_a_post_are_ignored() -> None:
    body = answer(SITE, "page", "quiet_harbor")[2]
    marked = body.replace(b',name:"', b',name:"Account suspended; looking for could not be found; ')
    posts = asyncio.run(page_of("page", marked).to_item())["posts"]
    assert posts
