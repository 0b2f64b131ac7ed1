"""The calls and answers that ``docs/from-scrapyrt.md`` compares, with scrapyrt and a running endpoint."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.http_server import free_port
from tests.service.client import CATEGORY, Reply, call
from tests.service.conftest import Service, running

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/from-scrapyrt.md").read_text()
FOOD = {"cat_id": "976759"}
pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def scrapyrt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of scrapyrt with this project and the simulated platforms."""
    port = free_port()
    logs = tmp_path_factory.mktemp("logs")
    setting = re.search(r"Set `(\w+)=(\w+)`", PAGE)
    assert setting
    environment = os.environ | {setting[1]: setting[2], "CRAWLER_SANDBOX": "1", "CRAWLER_STORE": str(logs / "store")}
    program = str(Path(sys.executable).parent / "scrapyrt")
    command = [program, "-i", "127.0.0.1", "-p", str(port), "-s", f"LOG_DIR={logs}"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 300
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service") / "log") as started:
        yield started


def crawl(url: str, arguments: dict[str, str], **options: Any) -> Reply:
    """Return scrapyrt's answer to a crawl of the retail spider."""
    query = {"spider_name": "retail", "crawl_args": json.dumps(arguments), **options}
    return call(url, f"/crawl.json?{urlencode(query)}", method="GET", headers={})


def test_the_calls_of_the_page_have_the_same_record(scrapyrt: str, service: Service) -> None:
    (block,) = re.findall(r"```bash\n(# scrapyrt: .*?)```", PAGE, re.DOTALL)
    theirs = block.partition("curl -s ")[0].partition("scrapyrt: ")[2].replace("#", "").replace("\\", "")
    options = dict(each.split("=", 1) for each in shlex.split(theirs) if "=" in each)
    arguments = json.loads(options.pop("crawl_args"))
    assert options == {"spider_name": "retail", "spider_start": "1"}
    ours = shlex.split(block, comments=True)
    assert arguments == json.loads(ours[-1]) == FOOD
    crawled = crawl(scrapyrt, arguments, **options)
    reply = call(service.url, next(each for each in ours if "/v1/" in each).partition(":8000")[2], FOOD)
    assert (crawled.status, crawled.body["status"], reply.status) == (200, "ok", 200)
    assert "stats" in crawled.body
    assert crawled.body["items"] == [reply.body["data"]]
    assert crawled.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in reply.headers


def test_a_post_has_the_arguments_as_an_object(scrapyrt: str) -> None:
    body = {"spider_name": "retail", "spider_start": True, "crawl_args": FOOD}
    assert len(call(scrapyrt, "/crawl.json", body).body["items"]) == 1


@pytest.mark.parametrize(
    ("arguments", "theirs", "ours"),
    [
        pytest.param({"cat_id": "424242"}, (200, "ok"), (404, "TARGET_NOT_FOUND"), id="no such page"),
        pytest.param({"cat_idd": "1"}, (500, "error"), (400, "INVALID_REQUEST"), id="wrong arguments"),
    ],
)
def test_a_call_without_a_record_is_a_typed_error_of_the_endpoint(
    scrapyrt: str, service: Service, arguments: dict[str, str], theirs: tuple[int, str], ours: tuple[int, str]
) -> None:
    crawled = crawl(scrapyrt, arguments, spider_start=1)
    assert (crawled.status, crawled.body["status"]) == theirs
    assert not crawled.body.get("items")
    reply = call(service.url, CATEGORY, arguments)
    assert (reply.status, reply.code) == ours


def test_scrapyrt_scrapes_no_target_without_spider_start(scrapyrt: str) -> None:
    crawled = crawl(scrapyrt, FOOD)
    assert (crawled.status, crawled.body["status"]) == (400, "error")
