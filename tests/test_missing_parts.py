"""No scraper lacks a required part (documentation, fixtures, ...), and messages name each missing part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawler.platforms.microblog.pages import ProfilePage
from crawler.platforms.retail.pages import ListingPage, SearchPage
from crawler.registry import find_scraper, scrapers
from crawler.sandbox.retail.site import Site
from scripts import missing_parts, nulls
from scripts.golden.crawls import listed

pytestmark = pytest.mark.meta

SCRAPER = find_scraper("retail-category-v4")
LISTING = "crawler.platforms.retail.pages.ListingPage"
Patch = pytest.MonkeyPatch


def test_no_part_is_missing() -> None:
    assert [str(each) for each in missing_parts.missing()] == [], "python -m scripts.missing_parts"


def found(parts: Any) -> list[tuple[str, str]]:
    return [(each.of, each.part) for each in parts]


# Page classes


@pytest.fixture
def fixtures(tmp_path: Path, monkeypatch: Patch) -> Iterator[Path]:
    """An empty folder of fixtures."""
    monkeypatch.setattr(missing_parts, "FIXTURES", tmp_path)
    missing_parts.fixtures_of.cache_clear()
    yield tmp_path
    missing_parts.fixtures_of.cache_clear()


def test_page_classes_are_those_that_spiders_request() -> None:
    names = {each.__name__ for each in missing_parts.page_classes("microblog")}
    assert names == {"EmbedPage", "GuestTokenPage", "ProfilePage", "TimelinePage", "UserPage"}, "without base classes"


@pytest.mark.usefixtures("fixtures")
def test_a_page_class_without_a_fixture_is_named() -> None:
    assert found(missing_parts.of_page_class(ListingPage, (SCRAPER,))) == [(LISTING, "no fixture")]
    assert found(missing_parts.of_scraper(SCRAPER)) == [(SCRAPER.name, "no support in scrapy extract")]


def test_a_page_class_that_no_scraper_extracts_is_named() -> None:
    assert found(missing_parts.of_page_class(SearchPage, (SCRAPER,))) == [
        ("crawler.platforms.retail.pages.SearchPage", "no support in scrapy extract")
    ]


def test_the_exceptions_exist() -> None:
    names = {
        f"{page.__module__}.{page.__name__}"
        for platform in ("microblog", "photoapp", "shortvideo")
        for page in missing_parts.page_classes(platform)
    }
    assert names >= missing_parts.NOT_EXTRACTED.keys() | missing_parts.ONLY_ERRORS.keys()


# Scrapers


def without_truth(monkeypatch: Patch) -> None:
    def fail(_: Site, params: dict[str, Any]) -> dict[str, Any]:
        raise KeyError(params["cat_id"])

    monkeypatch.setattr(Site, "expected_record", fail)


def with_another_truth(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Site, "expected_record", lambda *_: {"products": []})


def without_target(monkeypatch: Patch) -> None:
    others = [target for target in listed() if target.get("scraper") != SCRAPER.name or "fault" in target]
    monkeypatch.setattr(missing_parts, "listed", lambda: others)


def without_outcome(monkeypatch: Patch) -> None:
    monkeypatch.setattr(missing_parts, "RECORD", Path("/dev/null"))


def without_counts(monkeypatch: Patch) -> None:
    monkeypatch.setattr(nulls, "read", lambda: {nulls.SANDBOX: {}, nulls.SAVED: {}})


def without_nulls(monkeypatch: Patch) -> None:
    monkeypatch.setattr(nulls, "PAGE", Path("/dev/null"))


@pytest.mark.parametrize(
    ("remove", "part"),
    [
        (without_truth, "no truth in the sandbox"),
        (with_another_truth, "no truth in the sandbox"),
        (without_target, "no golden row"),
        (without_outcome, "no golden row"),
        (without_counts, "no counts for docs/nulls.md"),
        (without_nulls, "not up to date in docs/nulls.md"),
    ],
)
def test_a_missing_part_of_a_scraper_is_named(monkeypatch: Patch, remove: Callable[[Patch], None], part: str) -> None:
    remove(monkeypatch)
    assert found(missing_parts.of_scraper(SCRAPER)) == [(SCRAPER.name, part)]


def test_a_scraper_that_extract_cannot_read_is_named() -> None:
    """Cases: no pages, pages of another record, and a first page class that also accepts the pages of the second."""
    part = (SCRAPER.name, "no support in scrapy extract")
    assert found(missing_parts.of_scraper(replace(SCRAPER, pages=()))) == [part]
    assert found(missing_parts.of_scraper(replace(SCRAPER, pages=(ProfilePage,)))) == [part]
    assert found(missing_parts.of_scraper(replace(SCRAPER, pages=(SearchPage, ListingPage)))) == [part]


# Documentation


def test_a_platform_without_a_page_is_named() -> None:
    assert found(missing_parts.of_documentation("bookshop", ())) == [("docs/platforms/bookshop.md", "no page")]


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("| field | note |\n|---|---|\n| `likes` | wrong |\n", ["likes"]),
        ("| field | note |\n|---|---|\n| `name`, `prices` | `shoes` |\n| all `products[].price` | |\n", ["prices"]),
        ("| field | note |\n|---|---|\n| `price.current_price`, `products[].name` | |\n", []),
        (
            "| field | note |\n|---|---|\n| `rice.current_price` | the end of a name is not a name |\n",
            ["rice.current_price"],
        ),
        ("| param | scraper | meaning |\n|---|---|---|\n| `cat_id` | | |\n| `cat` | | |\n", ["cat"]),
        ("| fault | target |\n|---|---|\n| `gone` | |\n", []),
    ],
)
def test_a_page_that_names_what_does_not_exist_is_named(
    tmp_path: Path, monkeypatch: Patch, table: str, names: list[str]
) -> None:
    page = tmp_path / "docs" / "platforms" / "retail.md"
    page.parent.mkdir(parents=True)
    page.write_text(f"# Retail\n\n{table}\n")
    monkeypatch.setattr(missing_parts, "ROOT", tmp_path)
    own = tuple(scraper for scraper in scrapers().values() if scraper.platform == "retail")
    missing = list(missing_parts.of_documentation("retail", own))
    assert [each.remedy for each in missing] == [f"no scraper has {name}" for name in names]
