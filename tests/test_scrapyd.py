"""A real Scrapyd with both kinds of deployment: jobs of every platform give the expected records.

A job takes about two seconds of processor time, so the jobs of most scrapers are soak tests, and so are invalid
arguments on all platforms but one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import pytest

from crawler.registry import scrapers, spider_for, spiders
from crawler.sandbox.retail.site import Site
from tests.copies import CACHES, FILES
from tests.crawls import ROOT, comparable, expected_record, lines, sandbox
from tests.http_server import free_port

http = build_opener(ProxyHandler({}))
OTHER_SPIDERS = """
import scrapy

from crawler.spiders.retail import RetailSpider


class Groceries(RetailSpider):
    name = "groceries"


class Plain(scrapy.Spider):
    name = "plain"
    start_urls = ["data:,text"]

    def parse(self, response):
        yield {"text": response.text}
"""
"""Code of two spiders: a subclass of one of this project's spiders, and an unrelated one."""
TIMEOUT_SECONDS = 300


def scraper_cases() -> Iterator[object]:
    """Yield the names of all scrapers with both kinds of deployment. All except one are soak tests."""
    for name in sorted({scraper.name for scraper in scrapers().values()}):
        for way in ("installed", "deployed"):
            is_fast = (name, way) == ("retail-category-v4", "deployed")
            yield pytest.param(name, way, marks=[pytest.mark.soak] * (not is_fast))


def spider_cases() -> list[object]:
    """Return the names of all spiders. All except the first are soak tests."""
    first, *others = sorted(spiders())
    return [pytest.param(first), *(pytest.param(name, marks=pytest.mark.soak) for name in others)]


class Scrapyd:
    """A running Scrapyd, and its API."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.base = f"http://127.0.0.1:{port}"

    def call(self, method: str, **fields: Any) -> dict[str, Any]:
        body = urlencode(fields, doseq=True)
        if method.startswith(("list", "daemon")):
            response = http.open(f"{self.base}/{method}?{body}")
        else:
            response = http.open(f"{self.base}/{method}", body.encode())
        with response:
            result: dict[str, Any] = json.load(response)
        return result

    def run(self, spider: str, settings: dict[str, Any], project: str = "crawler", **arguments: Any) -> str:
        """Schedule a job, wait until it ends, and return its id."""
        given = [f"{name}={value}" for name, value in settings.items()]
        scheduled = self.call("schedule.json", project=project, spider=spider, setting=given, **arguments)
        assert scheduled["status"] == "ok", scheduled
        job = str(scheduled["jobid"])
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            jobs = self.call("listjobs.json", project=project)
            if any(each["id"] == job for each in jobs["finished"]):
                return job
            time.sleep(0.1)
        raise AssertionError(f"{spider} did not end: {self.log(spider, job, project)}")

    def log(self, spider: str, job: str, project: str = "crawler") -> str:
        return (self.folder / f"logs/{project}/{spider}/{job}.log").read_text()

    def data(self, spider: str, job: str, project: str = "crawler") -> list[Any]:
        return lines(self.folder / f"items/{project}/{spider}/{job}.jl")

    def failures(self, spider: str, job: str) -> list[Any]:
        return lines(self.folder / "failures" / f"{spider}-{job}.jsonl")


@contextlib.contextmanager
def running(folder: Path, **environment: str) -> Iterator[Scrapyd]:
    """Run a Scrapyd in a folder. It is configured for the installed package."""
    port = free_port()
    config = (ROOT / "deploy/scrapyd/scrapy.cfg").read_text()
    (folder / "scrapy.cfg").write_text(config.replace("poll_interval = 5", "poll_interval = 0.1"))
    environment |= {"SCRAPYD_HTTP_PORT": str(port), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with (folder / "scrapyd.log").open("w") as log:
        process = subprocess.Popen(
            [Path(sys.executable).parent / "scrapyd"],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
        )
    try:
        scrapyd = Scrapyd(folder, port)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                scrapyd.call("daemonstatus.json")
                break
            except OSError:
                assert process.poll() is None, (folder / "scrapyd.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield scrapyd
    finally:
        process.terminate()
        process.wait(timeout=300)


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    with sandbox() as found:
        yield {**found, "DOWNLOAD_TIMEOUT": 60, "BROWSER_SCROLL_PAUSE": 0, "BROWSER_QUIET": 30}  # on a busy machine


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapyd]:
    """The first kind of deployment: the package is installed in Scrapyd's environment (here: on the PYTHONPATH)."""
    folder = tmp_path_factory.mktemp("installed")
    with running(folder, PYTHONPATH=str(ROOT), OWN_LOG=str(folder / "own.log")) as scrapyd:
        yield scrapyd


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapyd]:
    """The second kind of deployment: scrapyd-deploy uploads an egg, and the package is not installed."""
    folder = tmp_path_factory.mktemp("deployed")
    project = tmp_path_factory.mktemp("deployment") / "project"
    shutil.copytree(ROOT / "crawler", project / "crawler", ignore=CACHES)
    for name in FILES:
        shutil.copy(ROOT / name, project)
    with running(folder, PYTHONPATH="") as scrapyd:
        # The scrapy.cfg made for an installed package is not used: it would run that package.
        config = (ROOT / "scrapy.cfg").read_text().replace("http://127.0.0.1:6800/", f"{scrapyd.base}/")
        (project / "scrapy.cfg").write_text(config)
        deploy(project)
        yield scrapyd


def deploy(project: Path) -> None:
    """Upload a project with ``scrapyd-deploy`` to the Scrapyd in its scrapy.cfg."""
    sent = subprocess.run(
        [sys.executable, Path(sys.executable).parent / "scrapyd-deploy"],
        check=False,
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert '"status": "ok"' in sent.stdout, sent.stdout + sent.stderr


def deploy_other_project(scrapyd: Scrapyd, folder: Path, *more_settings: str, **modules: str) -> None:
    """Make another project with ``scrapy startproject``, enable the add-on in it, and upload it as ``shop``.

    ``modules``: name of a further module -> its code.
    """
    start = [sys.executable, "-m", "scrapy", "startproject", "shop", str(folder)]
    subprocess.run(start, check=True, capture_output=True)
    with (folder / "shop/settings.py").open("a") as settings:
        settings.write('ADDONS = {"crawler.Addon": 500}\nDOWNLOAD_DELAY = 0\n')
        settings.writelines(more_settings)
    for name, code in modules.items():
        (folder / f"shop/{name}.py").write_text(code)
    (folder / "shop/spiders/own.py").write_text(OTHER_SPIDERS)
    config = (folder / "scrapy.cfg").read_text().replace("#url = http://localhost:6800/", f"url = {scrapyd.base}/")
    (folder / "scrapy.cfg").write_text(config)
    deploy(folder)


@pytest.mark.parametrize(("name", "way"), scraper_cases())
def test_a_job_stores_the_expected_record(
    request: pytest.FixtureRequest, settings: dict[str, Any], way: str, name: str
) -> None:
    scrapyd: Scrapyd = request.getfixturevalue(way)
    scraper = scrapers()[name]
    spider = spider_for(scraper).name
    job = scrapyd.run(spider, settings, scraper=name, **scraper.example)
    expected = comparable([expected_record(scraper)])
    assert comparable(scrapyd.data(spider, job)) == expected, scrapyd.log(spider, job)
    assert scrapyd.failures(spider, job) == []
    assert scrapyd.log(spider, job).splitlines()[-1].endswith("event=crawl_ended exit_code=0")


@pytest.mark.parametrize("spider", spider_cases())
def test_an_invalid_argument_is_explained_in_the_log(installed: Scrapyd, settings: dict[str, Any], spider: str) -> None:
    job = installed.run(spider, settings, max_pages="many")
    assert installed.log(spider, job).startswith("max_pages=many: Input should be a valid integer")
    assert installed.data(spider, job) == []


def test_the_last_line_of_the_log_has_the_exit_code(installed: Scrapyd, settings: dict[str, Any]) -> None:
    """Scrapyd lists the failed job as finished. Its own log names the exit code, too."""
    job = installed.run("retail", settings, query="gone")
    assert installed.log("retail", job).splitlines()[-1].endswith("event=crawl_ended exit_code=4")
    (died,) = re.findall(rf"Process died: exitstatus=4 .*job='{job}'", (installed.folder / "scrapyd.log").read_text())
    assert "spider='retail'" in died


def test_both_ways_list_the_same_spiders(installed: Scrapyd, deployed: Scrapyd) -> None:
    for scrapyd in (installed, deployed):
        assert scrapyd.call("listspiders.json", project="crawler")["spiders"] == sorted(spiders())


@pytest.mark.soak
def test_a_second_project_runs_our_spider_and_its_own(installed: Scrapyd, tmp_path: Path) -> None:
    deploy_other_project(installed, tmp_path)
    assert installed.call("listspiders.json", project="shop")["spiders"] == ["groceries", "plain"]
    job = installed.run("groceries", {"SANDBOX": "1"}, "shop", cat_id="976759")
    expected = Site().expected_record({"scraper": "retail-category-v4", "cat_id": "976759"})
    assert comparable(installed.data("groceries", job, "shop")) == comparable([expected])
    plain = installed.run("plain", {}, "shop")
    assert installed.data("plain", plain, "shop") == [{"text": "text"}]
    ours = installed.run("retail", {"SANDBOX": "1"}, cat_id="976759")
    assert comparable(installed.data("retail", ours)) == comparable([expected])


@pytest.mark.soak
def test_spidermon_checks_the_stats_as_documented(installed: Scrapyd, tmp_path: Path) -> None:
    page = (ROOT / "docs/schedule.md").read_text()
    monitors, settings = re.findall(r"```python\n(# shop/(?:monitors|settings)\.py\n.*?)```", page, re.DOTALL)
    deploy_other_project(installed, tmp_path, settings, monitors=monitors)
    job = installed.run("groceries", {"SANDBOX": "1"}, "shop", cat_id="976759")
    log = installed.log("groceries", job, "shop")
    assert "Expecting 'targets/OK' to be '>=' to '2.0'. Current value: '1.0'" in log
    assert re.search(r"Finish Reason Monitor/\S.* OK\n", log), log
    assert "RecordsMonitor" in (installed.folder / "report.html").read_text()
