"""Records the crawl of one target: its downloads, the page objects that read the responses, and the outcome. Reads kept
responses again, with today's page objects.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import attrs
from scrapy import signals
from scrapy.http import TextResponse
from web_poet import BrowserResponse, HttpResponse, PageParams, RulesRegistry, consume_modules, default_registry
from web_poet.testing import Fixture
from web_poet.utils import get_fq_class_name

from crawler.errors import ScrapeError
from crawler.platforms.page import PlatformPage
from crawler.registry import find_scraper
from crawler.storage.kept import KeptError, KeptResponse, load
from crawler.targets.reporter import target_completed
from crawler.targets.target import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from crawler.downloads.egress_setting import Egress
    from crawler.spiders.base import PlatformSpider
    from crawler.storage.scrub import Scrubber
    from crawler.targets.target import Scraper


MAX_LINE = 400


class ReadPage(NamedTuple):
    """A page object that has read its response, with the item or the error."""

    page: PlatformPage
    item: dict[str, Any]
    """{} if there was an error."""
    error: ScrapeError | None = None

    @property
    def problems(self) -> list[str]:
        """The unread parts, [] if the response was read completely."""
        return self.page.problems(self.error)


def overrides_for(url: str, settings: BaseSettings) -> Mapping[type, type]:
    """Return the page objects that override others for a URL, as scrapy-poet finds them in a crawl."""
    for module in settings.getlist("SCRAPY_POET_DISCOVER"):
        consume_modules(module)
    rules = settings.getlist("SCRAPY_POET_RULES", default_registry.get_rules())
    return RulesRegistry(rules=rules).overrides_for(url)


def reread(path: Path, settings: BaseSettings) -> ReadPage:
    """Read a kept response again.

    Raises:
        KeptError: the file is not a kept response, no scraper of this project reads it, or the page object refuses
            the params in it.
        OSError: the file cannot be read.
    """
    page = page_of(load(path), path, settings)
    try:
        return read(page)
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise KeptError(f"{path} cannot be read with the params in it: {type(error).__name__} ({error}).") from None


def inputs_of(page: PlatformPage) -> dict[str, Any]:
    """Return the inputs from which a page object was made, by name."""
    return {each.name: getattr(page, each.name) for each in attrs.fields(type(page)) if each.init}


def read(page: PlatformPage) -> ReadPage:
    """Read the item of a page object outside of a crawl, without sending a request, and record its payloads.

    No event loop may be running in this thread.
    """
    page.payloads = []
    try:
        return ReadPage(page, asyncio.run(page.to_item()))
    except ScrapeError as error:
        return ReadPage(page, {}, error)


def page_of(kept: KeptResponse, path: Path, settings: BaseSettings) -> PlatformPage:
    """Return the page object of a kept response.

    Raises:
        KeptError: the scraper is unknown, or none of its page objects reads the source of the response.
    """
    head = kept.head
    try:
        classes = find_scraper(head.scraper).pages
    except KeyError:
        raise KeptError(f"{path} is of the unknown scraper {head.scraper!r}.") from None
    found = next((each for each in classes if each.source == head.source), None)
    if found is None:
        raise KeptError(f"{path} is of the source {head.source!r}, which {head.scraper} does not have.")
    headers = {"Content-Type": f"{head.content_type.partition(';')[0] or 'text/html'}; charset=utf-8"}
    response = HttpResponse(head.url, kept.body, status=head.status, headers=headers)
    kind: Any = overrides_for(head.url, settings).get(found, found)
    page: PlatformPage = kind(response=response, page_params=PageParams(head.params))
    return page


@dataclass
class Download:
    """A request that was sent to the network, and its response."""

    request: Request
    started: float
    seconds: float | None = None
    response: Response | None = None
    page: PlatformPage | None = None
    """The page object that read the response. None if no page object read it, such as for a redirect."""


class Recorder:
    """Records the downloads of a crawler and its first outcome, from the crawler's signals."""

    def __init__(self, crawler: Crawler, scraper: Scraper, egress: Egress) -> None:
        """``egress``: the only egress of the crawler."""
        self.crawler = crawler
        self.scraper = scraper
        self.egress = egress
        self.downloads: list[Download] = []
        self.outcome: Outcome | None = None
        crawler.signals.connect(self.request_reached_downloader, signals.request_reached_downloader)
        crawler.signals.connect(self.request_left_downloader, signals.request_left_downloader)
        crawler.signals.connect(self.response_downloaded, signals.response_downloaded)
        crawler.signals.connect(self.response_received, signals.response_received)
        crawler.signals.connect(self.target_completed, target_completed)

    def request_reached_downloader(self, request: Request) -> None:
        """Record the start of a download."""
        self.downloads.append(Download(request, time.monotonic()))

    def request_left_downloader(self, request: Request) -> None:
        """Record the duration of a download, whether or not it has a response."""
        for download in self._of(request):
            download.seconds = time.monotonic() - download.started

    def response_downloaded(self, request: Request, response: Response) -> None:
        """Record the response of a download."""
        for download in self._of(request):
            download.response = response

    def response_received(self, response: Response) -> None:
        """Record the page object that reads a response: the injected one, or one that recognises the response."""
        assert response.request is not None
        pages = [value for value in response.request.cb_kwargs.values() if isinstance(value, PlatformPage)]
        for download in self._of(response.request):
            download.response = response
            download.page = pages[0] if pages else self._recognise(response)

    def target_completed(self, outcome: Outcome) -> None:
        """Record the first outcome. Later outcomes belong to follow-up targets."""
        self.outcome = self.outcome or outcome

    @property
    def stale_ids(self) -> dict[str, str]:
        """The ids in the platform's ``ids.json`` that this crawl found to be out of date, each with the reason."""
        return cast("PlatformSpider", self.crawler.spider).stale_ids

    def _of(self, request: Request) -> Iterable[Download]:
        return (download for download in self.downloads if download.request is request)

    def _recognise(self, response: Response) -> PlatformPage | None:
        """Return a page object for a response that the spider reads without scrapy-poet, or None."""
        if isinstance(response, TextResponse):
            for page in self.scraper.pages:
                if page.recognise(response.text):
                    headers = {"Content-Type": "text/html; charset=utf-8"}
                    body = response.text.encode()
                    assert response.request is not None
                    params = PageParams(response.request.meta.get("page_params", {}))
                    copy = HttpResponse(response.url, body, status=response.status, headers=headers)
                    return page(response=copy, page_params=params)
        return None

    # Fixtures

    def save(self, folder: Path, scrubber: Scrubber) -> list[tuple[Path, str]]:
        """Save each response that a page object has read as a fixture, without secrets.

        Return each fixture's folder, with a note if the removal of secrets has changed the data of its page, else "".

        Raises:
            TypeError: a page object has an input from which secrets cannot be removed.
        """
        for each in self.downloads:
            for headers in (each.request.headers, each.response.headers if each.response else {}):
                pairs = ((name, value) for name, values in headers.items() for value in values)
                scrubber.learn((name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs)
        return [_save(download.page, folder, scrubber) for download in self.downloads if download.page is not None]


def _save(page: PlatformPage, folder: Path, clean: Any) -> tuple[Path, str]:
    inputs = {name: _scrubbed(value, clean) for name, value in inputs_of(page).items()}
    before = read(page)
    copy = type(page)(**inputs)
    after = read(copy)
    into = folder / get_fq_class_name(type(page))
    name = next(name for n in range(1, 10_000) if not (into / (name := f"probe-{n}")).exists())
    item = None if after.error else after.item
    Fixture.save(into, inputs=list(inputs.values()), item=item, exception=after.error, meta={}, fixture_name=name)
    return into / name, _difference(before, after)


def _scrubbed(value: Any, clean: Any) -> Any:
    match value:
        case HttpResponse():
            kind = value.headers.get("Content-Type", "text/html").partition(";")[0]
            headers = {"Content-Type": f"{kind}; charset=utf-8"}
            return HttpResponse(clean(str(value.url)), clean(value.text).encode(), status=value.status, headers=headers)
        case BrowserResponse():
            return BrowserResponse(url=clean(str(value.url)), html=clean(str(value.html)), status=value.status)
        case PageParams():
            return PageParams({k: clean(v) if isinstance(v, str) else v for k, v in value.items()})
    raise TypeError(f"inputs of type {type(value).__name__} cannot be scrubbed, so the page is not saved")


def _difference(before: ReadPage, after: ReadPage) -> str:
    """Describe how the removal of secrets has changed the data or the error of a page. Return "" if it has not."""
    if type(before.error) is not type(after.error):
        return f"scrubbing changed the outcome ({after.error or 'data'}): name the required values with --keep"
    changed = [key for key, value in before.item.items() if value != after.item.get(key)]
    return f"scrubbing changed the data: {', '.join(changed)}" if changed else ""
