"""Every platform consists of files with the same names, and no scraper lacks a part."""

import re
from pathlib import Path

import pytest

from scripts import missing_parts

pytestmark = pytest.mark.meta

ROOT = Path(__file__).parents[1]
PLATFORMS = sorted(path.stem for path in (ROOT / "crawler/spiders").glob("[a-z]*.py") if path.stem != "base")
FILES = (
    "crawler/platforms/{}/urls.py",
    "crawler/platforms/{}/schema.py",
    "crawler/platforms/{}/pages.py",
    "crawler/sandbox/{}/site.py",
    "tests/platforms/{}/test_pages.py",
    "tests/platforms/{}/test_urls.py",
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
    "Changes without a warning",
    "Policy",
]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_has_all_its_files(platform: str) -> None:
    paths = [file.format(platform) for file in FILES]
    # A package may replace the module of the same name.
    packages = {path: (ROOT / path.removesuffix(".py") / "__init__.py").is_file() for path in paths}
    assert [path for path in paths if not ((ROOT / path).is_file() or packages[path])] == []


@pytest.mark.parametrize("package", ["platforms", "sandbox"])
def test_every_platform_and_sandbox_has_a_spider(package: str) -> None:
    modules = {path.parent.name for path in (ROOT / "crawler" / package).glob("*/__init__.py")}
    assert modules <= set(PLATFORMS)


@pytest.mark.parametrize("outcome", ["output.json", "exception.json"])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_has_fixtures_of_success_and_failure(platform: str, outcome: str) -> None:
    pattern = f"crawler.platforms.{platform}.*/*/{outcome}"
    assert list((ROOT / "tests/fixtures").glob(pattern)), pattern


@pytest.mark.parametrize("platform", PLATFORMS)
def test_all_pages_of_platforms_have_the_same_headings(platform: str) -> None:
    page = (ROOT / f"docs/platforms/{platform}.md").read_text()
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == HEADINGS


def test_no_part_is_missing() -> None:
    assert [str(each) for each in missing_parts.missing()] == [], "python -m scripts.missing_parts"
