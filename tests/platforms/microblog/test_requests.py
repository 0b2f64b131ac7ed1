"""Requests of the microblog's sources: their URLs contain the params and nothing else."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import orjson
from scrapy import Request

from crawler.platforms.microblog.requests import (
    BEARER,
    DISABLED_FEATURES,
    FEATURES,
    TIMELINE_QUERIES,
    USER_QUERIES,
    embed_request,
    profile_request,
    timeline_request,
    token_request,
    user_request,
)

ORIGIN = "https://blog.example"


def arguments(request: Request) -> dict[str, object]:
    query = parse_qs(urlsplit(request.url).query, strict_parsing=True)
    return {name: orjson.loads(value) for name, (value,) in query.items()}


def test_page_and_embed_requests() -> None:
    assert profile_request(ORIGIN, "Quiet_1").url == f"{ORIGIN}/Quiet_1"
    assert embed_request(ORIGIN, "Quiet_1").url == f"{ORIGIN}/srv/timeline-profile/screen-name/Quiet_1"
    assert profile_request(ORIGIN, "x").meta["page_params"] == {"username": "x"}


def test_the_token_request_has_the_public_key() -> None:
    request = token_request(ORIGIN)
    assert (request.method, request.url, request.body) == ("POST", f"{ORIGIN}/1.1/guest/activate.json", b"")
    assert request.headers["Authorization"] == f"Bearer {BEARER}".encode()


def test_the_user_request() -> None:
    request = user_request(ORIGIN, "x", token="7", query_id=USER_QUERIES[0], missing=["new_flag_enabled"])
    assert urlsplit(request.url).path == f"/graphql/{USER_QUERIES[0]}/UserByScreenName"
    sent = arguments(request)
    assert sent["variables"] == {"screen_name": "x"}
    assert sent["features"] == FEATURES | dict.fromkeys(DISABLED_FEATURES, False) | {"new_flag_enabled": False}
    assert request.headers["X-Guest-Token"] == b"7"


def test_the_timeline_request() -> None:
    first = timeline_request(ORIGIN, "x", user_id="12", token="7", query_id=TIMELINE_QUERIES[0])
    variables = arguments(first)["variables"]
    assert isinstance(variables, dict)
    assert (variables["userId"], variables["count"], "cursor" in variables) == ("12", 20, False)
    followups = timeline_request(ORIGIN, "x", user_id="12", token="7", query_id="q", cursor="a&b=c+/%")
    assert arguments(followups)["variables"] == variables | {"cursor": "a&b=c+/%"}
    assert followups.meta["page_params"] == {"username": "x", "cursor": "a&b=c+/%"}
    assert "includePromotedContent" in variables, "without it the query is refused"


def test_a_request_without_a_token_lacks_the_header() -> None:
    assert "X-Guest-Token" not in user_request(ORIGIN, "x", token="", query_id="q").headers
