"""The demo calls every scraper, and prints its data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crawler.registry import scrapers
from scripts import demo
from tests.crawls import expected_record

OWN = {name: scraper for name, scraper in scrapers().items() if name == scraper.name}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces the calls to the service by records of the sandbox. Returns the list of scrapers that were called."""
    names: list[str] = []

    def call(_base: str, name: str, params: dict[str, Any]) -> dict[str, Any]:
        if params == demo.UNKNOWN_CATEGORY:
            return {"status": {"code": "TARGET_NOT_FOUND", "retryable": False, "message": ""}}
        names.append(name)
        return {"success": True, "data": expected_record(OWN[name]), "meta": {"duration_ms": 1}}

    catalogue = {name: {"example": scraper.example, "summary": scraper.summary} for name, scraper in OWN.items()}
    monkeypatch.setattr(demo, "catalogue", lambda _: catalogue)
    monkeypatch.setattr(demo, "call", call)
    return names


def test_the_demo_shows_every_scraper(called: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.show_calls("")
    assert sorted(called) == sorted(OWN)
    printed = capsys.readouterr().out
    for name, scraper in OWN.items():
        assert f"{name}  {json.dumps(dict(scraper.example))}" in printed
    assert demo.SHOWN_BY.keys() <= OWN.keys()
