"""Lists which parts each scraper and each page class lacks: ``python -m scripts.missing_parts``.

- of a page class: a fixture with data, and that its fixtures give what they expect;
- of a scraper: a truth in the sandbox, a target in the golden record and its outcome, its table in ``docs/nulls.md``,
  and ``scrapy extract`` of its page classes;
- of a platform: its page in ``docs/platforms``, with no field and no param that does not exist.

Tests check the same parts more deeply, but a test can only fail for a part that exists.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import walk_packages
from typing import NamedTuple

from pydantic import BaseModel
from web_poet.testing import Fixture
from web_poet.utils import get_fq_class_name

from crawler.commands.extract import extract
from crawler.errors import ScrapeError
from crawler.monitoring.fields import fields_of
from crawler.pipelines import validated
from crawler.platforms import platforms
from crawler.platforms.page import PlatformPage
from crawler.registry import find_scraper, spider
from crawler.targets.target import Scraper
from scripts import nulls
from scripts.captures import ROOT
from scripts.golden.crawls import TARGETS, listed

FIXTURES = ROOT / "tests" / "fixtures"
RECORD = ROOT / "tests" / "golden.jsonl"
NOT_EXTRACTED = {
    "crawler.platforms.microblog.api.GuestTokenPage": "a token for further requests",
    "crawler.platforms.photoapp.pages.SharePage": "the address of the post, without its data",
}
"""Page classes whose responses ``scrapy extract`` need not read: their content."""
ONLY_ERRORS = {
    "crawler.platforms.shortvideo.pages.SearchPage": "the browser captures the data from the page's API calls",
}
"""Page classes that only read why a page has no data: where the data is. Their fixtures are errors."""
TABLE = re.compile(r"^\| (?P<title>field|param) \|.*\n\|[-|]+\|\n(?P<rows>(?:\|.*\n)+)", re.MULTILINE)
"""A table of a platform's page whose first column names fields or params."""
NAME = re.compile(r"`([\w.\[\]]+)`")


class Missing(NamedTuple):
    """A part that is missing: of which scraper, page class or page, and what to do."""

    of: str
    part: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.of}: {self.part}: {self.remedy}"


def missing() -> Iterator[Missing]:
    """Yield the missing parts of all platforms."""
    for name in platforms():
        scrapers = spider(name).scrapers
        for page in page_classes(name):
            yield from of_page_class(page, scrapers)
        for scraper in scrapers:
            yield from of_scraper(scraper)
        yield from of_documentation(name, scrapers)


def page_classes(platform: str) -> list[type[PlatformPage]]:
    """Return the page classes of a platform, without the base classes of others."""
    package = import_module(f"crawler.platforms.{platform}")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)
    found = [each for each in _subclasses(PlatformPage) if each.__module__.startswith(f"{package.__name__}.")]
    return sorted((each for each in found if not each.__subclasses__()), key=get_fq_class_name)


def _subclasses(kind: type[PlatformPage]) -> Iterator[type[PlatformPage]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


# Page classes


@cache
def fixtures_of(page: type[PlatformPage]) -> tuple[Fixture, ...]:
    """Return the fixtures of a page class."""
    folders = sorted(path.parent for path in FIXTURES.glob(f"{get_fq_class_name(page)}/*/inputs"))
    return tuple(map(Fixture, folders))


def with_data(page: type[PlatformPage]) -> list[Fixture]:
    """Return the fixtures of a page class that expect data, not an error."""
    return [fixture for fixture in fixtures_of(page) if fixture.output_path.exists()]


def of_page_class(page: type[PlatformPage], scrapers: tuple[Scraper, ...]) -> Iterator[Missing]:
    """Yield the missing parts of a page class. ``scrapers``: those of its platform."""
    name = get_fq_class_name(page)
    if not (fixtures_of(page) if name in ONLY_ERRORS else with_data(page)):
        yield Missing(name, "no fixture", "add a response with data to tests/fixture_sources (tests.make_fixtures)")
    for fixture in fixtures_of(page):
        problem = _difference(fixture, page)
        if problem:
            yield Missing(name, "wrong result", f"the fixture {fixture.path.name} {problem}")
    if name not in NOT_EXTRACTED and not any(page in scraper.pages for scraper in scrapers):
        yield Missing(name, "no support in scrapy extract", "add the class to the `pages` of its scraper")


def _difference(fixture: Fixture, page: type[PlatformPage]) -> str:
    """Return how a page object's item or error differs from that of its fixture; "" if it does not."""
    error = fixture.get_expected_exception() if fixture.exception_path.exists() else None
    try:
        item = fixture.get_output(page)
    except ScrapeError as raised:
        if type(raised) is type(error) and str(error) in {"", raised.reason}:
            return ""
        return f"raises {raised.code} ({raised.reason}): {raised}"
    if error is not None:
        return f"raises no {type(error).__name__}"
    expected = fixture.get_expected_output()
    keys = sorted(key for key in expected.keys() | item.keys() if item.get(key) != expected.get(key))
    return f"has other values in {', '.join(keys)}" if keys else ""


# Scrapers


def of_scraper(scraper: Scraper) -> Iterator[Missing]:
    """Yield the missing parts of a scraper."""
    problem = _problem_of_truth(scraper)
    if problem:
        path = f"crawler/sandbox/{scraper.platform}/site.py"
        yield Missing(
            scraper.name, "no truth in the sandbox", f"expected_record({scraper.example}) in {path} {problem}"
        )
    yield from _of_golden_record(scraper)
    counts = nulls.read()
    if scraper.name not in counts[nulls.SANDBOX]:
        command = f"python -m scripts.nulls measure --scraper {scraper.name}; python -m scripts.nulls write"
        yield Missing(scraper.name, "no counts for docs/nulls.md", command)
    elif nulls.section(scraper.name, counts) not in nulls.PAGE.read_text():
        yield Missing(scraper.name, "not up to date in docs/nulls.md", "python -m scripts.nulls write")
    problem = asyncio.run(_problem_of_extract(scraper))
    if problem:
        yield Missing(scraper.name, "no support in scrapy extract", problem)


def _problem_of_truth(scraper: Scraper) -> str:
    try:
        site = import_module(f"crawler.sandbox.{scraper.platform}.site").Site(light=True)
        validated(scraper.data, site.expected_record(scraper.example))
    except (ImportError, KeyError, ValueError) as error:
        return f"raises {type(error).__name__}: {error}"
    except ScrapeError as error:
        return f"does not fit the schema: {error.as_dict()['details']}"
    return ""


def _of_golden_record(scraper: Scraper) -> Iterator[Missing]:
    plain = [
        target for target in listed() if "scraper" in target and not target.keys() & {"captures", "fault", "unknown"}
    ]
    if not any(find_scraper(target["scraper"]).name == scraper.name for target in plain):
        yield Missing(scraper.name, "no golden row", f"add a target to {TARGETS.relative_to(ROOT)}")
    elif not re.search(rf'^\{{"key": "sandbox/\d+/{scraper.name}/.*"code": "OK"', RECORD.read_text(), re.MULTILINE):
        yield Missing(
            scraper.name,
            "no golden row",
            f"python -m scripts.golden write tests/golden.jsonl --platform {scraper.platform}",
        )


async def _problem_of_extract(scraper: Scraper) -> str:
    """Return why ``scrapy extract`` does not read the fixtures of a scraper; "" if it does.

    A fixture of each page class must be recognised, and one fixture must give a record.
    """
    pages = {kind: [_page(fixture, kind) for fixture in with_data(kind)] for kind in scraper.pages}
    for kind, saved in pages.items():
        recognised = (next((each for each in pages if each.recognise(page.response.text)), None) for page in saved)
        if saved and kind not in recognised:
            return f"no fixture of {kind.__name__} is recognised as such a page"
    reasons: dict[str, None] = {}
    for page in chain.from_iterable(pages.values()):
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # only errors are reported
                await extract(scraper, [page.response.body], dict(page.page_params), url=str(page.response.url))
        except ScrapeError as error:
            reasons[f"{type(page).__name__}: {error}"] = None
        else:
            return ""
    return f"no fixture gives a record ({'; '.join(reasons) or 'there are none'})"


def _page(fixture: Fixture, kind: type[PlatformPage]) -> PlatformPage:
    page = fixture.get_page(kind)
    assert isinstance(page, kind)
    return page


# Documentation


def of_documentation(platform: str, scrapers: tuple[Scraper, ...]) -> Iterator[Missing]:
    """Yield a platform's page if it is missing, else its fields and params that no scraper of the platform has."""
    path = Path("docs", "platforms", f"{platform}.md")
    if not (ROOT / path).exists():
        yield Missing(str(path), "no page", "write it like those of the other platforms")
        return
    known = {
        "field": {each for scraper in scrapers for each in field_paths(scraper.data)},
        "param": {each for scraper in scrapers for each in scraper.params.model_fields},
    }
    for table in TABLE.finditer((ROOT / path).read_text(encoding="utf-8")):
        for row in table["rows"].splitlines():
            for name in NAME.findall(row.split("|")[1]):
                plain = name.replace("[]", "")
                if not any(each == plain or each.endswith(f".{plain}") for each in known[table["title"]]):
                    yield Missing(str(path), f"a {table['title']} that does not exist", f"no scraper has {name}")


def field_paths(model: type[BaseModel], above: str = "") -> Iterator[str]:
    """Yield the paths of a model's fields, without the marks of lists."""
    for field in fields_of(model):
        yield above + field.key
        for nested in field.models:
            yield from field_paths(nested, f"{above}{field.key}.")


def main() -> int:
    """Print the missing parts. Return 1 if there are some."""
    found = [str(each) for each in missing()]
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} missing parts of scrapers" if found else "All parts of all scrapers are present")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
