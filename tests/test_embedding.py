"""The spiders and page objects in other projects, and spiders of other projects with this project's settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from crawler import settings as project_settings
from crawler.platforms import platforms
from crawler.registry import find_scraper, scrapers
from crawler.runtime import hidden_package
from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from crawler.spiders.retail import RetailSpider
from tests.browsers import require_chromium
from tests.copies import CACHES
from tests.crawls import ROOT, comparable, expected_record, lines
from tests.http_server import Handler, served

ADDON = 'ADDONS = {"crawler.Addon": 500}\n'
SPIDERS = 'SPIDER_MODULES = ["shop.spiders", "crawler.spiders"]\n'
SUBCLASS = """
from crawler.spiders.{platform} import {parent}


class Own({parent}):
    name = "own-{platform}"
"""
PLAIN = """
import scrapy


class Plain(scrapy.Spider):
    name = "plain"

    async def start(self):
        yield scrapy.Request(self.url, cb_kwargs={"visit": 1})

    def parse(self, response, visit):
        yield {"visit": visit, "cookies": response.text, "half": {"one": 1.5}}
        if visit < 2:
            yield response.follow("/?again", self.parse, cb_kwargs={"visit": 2})
        else:
            yield scrapy.Request("data:,text", self.parse_text)

    def parse_text(self, response):
        yield {"visit": 0, "cookies": response.text, "half": None}
"""
PAGE_OBJECT = """
import scrapy

from crawler.platforms.retail.pages import ListingPage


class Listing(scrapy.Spider):
    name = "listing"

    async def start(self):
        yield scrapy.Request(self.url, self.parse_page, meta={"page_params": {"cat_id": "976759"}})

    async def parse_page(self, response, page: ListingPage):
        yield await page.to_item()
"""


def scrapy(folder: Path, *arguments: str, program: tuple[str, ...] = ("-m", "scrapy"), **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, *program, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        timeout=300,
    )


@pytest.fixture(scope="module")
def new_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new project made by ``scrapy startproject``."""
    folder = tmp_path_factory.mktemp("new")
    made = scrapy(folder, "startproject", "shop")
    assert made.returncode == 0, made.stderr
    return folder / "shop"


@pytest.fixture
def project(new_project: Path, tmp_path: Path) -> Path:
    """A copy of the new project for one test."""
    return shutil.copytree(new_project, tmp_path / "shop")


def change(project: Path, *texts: str, **spiders: str) -> None:
    """Append texts to a project's settings, and add modules with spiders."""
    with (project / "shop/settings.py").open("a") as settings:
        settings.writelines(texts)
    for name, text in spiders.items():
        (project / f"shop/spiders/{name}.py").write_text(text)


def arguments_of(scraper: str) -> list[str]:
    example = {"scraper": scraper, **find_scraper(scraper).example}
    return [part for name, value in example.items() for part in ("-a", f"{name}={value}")]


def scraper_cases() -> Iterator[object]:
    """Yield a scraper of each platform. All except the one that needs a browser are soak tests."""
    for platform in platforms().values():
        yield pytest.param(platform.scrapers[0], marks=[pytest.mark.soak] * (platform.name != "shortvideo"))


def expected(scraper: str) -> Any:
    return comparable([expected_record(find_scraper(scraper))])


@contextmanager
def server() -> Iterator[str]:
    """Run a server, and yield its URL. ``/browse/`` has pages of the shop, other paths show the cookies sent."""

    class Page(Handler):
        def do_GET(self) -> None:  # noqa: N802  # http.server's name
            body = self.headers.get("Cookie", "none").encode()
            if self.path.startswith("/browse/"):
                body = Site().page(FakeRequest(self.path))[2]
            cookie = {} if self.path == "/robots.txt" else {"Set-Cookie": "visited=yes"}
            self.answer(body, headers={"Content-Type": "text/html; charset=utf-8", **cookie})

    with served(Page) as url:
        yield url


# This project's spiders in another project


@pytest.mark.parametrize("scraper", scraper_cases())
def test_our_spiders_run_in_a_plain_project(project: Path, scraper: str) -> None:
    platform = find_scraper(scraper).platform
    if platform == "shortvideo":
        require_chromium()
    change(project, ADDON, SPIDERS)
    quick = ("-s", "SANDBOX=1", "-s", "DOWNLOAD_DELAY=0", "-s", "ROBOTSTXT_OBEY=0", "-s", "BROWSER_SCROLL_PAUSE=0")
    run = scrapy(project, "crawl", platform, *arguments_of(scraper), *quick, "-O", "out.jsonl")
    assert run.returncode == 0, run.stderr[-3_000:]
    assert comparable(lines(project / "out.jsonl")) == expected(scraper)


def test_the_settings_of_the_plain_project_apply(project: Path) -> None:
    """``scrapy startproject`` enables ``ROBOTSTXT_OBEY``, and the sandbox's robots.txt disallows searches."""
    change(project, ADDON, SPIDERS, 'FEEDS = {"rows.xlsx": {"format": "xlsx"}}\n')
    (project / "targets.jsonl").write_text('{"id": "a", "cat_id": "976759"}\n{"id": "b", "query": "mustard"}\n')
    run = scrapy(
        project, *("crawl", "retail", "-a", "targets=targets.jsonl", "-s", "SANDBOX=1", "-s", "FAILURES_FEED=f.jsonl")
    )
    assert run.returncode == 0, run.stderr[-3_000:]
    assert [(line["id"], line["code"]) for line in lines(project / "f.jsonl")] == [("b", "BLOCKED_BY_POLICY")]
    assert (project / "rows.xlsx").stat().st_size
    assert "'DOWNLOAD_DELAY': 1" in run.stderr


def test_a_subclass_runs_under_our_settings(project: Path) -> None:
    change(project, own=SUBCLASS.format(platform="retail", parent="RetailSpider"))
    (project / "shop/settings.py").write_text(f"from crawler.settings import *\n{SPIDERS}")
    run = scrapy(project, "crawl", "own-retail", "-a", "cat_id=976759", "-s", "SANDBOX=1", "-O", "out.jsonl")
    assert run.returncode == 0, run.stderr[-3_000:]
    assert comparable(lines(project / "out.jsonl")) == expected("retail-category-v4")
    wrong = scrapy(project, "crawl", "own-retail", "-a", "cat_idd=976759")
    assert (wrong.returncode, wrong.stderr) == (2, "no argument is called cat_idd; did you mean cat_id?\n")


def test_without_the_add_on_a_crawl_is_refused(project: Path) -> None:
    change(project, SPIDERS)
    run = scrapy(project, "crawl", "retail", "-a", "cat_id=976759", "-O", "out.jsonl")
    assert run.returncode == 2
    assert 'ADDONS lacks crawler.Addon, which the spiders of social-retail-crawler need: add "crawler.' in run.stderr
    assert "Traceback" not in run.stderr
    assert not (project / "out.jsonl").exists()


def test_a_spider_runs_from_a_script(tmp_path: Path) -> None:
    """The script is the one in Scrapy's documentation, without a project."""
    settings = {"ADDONS": {"crawler.Addon": 500}, "SANDBOX": True, "FEEDS": {"out.jsonl": {"format": "jsonlines"}}}
    program = (
        "import scrapy.crawler; from crawler.spiders.retail import RetailSpider; "
        f"process = scrapy.crawler.CrawlerProcess({settings}); "
        "process.crawl(RetailSpider, cat_id='976759'); process.start()"
    )
    run = scrapy(tmp_path, program=("-c", program))
    assert run.returncode == 0, run.stderr
    assert comparable(lines(tmp_path / "out.jsonl")) == expected("retail-category-v4")


def test_a_crawler_without_a_runner_has_the_defaults_of_our_settings() -> None:
    crawler = Crawler(RetailSpider, Settings({"ADDONS": {"crawler.Addon": 500}, "TARGETS_IN_FLIGHT": 3}))
    spider = RetailSpider.from_crawler(crawler, cat_id="976759")
    assert spider.lanes.concurrency == platforms()["retail"].concurrency
    assert crawler.settings.getint("TARGETS_IN_FLIGHT") == 3
    assert crawler.settings.getint("BREAKER_THRESHOLD") == vars(project_settings)["BREAKER_THRESHOLD"]


def test_our_commands_run_in_a_plain_project(project: Path) -> None:
    change(project, ADDON, SPIDERS, 'COMMANDS_MODULE = "crawler.commands"\n')
    options = ("-s", "SANDBOX=1", "-O", "out.xlsx", "-O", "out.jsonl", "-s", "FAILURES_FEED=f.jsonl")
    failed = scrapy(project, "crawl", "retail", "-a", "query=mustard", *options)
    assert failed.returncode == 4, failed.stderr[-3_000:]
    probed = scrapy(project, "probe", "retail-category-v4", "-s", "SANDBOX=1")
    assert probed.returncode == 0, probed.stderr


# Spiders of other projects with this project's settings


def test_a_plain_spider_has_the_same_outputs_as_in_its_own_project(project: Path) -> None:
    change(project, plain=PLAIN)
    outputs = [part for name in ("out.jsonl", "out.csv", "out.json") for part in ("-O", name)]
    file = project / "shop/settings.py"
    own = file.read_text()
    ours = 'from crawler.settings import *\nSPIDER_MODULES = ["shop.spiders"]\nROBOTSTXT_OBEY = True\n'
    results = []
    with server() as url:
        for settings in (own, ours, own + ADDON + SPIDERS):
            file.write_text(settings)
            run = scrapy(project, "crawl", "plain", "-a", f"url={url}", *outputs, "-s", "DOWNLOAD_DELAY=0")
            assert run.returncode == 0, run.stderr
            assert len(lines(project / "out.jsonl")) == 3
            results.append([(project / name).read_bytes() for name in outputs[1::2]])
            components = run.stderr.partition("Enabled downloader middlewares:")[2].partition("Spider opened")[0]
            assert "crawler." not in components
            assert "RetryMiddleware" in components
    assert [b'"cookies": "none"' in results[0][0], b'"cookies": "visited=yes"' in results[0][0]] == [True, True]
    assert results == [results[0]] * 3


# Page objects without our spiders


def test_a_plain_spider_gets_a_page_object(project: Path) -> None:
    change(project, 'ADDONS = {"scrapy_poet.Addon": 300}\n', listing=PAGE_OBJECT)
    with server() as url:
        run = scrapy(project, "crawl", "listing", "-a", f"url={url}/browse/976759", "-O", "out.jsonl")
    assert run.returncode == 0, run.stderr
    assert comparable(lines(project / "out.jsonl")) == expected("retail-category-v4")


# A project whose package is also named crawler


@pytest.fixture
def namesake(project: Path) -> Path:
    """Another project, whose package is also named ``crawler``."""
    change(project, plain=PLAIN)
    shutil.move(project / "shop", project / "crawler")
    for path in (project / "scrapy.cfg", project / "crawler/settings.py"):
        path.write_text(path.read_text().replace("shop", "crawler"))
    return project


INSTALLED = (
    "-c",
    "import sys; sys.path.remove(''); from scrapy.cmdline import execute; execute(['scrapy', *sys.argv[1:]])",
)
"""Runs Scrapy like the program ``scrapy``: the current folder is not first in the module search path."""


@pytest.mark.parametrize(
    "command", [["crawl", "plain"], pytest.param(["version"], marks=pytest.mark.soak)], ids=" ".join
)
def test_a_hidden_project_is_named_in_one_sentence(namesake: Path, command: list[str]) -> None:
    run = scrapy(namesake, *command, program=INSTALLED)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == (
        f"The package crawler of social-retail-crawler in {ROOT / 'crawler'} hides the package crawler in "
        f"{namesake / 'crawler'}: install social-retail-crawler in an environment of its own.\n"
    )


def test_a_project_with_our_name_runs_where_its_package_is_found_first(namesake: Path) -> None:
    """The entry points of the installed package do not break the other project's commands."""
    with server() as url:
        run = scrapy(namesake, "crawl", "plain", "-a", f"url={url}", "-O", "out.jsonl", "-s", "DOWNLOAD_DELAY=0")
    assert run.returncode == 0, run.stderr
    assert len(lines(namesake / "out.jsonl")) == 3
    ours = scrapy(namesake, "serve", "--port", "0")
    assert (ours.returncode, ours.stdout) == (2, "")
    assert ours.stderr == (
        f"The package crawler in {namesake / 'crawler'} hides the package crawler of social-retail-crawler: "
        "install social-retail-crawler in an environment of its own.\n"
    )


def test_a_copy_of_this_package_in_the_folder_is_not_a_collision(tmp_path: Path) -> None:
    """An example is the use of the installed package in a clone of the repository."""
    (tmp_path / "scrapy.cfg").write_text((ROOT / "scrapy.cfg").read_text())
    shutil.copytree(ROOT / "crawler", tmp_path / "crawler", ignore=CACHES)
    run = scrapy(tmp_path, "list", program=INSTALLED)
    assert (run.returncode, run.stdout.split()) == (0, sorted({each.platform for each in scrapers().values()}))


@pytest.mark.parametrize(
    ("files", "is_hidden"),
    [
        (["__init__.py"], True),
        (["settings.py"], True),
        (["retail/job.log"], False),
        (["__init__.py", "reading/__init__.py"], False),
        ([], False),
    ],
    ids=str,
)
@pytest.mark.parametrize("place", ["project", "egg"])
def test_only_packages_of_others_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, files: list[str], *, is_hidden: bool
) -> None:
    """A folder named ``crawler`` may contain only data. ``egg``: Scrapyd runs projects from eggs."""
    for file in files:
        (tmp_path / "crawler" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "crawler" / file).touch()
    monkeypatch.chdir(tmp_path)
    location = tmp_path / "crawler"
    if place == "project":
        (tmp_path / "scrapy.cfg").touch()
    else:
        egg = shutil.make_archive(str(tmp_path / "1"), "zip", tmp_path)
        location = Path(egg).rename(tmp_path / "1.egg") / "crawler"
        monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "1.egg")])
    assert hidden_package() == (str(location) if is_hidden else None)
