"""The cost of a call without Scrapy: Twisted fetches the page, the same page object parses it, the data is validated.

Without queue, tracker, retries, throttle, key, middlewares and log.

Usage: python -m benchmarks.opponents.bare PORT
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

from scrapy.utils.project import get_project_settings  # noqa: E402
from twisted.internet import reactor as _reactor  # noqa: E402  # after the reactor
from twisted.internet.defer import Deferred  # noqa: E402
from twisted.web.client import Agent, HTTPConnectionPool, readBody  # noqa: E402
from twisted.web.resource import Resource  # noqa: E402
from twisted.web.server import NOT_DONE_YET, Request, Site  # noqa: E402

from benchmarks.opponents.work import page_request, read  # noqa: E402
from crawler.platforms.retail.schema import SearchParams  # noqa: E402

reactor: Any = _reactor


class Search(Resource):
    """``POST`` with the params of a search returns its data."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        pool: Any = HTTPConnectionPool(reactor)
        pool.maxPersistentPerHost = 256
        self.origin = str(get_project_settings().getdict("PLATFORM_ORIGINS")["retail"])
        self.agent: Any = Agent(reactor, pool=pool)

    def render_GET(self, request: Request) -> bytes:
        return b"ready"

    def render_POST(self, request: Request) -> int:
        Deferred.fromCoroutine(self._respond(request)).addErrback(request.processingFailed)
        return NOT_DONE_YET

    async def _respond(self, request: Request) -> None:
        assert request.content
        params = SearchParams.model_validate_json(request.content.read())
        page = page_request(self.origin, query=params.query)
        response = await self.agent.request(b"GET", page.url.encode())
        data = await read(page.url, response.code, await readBody(response), page.meta["page_params"])
        body = orjson.dumps({"data": data})
        request.setHeader("Content-Type", "application/json")
        request.setHeader("Content-Length", str(len(body)))
        request.write(body)
        request.finish()


reactor.listenTCP(int(sys.argv[1]), Site(Search()), interface="127.0.0.1")
reactor.run()
