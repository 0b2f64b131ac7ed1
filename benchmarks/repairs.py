"""What the repair of changed pages costs while nothing has changed: lines of names, and unread responses in files."""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from scrapy import Request
from scrapy.utils.project import get_project_settings
from web_poet import HttpResponse, PageParams

from benchmarks.figures import Figure, Table, ratio
from crawler.downloads.shared_state import SharedState
from crawler.platforms.names import PayloadNames, parse_names
from crawler.platforms.retail.pages import SearchPage
from crawler.probe.advice import suggested
from crawler.reading.names import NO_NAMES, Names
from crawler.registry import find_scraper
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from crawler.spiders.retail import RetailSpider
from crawler.storage.kept import Keeper
from crawler.targets.target import Target

RESPONSES = 1_000
"""Responses of each opponent in each round."""
UNREAD = 100
"""One of so many responses is unread."""
ORIGIN = "https://shop.example"
OTHER = b'{"videosite.Channel": {"metadata.channelMetadataRenderer.title": "header.title"}}'
OWN = b'{"retail.RenderedRow": {"averageRating": "rating.value"}}'

CONDITIONS = f"""\
Each opponent reads the same {RESPONSES:,} responses of a search in the shop (0.5 MB each) with its page object, and
passes them to the part of the spider that keeps unread ones. Of {UNREAD} responses, one has a renamed key: all of its
rows lack it. Opponents run in turn in each round, in one process. The time is the processor time of all threads,
without downloads, validation and outputs: in a crawl, the shares are smaller. Not in it: the first two responses of the
process, which are always kept, and the one suggestion for the path."""


@dataclass
class Opponent:
    """A spider with names, and its figures by round."""

    name: str
    names: Names = NO_NAMES
    keep: int = 0
    pages: tuple[bytes, ...] = ()
    milliseconds: list[float] = field(default_factory=list)

    def spider(self, folder: Path) -> Any:
        """Return a spider that keeps responses in a folder."""
        spider = RetailSpider(query="mustard", shared=SharedState())
        spider.settings = get_project_settings()
        spider.use_origins(ORIGIN)
        keeper = spider.shared.get(Keeper, "", lambda: Keeper(self.keep, lambda: folder))
        keeper.suggest = partial(suggested, PayloadNames(spider.settings), spider.settings)
        return spider

    async def read(self, spider: Any, number: int) -> None:
        """Read some responses, and add the processor time of each."""
        scraper = find_scraper("retail-search-v4")
        target = Target("t", scraper, scraper.params.model_validate({"query": "mustard"}))
        request = Request(f"{ORIGIN}/search?q=mustard", meta={"target": target})
        begin = time.process_time()
        for body in islice(cycle(self.pages), number):
            page = SearchPage(response=HttpResponse(request.url, body), page_params=PageParams(query="mustard"))
            page.names = self.names
            await page.to_item()
            spider.keep(page, request)
        spider.keeper.wait()
        self.milliseconds.append((time.process_time() - begin) / number * 1e3)


def run(rounds: int = 5) -> Table:
    """Read the responses in turn."""
    good = Site().page(FakeRequest("/search", {"q": "mustard"}))[2]
    all_good, some_unread = (good,), (*[good] * (UNREAD - 1), good.replace(b'"averageRating":', b'"starRating":'))
    tested = [
        Opponent("no lines, nothing kept", pages=all_good),
        Opponent("the same again", pages=all_good),
        Opponent("a line for another platform", parse_names(OTHER), pages=all_good),
        Opponent("a line for this page, which has the old key", parse_names(OWN), pages=all_good),
        Opponent("no unread responses, they would be kept", keep=20, pages=all_good),
        Opponent("1 % unread, nothing kept", pages=some_unread),
        Opponent("1 % unread, kept", keep=20, pages=some_unread),
    ]
    with tempfile.TemporaryDirectory() as folder:
        spiders = [each.spider(Path(folder)) for each in tested]
        for number in (2 * UNREAD, *[RESPONSES] * rounds):
            for each, spider in zip(tested, spiders, strict=True):
                asyncio.run(each.read(spider, number))
    figures = [Figure(each.name, "ms of CPU time per response", each.milliseconds[1:]) for each in tested]
    plain, again, other, own, idle, unread, kept = figures
    table = Table("The repair of changed pages", CONDITIONS, figures)
    table.ratios.extend(
        (
            ratio("the same again", again, plain),
            ratio("a line for another platform", other, plain),
            ratio("a line for this page", own, plain),
            ratio("nothing to keep", idle, plain),
            ratio("1 % kept to nothing kept", kept, unread, at_most=1.02),
        )
    )
    return table
