"""The microblog's page objects on small payloads, each with one unusual part."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from crawler.commands.extract import extract
from crawler.errors import ScrapeError
from crawler.platforms.microblog.convert import merged
from crawler.registry import scrapers
from tests.microblog_pages import posts_in, profile_in, timeline_with

SCRAPER = scrapers()["microblog-profile"]
AUTHOR = {
    "__typename": "User",
    "rest_id": "7",
    "core": {"screen_name": "quiet_harbor", "name": "Harbor"},
    "avatar": {"image_url": "a"},
}
POST = {
    "__typename": "Tweet",
    "rest_id": "2098678373753225483",
    "core": {"user_results": {"result": AUTHOR}},
    "legacy": {"full_text": "words", "favorite_count": 0, "reply_count": 0, "bookmark_count": 0, "retweet_count": 3},
}
WEB_POST = {
    "__typename": "Tweet",
    "rest_id": "2098678373753225483",
    "core": {"user_results": {"result": AUTHOR}},
    "details": {"full_text": "words"},
}


def read(body: Any, **params: str) -> dict[str, Any]:
    """The data that ``scrapy extract`` prints for a saved body."""
    raw = body.encode() if isinstance(body, str) else orjson.dumps(body)
    return asyncio.run(extract(SCRAPER, [raw], params, url="https://x.com/"))


def outcome(body: Any, **params: str) -> tuple[str, str | None]:
    """Code and reason of the error that ``scrapy extract`` gives for a saved body."""
    with pytest.raises(ScrapeError) as raised:
        read(body, **params)
    return raised.value.code, raised.value.reason


def post(**parts: Any) -> dict[str, Any]:
    """The post that is read from ``POST`` with additional or replaced parts."""
    legacy = POST["legacy"] | parts.pop("legacy", {})
    (found,) = posts_in(timeline_with(POST | {"legacy": legacy} | parts))
    return found


def literals(*objects: dict[str, Any], head: str = "") -> str:
    """A profile's page whose script contains these records."""
    store = orjson.dumps({each.get("__id", str(n)): each for n, each in enumerate(objects)}).decode()
    return f'<html><head>{head}</head><script class="$tsr">($R=>$R[0]={{relayRecords:$R[1]={store}}})()</script></html>'


# Posts within posts


@pytest.mark.parametrize(
    "inner", [{}, {"result": None}, {"result": {"__typename": "TweetTombstone"}}, {"result": POST}]
)
@pytest.mark.parametrize(
    "place",
    [
        ("legacy", "retweeted_status_result"),
        ("legacy", "repostedStatusResults"),
        ("repostedStatusResults",),
    ],
)
def test_reposts_of_present_and_deleted_posts(place: tuple[str, ...], inner: dict[str, Any]) -> None:
    found = post(**({"legacy": {place[1]: inner}} if len(place) > 1 else {place[0]: inner}))
    assert (found["is_repost"], found["reposted_post"] is None) == (True, inner.get("result") is not POST)
    assert (found["like_count"], found["comment_count"], found["save_count"], found["share_count"]) == (
        None,
        None,
        None,
        3,
    )


@pytest.mark.parametrize(
    "inner", [{}, {"result": None}, {"result": {"__typename": "TweetTombstone"}}, {"result": POST}]
)
@pytest.mark.parametrize("key", ["quoted_status_result", "quotedPostResults"])
def test_quotes_of_present_and_deleted_posts(key: str, inner: dict[str, Any]) -> None:
    found = post(**{key: inner})
    assert (found["is_quote"], found["quoted_post"] is None) == (True, inner.get("result") is not POST)
    assert (found["is_repost"], found["like_count"]) == (False, 0)


def test_a_repost_of_a_quote_is_not_a_quote() -> None:
    """The keys by which the payload of the repost itself looks like a quote are ignored."""
    marks = {"is_quote_status": True, "quoted_status_id_str": "1", "retweeted_status_result": {"result": POST}}
    found = post(quoted_status_result={"result": POST}, legacy=marks)
    assert (found["is_repost"], found["is_quote"], found["quoted_post"]) == (True, False, None)
    assert post(legacy={"is_quote_status": True})["is_quote"] is False


@pytest.mark.parametrize(
    ("legacy", "parent", "is_reply"),
    [({"in_reply_to_status_id_str": "5"}, "5", True), ({"in_reply_to_screen_name": "x"}, None, False)],
)
def test_replies(legacy: dict[str, Any], parent: str | None, *, is_reply: bool) -> None:
    found = post(legacy=legacy)
    assert (found["in_reply_to_post_id"], found["is_reply"]) == (parent, is_reply)


# Users


def test_a_user_without_verification_does_not_expose_its_kind() -> None:
    old = AUTHOR | {"verification": {"verified": False, "verified_type": "Business"}}
    assert merged([profile_in(AUTHOR), profile_in(old)])["verified_type"] == "Business"
    assert profile_in(AUTHOR | {"verification": {"verified": False, "verified_type": None}})["verified_type"] == ""


FULL = {
    "__typename": "User",
    "rest_id": "7",
    "core": {"screen_name": "Quiet_Harbor", "name": "Harbor"},
    "relationship_counts": {"followers": 5},
    "tweet_counts": {"tweets": 9},
}
SCRAP = {"__typename": "User", "rest_id": "7", "core": {"screen_name": "quiet_harbor", "name": "Harbor"}}
OTHER = {**FULL, "rest_id": "8", "core": {"screen_name": "other", "name": "Other"}, "privacy": {}, "website": {}}


@pytest.mark.parametrize("order", [(FULL, SCRAP, OTHER), (OTHER, SCRAP, FULL), (SCRAP, OTHER, FULL)])
def test_the_fullest_record_of_the_requested_user_wins(order: tuple[dict[str, Any], ...]) -> None:
    shown = read(literals(*order), username="QUIET_HARBOR")["data"]["additional"]["profile_demographics"]
    assert (shown["screen_name"], shown["followers_count"]) == ("Quiet_Harbor", 5)


def test_a_lesser_record_completes_the_user() -> None:
    lesser = SCRAP | {"relationship_counts": {"followers": 4}, "avatar": {"image_url": "https://p/x_normal.jpg"}}
    shown = read(literals(lesser, FULL | {"privacy": {}}))["data"]["additional"]["profile_demographics"]
    assert (shown["followers_count"], shown["profile_image_url_https"]) == (5, "https://p/x_normal.jpg")


def test_the_owner_is_found_without_a_requested_handle() -> None:
    shown = read(literals(FULL, SCRAP))["data"]["additional"]["profile_demographics"]
    assert shown["screen_name"] == "Quiet_Harbor"
    by_name = literals(FULL, OTHER, head='<meta property="profile:username" content="other"/>')
    assert read(by_name)["data"]["additional"]["profile_demographics"]["screen_name"] == "other"


# The order of a rendered page


def rendered(*timeline: dict[str, Any], numbers: range = range(1, 4)) -> list[str]:
    """The post ids of a page with entries whose references do not end in the entry ids."""
    entries = [
        {
            "__id": f"client:entries:{n}",
            "__typename": "TimelineTimelineEntry",
            "entry_id": f"tweet-{n}",
            "content": item(WEB_POST | {"rest_id": str(n + 2**60)}),
        }
        for n in numbers
    ]
    posts = read(literals(FULL, *entries, *timeline))["data"]["main"]
    return [str(int(each["post_id"]) - 2**60) for each in posts]


def item(post: dict[str, Any]) -> dict[str, Any]:
    shown = {"__typename": "TimelineTweet", "tweet_results": {"result": post}}
    return {"__typename": "TimelineTimelineItem", "content": shown}


def timeline(*numbers: int, **parts: Any) -> dict[str, Any]:
    refs = [f"client:entries:{n}" for n in numbers]
    return {
        "__typename": "TimelineTimeline",
        "id": "ProfileOriginalsProduct-Timeline",
        "entries": {"__refs": refs},
        **parts,
    }


def test_entries_are_in_the_order_of_their_timeline() -> None:
    assert rendered(timeline(2, 1)) == ["2", "1"]
    assert rendered(timeline()) == [], "an empty timeline counts"
    assert rendered(timeline(2, 1, 3, pinned_entry_ids=["tweet-3"])) == ["3", "2", "1"]


def test_a_pinned_entry_of_nested_objects_comes_first() -> None:
    first, pinned = (
        {"entry_id": f"tweet-{n}", "content": item(WEB_POST | {"rest_id": f"209867837375322548{n}"})} for n in (1, 2)
    )
    added = {"__typename": "TimelineAddEntries", "entries": [first]}
    instructions = [added, {"__typename": "TimelinePinEntry", "entry": pinned}]
    posts = read(literals(FULL, {"instructions": instructions}))["data"]["main"]
    assert [post["post_id"] for post in posts] == ["2098678373753225482", "2098678373753225481"]


# One response with profile and posts


def answer(*entries: dict[str, Any], **user: Any) -> dict[str, Any]:
    """The newest client's response."""
    timeline = {"timeline": {"instructions": [{"__typename": "TimelineAddEntries", "entries": entries}]}}
    return {"data": {"user_result_by_screen_name": {"result": {**user, "profile_timeline_v2": timeline}}}}


ENTRY = {"entry_id": "tweet-1", "content": item(WEB_POST)}


def test_a_response_with_profile_and_posts() -> None:
    data = read(answer(ENTRY, **FULL))
    assert data["data"]["additional"]["profile_demographics"]["followers_count"] == 5
    assert len(data["data"]["main"]) == 1
    assert read(answer(**FULL), username="quiet_harbor")["data"]["main"] == []
    assert outcome(answer(**FULL), username="other") == ("EXTRACTION_FAILED", "wrong_echo")


# Failures


SCRIPT = '<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>'
GONE = '<meta name="description" content="The user profile you&#x27;re looking for could not be found."/>'
UNKNOWN_EMBED = '{"props":{"pageProps":{"timeline":{"entries":[{"type":"tweet","content":{"renamed":{}}}]}}}}'
TROUBLE = {"errors": [{"code": 29, "message": "Timeout"}]}


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        (f"<html><head>{GONE}</head>{SCRIPT}</html>", "TARGET_NOT_FOUND", "not_found"),
        (literals({"__id": "client:root"}, head=GONE + SCRIPT), "TARGET_NOT_FOUND", "not_found"),
        (f"<html><p>Account suspended</p>{SCRIPT}</html>", "TARGET_RESTRICTED", "suspended"),
        (
            literals({"__id": "client:root"}) + f"<p>Account suspended</p>{SCRIPT}",
            "TARGET_RESTRICTED",
            "suspended",
        ),
        (f"<html>{SCRIPT}</html>", "UPSTREAM_BLOCKED", "challenge"),
        ("<html><title>Attention Required! | Cloudflare</title></html>", "UPSTREAM_BLOCKED", "challenge"),
        ('<html><title data-x="1">Log in to X / X</title></html>', "UPSTREAM_BLOCKED", "login_wall"),
        ("Rate limit exceeded\n", "UPSTREAM_RATE_LIMITED", "rate_limited"),
        ("429 Too Many Requests", "UPSTREAM_RATE_LIMITED", "rate_limited"),
        ("A text that mentions __NEXT_DATA__", "EXTRACTION_FAILED", "unknown_form"),
        (TROUBLE | answer(), "EXTRACTION_FAILED", "no_user"),
        ({"data": {"tweetResult": {"result": POST}}}, "EXTRACTION_FAILED", "unknown_form"),
        ({"data": {"list": {"timeline": {"instructions": []}}}}, "EXTRACTION_FAILED", "unknown_form"),
        ({"data": {"user": None}}, "EXTRACTION_FAILED", "null_user"),
        ({"data": {"user": {"result": None}}}, "EXTRACTION_FAILED", "null_user"),
        ({"data": {"user_results": {"result": None}}}, "EXTRACTION_FAILED", "null_user"),
        (TROUBLE | {"data": {"user": None}}, "UPSTREAM_ERROR", "server_error"),
        ({"data": {}}, "TARGET_NOT_FOUND", "not_found"),
        ({"data": {"user": {}}}, "TARGET_NOT_FOUND", "not_found"),
        ({"data": None}, "EXTRACTION_FAILED", "no_data_block"),
        (
            TROUBLE | {"data": {"user": {"result": {"timeline": {"timeline": {"instructions": []}}}}}},
            "UPSTREAM_ERROR",
            "server_error",
        ),
        (TROUBLE | {"data": {"user": {"result": {"rest_id": "7"}}}}, "UPSTREAM_ERROR", "server_error"),
        (answer({"entry_id": "tweet-1", "content": {"renamed": ENTRY}}, **FULL), "EXTRACTION_FAILED", "blind"),
        (
            f'<script id="__NEXT_DATA__">{UNKNOWN_EMBED}</script>',
            "EXTRACTION_FAILED",
            "blind",
        ),
        (
            literals(FULL, {"details": {}, "counts": {}, "views": {}}, {"entry_id": "tweet-1", "renamed": {}}),
            "EXTRACTION_FAILED",
            "blind",
        ),
    ],
)
def test_failures_have_their_code_and_reason(body: Any, code: str, reason: str) -> None:
    assert outcome(body) == (code, reason)
