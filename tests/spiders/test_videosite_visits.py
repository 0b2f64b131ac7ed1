"""The way to a channel's record, through the spider's own steps and a world in this process: equal to the truth."""

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
from crawler.sandbox.faults import COMMON
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.videosite.site import FAULTS, Site
from crawler.spiders.base import First
from crawler.targets.target import Target, check_params
from tests.videosite import SCRAPER, Stub, comparable, first_of, visit

KINDS = ("video", "short", "live", "all")
OF_THE_CONNECTION = {"slow", "slow-once", "hang", "truncated", "reset", "flaky", "foreign-redirect"}


@cache
def site(seed: int = 1) -> Site:
    return Site(seed, light=True)


def names(of: Site) -> list[str]:
    return [channel.handle or channel.id for channel in of.channels if not channel.fault]


def pages(of: Site, **params: Any) -> list[dict[str, Any]]:
    """All pages of a target, each asked for with the cursor of the one before."""
    found: list[dict[str, Any]] = []
    asked = params
    while True:
        found.append(visit(Stub(of), **asked))
        cursor = found[-1]["pagination"]["cursor"]
        if not cursor:
            return found
        asked = {**params, "cursor": cursor}


@pytest.mark.parametrize("seed", [*range(1, 21), *(pytest.param(n, marks=pytest.mark.soak) for n in range(21, 221))])
def test_records_equal_the_truth(seed: int) -> None:
    of = Site(seed, light=True)
    for number, name in enumerate(names(of)):
        params = {"username": name, "type": KINDS[(number + seed) % 4], "include_about": (number + seed) % 3 == 0}
        found = visit(Stub(of), **params)
        assert comparable(found) == of.expected_record(params), params
        if cursor := found["pagination"]["cursor"]:
            second = visit(Stub(of), **params, cursor=cursor)
            assert comparable(second) == of.expected_record({**params, "page": 2}), params


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


def test_ten_pages_with_everything_that_a_real_page_has() -> None:
    of = Site()
    found = pages(of, username="@harborlights", include_about=True)
    assert [len(record["posts"]) for record in found] == [30] * 9 + [27]
    assert len({post["content_id"] for record in found for post in record["posts"]}) == 297
    for number, record in enumerate(found, 1):
        assert comparable(record) == of.expected_record(
            {"username": "harborlights", "include_about": True, "page": number}
        )


@pytest.mark.parametrize("name", ["harborlights", "@HarborLights", "HARBORLIGHTSTV", "oldtimer", "АсельИсакова-т4ц"])
def test_a_channel_has_many_names(name: str) -> None:
    assert comparable(visit(Stub(site()), username=name)) == site().expected_record({"username": name})


def test_an_id_is_a_name_too() -> None:
    of = site()
    channel = of.named("north.pier")
    assert comparable(visit(Stub(of), username=channel.id)) == of.expected_record({"username": "north.pier"})


@pytest.mark.parametrize("name", ["@nobody.at.all", "nobody", "UC0000000000000000000000"])
def test_nobody(name: str) -> None:
    with pytest.raises(ScrapeError) as refused:
        visit(Stub(site()), username=name)
    assert (refused.value.code, refused.value.reason) == ("TARGET_NOT_FOUND", "not_found")


# Sources that fall back on one another


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - OF_THE_CONNECTION))
@pytest.mark.parametrize("named", ["handle", "id"])
def test_faults(name: str, named: str) -> None:
    of = site()
    asked = {"username": f"@{name}" if named == "handle" else of.named(name).id, "include_about": True}
    if FAULTS[name].code == "OK":
        assert comparable(visit(Stub(of), **asked)) == of.expected_record(asked)
        return
    with pytest.raises(ScrapeError) as refused:
        visit(Stub(of), **asked)
    assert refused.value.code == FAULTS[name].code
    assert refused.value.reason or name in COMMON


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
def test_each_source_has_another_to_fall_back_on(name: str, kinds: list[str]) -> None:
    stub = Stub(site())
    visit(stub, username=f"@{name}", include_about=True)
    asked = stub.kinds()
    assert [kind for place, kind in enumerate(asked) if kind != "player" or asked[place - 1] != "player"] == kinds


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("stale-token", InvalidRequest, "stale_cursor"),
        ("lost-page", ScrapeError, "lost"),
        ("page-error", ScrapeError, "server_error"),
    ],
)
def test_further_pages_that_fail(name: str, kind: type[ScrapeError], reason: str) -> None:
    first = visit(Stub(site()), username=name)
    with pytest.raises(kind) as refused:
        visit(Stub(site()), username=name, cursor=first["pagination"]["cursor"])
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [
        (UpstreamError("The download failed.", reason="connection"), True),
        (UpstreamBlocked("Another host.", reason="foreign_redirect"), True),
        (UpstreamTimeout("Too late.", reason="timeout"), False),
        (CircuitOpen("Left alone."), False),
        (BlockedByPolicy("No."), False),
    ],
)
def test_a_page_that_could_not_be_downloaded(error: ScrapeError, *, goes_on: bool) -> None:
    of = site()
    asked = {"username": "@harborlights"}
    target = Target(id="1", scraper=SCRAPER, params=check_params(SCRAPER, asked))
    stub = Stub(of)
    made = ChannelReader(stub, target).record(First(stub, stub.request(target), error=error))
    if goes_on:
        assert comparable(asyncio.run(made)) == of.expected_record(asked)
        return
    with pytest.raises(type(error)):
        asyncio.run(made)


def test_a_list_in_circles_ends() -> None:
    found = pages(site(), username="@loop")
    assert [record["pagination"]["has_more"] for record in found] == [True, False]


# The budget


@pytest.mark.parametrize(("most", "asked"), [(0, []), (1, ["feed"]), (3, ["feed", "player", "player"])])
def test_so_many_further_requests_and_no_more(most: int, asked: list[str]) -> None:
    stub = Stub(site(), VIDEOSITE_ENRICH_MAX=most)
    found = visit(stub, username="harborlights")
    assert stub.kinds() == ["page", *asked]
    known = [post["published_date"] is not None for post in found["posts"]]
    assert sum(known) >= (14 if most else 0)
    if not most:
        assert not any(post["like_count"] for post in found["posts"])


def test_further_requests_take_half_of_the_time_left_at_most() -> None:
    class Slow(Stub):
        async def fetch(self, request: Request, target: Target) -> Response:
            if "player" in request.url:
                await asyncio.sleep(60)
            return await super().fetch(request, target)

    async def made() -> tuple[dict[str, Any], float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        params = check_params(SCRAPER, {"username": "harborlights"})
        target = Target(id="1", scraper=SCRAPER, params=params, deadline=began + 1)
        stub = Slow(site())
        record = await ChannelReader(stub, target).record(await first_of(stub, target))
        left = target.deadline - loop.time() if target.deadline else 0
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        return record, left

    record, left = asyncio.run(made())
    assert left > 0.3
    assert sum(post["published_date"] is not None for post in record["posts"]) >= 14


def test_the_web_client_s_version_is_the_page_s() -> None:
    stub = Stub(site())
    visit(stub, username="harborlights")
    bodies = [ask.body for ask in stub.asked if site().kind(ask) == "player"]
    assert bodies
    assert all(b"2.20260801.03.00" in body for body in bodies)


def test_requests_are_answered_by_what_they_ask_for() -> None:
    assert site().kind(FakeRequest("/youtubei/v1/player", {}, "POST", {}, b"{broken")) == "player"
    assert site().page(FakeRequest("/youtubei/v1/player", {}, "POST", {}, b"{broken"))[0] == 404
