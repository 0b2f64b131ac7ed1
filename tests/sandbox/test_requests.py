"""The simulated platforms refuse requests that lack what the real platforms demand; those of the crawler lack nothing.

So a request builder that forgets a header, a flag, an id or a cookie fails in each crawl of the sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import orjson
import pytest
from scrapy import Request

from crawler.platforms.microblog import urls as microblog
from crawler.platforms.microblog.urls import Ids, Query
from crawler.platforms.photoapp import urls as photoapp
from crawler.platforms.professional import urls as professional
from crawler.platforms.requests import NAVIGATION_HEADERS, shipped_ids
from crawler.platforms.retail import urls as retail
from crawler.platforms.shortvideo import urls as shortvideo
from crawler.platforms.videosite import urls as videosite
from crawler.sandbox.microblog.site import Site as Microblog
from crawler.sandbox.photoapp.site import EXAMPLE
from crawler.sandbox.photoapp.site import Site as Photoapp
from crawler.sandbox.professional.site import Site as Professional
from crawler.sandbox.protocol import FakeRequest, FakeResponse, FakeSite
from crawler.sandbox.retail.site import Site as Retail
from crawler.sandbox.shortvideo.site import Site as Shortvideo
from crawler.sandbox.videosite.site import Site as Videosite

IDS = shipped_ids(Ids)
SITES: dict[str, FakeSite] = {
    "microblog": Microblog(light=True),
    "photoapp": Photoapp(light=True),
    "professional": Professional(light=True),
    "retail": Retail(light=True),
    "shortvideo": Shortvideo(light=True),
    "videosite": Videosite(light=True),
}
CHANNEL = Videosite(light=True).named("@harborlights").id


def query(kind: Query, query_id: str) -> Request:
    return microblog.query_request(IDS, kind, query_id, {"username": "quiet_harbor"}, user_id="12")


MEMBER = professional.profile_request("mara-lindqvist")
POST = photoapp.post_request(EXAMPLE)
REELS = photoapp.reels_request(Photoapp(light=True).accounts[0].username)
TABS = [
    videosite.channel_request("@harborlights", "videos"),
    videosite.about_page_request(CHANNEL),
]
CALLS = [
    videosite.resolve_request("https://www.youtube.com/c/oldtimer"),
    videosite.browse_request(CHANNEL, "shorts"),
    videosite.playlist_request(CHANNEL, "videos"),
    videosite.continuation_request("4qm", channel=CHANNEL, tab="videos"),
    videosite.about_request(f"about-{CHANNEL}", channel=CHANNEL),
    videosite.video_request("-abcdefghij"),
]
REQUESTS = [
    *(("microblog", query(kind, query_id)) for kind in (IDS.user, IDS.timeline) for query_id in kind.ids),
    ("microblog", microblog.profile_request("quiet_harbor")),
    ("microblog", microblog.embed_request("quiet_harbor")),
    ("photoapp", POST),
    ("photoapp", photoapp.embed_request(EXAMPLE)),
    ("photoapp", REELS),
    ("photoapp", photoapp.share_request("share/p/BASandbox01")),
    ("professional", MEMBER),
    ("retail", retail.listing_request(cat_id="976759", page=2)),
    ("retail", retail.listing_request(query="mustard")),
    ("shortvideo", shortvideo.search_request(keywords="whales")),
    *(("videosite", request) for request in (*TABS, *CALLS)),
    ("videosite", videosite.feed_request(CHANNEL, "shorts")),
]
"""Each platform's requests, as the crawler builds them."""


def as_received(request: Request) -> FakeRequest:
    url = urlsplit(request.url)
    args = {name: values[-1] for name, values in parse_qs(url.query).items()}
    headers = {str(name).lower(): str(value) for name, value in request.headers.to_unicode_dict().items()}
    return FakeRequest(url.path, args, request.method, headers, request.body)


def refusal(platform: str, request: Request) -> FakeResponse | None:
    return SITES[platform].refusal(as_received(request))


@pytest.mark.parametrize(("platform", "request_"), REQUESTS, ids=lambda each: getattr(each, "url", each))
def test_the_crawler_s_requests_lack_nothing(platform: str, request_: Request) -> None:
    assert refusal(platform, request_) is None


def without_header(request: Request, name: str) -> Request:
    headers = request.headers.copy()
    del headers[name]
    return request.replace(headers=headers)


def with_client(request: Request, **client: Any) -> Request:
    body = orjson.loads(request.body)
    body["context"]["client"] |= client
    return request.replace(body=orjson.dumps(body))


def with_argument(request: Request, name: str, value: Any) -> Request:
    url = urlsplit(request.url)
    args = {each: values[-1] for each, values in parse_qs(url.query).items()} | {name: json.dumps(value)}
    return request.replace(url=url._replace(query=urlencode(args, quote_via=quote)).geturl())


def incomplete() -> Iterator[tuple[str, str, Request, int, bytes]]:
    """Each part that a platform demands, with a request that lacks it, and the status and a text of the refusal."""
    for part in sorted(NAVIGATION_HEADERS.keys() - {"Sec-Fetch-User"}):  # not in all of a browser's navigations
        yield f"{part} of a member", "professional", without_header(MEMBER, part), 999, b"authwall"
        yield f"{part} of a post", "photoapp", without_header(POST, part), 200, b"<html"
        yield f"{part} of reels", "photoapp", without_header(REELS, part), 200, b"<html"
    user, timeline = (query(kind, kind.ids[0]) for kind in (IDS.user, IDS.timeline))
    for kind, request in (("user", user), ("timeline", timeline)):
        yield f"key of the {kind} query", "microblog", without_header(request, "Authorization"), 401, b'"code":32'
        for flag in IDS.features:
            cut = with_argument(request, "features", {each: True for each in IDS.features if each != flag})
            yield f"flag {flag} of the {kind} query", "microblog", cut, 400, flag.encode()
    for name, value in IDS.timeline.variables.items():
        if value != "$cursor":
            cut = with_argument(timeline, "variables", {each: "x" for each in IDS.timeline.variables if each != name})
            yield f"variable {name}", "microblog", cut, 422, b"ariables"
    yield "variable screen_name", "microblog", with_argument(user, "variables", {}), 422, b"ariables"
    yield "known query id", "microblog", query(IDS.user, "Unknown-1234567890"), 404, b"Query not found"
    yield "id of this query", "microblog", query(IDS.user, IDS.timeline.ids[0]), 404, b"Query not found"
    for tab in TABS:
        yield f"cookie of {tab.url}", "videosite", without_header(tab, "Cookie"), 200, b"onsent"
    for number, call in enumerate(CALLS):
        bare = without_header(call, "X-YouTube-Client-Version")
        yield f"version header of call {number}", "videosite", bare, 400, b"INVALID"
        yield f"version of call {number}", "videosite", with_client(call, clientVersion="1.0"), 400, b"INVALID"
        yield f"client of call {number}", "videosite", with_client(call, clientName=None), 400, b"INVALID"


@pytest.mark.parametrize(
    ("platform", "request_", "status", "mark"), [pytest.param(*rest, id=name) for name, *rest in incomplete()]
)
def test_requests_that_lack_a_part_are_refused(platform: str, request_: Request, status: int, mark: bytes) -> None:
    refused = refusal(platform, request_)
    assert refused is not None
    assert refused[0] == status
    assert mark in refused[2]
    assert b"xig_polaris_media" not in refused[2]


def test_a_guest_token_needs_the_key_and_a_query_needs_the_token() -> None:
    site = Microblog(light=True)
    wanted = as_received(query(IDS.user, IDS.user.ids[0]))
    token = microblog.token_request(bearer=IDS.bearer)
    assert site.page(wanted)[0] == 403
    assert site.page(as_received(microblog.token_request(bearer="another")))[0] == 403
    given = orjson.loads(site.page(as_received(token))[2])["guest_token"]
    assert site.page(FakeRequest(wanted.path, wanted.args, headers={"x-guest-token": given}))[0] == 200
    site.page(FakeRequest("/1.1/guest/activate.json", {"refuse": "1"}))
    assert site.page(as_received(token))[0] == 403
