"""Responses that were once read incorrectly, each reduced to the smallest payload that shows the problem."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import orjson
import pytest

from crawler.errors import ExtractionFailed, ScrapeError
from crawler.platforms.microblog.embed import EmbedPage
from crawler.sandbox.microblog.site import Site
from tests.microblog_pages import (
    answer,
    page_of,
    posts_in,
    profile_in,
    timeline_of,
    timeline_with,
    web_timeline_with,
)
from tests.platforms.microblog.test_variants import AUTHOR, POST, WEB_POST, literals, outcome, post, read

SITE = Site()
SHORT = "https://t.co/abc123"
COVER = "https://pbs.twimg.com/media/cover.jpg"


def reason(source: str, status: int, body: bytes) -> tuple[str, str | None]:
    with pytest.raises(ScrapeError) as raised:
        asyncio.run(page_of(source, body, status=status).to_item())
    return raised.value.code, raised.value.reason


# MB-3: articles


def article(**parts: Any) -> dict[str, Any]:
    result = {
        "title": "On tides",
        "preview_text": "They rise",
        "cover_media": {"media_info": {"original_img_url": COVER}},
    }
    return {"article_results": {"result": {**result, **parts}}}


def test_mb_3_an_article_has_its_title_text_and_cover() -> None:
    found = post(legacy={"full_text": SHORT}, article=article())
    assert (found["caption"], found["thumbnail_url"]) == ("On tides\n\nThey rise", COVER)
    found = post(legacy={"full_text": SHORT}, article=article(plain_text="They rise and fall."))
    assert found["caption"] == "On tides\n\nThey rise and fall."


@pytest.mark.parametrize(
    ("parts", "caption", "thumbnail"),
    [
        ({"article": article(title="", preview_text="", cover_media=None)}, SHORT, None),
        ({"article": article(title=None)}, "They rise", COVER),
        ({"article": {"article_results": {}}}, SHORT, None),
        ({"article": None}, SHORT, None),
    ],
    ids=["empty", "no title", "no result", "no article"],
)
def test_mb_3_parts_of_an_article_may_be_missing(parts: dict[str, Any], caption: str, thumbnail: str | None) -> None:
    found = post(legacy={"full_text": SHORT}, **parts)
    assert (found["caption"], found["thumbnail_url"]) == (caption, thumbnail)


def test_mb_3_a_post_that_only_mentions_an_article_keeps_its_text() -> None:
    found = post(legacy={"full_text": f"Read this {SHORT}"}, article=article())
    assert (found["caption"], found["thumbnail_url"]) == (f"Read this {SHORT}", None)


# MB-4: status 404 has two meanings, and 422 a third


@pytest.mark.parametrize("source", ["user", "timeline"])
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (404, b'{"message":"Query not found"}', ("EXTRACTION_FAILED", "stale_query_id")),
        (404, b'{"errors":[{"code":34,"message":"Sorry"}]}', ("EXTRACTION_FAILED", "stale_query_id")),
        (404, b"", ("UPSTREAM_BLOCKED", "refused_query")),
        (404, b" ", ("UPSTREAM_BLOCKED", "refused_query")),
        (404, b"<html>404</html>", ("UPSTREAM_BLOCKED", "refused_query")),
        (422, b'{"message":"Missing variable"}', ("EXTRACTION_FAILED", "wrong_variables")),
        (422, b"", ("EXTRACTION_FAILED", "wrong_variables")),
    ],
)
def test_mb_4_a_failed_query_has_its_reason(source: str, status: int, body: bytes, expected: tuple[str, str]) -> None:
    assert reason(source, status, body) == expected


# MB-5: the profile's link


@pytest.mark.parametrize("holder", ["profile_bio", "legacy"])
def test_mb_5_the_link_may_be_in_the_list_of_links_only(holder: str) -> None:
    listed = {"entities": {"url": {"urls": [{"url": SHORT, "expanded_url": "https://harbor.example"}]}}}
    assert profile_in({**AUTHOR, "website": {"url": ""}, holder: listed})["url"] == SHORT
    assert profile_in({**AUTHOR, "website": {"url": "https://t.co/own"}, holder: listed})["url"] == "https://t.co/own"


def test_mb_5_without_a_link_the_url_stays_empty_or_unknown() -> None:
    assert profile_in({**AUTHOR, "website": {"url": ""}})["url"] == ""
    assert profile_in(AUTHOR)["url"] is None


# MB-6: a page whose stream is not finished


def streams(*states: str) -> bytes:
    key = 'LpkpphcOWljdki66nzocrg{"screenName":"quiet_harbor"}'
    objects = [
        {"kind": f"GraphQLRequestStream.{state}", "key": key, "name": "UserOriginalsTimeline"} for state in states
    ]
    user = {"__typename": "User", **AUTHOR, "tweet_counts": {"tweets": 16}}
    return literals(user, *objects).encode()


def test_mb_6_a_page_that_ends_before_its_posts_is_an_error() -> None:
    assert reason("page", 200, streams("Started")) == ("EXTRACTION_FAILED", "unfinished_stream")


@pytest.mark.parametrize("states", [(), ("Started", "Completed")])
def test_mb_6_a_finished_page_may_have_no_posts(states: tuple[str, ...]) -> None:
    item = asyncio.run(page_of("page", streams(*states)).to_item())
    assert (item["profile"]["statuses_count"], item["posts"]) == (16, [])


def test_mb_6_an_unfinished_stream_beside_posts_is_harmless() -> None:
    _, _, body = answer(SITE, "page", "quiet_harbor")
    stream = {"kind": "GraphQLRequestStream.Started", "key": 'LpkpphcOWljdki66nzocrg{"a":1}', "name": "Trends"}
    more = b'<script class="$tsr">$R[9000].next($R[9001]=' + orjson.dumps(stream) + b")</script></body>"
    whole, added = (asyncio.run(page_of("page", each).to_item()) for each in (body, body.replace(b"</body>", more)))
    assert whole == added


# MB-7: captions are the same from all sources

TEXT = f"A boat {SHORT}"
PHOTO = {"media_url_https": "https://pbs.twimg.com/media/a.jpg"}
NO_LINKS: dict[str, Any] = {"entities": {"urls": []}}


@pytest.mark.parametrize(
    "media",
    [PHOTO, PHOTO | {"url": SHORT}, PHOTO | {"indices": [7, 26]}, PHOTO | {"url": "https://t.co/other"}],
    ids=["neither", "url", "indices", "another url"],
)
@pytest.mark.parametrize("end", [6, len(TEXT), None])
def test_mb_7_the_link_to_media_is_dropped_however_it_is_listed(media: dict[str, Any], end: int | None) -> None:
    shown = {} if end is None else {"display_text_range": [0, end]}
    old = post(legacy={"full_text": TEXT, "extended_entities": {"media": [media]}, **NO_LINKS, **shown})
    new = WEB_POST | {"details": {"full_text": TEXT, **shown}, "media_entities2": [media], "url_entities": []}
    assert (old["caption"], posts_in(web_timeline_with(new))[0]["caption"]) == ("A boat", "A boat")


def test_mb_7_the_link_to_another_posts_video_is_dropped_from_every_source() -> None:
    page = "https://x.com/other/status/12/video/1"
    link = {"url": SHORT, "expanded_url": page, "indices": [7, 26]}
    media = PHOTO | {"url": SHORT, "source_status_id_str": "12"}
    shown = {"full_text": TEXT, "display_text_range": [0, len(TEXT)], "extended_entities": {"media": [media]}}
    for links in ([], [link]):
        assert post(legacy={**shown, "entities": {"urls": links}})["caption"] == "A boat"


@pytest.mark.parametrize("end", [6, len(TEXT)])
def test_mb_7_links_with_a_destination_stay(end: int) -> None:
    links = [{"url": SHORT, "expanded_url": "https://harbor.example/a", "indices": [7, 26]}]
    legacy = {"full_text": TEXT, "display_text_range": [0, end], "entities": {"urls": links}}
    assert post(legacy=legacy)["caption"] == "A boat https://harbor.example/a"
    behind = legacy | {"full_text": f"{TEXT} https://t.co/photo", "extended_entities": {"media": [PHOTO]}}
    assert post(legacy=behind)["caption"] == "A boat https://harbor.example/a"


def test_mb_7_a_text_without_media_keeps_its_links() -> None:
    assert post(legacy={"full_text": TEXT, **NO_LINKS})["caption"] == TEXT
    assert post(legacy={"full_text": f"{SHORT} a boat", "extended_entities": {"media": [PHOTO]}})["caption"] == (
        f"{SHORT} a boat"
    )


# MB-8: a further root


def test_mb_8_the_user_may_be_below_user_results() -> None:
    user = {"__typename": "User", **AUTHOR, "relationship_counts": {"followers": 5}}
    found = read({"data": {"user_results": {"result": user}}})["data"]["additional"]["profile_demographics"]
    assert (found["screen_name"], found["followers_count"]) == ("quiet_harbor", 5)


def test_mb_8_an_unavailable_user_below_user_results_is_restricted() -> None:
    body = {"data": {"user_results": {"result": {"__typename": "UserUnavailable", "reason": "Suspended"}}}}
    assert outcome(body) == ("TARGET_RESTRICTED", "suspended")


# A renamed root is never an empty page


def timeline(**parts: Any) -> dict[str, Any]:
    return {"data": {"user": {"result": {"__typename": "User", **parts}}}}


@pytest.mark.parametrize(
    "body",
    [
        {"data": {"renamed": {"result": {"timeline": {"timeline": {"items": [1]}}}}}},
        timeline(timeline={"timeline": {"orders": [{"entries": []}]}}),
        timeline(timeline={"renamed": {"instructions_": []}}),
    ],
    ids=["user", "instructions", "timeline"],
)
def test_a_timeline_with_a_renamed_root_is_an_error(body: dict[str, Any]) -> None:
    code, _ = reason("timeline", 200, orjson.dumps(body))
    assert code == "EXTRACTION_FAILED"


@pytest.mark.parametrize("parts", [{}, {"timeline": {}}, {"timeline": {"timeline": {}}}])
def test_a_protected_timeline_is_empty(parts: dict[str, Any]) -> None:
    body = {"data": {"user": {"result": parts}}}
    assert asyncio.run(page_of("timeline", orjson.dumps(body)).to_item())["posts"] == []


@pytest.mark.parametrize(("added", "missing"), [({"entries": []}, 0), ({"entries": None}, 1), ({"new_key": []}, 1)])
def test_an_empty_list_of_entries_is_not_a_missing_one(added: dict[str, Any], missing: int) -> None:
    body = timeline(timeline={"timeline": {"instructions": [{"type": "TimelineAddEntries", **added}]}})
    page = page_of("timeline", orjson.dumps(body))
    with contextlib.nullcontext() if not missing else pytest.raises(ExtractionFailed):
        assert asyncio.run(page.to_item())["posts"] == []
    assert bool(page.unread) == missing


# A module of a timeline: a conversation of several posts


def module() -> dict[str, Any]:
    cursor = {"itemContent": {"itemType": "TimelineTimelineCursor", "cursorType": "ShowMore", "value": "x"}}
    shown = {"itemContent": {"itemType": "TimelineTweet", "tweet_results": {"result": POST}}}
    items = [{"entryId": "a", "item": shown}, {"entryId": "b", "item": cursor}]
    content = {"entryType": "TimelineTimelineModule", "displayType": "VerticalConversation", "items": items}
    return {"entryId": "profile-conversation-12", "content": content}


@pytest.mark.parametrize("key", ["items", "item", "itemContent", "tweet_results", "result"])
def test_a_module_under_a_renamed_key_is_not_lost_in_silence(key: str) -> None:
    changed = orjson.loads(orjson.dumps(module()).replace(f'"{key}"'.encode(), f'"{key}Renamed"'.encode()))
    whole, lost = (timeline_of({"type": "TimelineAddEntries", "entries": [each]}) for each in (module(), changed))
    assert len(posts_in(whole)) == 1
    assert reason("timeline", 200, lost) == ("EXTRACTION_FAILED", "blind")


# PA-3: a repost without the reposted post. PA-4: a cursor without its value. PA-5: a part of a long text.


def unread(body: bytes) -> list[str]:
    """The unread parts, except those that the minimal payloads of these tests lack."""
    page = page_of("timeline", body)
    asyncio.run(page.to_item())
    return [str(each) for each in page.unread if each.cause != "missing" and not each.path.startswith("user.")]


LEGACY: dict[str, Any] = POST["legacy"]  # type: ignore[assignment]  # a dict
REPOST: dict[str, Any] = POST | {
    "rest_id": "2098678373753225484",
    "legacy": LEGACY | {"full_text": "RT @other: words…"},
}


def test_pa_3_a_repost_without_the_reposted_post_is_unread() -> None:
    body = timeline_with(POST, REPOST)
    assert [each["caption"] for each in posts_in(body)] == ["words"]
    path = "tweet_results.result.legacy.retweeted_status_result"
    assert unread(body) == [f"{path}: contradiction in 1 of 2, not collected"]
    assert reason("timeline", 200, timeline_with(REPOST)) == ("EXTRACTION_FAILED", "blind")


def cursor(**content: str) -> dict[str, Any]:
    return {"entryId": "cursor-bottom-1", "content": {"entryType": "TimelineTimelineCursor", **content}}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (cursor(cursorType="Bottom", value="D1"), "D1"),
        (cursor(kind="Bottom", value="D1"), "D1"),
        (cursor(cursorType="Bottom", token="D1"), None),  # not a secret
        ({"entryId": "cursor-bottom-1", "content": {"entryType": "TimelineCursor", "value": "D1"}}, None),
    ],
    ids=["whole", "kind renamed", "value renamed", "another type"],
)
def test_pa_4_the_end_of_a_timeline_needs_a_sign(entry: dict[str, Any], expected: str | None) -> None:
    entries = orjson.loads(timeline_with(POST))["data"]["user"]["result"]["timeline"]["timeline"]["instructions"]
    entries[0]["entries"].append(entry)
    page = page_of("timeline", timeline_of(*entries))
    assert asyncio.run(page.to_item())["next_cursor"] == expected
    assert expected == "D1" or any("entries[].content" in each.path for each in page.unread)


def test_pa_5_a_cut_text_without_its_note_is_unread() -> None:
    text = "word " * 54 + "…"
    cut = REPOST | {"legacy": REPOST["legacy"] | {"full_text": text}}
    note = {"note_tweet": {"note_tweet_results": {"result": {"text": text[:-1] * 2}}}}
    path = "tweet_results.result.note_tweet.note_tweet_results.result"
    assert unread(timeline_with(POST, cut)) == [f"{path}: contradiction in 1 of 2"]
    assert unread(timeline_with(POST, cut | note)) == []
    assert posts_in(timeline_with(POST, cut))[1]["caption"] == text


def test_pa_10_an_entry_of_an_unknown_kind_is_unread() -> None:
    instructions = orjson.loads(timeline_with(POST))["data"]["user"]["result"]["timeline"]["timeline"]["instructions"]
    unknown = {"itemType": "TimelineAudio", "tweet_results": {"result": POST}}
    entry = {"entryId": "tweet-3", "content": {"entryType": "TimelineTimelineItem", "itemContent": unknown}}
    instructions[0]["entries"].append(entry)
    path = "data.user.result.timeline.timeline.instructions[].entries[].content.itemContent.…unknown"
    assert unread(timeline_of(*instructions)) == [f"{path}: unknown in 1 of 2 (TimelineAudio), not collected"]
    body = timeline_of(*instructions, {"type": "TimelineSing"})
    assert any("instructions[].…unknown: unknown in 1 of 2 (TimelineSing)" in each for each in unread(body))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"views": {"state": "EnabledWithCount", "number": "7"}}, "views.count"),
        ({"views": {"state": "EnabledWithCount", "count": "7K"}}, "views.count"),
        ({"legacy": {"bookmarked": False, "bookmark_count": None}}, "legacy.bookmark_count"),
        ({"legacy": {"conversation_id_str": "5"}}, "legacy.in_reply_to_status_id_str"),
        ({"legacy": {"in_reply_to_user_id_str": "5"}}, "legacy.in_reply_to_screen_name"),
        ({"legacy": {"is_quote_status": True}}, "legacy.quoted_status_id_str"),
        ({"legacy": {"entities": {"media": [{"id_str": "5"}]}}}, "legacy.extended_entities"),
        ({"legacy": {"extended_entities": {"media": [{"type": "video", "media_url_https": "u"}]}}}, "video_info"),
    ],
)
def test_a_post_that_contradicts_itself_has_an_unread_value(changes: dict[str, Any], path: str) -> None:
    legacy = LEGACY | changes.get("legacy", {})
    assert any(path in each for each in unread(timeline_with(POST | changes | {"legacy": legacy})))


# Markup around the data of a profile's page

LINKED = b"""<script type="application/ld+json">{"@type": "ProfilePage", "mainEntity": {"name": "A"}}</script>"""


@pytest.mark.parametrize("before", [b"", b"<script></SCRIPT>", b"<script></script >", b"<!-- <script> -->", b"<!-->"])
def test_linked_data_is_found_after_any_end_of_a_script_and_after_comments(before: bytes) -> None:
    assert reason("page", 200, b"<html>" + before) == ("EXTRACTION_FAILED", "no_data_block")
    assert reason("page", 200, b"<html>" + before + LINKED) == ("EXTRACTION_FAILED", "blind")


@pytest.mark.parametrize("repeated", [b"<script ", b"<script>", b"<script></script ", b"<!--", b"<meta ", b"<title "])
def test_at_5_unclosed_markup_is_read_in_linear_time(repeated: bytes) -> None:
    """Each page would take minutes if it were read in quadratic time."""
    with pytest.raises(ScrapeError):
        asyncio.run(page_of("page", b"<html>" + repeated * 100_000).to_item())
    assert not EmbedPage.recognise("<html>" + repeated.decode() * 100_000)
