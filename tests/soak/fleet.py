"""A service that is killed and restarted repeatedly, and clients that repeat their calls until they get a response."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crawler.registry import scrapers
from tests.service.client import HEADERS, Reply, call
from tests.service.conftest import Service, running


@dataclass
class Fleet:
    """A service that is killed and restarted repeatedly, and the API keys of its clients."""

    folder: Path
    settings: tuple[str, ...]
    keys: dict[str, str]
    workers: int = 1
    url: str = ""

    def send(self, client: str, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send a request, and repeat it while the connection fails or the response is a 503 other than OVERLOADED."""
        while True:
            with suppress(OSError, http.client.HTTPException, ValueError):
                sent = {**HEADERS, "X-API-Key": self.keys[client], **headers}
                reply = call(self.url, path, body, method=method, headers=sent, timeout=120)
                if reply.status != 503 or reply.code == "OVERLOADED":
                    return reply
            time.sleep(0.1)

    def accept(self, client: str, number: int, name: str, params: Any = None) -> str:
        """Make an asynchronous call, by default with the scraper's example. Return its id.

        If the service is killed, the call is repeated with the same ``Idempotency-Key``.
        """
        headers = {"Prefer": "respond-async", "Idempotency-Key": f"{client}-{number}"}
        reply = self.send(client, "POST", f"/v1/scrapers/{name}", params or scrapers()[name].example, **headers)
        assert reply.status in {200, 202}, reply
        return str(reply.body["request_id"])

    def counts(self, client: str) -> dict[str, int]:
        counts: dict[str, int] = self.send(client, "GET", "/v1/calls?limit=1").body["counts"]
        return counts

    def calls(self, client: str) -> Iterator[dict[str, Any]]:
        """Yield all calls of a client."""
        cursor = ""
        while cursor is not None:
            page = self.send(client, "GET", f"/v1/calls{cursor and '?cursor=' + cursor}").body
            yield from page["calls"]
            cursor = page["next_cursor"]


@contextmanager
def serve(fleet: Fleet) -> Iterator[Service]:
    """Run the service until the end of the ``with`` block, then kill it with SIGKILL."""
    log = fleet.folder / f"log-{time.time_ns()}"
    with running(log, *fleet.settings, sandbox=False, workers=fleet.workers) as service:
        fleet.url = service.url
        yield service


def wait_for(fleet: Fleet, number: int) -> None:
    """Wait until at least ``number`` calls of all clients together have the state ``done``."""
    while sum(fleet.counts(client)["done"] for client in fleet.keys) < number:
        time.sleep(0.5)
