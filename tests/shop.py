"""A test server with the sandbox's shop. Tests can change its pages and prices between two crawls."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from crawler.sandbox.protocol import FakeRequest
from crawler.sandbox.retail.site import Site
from tests import forks
from tests.http_server import Handler, served

ROOT = Path(__file__).parents[1]


@dataclass
class Shop:
    """The state of the server. A test may change it between crawls."""

    site: Site = field(default_factory=lambda: Site(light=True))
    alter: Callable[[bytes], bytes] = lambda body: body
    """Changes the body of each page before it is served."""
    headers: dict[str, str] = field(default_factory=dict)
    """Additional headers of each page."""
    origin: str = ""

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Return the status, headers and body of the page at a path."""
        parts = urlsplit(path)
        status, headers, body = self.site.page(FakeRequest(parts.path, dict(parse_qsl(parts.query))))
        return status, headers | self.headers, self.alter(body)

    def settings(self) -> dict[str, str]:
        """Return settings for a crawl of this shop without delays."""
        return {
            "PLATFORM_ORIGINS": json.dumps({"retail": self.origin}),
            "PLATFORM_BUDGETS": json.dumps({"retail": {"concurrency": 16, "delay": 0}}),
            "RETRY_BACKOFF_BASE": "0.05",
        }

    def scrapy(self, *arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
        """Run a Scrapy command of the project against this shop."""
        options = [part for name, value in (self.settings() | settings).items() for part in ("-s", f"{name}={value}")]
        return forks.run([*forks.SCRAPY, *arguments, *options])

    def crawl(self, *arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
        """Run a crawl of the shop. The crawl has a failures feed only if the settings name one."""
        return self.scrapy("crawl", "retail", *arguments, **({"FAILURES_FEED": ""} | settings))


@contextmanager
def open_shop() -> Iterator[Shop]:
    """Serve a shop on loopback."""
    shop = Shop()

    class Page(Handler):
        def do_GET(self) -> None:  # noqa: N802  # http.server's name
            status, headers, body = shop.answer(self.path)
            self.answer(body, status, {"Content-Type": "text/html; charset=utf-8", **headers})

    with served(Page) as shop.origin:
        yield shop
