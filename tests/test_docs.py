"""The tables in the documentation match the code."""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import crawler.settings
from crawler.components import ESSENTIAL
from crawler.errors import OTHER_FORM_REASONS, READABLE_REASONS, ExtractionFailed, documented
from crawler.platforms import platforms
from crawler.registry import scrapers, spider
from crawler.sandbox.server import PLATFORMS
from crawler.targets.parser import TargetParser
from crawler.targets.target import Target
from tests.platform_pages import written

pytestmark = pytest.mark.meta

ROOT = Path(__file__).parents[1]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
OWN = Path(__file__)
SUFFIXES = {".py", ".json", ".js", ".yml", ".toml", ""}
FOREIGN = {
    *("CRAWLER_ASYNCIO_EVENT_LOOP", "HTTPS_PROXY", "MALLOC_ARENA_MAX"),  # variables of the environment
    *("TIMEOUT_LIMIT", "items_dropped", "start_requests"),  # scrapyrt's
    *("access_log", "dlt_valid_to", "retail_data"),  # nginx's, dlt's, a generated client's
    "fault_07_17",
}
"""Names that the pages use, and that are not in the code."""
LINK = re.compile(r"\]\((?!https?:)([^)\s#]*)#?([^)\s]*)\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's titles, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", re.sub(r"\]\(.*?\)", "", each)).lower().replace(" ", "-") for each in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_to_other_pages_and_their_parts_lead_somewhere(page: str) -> None:
    for path, anchor in LINK.findall(re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)):
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), (path, anchor)


@pytest.fixture(scope="module")
def names() -> set[str]:
    """Return all words of the code and of the deployment's files, and the names of the files."""
    folders = ("benchmarks", "crawler", "deploy", "scripts", "tests")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text() for path in files if path.suffix in SUFFIXES and path.is_file() and path != OWN]
    return {word for text in (*texts, *map(str, files)) for word in re.findall(r"\w+", text)} | FOREIGN


@pytest.mark.parametrize("page", sorted({*PAGES, "benchmarks/RESULTS.md", "benchmarks/notes.md"} - {"CHANGELOG.md"}))
def test_names_in_a_page_exist(page: str, names: set[str]) -> None:
    """A page may name only what the code has, so a renamed function, setting or log line is renamed there, too."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", text)
    assert {word for span in spans for word in re.findall(r"\w+_\w+", span)} - names == set()
    paths = re.findall(r"(?<![\w/.-])(?:benchmarks|crawler|deploy|docs|scripts|tests)/[\w./*-]*\w", text)
    assert [path for path in paths if "bookshop" not in path and not list(ROOT.glob(path))] == []
    modules = re.findall(r"python -m ((?:benchmarks|scripts|tests)[\w.]*)", text)
    assert [name for name in modules if find_spec(name) is None] == []


def table(page: str, title: str) -> list[list[str]]:
    """Return the cells of the first table of a page whose header row starts with ``title``."""
    rows = re.split(rf"^\| {title} \|.*\n\|[-| ]+\|\n", (ROOT / page).read_text(), maxsplit=1, flags=re.MULTILINE)[1]
    lines = re.match(r"(?:\|.*\n)+", rows)
    assert lines is not None
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[0].splitlines()]


def test_the_table_of_reasons_matches_their_consequences() -> None:
    documented: dict[str, list[str]] = {}
    for cell, _, *consequences in table("docs/errors.md", "reason"):
        documented |= dict.fromkeys(re.findall(r"\w+", cell) if cell != "any other" else [cell], consequences)
    for reason, (repeated, kept, counted) in documented.items():
        assert (repeated == "yes") is (reason not in OTHER_FORM_REASONS), reason
        assert kept.startswith("yes") is (reason not in READABLE_REASONS | {"incomplete"}), reason
        assert (counted == "yes") is (ExtractionFailed("", reason=reason).alarm == "layout"), reason
    assert documented.keys() - {"any other"} == READABLE_REASONS | OTHER_FORM_REASONS


def test_the_readme_names_scrapers_that_exist() -> None:
    """The README names only some scrapers, so a new platform requires no change there."""
    assert {row[0] for row in table("README.md", "scraper")} <= {scraper.name for scraper in scrapers().values()}


@pytest.mark.parametrize("platform", sorted(platforms()))
def test_the_page_of_a_platform_lists_all_its_scrapers(platform: str) -> None:
    named = {name for name, scraper in scrapers().items() if scraper.platform == platform}
    assert {row[0] for row in table(f"docs/platforms/{platform}.md", "scraper")} == named


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_page_of_a_platform_lists_its_silent_changes(platform: str) -> None:
    page = (ROOT / f"docs/platforms/{platform}.md").read_text()
    assert written(page, platform) == page, "run python -m tests.platform_pages"


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_listed_targets_exist_for_every_seed(platform: str, seed: int) -> None:
    site = import_module(f"crawler.sandbox.{platform}.site").Site(seed, light=True)
    targets = site.catalogue()["targets"]
    assert targets
    for target in targets:
        assert site.expected_record(target["params"])


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_targets_of_faults_are_valid(platform: str) -> None:
    module = import_module(f"crawler.sandbox.{platform}.site")
    faults = module.Site().catalogue()["faults"]
    assert {name: (each["code"], each["about"]) for name, each in faults.items()} == {
        name: (fault.code, fault.about) for name, fault in module.FAULTS.items()
    }
    parser = TargetParser(spider(platform).scrapers)
    for each in faults.values():
        assert isinstance(parser.parse(each["params"], text=True), Target), each


def test_the_decisions_name_errors_settings_and_params_that_exist() -> None:
    page = (ROOT / "docs/decisions.md").read_text()
    codes = {kind.code for kind in documented()} | {"OK"}
    statuses = {"IN_STOCK", "OUT_OF_STOCK"}
    settings = {name for name in vars(crawler.settings) if name.isupper()}
    assert set(re.findall(r"`([A-Z][A-Z_]+)`", page)) <= codes | statuses | settings
    params = {name for scraper in scrapers().values() for name in scraper.params.model_fields}
    assert {"cursor", "count", "type", "include_about", "sort", "query"} <= params
    tables = "".join((ROOT / f"docs/platforms/{platform}.md").read_text() for platform in platforms())
    decided = {name for name in params if f"`{name}`" in page or f"\n| `{name}` |" in tables}
    assert params - decided == set(), "params whose rules neither this page nor the platform's page states"


def test_the_components_that_cannot_be_disabled_are_documented() -> None:
    documented = {tuple(row) for row in table("docs/components.md", "setting")}
    assert documented == {(name, path, why) for name, paths in ESSENTIAL.items() for path, why in paths.items()}
