"""The examples of the OpenAPI document equal the answers of a running service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crawler.errors import MethodNotAllowed, ScraperNotFound, documented
from crawler.registry import scrapers
from crawler.service.openapi import document
from tests.browsers import require_chromium
from tests.openapi import DOCUMENT
from tests.service.conftest import running
from tests.service.examples import FILE, failures, successes

RECORDED = json.loads(FILE.read_text())
NOT_RECORDED = {MethodNotAllowed.code, ScraperNotFound.code}
"""Errors of routes and methods that the document does not have."""


def timeless(part: Any) -> Any:
    """Return an answer without the seconds of its ``retry_after``, which depend on the clock."""
    if isinstance(part, dict):
        return {key: key if key == "retry_after" and value else timeless(value) for key, value in part.items()}
    return [timeless(each) for each in part] if isinstance(part, list) else part


def test_the_examples_equal_the_answers_of_a_service(tmp_path: Path) -> None:
    require_chromium()
    with running(tmp_path / "log") as service:
        assert successes(service.url) == RECORDED["successes"]
        assert timeless(failures(service.url, tmp_path)) == timeless(RECORDED["failures"])


def test_each_scraper_and_each_error_has_its_example() -> None:
    assert RECORDED["successes"].keys() == {each.name for each in scrapers().values()}
    assert RECORDED["failures"].keys() == {kind.code for kind in documented()} - NOT_RECORDED
    assert all(each["success"] for each in RECORDED["successes"].values())
    for code, each in RECORDED["failures"].items():
        assert each["error"]["code"] == code


def test_the_document_is_compact() -> None:
    assert len(json.dumps(document(), separators=(",", ":"), ensure_ascii=False).encode()) <= 200_000


@pytest.mark.parametrize("name", sorted({each.name for each in scrapers().values()}))
def test_the_document_shows_the_example_of_each_scraper(name: str) -> None:
    reference = DOCUMENT["paths"][f"/v1/scrapers/{name}"]["post"]["responses"]["200"]["$ref"]
    response = DOCUMENT["components"]["responses"][reference.rpartition("/")[2]]
    assert response["content"]["application/json"]["example"] == RECORDED["successes"][name]
