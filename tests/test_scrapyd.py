"""A real Scrapyd: deployed to in both ways, asked for every scraper by its API, compared with the truth."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import pytest

from crawler.registry import scrapers, spider_for
from tests.crawls import ROOT, comparable, lines, sandbox

http = build_opener(ProxyHandler({}))
PATIENCE = 180  # seconds
NAMES = sorted(scraper.name for scraper in {id(each): each for each in scrapers().values()}.values())


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


class Scrapyd:
    """A running Scrapyd, and its API."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.base = f"http://127.0.0.1:{port}"

    def ask(self, method: str, **fields: Any) -> dict[str, Any]:
        body = urlencode(fields, doseq=True)
        if method.startswith(("list", "daemon")):
            answer = http.open(f"{self.base}/{method}?{body}")
        else:
            answer = http.open(f"{self.base}/{method}", body.encode())
        with answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def run(self, spider: str, settings: dict[str, Any], **arguments: Any) -> str:
        """Schedules a job and waits for its end. Gives its id."""
        given = [f"{name}={value}" for name, value in settings.items()]
        answer = self.ask("schedule.json", project="crawler", spider=spider, setting=given, **arguments)
        assert answer["status"] == "ok", answer
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            jobs = self.ask("listjobs.json", project="crawler")
            if any(job["id"] == answer["jobid"] for job in jobs["finished"]):
                return str(answer["jobid"])
            time.sleep(0.1)
        raise AssertionError(f"{spider} did not end: {self.log(spider, answer['jobid'])}")

    def log(self, spider: str, job: str) -> str:
        return (self.folder / f"logs/crawler/{spider}/{job}.log").read_text()

    def data(self, spider: str, job: str) -> list[Any]:
        return lines(self.folder / f"items/crawler/{spider}/{job}.jl")

    def failures(self, spider: str, job: str) -> list[Any]:
        return lines(self.folder / f"failures-{spider}-{job}.jsonl")


@contextlib.contextmanager
def running(folder: Path, **environment: str) -> Iterator[Scrapyd]:
    """A Scrapyd in a folder that has the installed package's configuration."""
    port = free_port()
    config = (ROOT / "deploy/scrapyd/scrapy.cfg").read_text()
    (folder / "scrapy.cfg").write_text(config.replace("poll_interval = 5", "poll_interval = 1"))
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
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                scrapyd.ask("daemonstatus.json")
                break
            except OSError:
                assert process.poll() is None, (folder / "scrapyd.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield scrapyd
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    with sandbox() as found:
        yield {**found, "DOWNLOAD_TIMEOUT": 60, "BROWSER_SCROLL_PAUSE": 0}  # a browser's page takes its time


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapyd]:
    """The first way: the package is installed beside Scrapyd (here: it is on the path)."""
    with running(tmp_path_factory.mktemp("installed"), PYTHONPATH=str(ROOT)) as scrapyd:
        yield scrapyd


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scrapyd]:
    """The second way: scrapyd-deploy sends an egg. Scrapyd itself knows nothing of the project."""
    folder = tmp_path_factory.mktemp("deployed")
    project = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "crawler", project / "crawler", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    with running(folder, PYTHONPATH="") as scrapyd:
        # A scrapy.cfg that names the installed package would let that one run, were there one.
        config = (ROOT / "scrapy.cfg").read_text().replace("http://127.0.0.1:6800/", f"{scrapyd.base}/")
        (project / "scrapy.cfg").write_text(config)
        sent = subprocess.run(
            [sys.executable, Path(sys.executable).parent / "scrapyd-deploy"],
            check=False,
            cwd=project,
            capture_output=True,
            text=True,
        )
        assert '"status": "ok"' in sent.stdout, sent.stdout + sent.stderr
        yield scrapyd


@pytest.mark.parametrize("way", ["installed", "deployed"])
@pytest.mark.parametrize("name", NAMES)
def test_a_job_has_the_truth(request: pytest.FixtureRequest, settings: dict[str, Any], way: str, name: str) -> None:
    scrapyd: Scrapyd = request.getfixturevalue(way)
    scraper = scrapers()[name]
    spider = spider_for(scraper).name
    job = scrapyd.run(spider, settings, scraper=name, **scraper.example)
    truth = (
        import_module(f"crawler.sandbox.{scraper.platform}.site")
        .Site()
        .expected_record({"scraper": name, **scraper.example})
    )
    assert comparable(scrapyd.data(spider, job)) == comparable([truth]), scrapyd.log(spider, job)
    assert scrapyd.failures(spider, job) == []


@pytest.mark.parametrize("spider", sorted({spider_for(scraper).name for scraper in scrapers().values()}))
def test_a_bad_argument_gives_a_job_with_a_sentence_that_helps(
    installed: Scrapyd, settings: dict[str, Any], spider: str
) -> None:
    job = installed.run(spider, settings, max_pages="many")
    assert 'max_pages="Input should be a valid integer' in installed.log(spider, job)
    assert installed.data(spider, job) == []


@pytest.mark.parametrize("spider", sorted({spider_for(scraper).name for scraper in scrapers().values()}))
def test_params_that_fit_nothing_are_a_failure_of_the_job(
    installed: Scrapyd, settings: dict[str, Any], spider: str
) -> None:
    job = installed.run(spider, settings, scraper="nothing")
    assert [failure["code"] for failure in installed.failures(spider, job)] == ["SCRAPER_NOT_FOUND"]
    assert "code=SCRAPER_NOT_FOUND" in installed.log(spider, job)


def test_both_ways_show_the_same_spiders(installed: Scrapyd, deployed: Scrapyd) -> None:
    spiders = sorted({spider_for(scraper).name for scraper in scrapers().values()})
    for scrapyd in (installed, deployed):
        assert scrapyd.ask("listspiders.json", project="crawler")["spiders"] == spiders
