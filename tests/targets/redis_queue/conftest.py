"""A fake shop with any number of categories, which records its requests, and workers that crawl it."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from tests import forks
from tests.crawls import ROOT, command

PRODUCT = {"__typename": "Product", "id": "A", "name": "Invented"}


def pages(number: int) -> int:
    """Return the number of pages of the n-th category; 0: the category does not exist."""
    return 0 if number % 10 == 3 else 2 if number % 20 == 0 else 1


def expected(count: int) -> Counter[str]:
    """Return the expected outcomes of all pages of the first categories."""
    found = Counter(OK=sum(map(pages, range(count))), TARGET_NOT_FOUND=sum(not pages(n) for n in range(count)))
    return +found


@dataclass
class Shop:
    """A fake shop with the times of its requests."""

    origin: str = ""
    request_times: list[float] = field(default_factory=list)
    """The time of each request."""

    def answer(self, path: str) -> tuple[int, bytes]:
        """Return the status and body for a path."""
        self.request_times.append(time.monotonic())
        parts = urlsplit(path)
        found = re.search(r"/browse/1_(\d+)", parts.path)
        number = int(found[1]) if found else 3
        page = int(parse_qs(parts.query).get("page", ["1"])[0])
        if page > pages(number):
            return 404, b"<html></html>"
        item = {**PRODUCT, "usItemId": f"{number}{page}", "canonicalUrl": f"/ip/invented/{number}{page}"}
        listing = {
            "paginationV2": {
                "maxPage": pages(number),
                "pageProperties": {"cat_id": f"1_{number}", "page": page, "sort": "best_match"},
            },
            "aggregatedCount": 1,
            "itemStacks": [{"layoutEnum": "GRID", "items": [item]}],
        }
        data = orjson.dumps({"props": {"pageProps": {"initialData": {"searchResult": listing}}}})
        return 200, b'<html><script id="__NEXT_DATA__" type="application/json">' + data + b"</script></html>"

    def settings(self, redis: str, **settings: object) -> dict[str, Any]:
        """Return the settings of a crawl of this shop with a queue in Redis."""
        return {
            "PLATFORM_ORIGINS": orjson.dumps({"retail": self.origin}).decode(),
            "PLATFORM_BUDGETS": '{"retail": {"concurrency": 16, "delay": 0}}',
            "RETRY_BACKOFF_BASE": 0.05,
            "DOWNLOAD_TIMEOUT": 5,
            "REDIS_URL": redis,
            "QUEUE_IDLE": 2,
            "FAILURES_FEED": "",
            "LOG_LEVEL": "INFO",
            **settings,
        }

    def worker(self, redis: str, *options: str, **settings: object) -> list[str]:
        """Return the command of a worker."""
        return command("retail", {"queue": "default", "max_pages": 2}, self.settings(redis, **settings), *options)


@pytest.fixture
def shop() -> Iterator[Shop]:
    """Serve a shop on loopback."""
    served = Shop()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # http.server's name
            status, body = served.answer(self.path)
            head = f"HTTP/1.1 {status} Any\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Log nothing: killed workers leave open connections."""

    with Server(("127.0.0.1", 0), Handler) as server:
        served.origin = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield served
        server.shutdown()


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    """A stack that ends its processes after the test."""
    with ExitStack() as stack:
        yield stack


def start(processes: ExitStack, worker: list[str], log: Path) -> forks.Popen:
    """Start a worker. It is killed after the test if it is still running."""
    file = processes.enter_context(log.open("ab"))
    process = processes.enter_context(forks.Popen(worker, cwd=ROOT, stderr=file))
    processes.callback(process.kill)
    return process


def targets(file: Path, count: int) -> Path:
    """Write a targets file of the first categories."""
    with file.open("w") as out:
        out.writelines(f'{{"id":"t{n}","cat_id":"1_{n}"}}\n' for n in range(count))
    return file


def scrapy_targets(redis: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``scrapy targets``."""
    return forks.run(
        [*command("", {}, {"REDIS_URL": redis})[:3], "targets", *arguments, "-s", f"REDIS_URL={redis}"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
