"""Channel records built by the spider from a simulated site in the test process equal the expected records."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cache
from typing import Any
from unittest.mock import Mock

import orjson
import pytest
from scrapy import Request
from scrapy.http import Response
from twisted.python.failure import Failure

from crawler.downloads.lane import Lane
from crawler.downloads.throttle import Throttle
from crawler.errors import (
    BlockedByPolicy,
    CircuitOpen,
    ExtractionFailed,
    InvalidRequest,
    Overloaded,
    ScrapeError,
    ShuttingDown,
    UpstreamBlocked,
    UpstreamError,
    UpstreamTimeout,
)
from crawler.platforms.requests import MAX_REPEATS
from crawler.platforms.videosite.record import ABOUT_FIELDS
from crawler.registry import scrapers
from crawler.sandbox.faults import COMMON
from crawler.sandbox.protocol import FakeRequest, FakeResponse
from crawler.sandbox.videosite.site import FAULTS, Site
from crawler.spiders.base import First, PlatformSpider
from crawler.spiders.videosite import ChannelReader, RecentChannels
from crawler.targets.parser import check_params
from crawler.targets.target import Release, Target
from tests.videosite import ORIGIN, PAGE_ALONE, SCRAPER, Stub, comparable, fake_request, first_of, scrape

PAGE_SCRAPER = scrapers()["videosite-profile"]
KINDS = ("video", "short", "live", "all")
CONNECTION_FAULTS = {"slow", "slow-once", "hang", "truncated", "reset", "flaky", "foreign-redirect"}


@cache
def site(seed: int = 1) -> Site:
    return Site(seed, light=True)


def names(of: Site) -> list[str]:
    return [channel.handle or channel.id for channel in of.channels if not channel.fault]


def pages(of: Site, **params: Any) -> list[dict[str, Any]]:
    """Return all pages of a target. Each is requested with the cursor of the previous one."""
    found: list[dict[str, Any]] = []
    page_params = params
    while True:
        found.append(scrape(Stub(of), **page_params))
        cursor = found[-1]["pagination"]["cursor"]
        if not cursor:
            return found
        page_params = {**params, "cursor": cursor}


@pytest.mark.parametrize("seed", [*range(1, 6), *(pytest.param(n, marks=pytest.mark.soak) for n in range(6, 221))])
@pytest.mark.parametrize("scraper", [{}, PAGE_ALONE], ids=["all sources", "the page alone"])
def test_records_equal_the_expected_ones(scraper: dict[str, str], seed: int) -> None:
    of = Site(seed, light=True)
    for number, name in enumerate(names(of)):
        about = {} if scraper else {"include_about": (number + seed) % 3 == 0}
        params = {**scraper, "username": name, "type": KINDS[(number + seed) % 4], **about}
        stub = Stub(of)
        found = scrape(stub, **params)
        assert comparable(found) == of.expected_record(params), params
        if cursor := found["pagination"]["cursor"]:
            second = scrape(stub, **params, cursor=cursor)
            assert comparable(second) == of.expected_record({**params, "page": 2}), params
        assert stub.unread + stub.limits == [], params
        assert not scraper or not {key for key in ABOUT_FIELDS if found["profile"][key]}, params


def test_the_page_alone_takes_one_request() -> None:
    stub = Stub(site())
    found = scrape(stub, **PAGE_ALONE, username="harborlights")
    assert stub.kinds() == ["page"]
    assert not any(post["like_count"] for post in found["posts"])


@pytest.mark.parametrize("name", ["no-playlist", "no-page", "moved", "no-about"])
def test_the_page_alone_has_the_same_fallbacks(name: str) -> None:
    params = {**PAGE_ALONE, "username": name}
    assert comparable(scrape(Stub(site()), **params)) == site().expected_record(params)


@pytest.mark.parametrize("redirects", [1, 3])
def test_a_channel_may_redirect_up_to_three_times(redirects: int) -> None:
    def change(request: FakeRequest, answer: FakeResponse) -> FakeResponse:
        return site().damaged("moved", request) if len(stub.requests) <= redirects else answer

    stub = Stub(site(), change)
    found = scrape(stub, **PAGE_ALONE, username="harborlights")
    assert found["profile"]["profile_id"] == site().named("saltmill").id
    assert stub.kinds() == ["page"] * (redirects + 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", names(Site(light=True)))
def test_every_page_of_every_channel(name: str, kind: str) -> None:
    found = pages(site(), username=name, type=kind)
    ids = [post["content_id"] for record in found for post in record["posts"]]
    assert len(ids) == len(set(ids)), "each item once"
    channel = site().named(name)
    tabs = {"video": "videos", "short": "shorts", "live": "streams"}
    listed = (
        channel.items
        if kind == "all" and channel.kind == "normal"
        else {"": channel.items.get(tabs.get(kind, "videos"), [])}
    )
    if kind != "all" or channel.kind == "normal":
        assert ids == [item.id for items in listed.values() for item in items], "in the platform's order"
    for number, record in enumerate(found, 1):
        assert comparable(record) == site().expected_record({"username": name, "type": kind, "page": number})


@pytest.mark.parametrize("name", ["harborlights", "@HarborLights", "HARBORLIGHTSTV", "oldtimer", "АсельИсакова-т4ц"])
def test_all_names_of_a_channel_are_valid(name: str) -> None:
    assert comparable(scrape(Stub(site()), username=name)) == site().expected_record({"username": name})


@pytest.mark.parametrize("address", ["/@", "/c/", "/user/"])
def test_a_name_is_looked_up_at_each_address_that_a_channel_may_have(address: str) -> None:
    def change(request: FakeRequest, _: FakeResponse) -> FakeResponse:
        is_there = request.path.startswith(f"{address}harborlights")
        return site().page(FakeRequest("/@harborlights/videos" if is_there else "/@nobody.at.all/videos"))

    found = scrape(Stub(site(), change), **PAGE_ALONE, username="harborlights")
    assert found["profile"]["profile_id"] == site().named("harborlights").id


@pytest.mark.parametrize("name", ["@nobody.at.all", "nobody", "UC0000000000000000000000"])
def test_unknown_names_are_not_found(name: str) -> None:
    with pytest.raises(ScrapeError) as raised:
        scrape(Stub(site()), username=name)
    assert (raised.value.code, raised.value.reason) == ("TARGET_NOT_FOUND", "not_found")


# Fallbacks


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - CONNECTION_FAULTS))
@pytest.mark.parametrize("address", ["handle", "id"])
def test_faults_have_their_codes(name: str, address: str) -> None:
    of = site()
    params = {"username": f"@{name}" if address == "handle" else of.named(name).id, "include_about": True}
    if FAULTS[name].code == "OK":
        assert comparable(scrape(Stub(of), **params)) == of.expected_record(params)
        return
    with pytest.raises(ScrapeError) as raised:
        scrape(Stub(of), **params)
    assert raised.value.code == FAULTS[name].code
    assert raised.value.reason or name in COMMON


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("no-page", ["page", "resolve", "browse", "about", "feed", "player"]),
        ("no-page-here", ["page", "resolve", "browse", "about", "feed", "player"]),
        ("no-page-data", ["page", "page", "resolve", "browse", "about", "feed", "player"]),
        ("no-feed", ["page", "about", "feed", "player"]),
        ("no-player", ["page", "about", "feed", "player"]),
        ("no-about-call", ["page", "about", "about-page", "feed", "player"]),
        ("no-about", ["page", "about", "about-page", "feed", "feed", "player"]),
        ("no-playlist", ["page", "playlist", "feed", "about-page", "feed", "feed"]),
        ("loop", ["page", "about", "feed", "player"]),
    ],
)
def test_each_source_has_a_fallback(name: str, kinds: list[str]) -> None:
    stub = Stub(site())
    scrape(stub, username=f"@{name}", include_about=True)
    found = stub.kinds()
    assert [kind for index, kind in enumerate(found) if kind != "player" or found[index - 1] != "player"] == kinds


@pytest.mark.parametrize("kinds", [["page", "resolve"], ["page", "resolve", "browse"]], ids=" ".join)
def test_a_call_whose_response_cannot_be_read_is_not_repeated(kinds: list[str]) -> None:
    stub = Stub(site(), lambda request, answer: (200, {}, b"{}") if site().kind(request) == kinds[-1] else answer)
    with pytest.raises(ScrapeError):
        scrape(stub, username="@no-page")
    assert stub.kinds() == kinds


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("stale-token", InvalidRequest, "stale_cursor"),
        ("lost-page", ScrapeError, "lost"),
        ("page-error", ScrapeError, "server_error"),
    ],
)
def test_failing_continuation_pages_raise(name: str, kind: type[ScrapeError], reason: str) -> None:
    first = scrape(Stub(site()), username=name)
    with pytest.raises(kind) as raised:
        scrape(Stub(site()), username=name, cursor=first["pagination"]["cursor"])
    assert raised.value.reason == reason


@pytest.mark.parametrize(
    ("error", "has_fallback"),
    [
        (UpstreamError("The download failed.", reason="connection"), True),
        (UpstreamBlocked("Another host.", reason="foreign_redirect"), True),
        (UpstreamTimeout("Too late.", reason="timeout"), False),
        (CircuitOpen("The circuit is open."), True),
        (BlockedByPolicy("No."), False),
    ],
)
def test_fallback_of_a_page_that_could_not_be_downloaded(error: ScrapeError, *, has_fallback: bool) -> None:
    of = site()
    params = {"username": "@harborlights"}
    target = Target(id="1", scraper=SCRAPER, params=check_params(SCRAPER, params))
    stub = Stub(of)
    record = ChannelReader(stub, target, stub.recent).record(First(stub, stub.request(target), error=error))
    if has_fallback:
        assert comparable(asyncio.run(record)) == of.expected_record(params)
        return
    with pytest.raises(type(error)):
        asyncio.run(record)


@pytest.mark.parametrize("error", [ZeroDivisionError(), ShuttingDown("The crawl ended.")])
def test_a_bug_and_the_end_of_the_crawl_have_no_fallback(error: Exception) -> None:
    spider, failure = Mock(), Failure(error)
    failure.request = Request(ORIGIN, meta={"target": "1"})  # type: ignore[attr-defined]  # set by Scrapy's scraper
    assert PlatformSpider._errback(spider, failure) is None
    assert spider.tracker.complete.call_args.args == ("1",)


def test_an_alert_without_a_known_meaning_needs_no_further_request() -> None:
    stub = Stub(site())
    with pytest.raises(ExtractionFailed) as raised:
        scrape(stub, username="@no-longer")
    assert (raised.value.reason, stub.kinds()) == ("unknown_alert", ["page"])


@pytest.mark.parametrize("name", ["no-feed", "no-player", "no-about", "no-playlist"])
def test_the_pages_of_a_list_end_without_an_optional_source(name: str) -> None:
    ids = [post["content_id"] for record in pages(site(), username=name) for post in record["posts"]]
    assert len(ids) == len(set(ids)) > 0, "each item once"


def test_repeated_token_ends_the_list() -> None:
    found = pages(site(), username="@loop")
    assert [record["pagination"]["has_more"] for record in found] == [True, False]


def test_new_tokens_for_the_same_items_end_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("crawler.spiders.videosite", "crawler.platforms.videosite.record"):
        monkeypatch.setattr(f"{module}.is_used", lambda *_: False)  # as if each token were new
    found = pages(site(), username="@loop")
    shown = Counter(tuple(post["content_id"] for post in record["posts"]) for record in found)
    assert (max(shown.values()), found[-1]["pagination"]["has_more"]) == (MAX_REPEATS + 1, False)


@pytest.mark.parametrize(("name", "posts", "has_end"), [("blank-page", 0, False), ("blank-page-once", 30, True)])
@pytest.mark.parametrize("is_read", [True, False], ids=["channel known", "channel requested"])
def test_an_empty_page_after_a_token_is_requested_again(name: str, posts: int, *, has_end: bool, is_read: bool) -> None:
    first = scrape(Stub(site()), **PAGE_ALONE, username=name)
    stub = Stub(site())
    if is_read:
        scrape(stub, **PAGE_ALONE, username=name)
        stub.requests.clear()
    params = check_params(PAGE_SCRAPER, {"username": name, "cursor": first["pagination"]["cursor"]})
    target = Target(id="1", scraper=PAGE_SCRAPER, params=params)
    reader = ChannelReader(stub, target, stub.recent)

    async def read() -> dict[str, Any]:
        return await reader.record(await first_of(stub, target))

    assert (len(asyncio.run(read())["posts"]), reader.has_end) == (posts, has_end)
    assert stub.kinds() == [*["page"] * (not is_read), "continuation", "continuation"]


def test_the_channels_that_were_read_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.spiders.videosite.MAX_CHANNELS", 2)
    recent = RecentChannels()
    for channel in ("a", "b", "a", "c"):
        recent.add(channel, {"channel": channel}, about=False)
    assert [each for each in "abc" if recent.get(each, about=False)] == ["a", "c"]


# Item details and their limits


def dated(record: dict[str, Any]) -> int:
    return sum(post["published_date"] is not None for post in record["posts"])


def players(stub: Stub) -> int:
    return stub.kinds().count("player")


@pytest.mark.parametrize("number", [1, 2])
def test_every_item_of_every_page_has_its_date(number: int) -> None:
    stub, page = Stub(site()), {"username": "harborlights"}
    for _ in range(number - 1):
        page["cursor"] = scrape(Stub(site()), **page)["pagination"]["cursor"]
    found = scrape(stub, **page)
    assert (len(found["posts"]), dated(found), stub.warnings) == (30, 30, [])
    # One request for the tab's feed gives the newest 15 items of all kinds.
    assert players(stub) == (15 if number == 1 else 30)


@pytest.mark.parametrize(
    ("details", "bound", "asked", "left_out"),
    [
        ("all", 100, 15, []),
        ("all", 20, 5, [("BLOCKED_BY_POLICY", 10, 30)]),
        ("all", 0, 0, [("BLOCKED_BY_POLICY", 30, 30)]),
        ("18", 100, 3, [("BLOCKED_BY_POLICY", 12, 30)]),
        (18, 20, 3, [("BLOCKED_BY_POLICY", 12, 30)]),
        (1_000, 100, 15, []),
        (10, 100, 0, [("BLOCKED_BY_POLICY", 15, 30)]),
        ("none", 100, 0, []),
        ("none", 0, 0, []),
    ],
)
def test_what_a_number_leaves_out_is_said(
    details: str | int, bound: int, asked: int, left_out: list[tuple[str, int, int]]
) -> None:
    stub = Stub(site(), VIDEOSITE_ENRICH_MAX=bound)
    found = scrape(stub, username="harborlights", details=details)
    is_fed = details != "none" and bound > 0
    assert stub.kinds() == ["page", *["feed"] * is_fed, *["player"] * asked]
    assert dated(found) == asked + 15 * is_fed
    assert stub.limits == left_out
    assert len(stub.warnings) == len(left_out)


@pytest.mark.parametrize(
    ("burst", "asked", "left_out"),
    [
        pytest.param(64, 15, [], id="all after a rest"),
        pytest.param(2, 4, [("BLOCKED_BY_POLICY", 11, 30)], id="those that start within 10 s"),
    ],
)
def test_auto_requests_the_details_that_the_budget_allows(
    monkeypatch: pytest.MonkeyPatch, burst: int, asked: int, left_out: list[tuple[str, int, int]]
) -> None:
    throttle = Throttle(2, 4.0, burst=burst)
    lane = Mock(Lane, starts_within=lambda _, seconds: throttle.starts_within(seconds), platform=None)
    made = Release.__init__

    def with_lane(release: Release, *values: Any, **named: Any) -> None:
        made(release, *values, **named)
        release.lane = lane

    monkeypatch.setattr(Release, "__init__", with_lane)
    stub = Stub(site())
    found = scrape(stub, username="harborlights")
    assert stub.kinds().count("player") == asked
    assert dated(found) == asked + 15
    assert stub.limits == left_out


def without(*names: str) -> Any:
    """Return a function that renames the like counts in responses of the given kinds."""

    def change(request: FakeRequest, response: FakeResponse) -> FakeResponse:
        status, headers, body = response
        if site().kind(request) not in names:
            return response
        return status, headers, body.replace(b"likeCount", b"likes").replace(b"starRating", b"rating")

    return change


@pytest.mark.parametrize(("renamed", "reports"), [((), False), (("player",), True), (("player", "feed"), False)])
def test_likes_that_only_the_feed_has_are_reported(renamed: tuple[str, ...], *, reports: bool) -> None:
    stub = Stub(site(), without(*renamed))
    found = scrape(stub, username="harborlights")
    likes = sum(each["like_count"] is not None for each in found["posts"])
    path = "microformat.playerMicroformatRenderer.likeCount: contradiction in 15 of 15"
    assert any(path in each for each in stub.unread) is reports
    assert likes > 15 or bool(renamed)


def test_details_as_text() -> None:
    for given, stored in (("all", "all"), ("none", "none"), ("7", 7)):
        assert check_params(SCRAPER, {"username": "a", "details": given}, text=True).details == stored  # type: ignore[attr-defined]


class Slow(Stub):
    """A site whose player endpoint takes ``seconds`` for each video."""

    seconds = 60.0
    most = 0
    in_flight = 0

    async def fetch(self, request: Request, target: Target) -> Response:
        if "player" not in request.url:
            return await super().fetch(request, target)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(self.seconds)
        self.in_flight -= 1
        return await super().fetch(request, target)


@pytest.mark.parametrize(("wait", "seconds"), [(2.4, 60.0), (2.4, 0.1), (1.9, 0.1)])
def test_what_the_deadline_leaves_out_is_said(wait: float, seconds: float) -> None:
    async def run() -> tuple[dict[str, Any], float, Slow]:
        loop = asyncio.get_running_loop()
        params = check_params(SCRAPER, {"username": "harborlights"})
        deadline = loop.time() + wait
        target = Target(id="1", scraper=SCRAPER, params=params, deadline=deadline)
        stub = Slow(site())
        stub.seconds = seconds
        record = await ChannelReader(stub, target, stub.recent).record(await first_of(stub, target))
        left = deadline - loop.time()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        return record, left, stub

    record, left, stub = asyncio.run(run())
    assert left > 0
    missing = 30 - dated(record)
    assert missing > 0
    assert stub.limits == [("UPSTREAM_TIMEOUT", missing, 30)]


class Crowded(Stub):
    """A site that has download slots for only 10 player requests before the deadline."""

    slots = 10

    async def fetch(self, request: Request, target: Target) -> Response:
        if "player" in request.url:
            self.slots -= 1
            if self.slots < 0:
                raise Overloaded("No download slot is free before the deadline.", reason="overloaded")
        return await super().fetch(request, target)


def test_what_lacks_a_download_slot_is_left_out_by_the_deadline() -> None:
    stub = Crowded(site())
    record = scrape(stub, username="harborlights")
    missing = 30 - dated(record)
    assert missing > 0
    assert stub.limits == [("UPSTREAM_TIMEOUT", missing, 30)]
    assert [(each.reason, each.unread and each.unread.path) for each in stub.warnings] == [("limit", "posts[]")]


@pytest.mark.parametrize("concurrency", [1, 2, 5])
def test_as_many_details_are_in_flight_as_the_budget_allows(concurrency: int) -> None:
    stub = Slow(site(), PLATFORM_BUDGETS={"videosite": {"concurrency": concurrency}})
    stub.seconds = 0.001
    assert dated(scrape(stub, username="harborlights")) == 30
    assert stub.most == concurrency


def test_after_a_bug_no_further_details_are_requested() -> None:
    def change(request: FakeRequest, answer: FakeResponse) -> FakeResponse:
        if site().kind(request) == "player" and players(stub) == 1:
            raise ZeroDivisionError
        return answer

    async def run() -> None:
        target = Target(id="1", scraper=SCRAPER, params=check_params(SCRAPER, {"username": "harborlights"}))
        reader = ChannelReader(stub, target, stub.recent)
        with pytest.raises(ZeroDivisionError):
            await reader.record(await first_of(stub, target))
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    stub = Slow(site(), change)
    stub.seconds = 0.001
    asyncio.run(run())
    assert players(stub) <= 3, "those that were in flight"


class Together(Stub):
    """A site that sends the about panel only after the feed was requested."""

    asked: asyncio.Event

    async def fetch(self, request: Request, target: Target) -> Response:
        kind = self.site.kind(fake_request(request))
        if kind == "feed":
            self.asked.set()
        elif kind == "about":
            await asyncio.wait_for(self.asked.wait(), 300)
        return await super().fetch(request, target)


def test_the_about_panel_is_requested_beside_the_details() -> None:
    stub, params = Together(site()), {"username": "harborlights", "include_about": True}
    stub.asked = asyncio.Event()
    assert comparable(scrape(stub, **params)) == comparable(scrape(Stub(site()), **params))
    assert sorted(stub.kinds()) == ["about", "feed", "page", *["player"] * 15]


def test_videos_that_are_not_public_are_not_left_out() -> None:
    def private(request: FakeRequest, answer: FakeResponse) -> FakeResponse:
        status = {"playabilityStatus": {"status": "LOGIN_REQUIRED", "reason": "This video is private"}}
        return (200, {}, orjson.dumps(status)) if site().kind(request) == "player" else answer

    stub = Stub(site(), private)
    assert dated(scrape(stub, username="harborlights")) == 15
    assert stub.warnings == []


def test_client_version_is_that_of_the_page_and_another_one_is_reported_as_stale() -> None:
    stub = Stub(site())
    scrape(stub, username="harborlights")
    bodies = [request.body for request in stub.requests if site().kind(request) == "player"]
    assert bodies
    assert all(b"2.20260801.03.00" in body for body in bodies)
    [(stale, reason)] = stub.stale_ids.items()
    assert stale.startswith("client_version 2.")
    assert reason == "the page has 2.20260801.03.00"
