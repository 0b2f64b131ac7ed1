"""The microblog scraper's params: validation before any request."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.errors import InvalidRequest
from crawler.platforms.microblog.schema import CURSOR, MAX_SEEN, ProfileParams
from crawler.platforms.requests import encode_cursor
from crawler.registry import scrapers
from crawler.targets.parser import check_params

SCRAPER = scrapers()["microblog-profile"]


def own_cursor(**changes: Any) -> str:
    payload = {"handle": "quiet_harbor", "user_id": "1", "cursor": "DAAH", "seen": ["2"]} | changes
    return encode_cursor(CURSOR, payload)


@pytest.mark.parametrize(("username", "handle"), [("X", "X"), ("@X", "X"), ("a_1", "a_1"), ("A" * 15, "A" * 15)])
def test_handles_are_accepted(username: str, handle: str) -> None:
    assert ProfileParams(username=username).handle == handle


@pytest.mark.parametrize(
    "username",
    [
        "",
        "@",
        "@@x",
        "x" * 16,
        "two words",
        "quiet-harbor",
        "../i/flow/login",
        "x/../y",
        "x?y",
        "x#y",
        "x%2e",
        "https://x.com/x",
        "//evil.test/x",
        "x@evil.test",
        "169.254.169.254",
        "ünï",
        "ｘ",
        "x\x00",
        7,
        None,
        ["x"],
    ],
)
def test_malformed_handles_are_refused(username: Any) -> None:
    with pytest.raises(InvalidRequest):
        check_params(SCRAPER, {"username": username})


def test_unknown_and_missing_params_are_refused() -> None:
    for params in ({}, {"username": "x", "page": 2}, {"handle": "x"}):
        with pytest.raises(InvalidRequest):
            check_params(SCRAPER, params)


@pytest.mark.parametrize("username", ["quiet_harbor", "Quiet_Harbor", "@quiet_harbor"])
def test_a_cursor_of_the_profile_is_accepted(username: str) -> None:
    params = check_params(SCRAPER, {"username": username, "cursor": own_cursor()})
    assert isinstance(params, ProfileParams)
    assert params.continuation["user_id"] == "1"


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "DAAHCgABHPEX6f6__-sLAAIAAAATMjA3MjEyNjY3NzUzNTM0Njc3OQgAAwAAAAIAAA",
        own_cursor()[:-2],
        own_cursor() + "A",
        own_cursor(handle="somebody_else"),
        own_cursor(seen="2"),
        own_cursor(seen=[["2"]]),
        own_cursor(seen=["2", None]),
        own_cursor(seen=["2"] * (MAX_SEEN + 1)),
        own_cursor(more=1),
        own_cursor(user_id=1),
        encode_cursor("videosite-profile-1", {"handle": "quiet_harbor"}),
        "x" * 9_000,
    ],
)
def test_malformed_and_foreign_cursors_are_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_params(SCRAPER, {"username": "quiet_harbor", "cursor": cursor})
    (detail,) = refused.value.details
    assert detail["loc"] == ["cursor"] or detail["msg"] == "the cursor belongs to another profile"


@pytest.mark.parametrize("seen", [[[1]], [None, 1, 1.5, True], ["2"] * 1_500, {"2": 1}])
def test_a_forged_list_of_returned_posts_is_refused(seen: object) -> None:
    with pytest.raises(InvalidRequest):
        check_params(SCRAPER, {"username": "quiet_harbor", "cursor": own_cursor(seen=seen)})


def test_a_cursor_for_the_start_of_the_timeline_is_accepted() -> None:
    params = check_params(SCRAPER, {"username": "quiet_harbor", "cursor": own_cursor(user_id="", cursor="")})
    assert isinstance(params, ProfileParams)
    assert (params.continuation["user_id"], params.continuation["cursor"]) == ("", "")


def test_both_names_give_the_same_scraper() -> None:
    assert scrapers()["microblog-profile-v4"] is SCRAPER
