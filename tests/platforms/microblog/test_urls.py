"""The requests to the microblog's sources: their URLs contain the params and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from scrapy import Request
from scrapy.settings import Settings

from crawler.downloads.shared_state import SharedState
from crawler.platforms.microblog import EMBED, PLATFORM
from crawler.platforms.microblog.api import TimelinePage, UserPage
from crawler.platforms.microblog.guest import GuestClient
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


def client(**settings: float) -> GuestClient:
    """A client without a crawl: it makes requests, and sends none."""
    spider = SimpleNamespace(platform="microblog", settings=Settings(settings), shared=SharedState())
    return GuestClient(cast("Any", spider), cast("Any", None))


def id_of(request: Request) -> str:
    return urlsplit(request.url).path.split("/")[2]


def test_an_id_that_was_tried_is_not_sent_again() -> None:
    guest, tried = client(), list[str]()
    for expected in IDS.timeline.ids:
        assert id_of(guest.request(TimelinePage, "harbor", "7", "", tried)) == expected
        tried.append(expected)
    assert id_of(guest.request(UserPage, "harbor", tried=IDS.user.ids[:-1])) == IDS.user.ids[-1]


@pytest.mark.parametrize(("source", "download", "longest"), [(5, 9, 5), (9, 5, 5)])
def test_a_source_has_a_part_of_the_time_of_a_target(source: float, download: float, longest: float) -> None:
    request = client(SOURCE_TIMEOUT=source, DOWNLOAD_TIMEOUT=download).limited(Request("https://x.test"))
    assert request.meta["download_timeout"] == longest
