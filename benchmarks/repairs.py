"""What the repair of changed pages costs: lines of names, and unread responses that are kept in files."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from itertools import cycle, islice
from pathlib import Path

from scrapy import Request
from scrapy.utils.project import get_project_settings
from web_poet import HttpResponse, PageParams

from benchmarks.figures import Figure, Table, ratio
from crawler.downloads.shared_state import SharedState
from crawler.platforms.names import PayloadNames, parse_names
from crawler.platforms.retail.pages import SearchPage
from crawler.probe.advice import suggested
from crawler.registry import find_scraper
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from crawler.spiders.retail import RetailSpider
from crawler.storage.kept import Keeper
from crawler.targets.target import Target

RESPONSES = 2_000
"""Responses of each opponent in each round."""
UNREAD = 100
"""One of so many responses is unread."""
ORIGIN = "https://shop.example"
OTHER = b'{"videosite.Channel": {"metadata.channelMetadataRenderer.title": "header.title"}}'
OWN = b'{"retail.Row": {"averageRating": "rating.value"}}'

CONDITIONS = f"""\
Each opponent is a process that reads the same {RESPONSES:,} responses of a search in the shop (0.5 MB each) with its
page object, and passes them to the part of the spider that keeps unread ones. Of {UNREAD} responses, one has a renamed
key: all of its rows lack it. Opponents run in turn in each round. The time is the processor time of all threads of the
process, without downloads, validation and outputs: in a crawl, the shares are smaller. Not in it: the first two
responses of a process, which are always kept (0.1 s each), and the one suggestion for the path (0.2 s)."""


@dataclass(frozen=True)
class Opponent:
    """A spider with a file of names, and the pages that it reads."""

    name: str
    is_changed: bool = False
    """Whether one of ``UNREAD`` pages has a renamed key."""
    names: bytes = b"{}"
    keep: int = 0


@cache
def spider_of(opponent: Opponent) -> tuple[RetailSpider, tuple[bytes, ...]]:
    """Return the spider of an opponent, which keeps responses in a temporary folder, and its pages."""
    spider = RetailSpider(query="mustard", shared=SharedState())
    spider.settings = get_project_settings()
    spider.use_origins(ORIGIN)
    folder = Path(tempfile.mkdtemp(dir=os.environ["REPAIRS_FOLDER"]))
    keeper = spider.shared.get(Keeper, "", lambda: Keeper(opponent.keep, lambda: folder))
    keeper.suggest = partial(suggested, PayloadNames(spider.settings), spider.settings)
    good = Site().page(FakeRequest("/search", {"q": "mustard"}))[2]
    changed = good.replace(b'"averageRating":', b'"starRating":')
    return spider, (*[good] * (UNREAD - 1), changed if opponent.is_changed else good)


def measure(opponent: Opponent, number: int) -> float:
    """Read some responses in this process. Return the milliseconds of processor time of each."""
    return asyncio.run(_measure(opponent, number))


async def _measure(opponent: Opponent, number: int) -> float:
    spider, pages = spider_of(opponent)
    names, scraper = parse_names(opponent.names), find_scraper("retail-search-v4")
    target = Target("t", scraper, scraper.params.model_validate({"query": "mustard"}))
    request = Request(f"{ORIGIN}/search?q=mustard", meta={"target": target})
    begin = time.process_time()
    for body in islice(cycle(pages), number):
        page = SearchPage(response=HttpResponse(request.url, body), page_params=PageParams(query="mustard"))
        page.names = names
        await page.to_item()
        spider.keep(page, request)
    spider.keeper.wait()
    return (time.process_time() - begin) / number * 1e3


def run(rounds: int = 5) -> Table:
    """Let the processes read their responses in turn."""
    tested = [
        Opponent("no lines, nothing kept"),
        Opponent("the same again"),
        Opponent("a line for another platform", names=OTHER),
        Opponent("a line for this page, which has the old key", names=OWN),
        Opponent("no unread responses", keep=20),
        Opponent("1 % unread, nothing kept", is_changed=True),
        Opponent("1 % unread, kept", is_changed=True, keep=20),
    ]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        os.environ["REPAIRS_FOLDER"] = folder
        pools = [stack.enter_context(ProcessPoolExecutor(1)) for _ in tested]
        measured = [
            [pool.submit(measure, each, number).result() for pool, each in zip(pools, tested, strict=True)]
            for number in (2 * UNREAD, *[RESPONSES] * rounds)
        ]
    figures = [
        Figure(each.name, "ms of CPU time per response", values)
        for each, values in zip(tested, zip(*measured[1:], strict=True), strict=True)
    ]
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
