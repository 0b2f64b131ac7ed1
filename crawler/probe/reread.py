"""Reads kept responses again, with today's page objects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
from web_poet import HttpResponse, PageParams, RulesRegistry, consume_modules, default_registry

from crawler.errors import ScrapeError
from crawler.platforms.page import PlatformPage
from crawler.registry import find_scraper
from crawler.storage.kept import KeptError, KeptResponse, load

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

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
