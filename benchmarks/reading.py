"""The cost of reading a response with a page object, compared with a plain parse of the same response."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lxml.html
import orjson
from pydantic import BaseModel
from web_poet import HttpResponse, PageParams
from web_poet.serialization.api import load_class
from web_poet.testing import Fixture

from benchmarks.figures import Figure, Ratio, Table, ratio
from benchmarks.stack import BIN, ROOT
from crawler.errors import ExtractionFailed
from crawler.pipelines import validated
from crawler.platforms.microblog.js_literals import Literals
from crawler.platforms.page import PlatformPage
from crawler.registry import scrapers
from scripts.captures import body_of, captures

REPETITIONS = 15
"""How often each function is run per round, in turn with the others. The fastest run is the round's value."""
PHOTOAPP_DATA = '"xig_polaris_media"'
"""A text that only the block with the data of the photo app's page contains."""

CONDITIONS = f"""\
CPU time from the body's bytes to the item. If the page has the whole record of a scraper, validation is included.
The floor is a plain parse of the same page with nothing of this project in it: `lxml.html.document_fromstring` for
HTML, `orjson.loads` for JSON. For JSON inside an HTML page, the floor is `orjson.loads` on the block with the data,
cut out beforehand: it does not include finding the block in the page, which the page object must do. For script
literals, it is `orjson.loads` on the same data, written as JSON beforehand. For the photo app, whose data is a small
part of a large page, a second floor includes `bytes.find` for the block, given a text that only this block has. The
pages are those of the sandbox's examples, and captures where they are available.
Floors and page object run in turn in one process, {REPETITIONS} times per round; the value of a round is the fastest
run."""

Run = Callable[[], object]
Floor = Callable[[bytes], tuple[str, Run]]
"""Takes the body, and returns the floor's name and function."""


def parsed_html(body: bytes) -> tuple[str, Run]:
    """Return the floor of an HTML page."""
    return "lxml", lambda: lxml.html.document_fromstring(body)


def parsed_json(body: bytes) -> tuple[str, Run]:
    """Return the floor of JSON."""
    return "orjson", lambda: orjson.loads(body)


def parsed_block(mark: str) -> Floor:
    """Return the floor of a page whose data is in a script: JSON, or the assignment of JSON to a variable.

    ``mark``: a text that the script, or its id, contains. If several scripts contain it, the longest one counts.
    """
    return lambda body: parsed_json(block_of(body, mark))


def block_of(body: bytes, mark: str) -> bytes:
    """Cut the JSON out of the longest script of a page that contains a text.

    >>> block_of(b'<p>data<script>var data = {"a": [1]};</script><script>data</script>', "data")
    b'{"a": [1]}'
    """
    elements = lxml.html.document_fromstring(body, parser=lxml.html.HTMLParser(encoding="utf-8")).xpath("//script")
    texts = [each.text for each in elements if each.text and (mark in each.text or mark == each.get("id"))]
    longest = max(texts, key=len)
    return str(longest[longest.index("{") : longest.rindex("}") + 1]).encode()


def found_block(mark: bytes) -> Floor:
    """Return the floor of finding a script that contains a text, and of decoding it."""

    def find_and_decode(body: bytes) -> object:
        at = body.find(mark)
        start = body.find(b">", body.rfind(b"<script", 0, at)) + 1
        return orjson.loads(body[start : body.find(b"</script>", at)])

    return lambda body: ("bytes.find and orjson", lambda: find_and_decode(body))


def parsed_literals(body: bytes) -> tuple[str, Run]:
    """Return the floor of a page with script literals: ``orjson.loads`` on their data, written as JSON beforehand."""
    literals = Literals()
    for script in lxml.html.document_fromstring(body).xpath("//script/text()"):
        if "$R[" in script:
            literals.read(script)
    return parsed_json(orjson.dumps(outermost(literals.containers)))


def outermost(containers: list[Any]) -> list[Any]:
    """Return the dicts and lists that are in no other one.

    >>> inner = {"b": 1}
    >>> outermost([[inner], inner, {}])
    [[{'b': 1}], {}]
    """
    values = (each.values() if isinstance(each, dict) else each for each in containers)
    inside = {id(value) for each in values for value in each}
    return [each for each in containers if id(each) not in inside]


@dataclass(frozen=True)
class Case:
    """A page object, the page that it reads, its floors, and the goal."""

    scraper: str
    page: str
    """The name of the class."""
    floor: Floor
    goal: float | None = None
    """The goal for the ratio to ``floor``."""
    second_floor: Floor | None = None
    capture: str = ""
    """The name of the capture with the page. Without the captures, the case is left out. Empty: the page of the
    scraper's example in the sandbox."""
    renamed: bytes = b""
    """A key of the capture that gets another name, so that the careful pass reads the page."""
    second_goal: float | None = None
    """The goal for the ratio to ``second_floor``, or to the same page without the renamed key."""

    @property
    def name(self) -> str:
        """How the table names the page."""
        recorded = f", capture {self.capture}" if self.capture in captures() else ""
        return f"{self.scraper.partition('-')[0]} {self.page}{recorded}{', a key renamed' if self.renamed else ''}"


CASES = (
    Case("professional-profile", "ProfilePage", parsed_html, 1.5),
    Case("professional-profile", "ProfilePage", parsed_html, 1.5, capture="a48a929f0136"),
    Case("professional-profile", "ProfilePage", parsed_html, 1.5, capture="cfa3fe63800c"),
    Case("professional-profile-v4", "ContentPage", parsed_html, 1.5),
    Case("professional-profile-v4", "ContentPage", parsed_html, 1.5, capture="a48a929f0136"),
    Case("professional-profile-v4", "ContentPage", parsed_html, 1.5, capture="cfa3fe63800c"),
    Case("microblog-profile", "ProfilePage", parsed_literals, 25),
    Case("microblog-profile", "TimelinePage", parsed_json, 1.3),
    Case("microblog-profile", "TimelinePage", parsed_json, 1.3, capture="e992000b9ff4"),
    Case("microblog-profile", "TimelinePage", parsed_json, 1.3, capture="d3ee9f8bd024"),
    Case("microblog-profile", "EmbedPage", parsed_block("__NEXT_DATA__")),
    Case(
        "photoapp-post-v4",
        "PostPage",
        parsed_block(PHOTOAPP_DATA),
        second_floor=found_block(PHOTOAPP_DATA.encode()),
        second_goal=1.4,
    ),
    Case("retail-category-v4", "ListingPage", parsed_block("__NEXT_DATA__")),
    Case("retail-search-v4", "SearchPage", parsed_block("__NEXT_DATA__"), 0.9, capture="6096432e837b"),
    Case(
        "retail-search-v4",
        "SearchPage",
        parsed_block("__NEXT_DATA__"),
        capture="6096432e837b",
        renamed=b"averageRating",
        second_goal=3,
    ),
    Case("shortvideo-photo-search-v4", "ResultsPage", parsed_json, 1.0, capture="dcff329e5459"),
    Case("videosite-profile", "ChannelPage", parsed_block("ytInitialData")),
    Case(
        "videosite-profile",
        "ChannelPage",
        parsed_json,
        0.9,
        capture="173f1500a694",
    ),
    Case("videosite-profile-v3", "FeedPage", parsed_html, 4, capture="68f6c07439d5"),
)


def saved_pages(scraper: str, folder: Path) -> list[PlatformPage]:
    """Run a scraper's example in the sandbox. Return its pages, one of each page object."""
    command: list[str | Path] = [
        BIN / "scrapy",
        "probe",
        scraper,
        "--save",
        folder,
        "-s",
        "SANDBOX=1",
        "-s",
        "LOG_LEVEL=ERROR",
    ]
    env = {name: value for name, value in os.environ.items() if not name.startswith("CRAWLER_")}
    subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)
    return [page_of(min(kind.iterdir())) for kind in sorted(folder.iterdir())]


def page_of(fixture: Path) -> PlatformPage:
    """Return the page object of a fixture, with its inputs."""
    page = Fixture(fixture).get_page(load_class(fixture.parent.name))
    assert isinstance(page, PlatformPage)
    return page


def page_for(case: Case, examples: list[PlatformPage]) -> PlatformPage:
    """Return the page of a case: one of the examples, or a capture."""
    page = next(each for each in examples if type(each).__qualname__ == case.page)
    kind = type(page)
    if case.capture in captures():
        body = body_of(case.capture)
        body = body.replace(b'"%b":' % case.renamed, b'"renamed":') if case.renamed else body
        response = HttpResponse(page.response.url, body, status=200, headers=page.response.headers)
        return kind(response=response, page_params=PageParams({}))
    return page


def reading(page: PlatformPage, model: type[BaseModel] | None) -> Run:
    """Return a function that reads a page's response, and validates the item if a model is given."""
    response, kind, body = page.response, type(page), bytes(page.response.body)

    def run() -> object:
        again = HttpResponse(response.url, body, status=response.status, headers=response.headers)
        item = kind(response=again, page_params=page.page_params).to_item()
        try:
            item.send(None)  # page objects do no I/O
        except StopIteration as finished:
            return validated(model, finished.value) if model else finished.value
        raise SystemExit(f"{kind.__name__}.to_item() must not await anything")

    return run


def full_record_model(page: PlatformPage, scraper: str) -> type[BaseModel] | None:
    """Return the scraper's model if the page alone contains the whole record."""
    model = scrapers()[scraper].data
    with contextlib.suppress(ExtractionFailed):
        reading(page, model)()
        return model
    return None


def fastest(*runs: Run) -> list[float]:
    """Return the milliseconds of CPU time of each function's fastest run. They run in turn."""
    best = [float("inf")] * len(runs)
    for _ in range(REPETITIONS):
        for number, run in enumerate(runs):
            start = time.process_time()
            run()
            best[number] = min(best[number], (time.process_time() - start) * 1000)
    return best


def measure(case: Case, page: PlatformPage, rounds: int) -> tuple[list[Figure], list[Ratio]]:
    """Measure a page object and its floors. The first case is measured twice, as a check of the measurement."""
    body = bytes(page.response.body)
    run = reading(page, full_record_model(page, case.scraper))
    named = [floor(body) for floor in (case.floor, case.second_floor) if floor]
    if case.renamed:
        unchanged = page_for(replace(case, renamed=b""), [page])
        named.append(("the same page, unchanged", reading(unchanged, full_record_model(unchanged, case.scraper))))
    if case is CASES[0]:
        named.append(("the same page object, measured again", run))
    run()
    values = zip(*(fastest(run, *(each for _, each in named)) for _ in range(rounds)), strict=True)
    name, unit = f"{case.name} ({len(body) / 1000:.0f} kB)", "ms of CPU time"
    own, *others = (
        Figure(title, unit, each)
        for title, each in zip((name, *(f"{name}: {title}" for title, _ in named)), values, strict=True)
    )
    goals = (case.goal, *(case.second_goal for _ in others[1:]))
    return [own, *others], [
        ratio(f"{name} to {title}", own, other, at_most=goal)
        for (title, _), other, goal in zip(named, others, goals, strict=True)
    ]


def run(rounds: int = 5) -> Table:
    """Measure all page objects in ``CASES``."""
    table = Table("Reading a page", CONDITIONS)
    for scraper in dict.fromkeys(case.scraper for case in CASES):
        with tempfile.TemporaryDirectory() as folder:
            examples = saved_pages(scraper, Path(folder))
        for case in CASES:
            if case.scraper == scraper and case.capture in {"", *captures()}:
                figures, ratios = measure(case, page_for(case, examples), rounds)
                table.figures.extend(figures)
                table.ratios.extend(ratios)
    return table
