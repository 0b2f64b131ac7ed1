"""A shop with as many categories as are asked for, which counts its requests, and workers that crawl it."""

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

from tests.crawls import ROOT, command

PRODUCT = {"__typename": "Product", "id": "A", "name": "Invented"}


def pages(number: int) -> int:
    """How many pages the n-th category has; 0: there is none."""
    return 0 if number % 10 == 3 else 2 if number % 20 == 0 else 1


def expected(count: int) -> Counter[str]:
    """The outcomes of the first categories, of all of their pages."""
    found = Counter(OK=sum(map(pages, range(count))), TARGET_NOT_FOUND=sum(not pages(n) for n in range(count)))
    return +found


@dataclass
class Shop:
    """Its requests, and where it is."""

    origin: str = ""
    asked: list[float] = field(default_factory=list)
    """When each request came."""

    def answer(self, path: str) -> tuple[int, bytes]:
        """Status and body."""
        self.asked.append(time.monotonic())
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
        """What makes a crawl go here, with the budget and the queue in Redis."""
        return {
            "PLATFORM_ORIGINS": orjson.dumps({"retail": self.origin}).decode(),
            "PLATFORM_BUDGETS": '{"retail": {"concurrency": 16, "delay": 0}}',
            "RETRY_BACKOFF_BASE": 0.05,
            "DOWNLOAD_TIMEOUT": 2,
            "REDIS_URL": redis,
            "QUEUE_IDLE": 2,
            "FAILURES_FEED": "",
            "LOG_LEVEL": "INFO",
            **settings,
        }

    def worker(self, redis: str, *options: str, **settings: object) -> list[str]:
        """The command of a worker."""
        return command("retail", {"queue": "default", "max_pages": 2}, self.settings(redis, **settings), *options)


@pytest.fixture
def shop() -> Iterator[Shop]:
    """Serves a shop on loopback."""
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
            """Says nothing: a worker that is killed leaves its connections."""

    with Server(("127.0.0.1", 0), Handler) as server:
        served.origin = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield served
        server.shutdown()


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    """Ends what is entered into it."""
    with ExitStack() as stack:
        yield stack


def start(processes: ExitStack, worker: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Starts a worker, which the test's end kills if it has not ended before."""
    file = processes.enter_context(log.open("ab"))
    process = processes.enter_context(subprocess.Popen(worker, cwd=ROOT, stderr=file))
    processes.callback(process.kill)
    return process


def targets(file: Path, count: int) -> Path:
    """A targets file of the first categories."""
    with file.open("w") as out:
        out.writelines(f'{{"id":"t{n}","cat_id":"1_{n}"}}\n' for n in range(count))
    return file


def tell(redis: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``scrapy targets``."""
    return subprocess.run(
        [*command("", {}, {"REDIS_URL": redis})[:3], "targets", *arguments, "-s", f"REDIS_URL={redis}"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
