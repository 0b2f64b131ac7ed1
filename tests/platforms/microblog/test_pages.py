"""The microblog's page objects: expected records for the sandbox's responses, typed errors for damaged ones."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from web_poet import HttpResponse, PageParams

from crawler.errors import ExtractionFailed, ScrapeError
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
        (429, b"Rate limit exceeded\n", "UPSTREAM_RATE_LIMITED", "rate_limited"),
        (429, b'{"errors":[{"code":239,"message":"Bad guest token"}]}', "UPSTREAM_RATE_LIMITED", "rate_limited"),
        (403, b"<html>no</html>", "UPSTREAM_BLOCKED", "refused"),
        (401, b"no", "UPSTREAM_BLOCKED", "refused"),
        (503, b"<html>later</html>", "UPSTREAM_ERROR", "server_error"),
        (500, b"", "UPSTREAM_ERROR", "server_error"),
        (302, b"", "UPSTREAM_ERROR", "status"),
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


# Damage


def timeline_payload() -> Any:
    data = orjson.loads(answer(SITE, "timeline", "quiet_harbor")[2])
    added = data["data"]["user"]["result"]["timeline"]["timeline"]["instructions"][-1]
    added["entries"] = [*added["entries"][:3], *added["entries"][-1:]]  # small, since it is copied for each example
    return data


def embed_payload() -> Any:
    body = answer(SITE, "embed", "quiet_harbor")[2]
    data = orjson.loads(body.split(b'type="application/json">')[1].split(b"</script>")[0])
    del data["props"]["pageProps"]["timeline"]["entries"][5:]
    return data


def user_payload() -> Any:
    return orjson.loads(answer(SITE, "user", "iron_meadow")[2])


PAYLOADS = {"timeline": timeline_payload(), "embed": embed_payload(), "user": user_payload()}


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path in the payload, with the first two entries of each list."""
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, (*path, key))


PATHS = [(source, path) for source, payload in PAYLOADS.items() for path in paths(payload)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=6,
)


def read_payload(source: str, data: Any) -> dict[str, Any]:
    body = orjson.dumps(data)
    if source == "embed":
        body = b'<script id="__NEXT_DATA__" type="application/json">' + body + b"</script>"
    return joined(page_of(source, body))


def damage(damages: list[tuple[tuple[str, tuple[Any, ...]], Any]]) -> None:
    source = damages[0][0][0]
    data = orjson.loads(orjson.dumps(PAYLOADS[source]))  # quicker than a deep copy
    for (_, path), value in damages:
        holder: Any = data
        with suppress(KeyError, IndexError, TypeError):  # already damaged, or another payload's path
            for key in path[:-1]:
                holder = holder[key]
            if value == "<remove>":
                del holder[path[-1]]
            else:
                holder[path[-1]] = value
    with suppress(ScrapeError):
        read_payload(source, data)


DAMAGES = st.lists(st.tuples(st.sampled_from(PATHS), JSON | st.just("<remove>")), min_size=1, max_size=6)
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


@given(DAMAGES)
@settings(derandomize=True, max_examples=150, deadline=None, suppress_health_check=QUIET)
def test_damage_gives_data_or_a_typed_error(damages: list[tuple[tuple[str, tuple[Any, ...]], Any]]) -> None:
    damage(damages)


@pytest.mark.soak
@given(DAMAGES)
@settings(derandomize=True, max_examples=2_000, deadline=None, suppress_health_check=QUIET)
def test_more_damage_gives_data_or_a_typed_error(damages: list[tuple[tuple[str, tuple[Any, ...]], Any]]) -> None:
    damage(damages)


PAGE = {handle: answer(SITE, "page", handle)[2] for handle in ("quiet_harbor", "old_lantern")}
CUTS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), st.binary(max_size=6)), min_size=1, max_size=4)


def damage_page(handle: str, cuts: list[tuple[float, int, bytes]]) -> None:
    body = PAGE[handle]
    for place, length, put in cuts:
        at = int(place * len(body))
        body = body[:at] + put + body[at + length :]
    with suppress(ScrapeError):
        joined(page_of("page", body))


@given(st.sampled_from(sorted(PAGE)), CUTS)
@settings(derandomize=True, max_examples=150, deadline=None, suppress_health_check=QUIET)
def test_a_damaged_page_gives_data_or_a_typed_error(handle: str, cuts: list[tuple[float, int, bytes]]) -> None:
    damage_page(handle, cuts)


@pytest.mark.soak
@given(st.sampled_from(sorted(PAGE)), CUTS)
@settings(derandomize=True, max_examples=2_000, deadline=None, suppress_health_check=QUIET)
def test_more_damaged_pages_give_data_or_a_typed_error(handle: str, cuts: list[tuple[float, int, bytes]]) -> None:
    damage_page(handle, cuts)


@given(JSON)
@settings(derandomize=True, max_examples=150, deadline=None)
def test_arbitrary_json_is_a_typed_error(data: Any) -> None:
    for source in PAYLOADS:
        with pytest.raises(ScrapeError):
            read_payload(source, data)


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize(
    "body", [b"{", b"[" * 10_000 + b"]" * 10_000, b"\xff\xfe", bytes(range(256)), b'<script>$R[0]={a:"', b"{}", b"null"]
)
def test_malformed_responses_are_a_typed_error(source: str, body: bytes) -> None:
    with pytest.raises(ScrapeError):
        asyncio.run(page_of(source, body).to_item())


def first_post(data: Any) -> Any:
    """The first original post of the timeline."""
    for entry in data["data"]["user"]["result"]["timeline"]["timeline"]["instructions"][-1]["entries"]:
        post = entry["content"].get("itemContent", {}).get("tweet_results", {}).get("result", {})
        if "legacy" in post and "retweeted_status_result" not in post["legacy"]:
            return post
    raise AssertionError


@pytest.mark.parametrize(
    ("key", "field", "expected"),
    [
        ("favorite_count", "like_count", None),
        ("reply_count", "comment_count", None),
        ("bookmark_count", "save_count", None),
        ("retweet_count", "share_count", None),
        ("created_at", "upload_timestamp", "unchanged"),
        ("views", "view_count", None),
    ],
)
def test_an_optional_key_changes_its_field_only(key: str, field: str, expected: Any) -> None:
    data = copy.deepcopy(PAYLOADS["timeline"])
    post = first_post(data)
    (post if key == "views" else post["legacy"]).pop(key)
    whole = {p["post_id"]: p for p in read_payload("timeline", PAYLOADS["timeline"])["data"]["main"]}
    without = {p["post_id"]: p for p in read_payload("timeline", data)["data"]["main"]}
    changed, original = without[post["rest_id"]], whole[post["rest_id"]]
    assert changed == (original if expected == "unchanged" else original | {field: expected}), (
        "the id has the time, too"
    )


@pytest.mark.parametrize("part", ["full_text", "id", "author"])
def test_a_post_without_a_mandatory_part_costs_the_post_and_a_warning(part: str) -> None:
    data = copy.deepcopy(PAYLOADS["timeline"])
    post = first_post(data)
    if part == "full_text":
        del post["legacy"]["full_text"]
        post.pop("note_tweet", None)
    elif part == "id":
        del post["legacy"]["id_str"], post["rest_id"]
    else:
        post["core"]["user_results"]["result"]["core"] = {}
    whole, damaged = (page_of("timeline", orjson.dumps(each)) for each in (PAYLOADS["timeline"], data))
    posts = [asyncio.run(page.to_item())["posts"] for page in (whole, damaged)]
    assert len([each for each in posts[0] if each not in posts[1]]) == 1
    assert whole.unread == []
    assert any(each.loses_rows and each.rows == 1 for each in damaged.unread)


@pytest.mark.parametrize("name", [b'"full_text"', b'"screen_name"'])
def test_posts_that_all_lack_a_mandatory_part_are_an_error(name: bytes) -> None:
    body = orjson.dumps(PAYLOADS["timeline"]).replace(name, b'"renamed"')
    with pytest.raises(ExtractionFailed) as raised:
        asyncio.run(page_of("timeline", body).to_item())
    assert raised.value.details
