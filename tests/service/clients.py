"""A service with several clients, and a platform that does not respond to some queries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crawler.sandbox.protocol import FakeResponse
from crawler.service.keys import KeyStore
from tests.hanging_platform import HangingPlatform, hanging_platform
from tests.service.client import HEADERS, Reply, call
from tests.service.conftest import Service, running


@dataclass(frozen=True)
class Clients:
    """A service with one download slot, and its platform.

    The platform does not respond to queries that begin with "hang", and refuses "forbidden".
    """

    service: Service
    platform: HangingPlatform
    keys: dict[str, str]
    """Client name -> API key. "second" is a second key of the client acme."""

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, client: str = "acme"
    ) -> Reply:
        sent = {**HEADERS, "X-API-Key": self.keys[client], **(headers or {})}
        return call(self.service.url, path, body, method=method, headers=sent, timeout=300)


def respond(platform: HangingPlatform, path: str, args: dict[str, str]) -> FakeResponse | None:
    query = args.get("q", "")
    if query == "forbidden":
        return 403, {}, b"Forbidden"
    return None if query.startswith("hang") else platform.page(path, args)


@contextmanager
def serving(folder: Path, *settings: str) -> Iterator[Clients]:
    """Run a service with the clients acme and other."""
    keys = KeyStore(folder / "keys.sqlite")
    names = {"acme": keys.create("acme"), "second": keys.create("acme"), "other": keys.create("other")}
    with hanging_platform(lambda path, args: respond(platform, path, args)) as platform:
        own = (
            f"KEYS_FILE={folder / 'keys.sqlite'}",
            f"PLATFORM_ORIGINS={json.dumps({'retail': platform.origin})}",
            f"PLATFORM_BUDGETS={json.dumps({'retail': {'concurrency': 1, 'delay': 0}})}",
            "DOWNLOAD_TIMEOUT=3600",
        )
        with running(folder / "log", *own, *settings, sandbox=False) as service:
            yield Clients(service, platform, names)
            platform.release.set()
