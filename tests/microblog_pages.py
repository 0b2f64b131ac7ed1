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
from crawler.sandbox.microblog.site import Site
from crawler.sandbox.protocol import FakeRequest
from crawler.spiders.microblog import MicroblogSpider

PAGES: dict[str, type[MicroblogPage]] = {
    "page": ProfilePage,
    "embed": EmbedPage,
    "user": UserPage,
    "timeline": TimelinePage,
}


def ask_for(site: Site, source: str, handle: str, cursor: str = "") -> FakeRequest:
    """A request of one source, as a spider makes it."""
    site.token.given = max(site.token.given, 1)
    headers = {"x-guest-token": site.token.value}
    if source == "embed":
        return FakeRequest(f"/srv/timeline-profile/screen-name/{handle}")
    if source == "page":
        return FakeRequest(f"/{handle}")
    call, variables = "UserByScreenName", {"screen_name": handle}
    if source == "timeline":
        call, variables = "UserTweets", {"userId": site.account(handle.lower()).user.id, "cursor": cursor}
    return FakeRequest(f"/graphql/q/{call}", {"variables": orjson.dumps(variables).decode()}, headers=headers)


def answer(site: Site, source: str, handle: str, cursor: str = "") -> tuple[int, dict[str, str], bytes]:
    """What the platform answers, with the fault that the handle stands for."""
    ask = ask_for(site, source, handle, cursor)
    fault = site.fault(ask)
    return site.page(ask) if fault is None else site.damaged(fault, ask)


def page_of(source: str, body: bytes, *, status: int = 200, **asked: Any) -> MicroblogPage:
    """A page object of an answer."""
    headers = {"Content-Type": "text/html; charset=utf-8"}
    response = HttpResponse("https://x.com/", body, status=status, headers=headers)
    return PAGES[source](response=response, page_params=PageParams(asked))


def joined(*pages: MicroblogPage) -> dict[str, Any]:
    """The validated record from some sources."""
    return validated(Profile, asyncio.run(MicroblogSpider.join(pages)))


def read(site: Site, handle: str, *sources: str) -> dict[str, Any]:
    """The record of the sandbox's account from some sources, the first page of it."""
    return joined(
        *(
            page_of(source, body, status=status, username=handle)
            for source in sources
            for status, _, body in [answer(site, source, handle)]
        )
    )


def same(data: dict[str, Any], truth: dict[str, Any]) -> None:
    """Asserts that a record is the truth; the cursor is ours, so that only its being there is."""
    assert bool(data["nextCursor"]) is data["hasMore"]
    assert data["data"]["additional"] == truth["data"]["additional"]
    for mine, other in zip(data["data"]["main"], truth["data"]["main"], strict=False):
        assert mine == other
    assert data == {**truth, "nextCursor": data["nextCursor"]}
