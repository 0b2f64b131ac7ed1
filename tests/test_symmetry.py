"""Every platform has all its rooms: whoever knows one platform knows them all."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLATFORMS = sorted(
    path.stem for path in (ROOT / "crawler/spiders").glob("[a-z]*.py") if path.stem not in {"arguments", "base"}
)
ROOMS = (
    "crawler/platforms/{}/schema.py",
    "crawler/platforms/{}/requests.py",
    "crawler/platforms/{}/pages.py",
    "crawler/sandbox/{}/site.py",
    "tests/platforms/{}/test_pages.py",
    "tests/platforms/{}/test_requests.py",
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


@pytest.mark.parametrize("room", ["platforms", "sandbox"])
def test_no_room_has_a_platform_without_a_spider(room: str) -> None:
    modules = {path.parent.name for path in (ROOT / "crawler" / room).glob("*/__init__.py")}
    assert modules <= set(PLATFORMS)


@pytest.mark.parametrize("outcome", ["output.json", "exception.json"])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_has_fixtures_of_success_and_failure(platform: str, outcome: str) -> None:
    pattern = f"crawler.platforms.{platform}.*/*/{outcome}"
    assert list((ROOT / "tests/fixtures").glob(pattern)), pattern


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_page_has_the_headings_of_all(platform: str) -> None:
    page = (ROOT / f"docs/platforms/{platform}.md").read_text()
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == HEADINGS
