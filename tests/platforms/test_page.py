"""The base class of all page objects."""

from __future__ import annotations

import ast
import asyncio
import gc
import weakref
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, ClassVar

import attrs
import pytest
from web_poet import HttpResponse, PageParams, field

import crawler.platforms
from crawler.errors import ExtractionFailed, ScrapeError, UpstreamBlocked
from crawler.platforms.page import MAX_BYTES, PlatformPage
from crawler.platforms.videosite import details as feed
from crawler.platforms.videosite.details import FeedPage
from tests.mutations import PageFixture, fixtures


@attrs.define(slots=False)
class WordPage(PlatformPage):
    """A page with one field. It records each call of its validation and of its field."""

    source: ClassVar[str] = "word"

    def __attrs_post_init__(self) -> None:
        self.runs: list[str] = []

    def validate_input(self) -> None:
        """Validate in the same way as other page classes."""
        self.runs.append("validate")
        self.raise_for_failures()

    @field
    def word(self) -> str:
        self.runs.append("field")
        return str(self.response.text)


def page_of(body: bytes = b"word") -> WordPage:
    return WordPage(response=HttpResponse("https://platform.example/", body), page_params=PageParams())


def page_classes() -> list[type[PlatformPage]]:
    """Return every page class of the package."""
    for module in walk_packages(crawler.platforms.__path__, "crawler.platforms."):
        import_module(module.name)
    found, waiting = [], [PlatformPage]
    while waiting:
        below = [kind for kind in waiting.pop().__subclasses__() if kind.__module__.startswith("crawler.platforms.")]
        found += below
        waiting += below
    return found


def test_page_classes_add_fields_only() -> None:
    classes = page_classes()
    assert len(classes) > 20
    assert {kind for kind in classes if vars(kind).keys() & {"to_item", "_validate_input"}} == set()


def test_an_item_is_read_once() -> None:
    page = page_of()
    assert asyncio.run(page.to_item()) is asyncio.run(page.to_item())
    assert asyncio.run(page.to_item()) == {"word": "word"}
    assert page.runs == ["validate", "field"]


def test_reading_a_field_validates_the_page_once() -> None:
    page = page_of()
    assert (page.word, page.word) == ("word", "word")
    assert page.runs == ["validate", "field", "field"]


def test_an_invalid_page_raises_at_each_read() -> None:
    page = page_of(b"")
    for read in (lambda: asyncio.run(page.to_item()), lambda: page.word):
        with pytest.raises(UpstreamBlocked):
            read()
    assert page.runs == ["validate", "validate"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("content_type", ["application/json", "text/html; charset=utf-8", "text/html; charset=latin-1"])
def test_a_body_with_a_byte_order_mark_is_decoded_once(encoding: str, content_type: str) -> None:
    response = HttpResponse(
        "https://platform.example/", '{"é": 1}'.encode(encoding), status=203, headers={"Content-Type": content_type}
    )
    page = WordPage(response=response, page_params=PageParams())
    assert (bytes(page.response.body), page.response.text) == ('{"é": 1}'.encode(), '{"é": 1}')
    assert (page.response.status, page.response.encoding, str(page.response.url)) == (203, "utf-8", str(response.url))
    assert page.response.headers["Content-Type"] == content_type


OF_EACH_PAGE = {each.case.page.__name__: each for each in fixtures()}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("kind", OF_EACH_PAGE)
def test_a_page_is_read_alike_with_a_byte_order_mark(kind: str, encoding: str) -> None:
    """Editors save such files. No recorded response has a mark."""
    fixture = OF_EACH_PAGE[kind]
    assert fixture.read(fixture.body.decode().encode(encoding)) == fixture.original


def test_a_body_without_a_byte_order_mark_is_not_copied() -> None:
    response = HttpResponse("https://platform.example/", "é".encode("latin-1"))
    assert WordPage(response=response, page_params=PageParams()).response is response


@pytest.mark.parametrize("status", [403, 429, 503])
def test_an_error_by_status_has_the_seconds_of_retry_after(status: int) -> None:
    response = HttpResponse("https://platform.example/", b"later", status=status, headers={"Retry-After": "120"})
    with pytest.raises(ScrapeError) as failed:
        asyncio.run(WordPage(response=response, page_params=PageParams()).to_item())
    assert failed.value.retry_after == 120


def test_a_page_is_freed_without_the_garbage_collector() -> None:
    """Page bodies take megabytes, so they must not be kept alive by a reference cycle."""
    page: Any = page_of()
    asyncio.run(page.to_item())
    freed = weakref.ref(page)
    gc.disable()
    try:
        del page
        assert freed() is None
    finally:
        gc.enable()


def test_every_extraction_failure_names_its_paths() -> None:
    """``docs/errors.md`` promises these paths. The error tables of ``blocks.py`` and ``api.py`` are included."""
    package = Path(crawler.platforms.__path__[0]).parent
    created = [
        (path, node)
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ExtractionFailed"
    ]
    assert created
    without = [f"{path}:{node.lineno}" for path, node in created if "details" not in {k.arg for k in node.keywords}]
    assert not without


@pytest.mark.parametrize("fixture", fixtures(), ids=lambda each: each.name)
def test_a_response_that_is_larger_than_the_limit_is_not_read(fixture: PageFixture) -> None:
    limit = feed.MAX_BYTES if fixture.case.page is FeedPage else MAX_BYTES
    padding = b" " * (limit - len(fixture.body))
    assert asyncio.run(fixture.case.page_object(fixture.body + padding).to_item()) == fixture.item
    larger = fixture.body + padding + b" " * (MAX_BYTES + 1 - limit)
    with pytest.raises(ExtractionFailed) as refused:
        asyncio.run(fixture.case.page_object(larger).to_item())
    assert refused.value.reason == "too_large"
