"""The cost of a call without Scrapy: Twisted fetches the page, the same page object parses it, the data is validated.

Without queue, tracker, retries, throttle, key, middlewares and log: the lower bound for a call.

Usage: python -m benchmarks.bare PORT
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import orjson
import uvloop
from twisted.internet.asyncioreactor import install

asyncio.set_event_loop(uvloop.new_event_loop())
install(asyncio.get_event_loop())

from scrapy.utils.project import get_project_settings  # noqa: E402  # after the reactor
from twisted.internet import reactor as _reactor  # noqa: E402
from twisted.internet.defer import Deferred  # noqa: E402
from twisted.web.client import Agent, HTTPConnectionPool, readBody  # noqa: E402
from twisted.web.resource import Resource  # noqa: E402
from twisted.web.server import NOT_DONE_YET, Request, Site  # noqa: E402
from web_poet import HttpResponse, PageParams  # noqa: E402

from crawler.pipelines import validated  # noqa: E402
from crawler.platforms import origins  # noqa: E402
from crawler.platforms.retail.pages import SearchPage  # noqa: E402
from crawler.platforms.retail.requests import listing_request  # noqa: E402
from crawler.platforms.retail.schema import SearchListing, SearchParams  # noqa: E402

reactor: Any = _reactor


class Search(Resource):
    """``POST`` with the params of a search returns its data."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        pool: Any = HTTPConnectionPool(reactor)
        pool.maxPersistentPerHost = 256
        self.agent: Any = Agent(reactor, pool=pool)
        self.origin = origins("retail", get_project_settings())
        assert isinstance(self.origin, str)

    def render_GET(self, request: Request) -> bytes:
        return b"ready"

    def render_POST(self, request: Request) -> int:
        Deferred.fromCoroutine(self._respond(request)).addErrback(request.processingFailed)
        return NOT_DONE_YET

    async def _respond(self, request: Request) -> None:
        assert request.content
        params = SearchParams.model_validate_json(request.content.read())
        listing = listing_request(str(self.origin), query=params.query)
        response = await self.agent.request(b"GET", listing.url.encode())
        body = await readBody(response)
        page = SearchPage(
            response=HttpResponse(listing.url, body, status=response.code),
            page_params=PageParams(listing.meta["page_params"]),
        )
        data = validated(SearchListing, await page.to_item())
        request.setHeader("Content-Type", "application/json")
        request.write(orjson.dumps({"data": data}))
        request.finish()


reactor.listenTCP(int(sys.argv[1]), Site(Search()), interface="127.0.0.1")
reactor.run()
