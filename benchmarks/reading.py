"""The cost of reading a response with a page object, compared with a plain parse of the same response."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import lxml.html
import orjson
from web_poet import HttpResponse, PageParams
from web_poet.serialization.api import load_class
from web_poet.testing import Fixture

from benchmarks.figures import Table, in_turn, ratio
from benchmarks.stack import ROOT
from crawler.errors import ExtractionFailed
from crawler.pipelines import validated
from crawler.platforms.page import PlatformPage
from crawler.registry import scrapers
from scripts.captures import body_of, captures

REPETITIONS = 15
"""How often each function is run per round. The fastest run is the round's value."""
UNIT = "ms of CPU time"
CONDITIONS = """\
CPU time from the body's bytes to the item, and its validation if the page has the whole record of a scraper. The floor
is a plain parse of the same page with nothing of this project in it: `lxml.html.document_fromstring` for HTML,
`orjson.loads` for JSON. For JSON inside an HTML page, the floor is `orjson.loads` on the block with the data, cut out
beforehand: it does not include finding the block in the page, which the page object must do. The pages are captures,
where they are available, and otherwise fixtures of the tests. Floor and page object run in turn in one process; the
value of a round is the fastest of several runs."""

Run = Callable[[], object]


def block_of(body: bytes, mark: str) -> bytes:
    """Cut the JSON out of the longest script of a page whose text contains, or whose id is, ``mark``.

    >>> block_of(b'<p>data<script>var data = {"a": [1]};</script><script>data</script>', "data")
    b'{"a": [1]}'
    """
    elements = lxml.html.document_fromstring(body, parser=lxml.html.HTMLParser(encoding="utf-8")).xpath("//script")
    texts = [each.text for each in elements if each.text and (mark in each.text or mark == each.get("id"))]
    longest = max(texts, key=len)
    return str(longest[longest.index("{") : longest.rindex("}") + 1]).encode()


@dataclass(frozen=True)
class Case:
    """A page object, the page that it reads, its floor, and the goal for the ratio to it."""

    scraper: str
    page: str
    """The module and name of the class, below ``crawler.platforms``."""
    fixture: str
    """The name of a fixture of the tests."""
    capture: str = ""
    """The name of a capture whose body replaces the fixture's. Without the capture, the case is left out."""
    goal: float | None = None
    block: str = ""
    """A text in the script with the data, or its id. "": the whole page is parsed."""

    @property
    def name(self) -> str:
        """How the table names the page."""
        return f"{self.scraper.partition('-')[0]} {self.page.rpartition('.')[2]}, {self.capture or self.fixture}"

    def example(self) -> PlatformPage:
        """Return the page object of the fixture."""
        name = f"crawler.platforms.{self.page}"
        page = Fixture(ROOT / "tests/fixtures" / name / self.fixture).get_page(load_class(name))
        assert isinstance(page, PlatformPage)
        return page

    def body(self) -> bytes:
        """Return the body of the page."""
        return body_of(self.capture) if self.capture else bytes(self.example().response.body)

    def floor(self) -> Run:
        """Return the plain parse of the page."""
        body = self.body()
        if self.block:
            return partial(orjson.loads, block_of(body, self.block))
        return partial(orjson.loads if body[:1] == b"{" else lxml.html.document_fromstring, body)

    def reading(self) -> Run:
        """Return a function that reads the page, and validates the item if it is the whole record of the scraper."""
        page, body, model = self.example(), self.body(), scrapers()[self.scraper].data
        params = PageParams({}) if self.capture else page.page_params
        url, headers, kind = page.response.url, page.response.headers, type(page)

        def read() -> Any:
            item = kind(response=HttpResponse(url, body, status=200, headers=headers), page_params=params).to_item()
            try:
                item.send(None)  # page objects do no I/O
            except StopIteration as finished:
                return finished.value
            raise SystemExit(f"{kind.__name__}.to_item() must not await anything")

        with suppress(ExtractionFailed):
            validated(model, read())
            return lambda: validated(model, read())
        return read


MEMBER = ("professional-profile", "professional.pages.ProfilePage", "mara-lindqvist")
TIMELINE = ("microblog-profile", "microblog.api.TimelinePage", "old-lantern")
CASES = (
    Case(*MEMBER, "a48a929f0136", 1.45),
    Case(*MEMBER, "cfa3fe63800c", 1.45),
    Case(*MEMBER),
    Case(*TIMELINE, "e992000b9ff4", 1.5),
    Case(*TIMELINE, "d3ee9f8bd024", 1.5),
    Case(*TIMELINE),
    Case("photoapp-post-v4", "photoapp.pages.PostPage", "page-carousel", block='"xig_polaris_media"'),
    Case("retail-search-v4", "retail.pages.SearchPage", "search", "6096432e837b", 1.0, "__NEXT_DATA__"),
    Case("retail-search-v4", "retail.pages.SearchPage", "search", block="__NEXT_DATA__"),
    Case("videosite-profile", "videosite.pages.ChannelPage", "north.pier-videos", "173f1500a694", 1.0),
    Case("videosite-profile", "videosite.pages.ChannelPage", "north.pier-videos", block="ytInitialData"),
)


def fastest(run: Run) -> Mapping[str, float]:
    """Return the milliseconds of CPU time of a function's fastest run."""
    best = float("inf")
    for _ in range(REPETITIONS):
        start = time.process_time()
        run()
        best = min(best, (time.process_time() - start) * 1000)
    return {UNIT: best}


def run(rounds: int) -> list[Table]:
    """Measure all page objects in ``CASES``."""
    table = Table("Reading a page", CONDITIONS)
    for case in CASES:
        if case.capture in {"", *captures()}:
            own, floor = f"{case.name} ({len(case.body()) / 1000:.0f} kB)", f"{case.name}: plain parse"
            runs = {own: partial(fastest, case.reading()), floor: partial(fastest, case.floor())}
            found = in_turn(runs, rounds, warm_up=1)
            table.figures.extend(found.values())
            table.figures.append(
                ratio(f"{own} to plain parse", found[own, UNIT], found[floor, UNIT], at_most=case.goal)
            )
    return [table]
