"""Each transcribed capture gives the error that its entry names."""

from __future__ import annotations

import asyncio

import pytest

import crawler.errors
from crawler.commands.extract import extract
from crawler.platforms import platforms
from crawler.registry import scrapers
from scripts.captures import CAPTURES
from scripts.golden.extracts import SCRAPERS
from tests.transcribe import FAILURES, PATHS, Entry, body_of, entries

pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded pages (../shared/captures) are missing")

FAILED = [entry for entry in entries() if FAILURES[entry.platform, entry.name][1]]


def id_of(entry: Entry) -> str:
    return f"{entry.platform}-{entry.name}"


def url_of(entry: Entry) -> str:
    return platforms()[entry.platform].origin + PATHS.get(entry.platform, "/")


@pytest.mark.parametrize("entry", FAILED, ids=id_of)
def test_a_capture_of_a_failure_gives_its_error_and_reason(entry: Entry) -> None:
    error, reason = FAILURES[entry.platform, entry.name]
    for scraper in SCRAPERS[entry.platform]:
        with pytest.raises(getattr(crawler.errors, error)) as raised:
            asyncio.run(extract(scrapers()[scraper], [body_of(entry).encode()], {}, url=url_of(entry)))
        assert raised.value.reason == reason
