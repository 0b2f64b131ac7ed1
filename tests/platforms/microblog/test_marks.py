"""A statement about the profile needs a mark in the response. Without one, the response is an extraction error."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from crawler.errors import ScrapeError
from crawler.platforms.microblog.base import MicroblogPage
from crawler.sandbox.microblog.site import Site
from tests.microblog_pages import answer, page_of, timeline_of, timeline_with, web_timeline_with
from tests.platforms.microblog.test_variants import POST, WEB_POST, literals

PATH = "data.user.result.timeline.timeline.instructions"


def error_of(page: MicroblogPage) -> ScrapeError:
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page.to_item())
    return raised.value


def item(**content: Any) -> dict[str, Any]:
    return {"entryId": "tweet-9", "content": {"entryType": "TimelineTimelineItem", "itemContent": content}}


def tweet(**results: Any) -> dict[str, Any]:
    return item(itemType="TimelineTweet", tweet_results=results)


def timeline(*entries: dict[str, Any]) -> bytes:
    return timeline_of({"type": "TimelineAddEntries", "entries": entries})


SUSPENDED = {"__typename": "UserUnavailable", "reason": "Suspended"}


@pytest.mark.parametrize(
    ("source", "body", "mark"),
    [
        ("user", b'{"data":{}}', "{}"),
        ("user", orjson.dumps({"data": {"user": {"result": SUSPENDED}}}), "UserUnavailable: Suspended"),
        ("timeline", orjson.dumps({"data": {"user": {"result": SUSPENDED}}}), "UserUnavailable: Suspended"),
        ("timeline", timeline(item(itemType="TimelineTombstone")), "TimelineTombstone"),
        ("timeline", timeline(tweet(result={"__typename": "TweetTombstone"})), "TweetTombstone"),
        ("timeline", timeline(tweet(result={"__typename": "TweetPreviewDisplay"})), "TweetPreviewDisplay"),
        ("timeline", timeline_with(POST | {"core": {"user_results": {"result": SUSPENDED}}}), "UserUnavailable"),
        ("user", b'{"errors":[{"code":63,"message":"User has been suspended."}]}', "User has been suspended."),
        ("page", "<html><p>This account doesn’t exist</p></html>".encode(), "This account doesn’t exist"),
        ("page", b"<html><p>Account suspended</p></html>", "Account suspended"),
        ("page", literals({"__id": "VXNlcjo3", **SUSPENDED}).encode(), "UserUnavailable: Suspended"),
    ],
)
def test_a_statement_about_the_profile_quotes_its_mark(source: str, body: bytes, mark: str) -> None:
    error = error_of(page_of(source, body))
    assert error.code in {"TARGET_NOT_FOUND", "TARGET_RESTRICTED"}
    assert [(each["msg"], each["type"]) for each in error.details] == [(mark, "mark")]


@pytest.mark.parametrize(
    ("source", "body", "reason"),
    [
        ("user", b'{"data":{"user":null}}', "null_user"),
        ("user", b'{"data":{"user":{"result":null}}}', "null_user"),
        ("timeline", b'{"data":{}}', "null_user"),
        ("timeline", b'{"data":{"user":{"result":null}}}', "null_user"),
        ("timeline", b'{"data":{"user":{"result":{"timeline":null}}}}', "no_timeline"),
        ("timeline", b'{"data":{"threaded_conversation":{"instructions":[]}}}', "unknown_form"),
        ("timeline", timeline(tweet(result=None)), "null_rows"),
        ("timeline", timeline(tweet()), "blind"),
        ("timeline", timeline(tweet(resultRenamed=POST)), "blind"),
        ("timeline", timeline(item(itemType="TimelineTweet")), "blind"),
        ("timeline", web_timeline_with(None), "null_rows"),  # type: ignore[arg-type]
    ],
)
def test_null_and_absence_are_no_mark(source: str, body: bytes, reason: str) -> None:
    error = error_of(page_of(source, body))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", reason)


OLD_USER = {"__typename": "User", "rest_id": "7", "is_blue_verified": False}
OLD_VALUES = {"screen_name": "harbor", "name": "Harbor", "created_at": "Tue Dec 09 19:02:13 +0000 2014"}


@pytest.mark.parametrize(
    ("user", "reason", "alarm"),
    [
        (OLD_USER | {"legacy": OLD_VALUES | {"followers_count": 5}}, "unknown_form", ""),
        (OLD_USER | {"legacy": OLD_VALUES, "coreRenamed": {"screen_name": "harbor"}}, "unknown_form", ""),
        (OLD_USER | {"legacy": OLD_VALUES, "core": {"screenName": "harbor"}}, "blind", "layout"),
        (OLD_USER | {"legacy": {"followers_count": 5}, "coreRenamed": {"screen_name": "harbor"}}, "blind", "layout"),
        (OLD_USER | {"legacy": OLD_VALUES | {"name": None}}, "unknown_form", ""),
        *(
            (OLD_USER | {"legacy": {key: value for key, value in OLD_VALUES.items() if key != name}}, "blind", "layout")
            for name in OLD_VALUES
        ),
    ],
)
def test_users_of_a_former_query_id_are_no_new_layout(user: dict[str, Any], reason: str, alarm: str) -> None:
    error = error_of(page_of("user", orjson.dumps({"data": {"user": {"result": user}}})))
    assert (error.code, error.reason, error.alarm) == ("EXTRACTION_FAILED", reason, alarm)


def test_a_timeline_under_a_renamed_key_is_of_a_former_query_id_only_with_its_users() -> None:
    old = {"core": {"user_results": {"result": OLD_USER | {"legacy": OLD_VALUES}}}}
    for author, reason in ((old, "unknown_form"), ({}, "no_timeline")):
        response = orjson.loads(timeline_with(POST | author))
        user = response["data"]["user"]["result"]
        user["timeline_v2"] = user.pop("timeline")
        assert error_of(page_of("timeline", orjson.dumps(response))).reason == reason


@pytest.mark.parametrize("body", [timeline_with(POST, None), web_timeline_with(WEB_POST, None)])  # type: ignore[arg-type]
def test_one_null_row_costs_that_row_and_a_warning(body: bytes) -> None:
    page = page_of("timeline", body)
    assert len(asyncio.run(page.to_item())["posts"]) == 1
    (lost,) = [each for each in page.unread if each.loses_rows]
    assert (lost.path.endswith("tweet_results.result"), lost.cause, lost.rows, lost.of) == (True, "null", 1, 2)


def test_posts_that_only_subscribers_can_see_are_counted() -> None:
    entries = orjson.loads(timeline_with(POST))["data"]["user"]["result"]["timeline"]["timeline"]["instructions"]
    entries[0]["entries"] += [tweet(result={"__typename": "TweetPreviewDisplay"})] * 2
    page = page_of("timeline", timeline_of(*entries))
    assert len(asyncio.run(page.to_item())["posts"]) == 1
    (hidden,) = [each for each in page.unread if each.loses_rows]
    assert (hidden.rows, hidden.of, hidden.names) == (2, 3, ("TweetPreviewDisplay",))
    assert hidden.path == f"{PATH}[].entries[].content.itemContent.tweet_results.result"


def test_an_embed_of_another_profile_is_refused_even_if_it_has_a_post_of_the_requested_one() -> None:
    body = answer(Site(), "embed", "quiet_harbor")[2]
    assert body.count(b'"screenName":"quiet_harbor"') == 1
    other = body.replace(b'"screenName":"quiet_harbor"', b'"screenName":"another"')
    error = error_of(page_of("embed", other, username="quiet_harbor"))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "wrong_echo")


def test_an_embed_without_a_handle_is_refused_if_it_has_posts_of_others_only() -> None:
    body = answer(Site(), "embed", "quiet_harbor")[2].replace(b'"screenName":', b'"renamed":')
    assert asyncio.run(page_of("embed", body, username="quiet_harbor").to_item())["posts"]
    error = error_of(page_of("embed", body, username="lone_wolf"))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "wrong_echo")


@pytest.mark.parametrize(
    ("instruction", "path"),
    [
        ({"__typename": "TimelineSing"}, "instructions[].…unknown"),
        ({"__typename": "TimelinePinEntry"}, "instructions[].entry"),
    ],
)
def test_unread_parts_of_a_page_s_timeline_are_warnings(instruction: dict[str, Any], path: str) -> None:
    entry = {"__typename": "TimelineTweet", "tweet_results": {"result": WEB_POST}}
    entries = [{"entry_id": "tweet-1", "content": {"__typename": "TimelineTimelineItem", "content": entry}}]
    added = {"__typename": "TimelineAddEntries", "entries": entries}
    for instructions, expected in (([added], []), ([added, instruction], [path])):
        page = page_of("page", literals({"instructions": instructions}).encode())
        assert len(asyncio.run(page.to_item())["posts"]) == 1
        assert [each.path for each in page.unread if each.path.startswith("instructions")] == expected
