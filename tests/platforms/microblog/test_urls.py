"""The requests to the microblog's sources: their URLs contain the params and nothing else."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import orjson
from scrapy import Request

from crawler.platforms.microblog import EMBED, PLATFORM
from crawler.platforms.microblog.urls import Ids, embed_request, profile_request, query_request
from crawler.platforms.requests import shipped_ids

IDS = shipped_ids(Ids)


def arguments(request: Request) -> dict[str, object]:
    query = parse_qs(urlsplit(request.url).query, strict_parsing=True)
    return {name: orjson.loads(value) for name, (value,) in query.items()}


def test_page_and_embed_requests() -> None:
    assert profile_request("Quiet_1").url == f"{PLATFORM.origin}/Quiet_1"
    assert embed_request("Quiet_1").url == f"{EMBED}/srv/timeline-profile/screen-name/Quiet_1"
    assert profile_request("x").meta["page_params"] == {"username": "x"}


def test_the_user_request() -> None:
    request = query_request(IDS, IDS.user, "AnId-1234567890", {"username": "x"})
    sent = arguments(request)
    assert sent["variables"] == {"screen_name": "x"}
    assert sent["fieldToggles"] == {"withAuxiliaryUserLabels": True}
    assert "X-Guest-Token" not in request.headers


def test_the_timeline_request() -> None:
    first = query_request(IDS, IDS.timeline, "AnId-1234567890", {"username": "x", "cursor": ""}, user_id="12")
    variables = arguments(first)["variables"]
    assert isinstance(variables, dict)
    assert (variables["userId"], variables["count"], "cursor" in variables) == ("12", 20, False)
    page_params = {"username": "x", "cursor": "a&b=c+/%"}
    followups = query_request(IDS, IDS.timeline, "AnId-1234567890", page_params, user_id="12")
    assert arguments(followups)["variables"] == variables | {"cursor": "a&b=c+/%"}
    assert followups.meta["page_params"] == {"username": "x", "cursor": "a&b=c+/%"}
