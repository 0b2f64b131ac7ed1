"""The microblog's page objects: expected records for the sandbox's responses, typed errors for damaged ones."""

from __future__ import annotations

import asyncio

import pytest
from web_poet import HttpResponse, PageParams

from crawler.errors import ScrapeError
from crawler.platforms.microblog.api import GuestTokenPage
from crawler.sandbox.microblog.site import PLANS, Site
from tests.microblog_pages import answer, joined, page_of, read, same

SITE = Site(light=True)
ALL = ("page", "embed", "user", "timeline")


def sources_of(handle: str) -> tuple[str, ...]:
    """The sources of an account's first page, as the spider requests them."""
    if PLANS[handle].protected:
        return ("page", "embed", "user")
    return ALL if not PLANS[handle].posts else ("page", "embed", "timeline")


def check_expected_records(seed: int) -> None:
    site = Site(seed, light=True)
    for handle in PLANS:
        same(read(site, handle, *sources_of(handle)), site.expected_record({"username": handle}))


@pytest.mark.parametrize("seed", range(4))
def test_records_are_as_expected_for_seeds(seed: int) -> None:
    check_expected_records(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4, 220))
def test_records_are_as_expected_for_many_seeds(seed: int) -> None:
    check_expected_records(seed)


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


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize(
    ("status", "body", "code", "reason"),
    [
        (429, b'{"errors":[{"code":239,"message":"Bad guest token"}]}', "UPSTREAM_RATE_LIMITED", "rate_limited"),
        (200, b"", "UPSTREAM_BLOCKED", "empty_body"),
    ],
)
def test_failures_by_status(source: str, status: int, body: bytes, code: str, reason: str) -> None:
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page_of(source, body, status=status).to_item())
    assert (raised.value.code, raised.value.reason) == (code, reason)


@pytest.mark.parametrize(
    ("fault", "source", "code", "reason"),
    [
        ("not-found", "page", "TARGET_NOT_FOUND", "not_found"),
        ("soft-gone", "page", "TARGET_NOT_FOUND", "not_found"),
        ("suspended", "page", "TARGET_RESTRICTED", "suspended"),
        ("challenge", "page", "UPSTREAM_BLOCKED", "refused"),
        ("soft-challenge", "page", "UPSTREAM_BLOCKED", "challenge"),
        ("soft-challenge", "embed", "UPSTREAM_BLOCKED", "challenge"),
        ("soft-challenge", "user", "UPSTREAM_BLOCKED", "challenge"),
        ("no-data", "page", "EXTRACTION_FAILED", "no_data_block"),
        ("no-data", "embed", "EXTRACTION_FAILED", "no_data_block"),
        ("no-data", "user", "EXTRACTION_FAILED", "no_data_block"),
        ("broken", "page", "EXTRACTION_FAILED", "broken_data_block"),
        ("broken", "embed", "EXTRACTION_FAILED", "broken_data_block"),
        ("broken", "timeline", "EXTRACTION_FAILED", "broken_data_block"),
        ("blind", "page", "EXTRACTION_FAILED", "blind"),
        ("blind", "embed", "EXTRACTION_FAILED", "blind"),
        ("blind", "user", "EXTRACTION_FAILED", "blind"),
        ("blind", "timeline", "EXTRACTION_FAILED", "blind"),
        ("wrong-profile", "page", "EXTRACTION_FAILED", "wrong_echo"),
        ("wrong-profile", "embed", "EXTRACTION_FAILED", "wrong_echo"),
        ("wrong-profile", "user", "EXTRACTION_FAILED", "wrong_echo"),
        ("not-found-by-call", "user", "TARGET_NOT_FOUND", "not_found"),
        ("suspended-by-call", "user", "TARGET_RESTRICTED", "suspended"),
        ("suspended-by-code", "user", "TARGET_RESTRICTED", "suspended"),
        ("login-wall", "user", "UPSTREAM_BLOCKED", "login_required"),
        ("stale-ids", "timeline", "EXTRACTION_FAILED", "stale_query_id"),
        ("missing-flag", "user", "EXTRACTION_FAILED", "missing_flags"),
        ("token-refused", "user", "UPSTREAM_BLOCKED", "token_refused"),
        ("token-refused-once", "user", "UPSTREAM_BLOCKED", "token_refused"),
        ("calls-limited", "timeline", "UPSTREAM_RATE_LIMITED", "rate_limited"),
        ("calls-failing", "timeline", "UPSTREAM_ERROR", "server_error"),
        ("calls-overloaded", "timeline", "UPSTREAM_ERROR", "server_error"),
        ("calls-as-pages", "timeline", "UPSTREAM_BLOCKED", "challenge"),
    ],
)
def test_faults_of_one_source_have_their_reason(fault: str, source: str, code: str, reason: str) -> None:
    handle = next(handle for handle, name in SITE.faults.items() if name == fault)
    status, _, body = answer(SITE, source, handle)
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page_of(source, body, status=status, username=handle).to_item())
    assert (raised.value.code, raised.value.reason) == (code, reason)
    if reason == "missing_flags":
        assert [detail["loc"] for detail in raised.value.details] == [["features", "a_brand_new_flag_enabled"]]


def test_a_login_page_is_a_login_wall() -> None:
    body = b"<html><title>Log in to X / X</title></html>"
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page_of("page", body, username="x").to_item())
    assert raised.value.reason == "login_wall"


def test_failure_messages_in_a_post_are_ignored() -> None:
    body = answer(SITE, "page", "quiet_harbor")[2]
    marked = body.replace(b',name:"', b',name:"Account suspended; looking for could not be found; ')
    posts = asyncio.run(page_of("page", marked).to_item())["posts"]
    assert posts


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (200, b'{"guest_token":"12"}', "OK"),
        (403, b"Forbidden." + b" " * 90, "UPSTREAM_BLOCKED"),
        (200, b"{}", "UPSTREAM_BLOCKED"),
        (200, b"<html>", "UPSTREAM_BLOCKED"),
        (404, b"", "UPSTREAM_BLOCKED"),
        (429, b"slow down", "UPSTREAM_RATE_LIMITED"),
        (503, b"", "UPSTREAM_ERROR"),
    ],
)
def test_guest_token_responses(status: int, body: bytes, code: str) -> None:
    page = GuestTokenPage(response=HttpResponse("https://x.com/", body, status=status), page_params=PageParams({}))
    if code == "OK":
        assert asyncio.run(page.to_item()) == {"token": "12"}
        return
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page.to_item())
    assert raised.value.code == code
