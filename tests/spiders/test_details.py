"""The param ``details``: which optional requests are sent, and what the outcome says about those that were left out.

The real spiders run with the simulated sites in the same process. ``tests/spiders/test_videosite_reader.py`` tests the
video site's.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock
from urllib.parse import parse_qs, urlsplit

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy_poet.utils import scrapy_response_to_http_response as http_response
from web_poet import PageParams

from crawler.downloads.lane import Lane
from crawler.downloads.lanes import Lanes
from crawler.downloads.throttle import Throttle
from crawler.errors import InvalidRequest
from crawler.sandbox.microblog.calls import cursor_to
from crawler.sandbox.microblog.site import Site as Microblog
from crawler.sandbox.photoapp.site import Site as Photoapp
from crawler.sandbox.protocol import FakeRequest, FakeResponse, FakeSite
from crawler.spiders.base import First, PlatformSpider
from crawler.spiders.microblog import MicroblogSpider
from crawler.spiders.photoapp import PhotoappSpider
from crawler.spiders.videosite import VideositeSpider
from crawler.targets.parser import check_params
from crawler.targets.target import Target
from crawler.targets.warning import OutcomeWarning
from tests.spiders.test_microblog_paging import cursor_of

HOME = "https://www.instagram.com"
NOW: Mapping[str, float] = {}
"""Each request may start at once."""
NOTHING: Mapping[str, Any] = {}
NEWEST = "relay_station"
"""An account in the newest response formats."""
LATER = {"embed": 0, "user": 0}
"""No request for a detail can start within 10 seconds."""


def scrape(  # noqa: PLR0913  # what the platform and the lane answer
    kind: type[PlatformSpider],
    site: FakeSite,
    starts: Mapping[str, float],
    refused: str = "",
    *,
    setting: Mapping[str, Any] = NOTHING,
    targets: int = 1,
    **params: Any,
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Scrape a target. Return its record, the sources of its requests, and the warnings of its outcome.

    ``starts``: the number of requests that the budget lets start within 10 seconds, for each source with such a limit.
    ``refused``: the source whose requests get the status 403. ``targets``: the number of targets in flight on the lane,
    whose budget permits two concurrent downloads.
    """
    spider = kind()
    spider.settings = Settings()
    spider.settings.setmodule("crawler.settings")
    spider.settings.update(setting)
    sources: list[str] = []
    warnings: list[OutcomeWarning] = []

    def answer(request: Request) -> FakeResponse:
        url = urlsplit(request.url)
        args = {name: values[-1] for name, values in parse_qs(url.query).items()}
        headers = {str(name).lower(): value for name, value in request.headers.to_unicode_dict().items()}
        received = FakeRequest(url.path, args, request.method, headers, request.body)
        fault = site.fault(received)
        return site.damaged(fault, received) if fault else site.page(received)

    async def fetch(request: Request, target: Target) -> Response:
        request.meta["target"] = target
        sources.append(request.meta["source"])
        status, headers, body = (403, {}, b"no") if sources[-1] == refused else answer(request)
        response = Response(request.url, status=status, headers=headers, body=body, request=request)
        assert request.callback is not None
        page = request.callback.__annotations__["page"](
            response=http_response(response), page_params=PageParams(request.meta["page_params"])
        )
        return response.replace(request=request.replace(cb_kwargs={"page": page}))

    def within(source: str, seconds: float) -> float:
        assert seconds == 10
        return starts.get(source, math.inf)

    async def run() -> dict[str, Any]:
        scraper = kind.scrapers[0]
        target = Target("1", scraper, check_params(scraper, params))
        lane = Mock(Lane, targets=targets, budget=Throttle(2), starts_within=within, egress=Mock(key=""))
        target.release.lane = lane
        spider.__dict__ |= {
            "fetch": fetch,
            "lanes": Mock(Lanes, of=lambda *_: lane, count=AsyncMock()),
            "tracker": SimpleNamespace(warn=lambda _, warning: warnings.append(warning)),
        }
        request = (await fetch(spider.request(target), target)).request
        assert request is not None
        data = await spider.scrape(target, First(spider, request, result=request.cb_kwargs["page"]))
        assert data is not None
        return data

    return asyncio.run(run()), sources, [str(each) for each in warnings]


NO_DURATION = "without embed for 1 of 1 data.xdt_shortcode_media.video_duration: BLOCKED_BY_POLICY (limit)"


@pytest.mark.parametrize(
    ("details", "starts", "is_requested", "warnings"),
    [
        ({}, NOW, True, []),
        ({"details": "auto"}, LATER, False, [NO_DURATION]),
        ({"details": "all"}, LATER, True, []),
        ({"details": "none"}, NOW, False, []),
        ({"details": "0"}, NOW, False, []),
        ({"details": 1}, LATER, True, []),
        ({"details": "12"}, LATER, True, []),
    ],
)
def test_details_of_a_post_are_the_duration_of_its_video(
    details: dict[str, Any], starts: Mapping[str, float], warnings: list[str], *, is_requested: bool
) -> None:
    site = Photoapp(light=True)
    video = next(site.posts[c] for c in site.listed if site.posts[c].timing == "embed" and site.posts[c].is_video)
    record, sources, found = scrape(PhotoappSpider, site, starts, url=f"{HOME}/p/{video.code}/", **details)
    assert sources == ["page", *["embed"] * is_requested]
    assert record["data"]["xdt_shortcode_media"]["video_duration"] == (video.duration if is_requested else None)
    assert found == warnings


def test_a_post_without_a_missing_duration_has_no_details_to_leave_out() -> None:
    site = Photoapp(light=True)
    code = next(c for c in site.listed if site.posts[c].timing == "manifest")
    assert scrape(PhotoappSpider, site, LATER, url=f"{HOME}/p/{code}/")[1:] == (["page"], [])


@pytest.mark.parametrize(
    ("setting", "param", "is_requested"),
    [
        (True, {}, True),
        (True, {"include_play_counts": False}, False),
        (False, {"include_play_counts": True}, True),
        (False, {}, False),
    ],
)
def test_play_counts_are_requested_by_their_own_param_whose_default_is_the_setting(
    param: dict[str, Any], *, setting: bool, is_requested: bool
) -> None:
    site = Photoapp(light=True)
    video = next(site.posts[c] for c in site.listed if site.posts[c].timing == "manifest" and site.posts[c].is_video)
    wanted: dict[str, Any] = {"url": f"{HOME}/p/{video.code}/", "details": "none", **param}
    _, sources, warnings = scrape(PhotoappSpider, site, LATER, setting={"PHOTOAPP_PLAY_COUNTS": setting}, **wanted)
    assert (sources, warnings) == (["page", *["reels"] * is_requested], [])


def test_the_embed_page_that_replaces_a_post_is_no_detail() -> None:
    site = Photoapp(light=True)
    (code,) = (code for code, fault in site.faults.items() if fault == "null-page")
    wanted: dict[str, Any] = {"url": f"{HOME}/p/{code}/", "details": "none"}
    assert scrape(PhotoappSpider, site, LATER, **wanted)[1:] == (
        ["page", "embed"],
        ["without page: EXTRACTION_FAILED (null_post)"],
    )


PAGE_AND_TIMELINE = ["page", "guest_token", "timeline"]
WITH_EMBED = ["page", "embed", "guest_token", "timeline"]
ABSENT = ["favourites_count", "listed_count", "media_count", "profile_banner_url"]
"""The fields of the newest response formats that only the embed and the user query have, and of these only the embed
has the second."""


def without(source: str, count: int) -> str:
    return f"without {source} for {count} of 18 data.additional.profile_demographics: BLOCKED_BY_POLICY (limit)"


@pytest.mark.parametrize(
    ("details", "starts", "sources", "absent", "warnings"),
    [
        ({}, NOW, WITH_EMBED, [], []),
        (
            {"details": "auto"},
            {"embed": 0},
            [*PAGE_AND_TIMELINE, "user"],
            ["listed_count"],
            [without("embed", 1)],
        ),
        ({"details": "auto"}, LATER, PAGE_AND_TIMELINE, ABSENT, [without("embed", 4), without("user", 3)]),
        ({"details": "all"}, LATER, WITH_EMBED, [], []),
        ({"details": "none"}, NOW, PAGE_AND_TIMELINE, ABSENT, []),
        ({"details": 0}, NOW, PAGE_AND_TIMELINE, ABSENT, []),
        ({"details": "1"}, LATER, WITH_EMBED, [], []),
    ],
)
def test_details_of_a_profile_are_the_fields_that_page_and_timeline_lack(
    details: dict[str, Any], starts: Mapping[str, float], sources: list[str], absent: list[str], warnings: list[str]
) -> None:
    record, requested, found = scrape(MicroblogSpider, Microblog(light=True), starts, username=NEWEST, **details)
    profile = record["data"]["additional"]["profile_demographics"]
    assert requested == sources
    assert [name for name in ABSENT if profile[name] in {None, ""}] == absent
    assert found == warnings
    assert record["data"]["main"]
    assert record["hasMore"]


def test_a_profile_without_missing_fields_has_no_details_to_leave_out() -> None:
    found = scrape(MicroblogSpider, Microblog(light=True), LATER, username="old_lantern")
    assert found[1:] == (PAGE_AND_TIMELINE, [])


@pytest.mark.parametrize(
    ("refused", "sources"), [("page", WITH_EMBED), ("timeline", [*PAGE_AND_TIMELINE, *PAGE_AND_TIMELINE[1:], "embed"])]
)
def test_sources_that_replace_others_are_no_details(refused: str, sources: list[str]) -> None:
    site = Microblog(light=True)
    record, requested, found = scrape(MicroblogSpider, site, LATER, refused, username=NEWEST, details="none")
    assert requested == sources
    assert [warning.partition(":")[0] for warning in found] == [f"without {refused}"]
    assert record["data"]["main"]


@pytest.mark.parametrize(("targets", "is_together"), [(1, True), (2, False)])
def test_the_timeline_is_requested_together_with_the_embed_if_the_lane_has_a_free_slot(
    monkeypatch: pytest.MonkeyPatch, targets: int, *, is_together: bool
) -> None:
    embed = MicroblogSpider._embed

    async def later(self: MicroblogSpider, target: Target) -> Any:
        for _ in range(9):
            await asyncio.sleep(0)  # what is awaited together begins now
        return await embed(self, target)

    monkeypatch.setattr(MicroblogSpider, "_embed", later)
    requested = scrape(MicroblogSpider, Microblog(light=True), NOW, targets=targets, username=NEWEST)[1]
    assert requested == ([*PAGE_AND_TIMELINE, "embed"] if is_together else WITH_EMBED)


def test_a_detail_that_was_requested_in_place_of_another_source_is_not_left_out() -> None:
    found = scrape(MicroblogSpider, Microblog(light=True), LATER, "timeline", username="empty_shelf")[2]
    assert found == ["without timeline: UPSTREAM_BLOCKED (token_refused)", without("user", 3)]


@pytest.mark.parametrize(
    ("details", "starts", "is_requested", "warnings"),
    [
        ("auto", NOW, True, []),
        ("auto", LATER, False, [without("user", 8)]),
        ("all", LATER, True, []),
        ("none", NOW, False, []),
    ],
)
def test_details_of_further_pages_are_the_fields_that_the_timeline_lacks(
    details: str, starts: Mapping[str, float], warnings: list[str], *, is_requested: bool
) -> None:
    site = Microblog(light=True)
    cursor = scrape(MicroblogSpider, site, NOW, username=NEWEST)[0]["nextCursor"]
    wanted = {"username": NEWEST, "cursor": cursor, "details": details}
    record, requested, found = scrape(MicroblogSpider, site, starts, **wanted)
    assert ("user" in requested) == is_requested
    assert found == warnings
    assert record["data"]["main"]


def test_the_page_that_names_the_author_of_an_empty_further_page_adds_no_posts() -> None:
    site = Microblog(light=True)
    cursor = cursor_of(NEWEST, cursor=cursor_to(90))
    record, requested, _ = scrape(MicroblogSpider, site, NOW, "user", username=NEWEST, cursor=cursor)
    assert (requested[-1], record["data"]["main"]) == ("page", [])


@pytest.mark.parametrize("details", ["some", "", "-1", -1, 1.5, True, [], "1e3", "9999999999"])
@pytest.mark.parametrize("kind", [MicroblogSpider, PhotoappSpider, VideositeSpider])
def test_other_details_are_refused(kind: type[PlatformSpider], details: Any) -> None:
    scraper = kind.scrapers[0]
    with pytest.raises(InvalidRequest, match="details"):
        check_params(scraper, {**scraper.example, "details": details})
