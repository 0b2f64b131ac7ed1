"""``scrapy newplatform`` writes working files with tests, and changes only lists of scrapers in existing files."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from scrapy.exceptions import UsageError

import crawler
from crawler.commands.newplatform import Command, platform_files, platform_words
from tests.scaffolds import check_format, content, copy_of_the_project, failed, run

NAME = "seventh"
PAGES = f"crawler/platforms/{NAME}/pages.py"
FIXTURES = f"tests/fixtures/crawler.platforms.{NAME}.pages.ItemPage"
SHARED_TESTS = ("tests/test_symmetry.py", "tests/test_docs.py", "tests/test_imports.py", "tests/test_identifiers.py")
CHANGED = {"crawler/items.py", "docs/nulls.md", "scripts/golden/targets.jsonl", "scripts/nulls.json"}
BUILD = "import setuptools; setuptools.setup()"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def written(project: Path) -> list[str]:
    """The paths of the files that the command created. The files that it changed must be those in ``CHANGED``."""
    before = content(project)
    done = run(project, "scrapy", "newplatform", NAME)
    assert done.returncode == 0, done.stderr
    after = content(project)
    assert {path for path in before if after.get(path) != before[path]} == CHANGED
    return sorted(after.keys() - before.keys())


def test_only_new_files_appear_and_each_is_named_after_the_platform(written: list[str]) -> None:
    assert {path.split("/")[0] for path in written} == {"crawler", "docs", "tests"}
    assert [path for path in written if NAME not in path] == []


@pytest.mark.parametrize(
    "own_and",
    [
        pytest.param(SHARED_TESTS[:2], id="own tests and some of all platforms"),
        pytest.param(("tests",), id="all tests", marks=pytest.mark.soak),
    ],
)
def test_the_new_tests_pass(project: Path, written: list[str], own_and: tuple[str, ...]) -> None:
    own = {path for path in written if Path(path).name.startswith("test_")}
    # The tests for Scrapyd and Scrapy Cloud's runner take a minute. They are test_scrapyd.py and test_cloud.py.
    chosen = f"({NAME} or test_imports or test_identifiers) and not scrapyd and not cloud_runner"
    tested = run(project, "pytest", "-p", "no:cacheprovider", "-v", "-k", chosen, FIXTURES, *own, *own_and)
    assert tested.returncode == 0, tested.stdout
    passed = {line.split("::")[0] for line in tested.stdout.splitlines() if " PASSED" in line}
    assert own | {path for path in written if path.endswith(("/output.json", "/exception.json"))} <= passed
    assert passed >= set(SHARED_TESTS if own_and == ("tests",) else own_and)


@pytest.mark.parametrize(
    ("code", "broken"),
    [
        pytest.param("count(self._data.likes)", "None", id="a field"),
        pytest.param("requested != self.item_id", "not self.item_id", id="the echo"),
    ],
)
@pytest.mark.soak  # test_newscraper.py breaks a field of a new scraper in the fast tier
@pytest.mark.usefixtures("written")
def test_a_broken_page_object_fails_fixtures_page_tests_and_crawls(project: Path, code: str, broken: str) -> None:
    pages = project / PAGES
    places = (FIXTURES, f"tests/platforms/{NAME}/test_pages.py", f"tests/spiders/test_{NAME}.py")
    whole = pages.read_text()
    assert whole.count(code) == 1
    try:
        pages.write_text(whole.replace(code, broken))
        tested = run(project, "pytest", "-p", "no:cacheprovider", *places)
    finally:
        pages.write_text(whole)
    assert tested.returncode == pytest.ExitCode.TESTS_FAILED, tested.stdout
    assert [place for place in places if not any(place in line for line in failed(tested))] == [], tested.stdout


@pytest.mark.parametrize("name", ["a", "market", "z" * 20])
def test_the_code_is_formatted_for_short_and_long_names(tmp_path: Path, name: str) -> None:
    check_format(tmp_path, platform_files(platform_words(name)))


@pytest.mark.soak
def test_the_code_passes_type_checking(project: Path, written: list[str]) -> None:
    modules = [path for path in written if path.endswith(".py")]
    checked = run(project, "mypy", "--cache-dir", os.devnull, *modules)
    assert checked.returncode == 0, checked.stdout


def test_a_build_contains_every_file_of_the_package(tmp_path: Path) -> None:
    project = copy_of_the_project(tmp_path / "project")
    packaged = {path for path in content(project) if path.startswith(("crawler/", "social_retail_crawler."))}
    (project / "setup.py").write_text(BUILD)
    built = subprocess.run(
        [sys.executable, "setup.py", "build_py", "--build-lib", str(tmp_path / "built")],
        check=False,
        capture_output=True,
        text=True,
        cwd=project,
    )
    assert built.returncode == 0, built.stderr
    assert sum(path.endswith(".tmpl") for path in packaged) > 20
    assert content(tmp_path / "built").keys() == packaged


# Wrong usage


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that looks like a checkout of the project to the command."""
    (tmp_path / "pyproject.toml").touch()
    for folder in ("docs/platforms", "tests/platforms"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(crawler, "__file__", str(tmp_path / "crawler/__init__.py"))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Expected one platform name"),
        (["one", "two"], "Expected one platform name"),
        *(([name], "use 1 to 20 lower-case letters and digits") for name in ("", "Upper", "7th", "a-b", "a_b", "é")),
        *(([name], "use 1 to 20 lower-case letters and digits") for name in ("../a", "a\n", "a" * 21, "class")),
        *(([name], "is taken") for name in ("retail", "page", "base", "server")),
    ],
)
def test_wrong_usage_is_one_sentence_and_writes_nothing(checkout: Path, arguments: list[str], message: str) -> None:
    before = content(checkout)
    with pytest.raises(UsageError, match=message):
        Command().run(arguments, Namespace())
    assert content(checkout) == before


def test_no_file_is_overwritten(checkout: Path) -> None:
    (checkout / f"docs/platforms/{NAME}.md").write_text("mine")
    before = content(checkout)
    with pytest.raises(UsageError, match=rf"docs/platforms/{NAME}\.md exists"):
        Command().run([NAME], Namespace())
    assert content(checkout) == before


def test_an_installed_package_is_refused(checkout: Path) -> None:
    (checkout / "pyproject.toml").unlink()
    with pytest.raises(UsageError, match="installed package"):
        Command().run([NAME], Namespace())
    assert content(checkout) == {}


def test_wrong_usage_exits_with_2(project: Path) -> None:
    done = run(project, "scrapy", "newplatform", "retail")
    assert done.returncode == 2
    assert "'retail' is taken" in done.stderr
