"""Every platform has all its rooms: whoever knows one platform knows them all."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# A platform's second file in a room is named after it: retail_product.
PLATFORMS = sorted(
    path.stem for path in (ROOT / "crawler/spiders").glob("[a-z]*.py") if path.stem != "base" and "_" not in path.stem
)
ROOMS = (
    "crawler/schemas/{}.py",
    "crawler/upstream/{}.py",
    "crawler/pages/{}.py",
    "crawler/sandbox/{}.py",
    "tests/pages/test_{}.py",
    "tests/upstream/test_{}.py",
    "tests/spiders/test_{}.py",
    "tests/sandbox/test_{}.py",
    "docs/platforms/{}.md",
)
HEADINGS = [
    "Scrapers",
    "Params",
    "Where the data is",
    "Fields and nulls",
    "Failures",
    "Limits",
    "Policy",
]


def test_there_are_platforms() -> None:
    assert "retail" in PLATFORMS


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_has_its_file_in_each_room(platform: str, room: str) -> None:
    path = room.format(platform)
    # A room's file may have grown into a package of the same name.
    assert (ROOT / path).is_file() or (ROOT / path.removesuffix(".py") / "__init__.py").is_file(), path


@pytest.mark.parametrize("room", ["schemas", "upstream", "pages"])
def test_no_room_has_a_platform_without_a_spider(room: str) -> None:
    modules = {path.stem.split("_")[0] for path in (ROOT / "crawler" / room).glob("[a-z]*.py")} - {"base"}
    assert modules <= set(PLATFORMS)


@pytest.mark.parametrize("outcome", ["output.json", "exception.json"])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_has_fixtures_of_success_and_failure(platform: str, outcome: str) -> None:
    pattern = f"crawler.pages.{platform}.*/*/{outcome}"
    assert list((ROOT / "tests/fixtures").glob(pattern)), pattern


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_page_has_the_headings_of_all(platform: str) -> None:
    page = (ROOT / f"docs/platforms/{platform}.md").read_text()
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == HEADINGS
