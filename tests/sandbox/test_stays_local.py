"""With ``SANDBOX``, each command works in a network namespace that has loopback only, and tries to reach nothing else.

The environment names proxies on which nothing listens.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crawler.registry import scrapers, spider_for, spiders
from tests import forks
from tests.crawls import ROOT, comparable, expected_record, lines

NO_NAMESPACE = 77
"""The exit code of a command whose process may not have a network namespace."""
ISOLATE = f"""
import ctypes, fcntl, os, socket, struct
CLONE_NEWUSER, CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 0x10000000, 0x40000000, 0x8914, 1
if ctypes.CDLL(None).unshare(CLONE_NEWNET | (CLONE_NEWUSER if os.geteuid() else 0)):
    os._exit({NO_NAMESPACE})
with socket.socket() as device:
    fcntl.ioctl(device, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
import tests.loopback_only
"""
"""Python code that moves a process into a network namespace with loopback only, and records what it tries to reach."""
DEAD_PROXY = "http://me:secret@127.0.0.1:9"
CATEGORY = "https://www.walmart.com/browse/976759"
ELSEWHERE = "https://books.example/"
STOCK = "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"
OWN_SPIDER = f"""
import scrapy

class Own(scrapy.Spider):
    name = "own"
    start_urls = ["{CATEGORY}"]
    custom_settings = {{"DOWNLOAD_HANDLERS": {{"https": "{STOCK}"}}}}

    def parse(self, response):
        print(response.url, len(response.text))
"""

COMMANDS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "fetch": (("fetch", "--nolog", CATEGORY), 0, "__NEXT_DATA__"),
    "fetch with a spider": (("fetch", "--nolog", "--spider=retail", CATEGORY), 0, "__NEXT_DATA__"),
    "fetch of another site": (("fetch", ELSEWHERE), 0, f"SANDBOX is set, and {ELSEWHERE[:-1]} is not simulated."),
    "shell": (("shell", "--nolog", CATEGORY, "-c", "response.url"), 0, CATEGORY),
    "view": (("view", CATEGORY), 0, "Spider closed (finished)"),
    "parse": (("parse", "--spider=retail", CATEGORY), 0, "scrapy parse cannot run"),
    "a spider of the user": (("runspider", "--nolog", "own.py"), 0, CATEGORY),
    "probe": (("probe", "retail-category-v4", "-a", "cat_id=976759"), 0, "OK"),
    "collect": (("collect", "links.txt", "-O", "out.jsonl"), 0, "OK"),
}
"""What is run: the command, its exit code, and a part of its output."""


ENDPOINT = """
import subprocess, sys, urllib.request
start = [sys.executable, "-m", "scrapy", "serve", "--sandbox", "--port", "0"]
with subprocess.Popen(start, stdout=subprocess.PIPE, text=True) as endpoint:
    url = next(line for line in endpoint.stdout if line.startswith("listening on ")).split()[-1]
    headers = {"X-API-Key": "sandbox", "Content-Type": "application/json"}
    call = urllib.request.Request(f"{url}/v1/scrapers/retail-category-v4", b'{"cat_id": "976759"}', headers)
    print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(call).read().decode())
    endpoint.terminate()
"""
"""Python code that calls an endpoint which it starts."""


def environment_of(folder: Path) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), DEAD_PROXY),
        "CRAWLER_SANDBOX": "1",
        "CRAWLER_STORE": str(folder / "store.sqlite3"),
        "LOOPBACK_LOG": str(folder / "reached"),
        "PYTHONPATH": str(ROOT),
        "SCRAPY_SETTINGS_MODULE": "crawler.settings",
        "BROWSER": "true",
    }


def isolated(folder: Path, *command: str) -> subprocess.CompletedProcess[Any]:
    """Run a command in a namespace. Skip the test if this is not permitted."""
    run = forks.run([*forks.SCRAPY, *command], before=ISOLATE, cwd=folder, env=environment_of(folder))
    return checked(folder, run)


def isolated_code(folder: Path, code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[Any]:
    """Run Python code in a namespace. Skip the test if this is not permitted."""
    start = [sys.executable, "-c", ISOLATE + code]
    return checked(
        folder, subprocess.run(start, check=False, cwd=folder, env=environment, capture_output=True, text=True)
    )


def checked(folder: Path, run: subprocess.CompletedProcess[Any]) -> subprocess.CompletedProcess[Any]:
    """Check that a process has tried to reach nothing outside of its namespace."""
    reached = folder / "reached"
    if run.returncode == NO_NAMESPACE:
        pytest.skip("this system does not permit network namespaces")
    assert not reached.exists(), reached.read_text()
    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_needs_loopback_only(tmp_path: Path, name: str) -> None:
    command, code, part = COMMANDS[name]
    folder = tmp_path / "with blanks"
    folder.mkdir()
    (folder / "own.py").write_text(OWN_SPIDER)
    (folder / "links.txt").write_text(f"{CATEGORY}\n")
    run = isolated(folder, *command)
    assert (run.returncode, part in run.stdout + run.stderr) == (code, True), run.stdout[-2000:] + run.stderr


def test_cookies_need_no_list_of_public_suffixes(tmp_path: Path) -> None:
    """The package that Scrapy splits domains with has not stored the list on this machine yet."""
    (tmp_path / "own.py").write_text(OWN_SPIDER)
    command = "from scrapy.cmdline import execute\nexecute(['scrapy', 'runspider', '--nolog', 'own.py'])"
    names = ("http_proxy", "https_proxy", "all_proxy")  # the proxies would hide the name that is looked up
    environment = {name: value for name, value in environment_of(tmp_path).items() if name not in names}
    run = isolated_code(tmp_path, command, {**environment, "TLDEXTRACT_CACHE": str(tmp_path / "suffixes")})
    assert CATEGORY in run.stdout, run.stderr


@pytest.mark.parametrize("spider", sorted(spiders()))
def test_a_crawl_needs_loopback_only(tmp_path: Path, spider: str) -> None:
    """The record is the expected one. One of the platforms is loaded in Chromium."""
    scraper = next(each for each in scrapers().values() if spider_for(each).name == spider)
    arguments = [part for name, value in scraper.example.items() for part in ("-a", f"{name}={value}")]
    run = isolated(tmp_path, "crawl", spider, "-a", f"scraper={scraper.name}", *arguments, "-O", "out.jsonl")
    assert comparable(lines(tmp_path / "out.jsonl")) == comparable([expected_record(scraper)]), run.stderr


def test_without_the_sandbox_the_platform_is_not_reached(tmp_path: Path) -> None:
    """The namespace of the other tests has loopback only."""
    run = isolated(
        tmp_path, "crawl", "retail", "-a", "cat_id=976759", "-s", "SANDBOX=0", "-s", "RETRY_TIMES=0", "-O", "out.jsonl"
    )
    assert run.returncode == 4, run.stderr
    assert "the connection" in run.stderr.lower()


def test_local_servers_are_used_instead_of_the_simulated_platforms(tmp_path: Path) -> None:
    origins = json.dumps({"https://books.example": "http://127.0.0.1:9"})
    run = isolated(tmp_path, "fetch", ELSEWHERE, "-s", f"PLATFORM_ORIGINS={origins}", "-s", "RETRY_ENABLED=0")
    assert "Connection refused" in run.stderr, run.stderr


@pytest.mark.soak
def test_the_endpoint_needs_loopback_only(tmp_path: Path) -> None:
    run = isolated_code(tmp_path, ENDPOINT, environment_of(tmp_path))
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["status"]["code"] == "OK"
