"""Each transcribed capture gives the record that the platform's field map reads from it, or the error of the notes.

The field maps (``tests/field_maps``) follow the notes on the platforms and share no code with the page objects.
"""

from __future__ import annotations

import asyncio
from importlib import import_module

import pytest
from web_poet import HttpResponse, PageParams

import crawler.errors
from crawler.commands.extract import extract
from crawler.platforms import platforms
from crawler.registry import scrapers
from scripts.captures import CAPTURES
from scripts.golden.extracts import SCRAPERS
from tests.expect import FAILURES, expected
from tests.transcribe import PATHS, Entry, body_of, entries

pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are missing")

FAILED = [entry for entry in entries() if FAILURES.get((entry.platform, entry.name), ("", ""))[1]]
READ = [entry for entry in entries() if (entry.platform, entry.name) not in FAILURES]


def id_of(entry: Entry) -> str:
    return f"{entry.platform}-{entry.name}"


def url_of(entry: Entry) -> str:
    return platforms()[entry.platform].origin + PATHS.get(entry.platform, "/")


@pytest.mark.parametrize("entry", READ, ids=id_of)
def test_a_capture_gives_the_record_of_the_field_map(entry: Entry) -> None:
    body = body_of(entry)
    module, _, name = entry.page.rpartition(".")
    page_class = getattr(import_module(module), name)
    page = page_class(HttpResponse(url_of(entry), body.encode(), encoding="utf-8"), PageParams({}))
    assert page_class.recognise(body)
    assert dict(asyncio.run(page.to_item())) == expected(entry, body)


@pytest.mark.parametrize("entry", FAILED, ids=id_of)
def test_a_capture_of_a_failure_gives_its_error_and_reason(entry: Entry) -> None:
    error, reason = FAILURES[entry.platform, entry.name]
    for scraper in SCRAPERS[entry.platform]:
        with pytest.raises(getattr(crawler.errors, error)) as raised:
            asyncio.run(extract(scrapers()[scraper], [body_of(entry).encode()], {}, url=url_of(entry)))
        assert raised.value.reason == reason
