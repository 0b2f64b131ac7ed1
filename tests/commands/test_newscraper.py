"""``scrapy newscraper`` adds a working scraper to any platform, and the checks name each missing or broken part."""

from __future__ import annotations

import ast
import difflib
from argparse import Namespace
from pathlib import Path

import pytest
from scrapy.exceptions import UsageError

import crawler
from crawler.commands.newscraper import Command, changed_files, scraper_words
from crawler.commands.scaffold import rendered
from crawler.platforms import platforms
from tests.crawls import ROOT
from tests.scaffolds import check_format, content, copy_of_the_project, failed, run

NAME, PLATFORM = "review", "photoapp"
"""The platform with the most special cases: it joins pages, and converts the params of ``scrapy extract``.
"""
PAGES = f"crawler/platforms/{PLATFORM}/{NAME}.py"
PAGE_CLASS = f"crawler.platforms.{PLATFORM}.{NAME}.ReviewPage"
FIXTURES = f"tests/fixtures/{PAGE_CLASS}"
CHANGED = {
    "crawler/items.py",
    f"crawler/platforms/{PLATFORM}/__init__.py",
    f"crawler/spiders/{PLATFORM}.py",
    f"crawler/sandbox/{PLATFORM}/site.py",
    f"docs/platforms/{PLATFORM}.md",
    "docs/nulls.md",
    "scripts/golden/targets.jsonl",
    "scripts/nulls.json",
}
SCRAPER = f"{PLATFORM}-{NAME}"
RECORDED = f"{SCRAPER}: no golden row"
"""The only part that the command leaves out, because recording outcomes requires a crawl of all targets.
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def written(project: Path) -> list[str]:
    """The paths of the files that the command created. The files that it changed must be those in ``CHANGED``."""
    before = content(project)
    done = run(project, "scrapy", "newscraper", NAME, "--platform", PLATFORM)
    assert done.returncode == 0, done.stderr
    after = content(project)
    assert {path for path in before if after.get(path) != before[path]} == CHANGED
    return sorted(after.keys() - before.keys())


def missing_parts(project: Path) -> list[str]:
    checked = run(project, "scripts.missing_parts")
    found = checked.stdout.splitlines()[:-1]
    assert checked.returncode == (1 if found else 0), checked.stderr
    return found


def test_ct_12_the_new_scraper_has_all_parts(project: Path, written: list[str]) -> None:
    """A scraper without fixture, expected record, golden target and ``extract`` support used to pass all tests."""
    assert [path for path in written if NAME not in path.lower()] == []
    (left,) = missing_parts(project)
    assert left == f"{RECORDED}: python -m scripts.golden write tests/golden.jsonl --platform {PLATFORM}"
    own = [path for path in written if Path(path).name.startswith("test_")]
    tested = run(
        project, "pytest", "-p", "no:cacheprovider", "-q", FIXTURES, *own, "tests/test_docs.py", "-k", PLATFORM
    )
    assert tested.returncode == 0, tested.stdout


@pytest.mark.parametrize(
    ("path", "code", "broken", "named"),
    [
        (PAGES, "count(self._data.likes)", "None", f"{PAGE_CLASS}: wrong result: the fixture review-1"),
        *(
            pytest.param(*each, marks=pytest.mark.soak)
            for each in [
                (
                    PAGES,
                    "requested != self.review_id",
                    "not self.name",
                    f"{PAGE_CLASS}: wrong result: the fixture wrong-",
                ),
                (PAGES, "return f'id", "return f'never", f"{SCRAPER}: no support in scrapy extract"),
                (f"crawler/sandbox/{PLATFORM}/site.py", '"review_id" in params', "False", f"{SCRAPER}: no truth"),
                (
                    f"docs/platforms/{PLATFORM}.md",
                    "`like_count`",
                    "`likes`",
                    f"docs/platforms/{PLATFORM}.md: a field that",
                ),
            ]
        ),
    ],
)
@pytest.mark.usefixtures("written")
def test_ct_12_a_broken_part_is_named(project: Path, path: str, code: str, broken: str, named: str) -> None:
    whole = (project / path).read_text()
    assert code in whole
    try:
        (project / path).write_text(whole.replace(code, broken))
        found = [line for line in missing_parts(project) if not line.startswith(RECORDED)]
        tested = run(project, "pytest", "-p", "no:cacheprovider", "-q", FIXTURES)
    finally:
        (project / path).write_text(whole)
    assert [line[: len(named)] for line in found] == [named]
    assert bool(failed(tested)) == ("wrong result" in named), tested.stdout


@pytest.mark.parametrize("platform", platforms())
def test_the_code_is_added_to_every_platform(platform: str) -> None:
    words = scraper_words(platform, NAME)
    assert words["scraper"] == f"{platform}-{NAME}"
    for path, text in changed_files(ROOT, words).items():
        before = (ROOT / path).read_text().splitlines()
        diff = list(difflib.unified_diff(before, text.splitlines(), lineterm="", n=0))
        removed = [line for line in diff if line.startswith("-") and not line.startswith("---")]
        assert len(removed) <= 1, "only one line is changed: the tuple or list that gets another element"
        assert len(diff) > 3, path
        if path.endswith(".py"):
            ast.parse(text)


@pytest.mark.parametrize("name", ["a", "book", "z" * 20])
def test_the_code_is_formatted_for_short_and_long_names(tmp_path: Path, name: str) -> None:
    check_format(tmp_path, rendered("scraper", scraper_words("retail", name)))


@pytest.mark.soak
@pytest.mark.parametrize("platform", platforms())
def test_ct_12_every_platform_gets_a_scraper(tmp_path: Path, platform: str) -> None:
    project = copy_of_the_project(tmp_path)
    done = run(project, "scrapy", "newscraper", NAME, "--platform", platform)
    assert done.returncode == 0, done.stderr
    assert [line[: line.index(": python")] for line in missing_parts(project)] == [f"{platform}-{NAME}: no golden row"]
    for command in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        checked = run(project, *command)
        assert checked.returncode == 0, checked.stdout
    tested = run(project, "pytest", "-p", "no:cacheprovider", "-q", "tests", "-k", f"{platform} and {NAME}")
    assert tested.returncode == 0, tested.stdout


# Wrong usage


@pytest.mark.parametrize(
    ("arguments", "platform", "message"),
    [
        ([], "retail", "Expected a name and a platform"),
        (["one", "two"], "retail", "Expected a name and a platform"),
        (["review"], None, "Expected a name and a platform"),
        (["review"], "nowhere", "Unknown platform 'nowhere'; known platforms are .*retail"),
        *(
            ([name], "retail", "use 1 to 20 lower-case letters")
            for name in ("", "Upper", "a-b", "../a", "class", "a" * 21)
        ),
        *(([name], "retail", "is taken") for name in ("pages", "product", "listing", "shop")),
        (["profile"], "professional", r"The name is taken: crawler/spiders/professional.py uses ProfilePage"),
        (["search"], "retail", "The name is taken: crawler/spiders/retail.py uses SearchPage"),
    ],
)
def test_wrong_usage_is_one_sentence_and_writes_nothing(arguments: list[str], platform: str, message: str) -> None:
    before = content(ROOT / "crawler")
    with pytest.raises(UsageError, match=message):
        Command().run(arguments, Namespace(platform=platform))
    assert content(ROOT / "crawler") == before


def test_an_installed_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawler, "__file__", str(tmp_path / "crawler/__init__.py"))
    with pytest.raises(UsageError, match="installed package"):
        Command().run([NAME], Namespace(platform="retail"))
