"""The microblog's page objects on small payloads, each with one unusual part, and on pages of other profiles."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from crawler.commands.extract import extract
from crawler.errors import ScrapeError
from crawler.platforms.microblog.base import MicroblogPage
from crawler.registry import scrapers
from crawler.sandbox.microblog.site import Site
from tests.microblog_pages import answer, page_of, posts_in, timeline_with

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


# Pages of another profile, and unread parts of a page's timeline


def error_of(page: MicroblogPage) -> ScrapeError:
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page.to_item())
    return raised.value


def test_an_embed_of_another_profile_is_refused_even_if_it_has_a_post_of_the_requested_one() -> None:
    body = answer(Site(), "embed", "quiet_harbor")[2]
    assert body.count(b'"screenName":"quiet_harbor"') == 1
    other = body.replace(b'"screenName":"quiet_harbor"', b'"screenName":"another"')
    error = error_of(page_of("embed", other, username="quiet_harbor"))
    assert (error.code, error.reason) == ("EXTRACTION_FAILED", "wrong_echo")


@pytest.mark.parametrize("source", ["page", "embed", "user", "timeline"])
def test_an_answer_for_another_profile_is_refused(source: str) -> None:
    body = answer(Site(), source, "quiet_harbor")[2]
    assert asyncio.run(page_of(source, body, username="Quiet_Harbor").to_item())
    error = error_of(page_of(source, body, username="lone_wolf"))
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
