"""Builds page objects for the simulated microblog's responses without a network."""

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


def request_for(site: Site, source: str, handle: str, cursor: str = "") -> FakeRequest:
    """The spider's request for one source."""
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
    """The response of the simulated platform, with the fault that the handle selects."""
    request = request_for(site, source, handle, cursor)
    fault = site.fault(request)
    return site.page(request) if fault is None else site.damaged(fault, request)


def page_of(source: str, body: bytes, *, status: int = 200, **params: Any) -> MicroblogPage:
    """The page object for a response's body. ``params``: the page params of its request."""
    headers = {"Content-Type": "text/html; charset=utf-8"}
    response = HttpResponse("https://x.com/", body, status=status, headers=headers)
    return PAGES[source](response=response, page_params=PageParams(params))


def joined(*pages: MicroblogPage) -> dict[str, Any]:
    """The validated record that the spider joins from some pages."""
    return validated(Profile, asyncio.run(MicroblogSpider.join(pages)))


def read(site: Site, handle: str, *sources: str) -> dict[str, Any]:
    """The record of the first page of an account's posts, from the given sources only."""
    return joined(
        *(
            page_of(source, body, status=status, username=handle)
            for source in sources
            for status, _, body in [answer(site, source, handle)]
        )
    )


def same(data: dict[str, Any], expected: dict[str, Any]) -> None:
    """Assert that a record is as expected. Of the cursor, which the spider builds, only the presence is compared."""
    assert bool(data["nextCursor"]) is data["hasMore"]
    assert data["data"]["additional"] == expected["data"]["additional"]
    for mine, other in zip(data["data"]["main"], expected["data"]["main"], strict=False):
        assert mine == other
    assert data == {**expected, "nextCursor": data["nextCursor"]}


def timeline_with(*posts: dict[str, Any]) -> bytes:
    """The API's response that contains these posts."""
    entries = [
        {
            "entryId": f"tweet-{number}",
            "content": {
                "entryType": "TimelineTimelineItem",
                "itemContent": {"itemType": "TimelineTweet", "tweet_results": {"result": post}},
            },
        }
        for number, post in enumerate(posts, 1)
    ]
    return timeline_of({"type": "TimelineAddEntries", "entries": entries})


def timeline_of(*instructions: dict[str, Any]) -> bytes:
    """The API's response that contains these instructions of a timeline."""
    timeline = {"timeline": {"instructions": instructions}}
    return orjson.dumps({"data": {"user": {"result": {"__typename": "User", "timeline": timeline}}}})


def posts_in(body: bytes) -> list[dict[str, Any]]:
    """The posts in a response with a timeline."""
    posts: list[dict[str, Any]] = asyncio.run(page_of("timeline", body).to_item())["posts"]
    return posts
