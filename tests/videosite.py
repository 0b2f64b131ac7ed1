"""Runs targets of the video site without a network: the real spider, with the simulated site in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy_poet.utils import scrapy_response_to_http_response as http_response
from web_poet import PageParams

import crawler.settings
from crawler.pipelines import validated
from crawler.platforms.videosite.schema import continuation_of
from crawler.registry import scrapers
from crawler.sandbox.faults import _ANSWERS
from crawler.sandbox.protocol import FakeRequest, FakeResponse
from crawler.sandbox.videosite.lists import tab_data
from crawler.sandbox.videosite.page import document
from crawler.sandbox.videosite.site import Site
from crawler.spiders.base import First
from crawler.spiders.videosite import ChannelReader, VideositeSpider
from crawler.targets.parser import check_params
from crawler.targets.target import Target
from crawler.targets.warning import LIMIT, UNREAD, OutcomeWarning

__all__ = ["ORIGIN", "PAGE_ALONE", "SCRAPER", "Stub", "comparable", "fake_request", "first_of", "page_with", "scrape"]

SCRAPER = scrapers()["videosite-profile-v3"]
PAGE_ALONE = {"scraper": "videosite-profile"}
"""Params that select the scraper that reads only the channel's page."""
ORIGIN = "https://www.youtube.com"


def fake_request(request: Request) -> FakeRequest:
    """Convert a Scrapy request to the simulated site's request type."""
    url = urlsplit(request.url)
    args = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
    return FakeRequest(url.path, args, request.method, {}, request.body)


class Stub(VideositeSpider):
    """The real spider with a simulated site as its network.

    ``requests``: the requests that the spider has sent. ``change``: returns the response to use in place of the site's.
    """

    def __init__(
        self, site: Site, change: Callable[[FakeRequest, FakeResponse], FakeResponse] | None = None, **settings: Any
    ) -> None:
        super().__init__()
        self.site = site
        self.change = change
        self.settings = Settings({name: value for name, value in vars(crawler.settings).items() if name.isupper()})
        self.settings.update(settings)
        self.requests: list[FakeRequest] = []
        self.warnings: list[OutcomeWarning] = []
        self._request_counts: dict[str, int] = {}

    def origin(self, role: str = "page") -> str:
        return ORIGIN

    @property
    def tracker(self) -> Any:
        """A stub of the tracker that only appends warnings to ``self.warnings``."""
        return SimpleNamespace(warn=lambda _target, warning: self.warnings.append(warning))

    @property
    def limits(self) -> list[tuple[str, int, int]]:
        """Code, number of posts without the limited source, and number of all posts, of each warning about a limit."""
        parts = [(each.code, each.unread) for each in self.warnings if each.reason == LIMIT]
        return [(code, part.rows, part.of) for code, part in parts if part is not None]

    @property
    def unread(self) -> list[str]:
        """The warnings about unread parts of payloads."""
        return [str(each) for each in self.warnings if each.reason == UNREAD]

    async def fetch(self, request: Request, target: Target) -> Response:
        request.meta["target"] = target
        received = fake_request(request)
        self.requests.append(received)
        status, headers, body = self._answer(received)
        response = Response(request.url, status=status, headers=headers, body=body, request=request)
        kind = request.callback.__annotations__["page"]
        page = kind(response=http_response(response), page_params=PageParams(request.meta["page_params"]))
        return response.replace(request=request.replace(cb_kwargs={"page": page}))

    def _answer(self, request: FakeRequest) -> FakeResponse:
        fault = self.site.fault(request)
        if fault is not None and fault.endswith("-once"):
            key = f"{request.method} {request.path} {request.args}"
            self._request_counts[key] = self._request_counts.get(key, 0) + 1
            fault = fault.removesuffix("-once") if self._request_counts[key] == 1 else None
        if fault == "browser-only":
            fault = "forbidden"  # the response to requests without a browser
        if fault in _ANSWERS:
            return _ANSWERS[fault]
        answer = self.site.page(request) if fault is None else self.site.damaged(fault, request)
        return self.change(request, answer) if self.change else answer

    def kinds(self) -> list[str]:
        """Return the kind of each request that was sent."""
        return [self.site.kind(request) for request in self.requests]


async def first_of(stub: Stub, target: Target) -> First:
    """Return the response to the first request of a target."""
    response = await stub.fetch(stub.request(target), target)
    assert response.request is not None
    return First(stub, response.request, result=response.request.cb_kwargs["page"])


def scrape(stub: Stub, **params: Any) -> dict[str, Any]:
    """Return the validated record of a target. ``scraper``: the default is ``videosite-profile-v3``."""
    scraper = scrapers()[params.pop("scraper", SCRAPER.name)]

    async def run() -> dict[str, Any]:
        target = Target(id="1", scraper=scraper, params=check_params(scraper, params))
        return await ChannelReader(stub, target, stub.recent).record(await first_of(stub, target))

    return validated(scraper.data, asyncio.run(run()))


def comparable(record: dict[str, Any]) -> dict[str, Any]:
    """Replace the service's cursor in a record by the platform's token, as in the simulated site's records."""
    cursor = record["pagination"]["cursor"]
    token = continuation_of(cursor).token if cursor else ""
    return {**record, "pagination": {**record["pagination"], "cursor": token}}


def page_with(
    *rows: Any, tab: str = "videos", script: str = "", change: Callable[[Any], None] = lambda _data: None
) -> bytes:
    """Put parts of recorded responses, which are no responses themselves, into a channel's page of the simulated site.

    ``rows``: replace the rows of the tab. ``script``: markup after the page's data. ``change``: changes the data.
    """
    data = tab_data(Site(light=True).named("harborlights"), tab, heavy=False)
    if rows:
        tabs = data["contents"]["twoColumnBrowseResultsRenderer"]["tabs"]
        (shown,) = [each["tabRenderer"] for each in tabs if each.get("tabRenderer", {}).get("content")]
        shown["content"]["richGridRenderer"]["contents"] = [{"richItemRenderer": {"content": each}} for each in rows]
    change(data)
    return document("A channel", data).replace(b"</body>", script.encode() + b"</body>")
