"""The microblog's page objects on small payloads, each with one unusual part."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from crawler.commands.extract import extract
from crawler.registry import scrapers
from tests.microblog_pages import posts_in, timeline_with

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


def test_a_repost_of_a_quote_is_not_a_quote() -> None:
    """The keys by which the payload of the repost itself looks like a quote are ignored."""
    marks = {"is_quote_status": True, "quoted_status_id_str": "1", "retweeted_status_result": {"result": POST}}
    found = post(quoted_status_result={"result": POST}, legacy=marks)
    assert (found["is_repost"], found["is_quote"], found["quoted_post"]) == (True, False, None)
    assert post(legacy={"is_quote_status": True})["is_quote"] is False


# Users


FULL = {
    "__typename": "User",
    "rest_id": "7",
    "core": {"screen_name": "Quiet_Harbor", "name": "Harbor"},
    "relationship_counts": {"followers": 5},
    "tweet_counts": {"tweets": 9},
}


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
