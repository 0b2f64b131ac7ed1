"""A Scrapy extension: labels each request for the replaying server, and logs what each page does to its breaker."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from scrapy import signals

from crawler.downloads.breaker import Blocks, BreakerKey, CircuitBreaker
from crawler.errors import ScrapeError, UpstreamBlocked
from crawler.targets.reporter import target_completed
from crawler.targets.target import Outcome, Target

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawler.platforms.page import PlatformPage
    from crawler.spiders.base import PlatformSpider

LABEL = "X-Replay"
"""The header with the target's id, the request's source, and ``redirected`` if it follows a redirect."""
ENABLED = 'EXTENSIONS={"tests.refusals.log.ReplayLog": 500}'
"""The setting that enables the extension. The setting ``REPLAY_LOG`` names the file to write. With
``REPLAY_OWN_BREAKERS``, the breakers are those of any crawl, and only the outcomes are logged."""


class ReplayLog:
    """Writes one line of JSON for each counted page, each page that would be kept, and each outcome.

    Each breaker has at least one block before a page is counted. So a page that closes an open breaker can be told from
    a page that does not count.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.path = Path(crawler.settings["REPLAY_LOG"])

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ReplayLog:
        log = cls(crawler)
        if not crawler.settings.getbool("REPLAY_OWN_BREAKERS"):
            crawler.signals.connect(log.spider_opened, signals.spider_opened)
        crawler.signals.connect(log.request_reached_downloader, signals.request_reached_downloader)
        crawler.signals.connect(log.target_completed, target_completed)
        return log

    def request_reached_downloader(self, request: Request) -> None:
        target: Target | None = request.meta.get("target")
        if target is not None:
            redirected = "redirected" if request.meta.get("redirect_times") else ""
            request.headers[LABEL] = f"{target.id}|{request.meta['source']}|{redirected}"

    def spider_opened(self) -> None:
        spider = cast("PlatformSpider", self.crawler.spider)
        lanes = spider.lanes
        count, turn = lanes.count, asyncio.Lock()

        async def logged(target: Target, source: str, error: ScrapeError | None, status: int | None = None) -> None:
            if target.release.lane is None:
                return await count(target, source, error, status)
            async with turn:  # a target that met a rate limit may be requested again beside the next one
                breaker = target.release.lane.breakers[source]
                if not blocks(breaker):
                    # Another process counts it, since this one knows which requests it sent before a block.
                    other = CircuitBreaker(breaker.policy, BreakerKey.parse(breaker.name), breaker.facts)
                    await other.record(UpstreamBlocked("An earlier page was a block."))
                before = blocks(breaker)
                await count(target, source, error, status)
                after = blocks(breaker)
                effect = "counts" if after > before else "closes" if after == 0 else "neutral"
                if breaker.open_seconds is not None:  # its short cooldown may be over
                    effect = "opens"
                    await asyncio.sleep(breaker.cooldown_left)
                    await breaker.record(None)  # for the next target
            if error is not None:
                page = {
                    "code": error.code,
                    "reason": error.reason,
                    "alarm": error.alarm,
                    "details": error.details,
                    "status": error.upstream_status,
                }
                self.write(target=target.id, source=source, breaker=effect, **page)
            return None

        def keep(_page: PlatformPage, request: Request, error: ScrapeError | None = None) -> None:
            if error is not None:
                self.write(target=request.meta["target"].id, kept=error.reason)

        lanes.count = logged  # type: ignore[method-assign]
        spider.keep = keep  # type: ignore[method-assign, assignment]

    def target_completed(self, outcome: Outcome) -> None:
        error = outcome.error
        warnings = [[each.source, each.code, each.reason] for each in outcome.warnings]
        self.write(
            target=outcome.target.id, outcome=outcome.code, reason=error.reason if error else "", warnings=warnings
        )

    def write(self, **line: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def blocks(breaker: CircuitBreaker) -> int:
    """Return the number of consecutive blocks that a breaker has counted."""
    return breaker.facts.known(Blocks, breaker.name).number
