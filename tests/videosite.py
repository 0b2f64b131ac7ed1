"""Visits of the simulated video site without a network: the spider's own way, answered by a world in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy_poet.utils import scrapy_response_to_http_response as http_response
from web_poet import PageParams

import crawler.settings
from crawler.errors import ScrapeError
from crawler.pipelines import validated
from crawler.platforms.videosite.channel import ChannelReader
from crawler.platforms.videosite.schema import continuation_of
from crawler.registry import scrapers
from crawler.sandbox.faults import _ANSWERS
from crawler.sandbox.protocol import Answer, FakeRequest
from crawler.sandbox.videosite.site import Site
from crawler.spiders.base import First
from crawler.spiders.videosite import VideositeSpider
from crawler.targets.target import Target, check_params

__all__ = ["ORIGIN", "SCRAPER", "Stub", "ask_of", "comparable", "first_of", "visit"]

SCRAPER = scrapers()["videosite-profile-v3"]
ORIGIN = "https://www.youtube.com"


def ask_of(request: Request) -> FakeRequest:
    """A request as the world sees it."""
    url = urlsplit(request.url)
    args = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
    return FakeRequest(url.path, args, request.method, {}, request.body)


class Stub(VideositeSpider):
    """The spider, with a world in place of the network. ``asked``: requests made; ``change`` damages answers."""

    def __init__(
        self, site: Site, change: Callable[[FakeRequest, Answer], Answer] | None = None, **settings: Any
    ) -> None:
        super().__init__()
        self.site = site
        self.change = change
        self.settings = Settings({name: value for name, value in vars(crawler.settings).items() if name.isupper()})
        self.settings.update(settings)
        self.asked: list[FakeRequest] = []
        self._hits: dict[str, int] = {}

    def origin(self, role: str = "page") -> str:
        return ORIGIN

    def warn(self, target: Target, source: str, error: ScrapeError) -> None:
        """There is no outcome that it could belong to."""

    async def fetch(self, request: Request, target: Target) -> Response:
        request.meta["target"] = target
        ask = ask_of(request)
        self.asked.append(ask)
        status, headers, body = self._answer(ask)
        response = Response(request.url, status=status, headers=headers, body=body, request=request)
        kind = request.callback.__annotations__["page"]
        page = kind(response=http_response(response), page_params=PageParams(request.meta["page_params"]))
        return response.replace(request=request.replace(cb_kwargs={"page": page}))

    def _answer(self, ask: FakeRequest) -> Answer:
        fault = self.site.fault(ask)
        if fault is not None and fault.endswith("-once"):
            key = f"{ask.method} {ask.path} {ask.args}"
            self._hits[key] = self._hits.get(key, 0) + 1
            fault = fault.removesuffix("-once") if self._hits[key] == 1 else None
        if fault == "browser-only":
            fault = "forbidden"  # all that a plain request sees of it
        if fault in _ANSWERS:
            return _ANSWERS[fault]
        answer = self.site.page(ask) if fault is None else self.site.damaged(fault, ask)
        return self.change(ask, answer) if self.change else answer

    def kinds(self) -> list[str]:
        """What was asked for, by kind."""
        return [self.site.kind(ask) for ask in self.asked]


async def first_of(stub: Stub, target: Target) -> First:
    """The answer to a target's scheduled request."""
    response = await stub.fetch(stub.request(target), target)
    assert response.request is not None
    return First(stub, response.request, page=response.request.cb_kwargs["page"])


def visit(stub: Stub, **asked: Any) -> dict[str, Any]:
    """The validated record of a target, as the spider makes it."""

    async def made() -> dict[str, Any]:
        target = Target(id="1", scraper=SCRAPER, params=check_params(SCRAPER, asked))
        return await ChannelReader(stub, target).record(await first_of(stub, target))

    return validated(SCRAPER.data, asyncio.run(made()))


def comparable(record: dict[str, Any]) -> dict[str, Any]:
    """A record with the platform's own token in place of our cursor, as the world's truth has it."""
    cursor = record["pagination"]["cursor"]
    token = continuation_of(cursor).token if cursor else ""
    return {**record, "pagination": {**record["pagination"], "cursor": token}}
