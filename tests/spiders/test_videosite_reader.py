"""Records of channels by the spider's own code and a simulated site in this process: equal to the expected ones."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from crawler.errors import (
    BlockedByPolicy,
    CircuitOpen,
    InvalidRequest,
    ScrapeError,
    UpstreamBlocked,
    UpstreamError,
    UpstreamTimeout,
)
from crawler.platforms.videosite.channel import ChannelReader
from crawler.platforms.videosite.record import ABOUT_FIELDS
from crawler.sandbox.faults import COMMON
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.videosite.site import FAULTS, Site
from crawler.spiders.base import First
from crawler.targets.target import Target, check_params
from tests.videosite import PAGE_ALONE, SCRAPER, Stub, comparable, first_of, scrape

KINDS = ("video", "short", "live", "all")
CONNECTION_FAULTS = {"slow", "slow-once", "hang", "truncated", "reset", "flaky", "foreign-redirect"}


@cache
def site(seed: int = 1) -> Site:
    return Site(seed, light=True)


def names(of: Site) -> list[str]:
    return [channel.handle or channel.id for channel in of.channels if not channel.fault]


def pages(of: Site, **params: Any) -> list[dict[str, Any]]:
    """All pages of a target, each requested with the cursor of the previous one."""
    found: list[dict[str, Any]] = []
    page_params = params
    while True:
        found.append(scrape(Stub(of), **page_params))
        cursor = found[-1]["pagination"]["cursor"]
        if not cursor:
            return found
        page_params = {**params, "cursor": cursor}


@pytest.mark.parametrize("seed", [*range(1, 21), *(pytest.param(n, marks=pytest.mark.soak) for n in range(21, 221))])
def test_records_equal_the_expected_ones(seed: int) -> None:
    of = Site(seed, light=True)
    for number, name in enumerate(names(of)):
        params = {"username": name, "type": KINDS[(number + seed) % 4], "include_about": (number + seed) % 3 == 0}
        found = scrape(Stub(of), **params)
        assert comparable(found) == of.expected_record(params), params
        if cursor := found["pagination"]["cursor"]:
            second = scrape(Stub(of), **params, cursor=cursor)
            assert comparable(second) == of.expected_record({**params, "page": 2}), params


@pytest.mark.parametrize("seed", [*range(1, 5), *(pytest.param(n, marks=pytest.mark.soak) for n in range(21, 221))])
def test_co_3_records_of_the_page_alone_equal_the_expected_ones(seed: int) -> None:
    of = Site(seed, light=True)
    for number, name in enumerate(names(of)):
        params = {**PAGE_ALONE, "username": name, "type": KINDS[(number + seed) % 4]}
        found = scrape(Stub(of), **params)
        assert comparable(found) == of.expected_record(params), params
        assert not {key for key in ABOUT_FIELDS if found["profile"][key]}, params
        if cursor := found["pagination"]["cursor"]:
            second = scrape(Stub(of), **params, cursor=cursor)
            assert comparable(second) == of.expected_record({**params, "page": 2}), params


def test_co_3_the_page_alone_takes_one_request() -> None:
    stub = Stub(site())
    found = scrape(stub, **PAGE_ALONE, username="harborlights")
    assert stub.kinds() == ["page"]
    assert not any(post["like_count"] for post in found["posts"])


@pytest.mark.parametrize("name", ["no-playlist", "no-page", "moved", "no-about"])
def test_co_3_the_page_alone_has_the_same_fallbacks(name: str) -> None:
    params = {**PAGE_ALONE, "username": name}
    assert comparable(scrape(Stub(site()), **params)) == site().expected_record(params)


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


def test_ten_pages_of_realistic_size() -> None:
    of = Site()
    found = pages(of, username="@harborlights", include_about=True)
    assert [len(record["posts"]) for record in found] == [30] * 9 + [27]
    assert len({post["content_id"] for record in found for post in record["posts"]}) == 297
    for number, record in enumerate(found, 1):
        assert comparable(record) == of.expected_record(
            {"username": "harborlights", "include_about": True, "page": number}
        )


@pytest.mark.parametrize("name", ["harborlights", "@HarborLights", "HARBORLIGHTSTV", "oldtimer", "АсельИсакова-т4ц"])
def test_all_names_of_a_channel_are_valid(name: str) -> None:
    assert comparable(scrape(Stub(site()), username=name)) == site().expected_record({"username": name})


def test_channel_ids_are_valid_names() -> None:
    of = site()
    channel = of.named("north.pier")
    assert comparable(scrape(Stub(of), username=channel.id)) == of.expected_record({"username": "north.pier"})


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


def test_repeated_token_ends_the_list() -> None:
    found = pages(site(), username="@loop")
    assert [record["pagination"]["has_more"] for record in found] == [True, False]


# Limits of the enrichment


@pytest.mark.parametrize(("max_requests", "kinds"), [(0, []), (1, ["feed"]), (3, ["feed", "player", "player"])])
def test_enrichment_requests_are_limited(max_requests: int, kinds: list[str]) -> None:
    stub = Stub(site(), VIDEOSITE_ENRICH_MAX=max_requests)
    found = scrape(stub, username="harborlights")
    assert stub.kinds() == ["page", *kinds]
    dated = [post["published_date"] is not None for post in found["posts"]]
    assert sum(dated) >= (14 if max_requests else 0)
    if not max_requests:
        assert not any(post["like_count"] for post in found["posts"])


def test_enrichment_takes_at_most_half_of_the_time_left() -> None:
    class Slow(Stub):
        async def fetch(self, request: Request, target: Target) -> Response:
            if "player" in request.url:
                await asyncio.sleep(60)
            return await super().fetch(request, target)

    async def run() -> tuple[dict[str, Any], float]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        params = check_params(SCRAPER, {"username": "harborlights"})
        target = Target(id="1", scraper=SCRAPER, params=params, deadline=start + 1)
        stub = Slow(site())
        record = await ChannelReader(stub, target, stub.recent).record(await first_of(stub, target))
        left = target.deadline - loop.time() if target.deadline else 0
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        return record, left

    record, left = asyncio.run(run())
    assert left > 0.3
    assert sum(post["published_date"] is not None for post in record["posts"]) >= 14


def test_client_version_is_that_of_the_page() -> None:
    stub = Stub(site())
    scrape(stub, username="harborlights")
    bodies = [request.body for request in stub.requests if site().kind(request) == "player"]
    assert bodies
    assert all(b"2.20260801.03.00" in body for body in bodies)


def test_malformed_player_request_is_not_found() -> None:
    assert site().kind(FakeRequest("/youtubei/v1/player", {}, "POST", {}, b"{broken")) == "player"
    assert site().page(FakeRequest("/youtubei/v1/player", {}, "POST", {}, b"{broken"))[0] == 404
