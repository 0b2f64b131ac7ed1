"""The simulated microblog's answers as page objects: what a spider would see, without a network."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from web_poet import HttpResponse, PageParams

from crawler.pipelines import validated
from crawler.platforms.microblog.api import TimelinePage, UserPage
from crawler.platforms.microblog.base import MicroblogPage
from crawler.platforms.microblog.embed import EmbedPage
from crawler.platforms.microblog.pages import ProfilePage
from crawler.platforms.microblog.schema import Profile
from crawler.sandbox.microblog.site import World
from crawler.sandbox.protocol import Ask
from crawler.spiders.microblog import MicroblogSpider

PAGES: dict[str, type[MicroblogPage]] = {
    "page": ProfilePage,
    "embed": EmbedPage,
    "user": UserPage,
    "timeline": TimelinePage,
}


def ask_for(world: World, source: str, handle: str, cursor: str = "") -> Ask:
    """A request of one source, as a spider makes it."""
    world.token.given = max(world.token.given, 1)
    headers = {"x-guest-token": world.token.value}
    if source == "embed":
        return Ask(f"/srv/timeline-profile/screen-name/{handle}")
    if source == "page":
        return Ask(f"/{handle}")
    call, variables = "UserByScreenName", {"screen_name": handle}
    if source == "timeline":
        call, variables = "UserTweets", {"userId": world.account(handle.lower()).user.id, "cursor": cursor}
    return Ask(f"/graphql/q/{call}", {"variables": orjson.dumps(variables).decode()}, headers=headers)


def answer(world: World, source: str, handle: str, cursor: str = "") -> tuple[int, dict[str, str], bytes]:
    """What the platform answers, with the fault that the handle stands for."""
    ask = ask_for(world, source, handle, cursor)
    fault = world.fault(ask)
    return world.page(ask) if fault is None else world.damaged(fault, ask)


def page_of(source: str, body: bytes, *, status: int = 200, **asked: Any) -> MicroblogPage:
    """A page object of an answer."""
    headers = {"Content-Type": "text/html; charset=utf-8"}
    response = HttpResponse("https://x.com/", body, status=status, headers=headers)
    return PAGES[source](response=response, page_params=PageParams(asked))


def joined(*pages: MicroblogPage) -> dict[str, Any]:
    """The validated record from some sources."""
    return validated(Profile, asyncio.run(MicroblogSpider.join(pages)))


def read(world: World, handle: str, *sources: str) -> dict[str, Any]:
    """The record of the sandbox's account from some sources, the first page of it."""
    return joined(
        *(
            page_of(source, body, status=status, username=handle)
            for source in sources
            for status, _, body in [answer(world, source, handle)]
        )
    )


def same(data: dict[str, Any], truth: dict[str, Any]) -> None:
    """Asserts that a record is the truth; the cursor is ours, so that only its being there is."""
    assert bool(data["nextCursor"]) is data["hasMore"]
    assert data["data"]["additional"] == truth["data"]["additional"]
    for mine, other in zip(data["data"]["main"], truth["data"]["main"], strict=False):
        assert mine == other
    assert data == {**truth, "nextCursor": data["nextCursor"]}
