"""``scrapy probe --all``: its table and its exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.probe.report import load_targets
from crawler.registry import find_scraper, scrapers
from crawler.targets.parser import check_params
from tests.shop import Shop, open_shop


@pytest.fixture
def shop() -> Iterator[Shop]:
    with open_shop() as served:
        yield served


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    targets = tmp_path / "targets.json"
    found = {"retail-category-v4": {"cat_id": "976759", "page": 2}, "retail-search-v4": {"query": "mustard"}}
    targets.write_text(json.dumps(found))
    return ["probe", "--all", "--targets", str(targets)]


def test_a_part_that_was_unread_is_reported(shop: Shop, arguments: list[str]) -> None:
    first = shop.scrapy(*arguments)
    assert first.returncode == 0, first.stdout + first.stderr
    assert re.search(r"retail +retail-category-v4 +listing +1 requests +0 blocks +\d+\.\d\d s  OK\n", first.stdout)
    assert re.search(r"retail +retail-search-v4 +search +1 requests", first.stdout)
    assert re.search(r"products\[\]\.rating\.average +\d+% null of +\d+\n", first.stdout)
    assert first.stdout.endswith("2 of 2 targets have all of their data.\n")
    shop.alter = lambda body: body.replace(b'"averageRating"', b'"meanRating"')
    worse = shop.scrapy(*arguments)
    assert worse.returncode == 4, worse.stdout
    assert re.search(r"WARNING  unread in listing: \S+averageRating", worse.stdout)
    assert re.search(r"products\[\]\.rating\.average +100% null of +\d+\n", worse.stdout)
    assert worse.stdout.endswith("0 of 2 targets have all of their data.\n")


def test_a_block_is_counted(shop: Shop, arguments: list[str]) -> None:
    shop.alter = lambda _: b'<html><title>Robot or human?</title><div id="px-captcha"></div></html>'
    blocked = shop.scrapy(*arguments, RETRY_TIMES=0)
    assert blocked.returncode == 4, blocked.stdout
    assert re.search(r"listing +\d requests +[1-9] blocks +\S+ s  UPSTREAM_BLOCKED\n  ERROR ", blocked.stdout)


@pytest.mark.parametrize(
    ("content", "message"),
    [("[]", "must be a JSON object of params by scraper name"), ('{"shop": {}}', "names the unknown scraper 'shop'")],
)
def test_a_wrong_targets_file_is_refused(shop: Shop, arguments: list[str], content: str, message: str) -> None:
    Path(arguments[3]).write_text(content)
    refused = shop.scrapy(*arguments)
    assert refused.returncode == 2
    assert message in refused.stdout + refused.stderr


def test_a_scraper_beside_all_is_refused(shop: Shop) -> None:
    refused = shop.scrapy("probe", "retail-category-v4", "--all")
    assert refused.returncode == 2
    assert "--targets FILE" in refused.stdout + refused.stderr


def test_every_scraper_has_a_known_target() -> None:
    targets = load_targets(None, sandbox=False)
    assert {find_scraper(name).data for name in targets} == {scraper.data for scraper in scrapers().values()}
    for name, params in targets.items():
        check_params(find_scraper(name), params)


def test_every_scraper_of_the_sandbox_is_probed_once() -> None:
    """``probe --all`` used to print a scraper with an alias twice."""
    targets = load_targets(None, sandbox=True)
    assert sorted(targets) == sorted({scraper.name for scraper in scrapers().values()})
