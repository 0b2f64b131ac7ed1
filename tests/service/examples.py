"""Records the examples of the OpenAPI document: real answers of the sandbox, whose lists have one entry.

``python -m tests.service.examples`` writes ``crawler/service/examples.json``; ``test_examples.py`` compares it with
the answers of a running service.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from crawler.errors import documented
from crawler.registry import scrapers
from crawler.service.key_store import KeyStore
from tests.service.client import CATEGORY, HEADERS, SEARCH, call, wait_for_draining
from tests.service.conftest import ROOT, VERY_SLOW, Service, running
from tests.service.metrics_of import value

FILE = ROOT / "crawler/service/examples.json"
REQUEST_ID = "req_01ARZ3NDEKTSV4RRFFQ69G5FAV"
MAX_TEXT = 26
"""Longer texts are cut."""
ENDED_MEANWHILE = """
from crawler.service.jobs.uploads import Uploads
push = Uploads._push
async def push_late(self, job, *rest):
    await self._abandon(job)
    await push(self, job, *rest)
Uploads._push = push_late
"""
"""Before the lines of an upload are stored, another upload with the same ``Idempotency-Key`` fails."""
Examples = dict[str, dict[str, Any]]


def shown(part: Any) -> Any:
    """Return an answer as the document shows it: lists with one entry, short texts, and constant ids and durations."""
    if isinstance(part, list):
        return [shown(each) for each in part[:1]]
    if isinstance(part, str) and len(part) > MAX_TEXT:
        return part[:MAX_TEXT] + "…"
    if not isinstance(part, dict):
        return part
    own = {"request_id": REQUEST_ID, "duration_ms": 240}
    return {key: own[key] if key in own else shown(value) for key, value in part.items()}


def successes(url: str) -> Examples:
    """Return scraper -> the answer to its example."""
    distinct = {each.name: each for each in scrapers().values()}
    return {
        name: shown(call(url, f"/v1/scrapers/{name}", each.example, headers=HEADERS | {"Prefer": "wait=60"}).body)
        for name, each in distinct.items()
    }


def _posted(url: str, body: Any, path: str = SEARCH, **headers: str) -> Any:
    return call(
        url, path, body, headers=HEADERS | {name.replace("_", "-"): text for name, text in headers.items()}
    ).body


def _of_requests(url: str) -> Iterator[Any]:
    """Yield the errors of requests that no platform is needed for."""
    yield _posted(url, b"{")
    yield _posted(url, {"page": 0}, CATEGORY)
    yield call(url, SEARCH, {"query": "honey"}, headers={"Content-Type": "application/json"}).body
    yield _posted(url, {"query": "honey"}, X_API_Key="wrong")
    yield _posted(url, b"query=honey", Content_Type="application/x-www-form-urlencoded")
    yield _posted(url, b" " * 70_000)
    yield _posted(url, {"query": "honey"}, Expect="200-ok")
    yield call(url, "/v1/jobs/987654", method="GET").body
    upload = {"path": "/v1/jobs", "Idempotency_Key": "nightly"}
    _posted(url, [{"url": "https://www.walmart.com/browse/food/976759"}], **upload)
    yield _posted(url, [{"url": "https://www.walmart.com/browse/food/1071964"}], **upload)


def _of_targets(url: str) -> Iterator[Any]:
    """Yield the errors of targets and platforms."""
    for query in ("gone", "server-error", "forbidden", "rate-limited", "not-html"):
        yield _posted(url, {"query": query})
    yield _posted(url, {"query": "hang"}, Prefer="wait=1")
    yield _posted(url, {"username": "@region"}, "/v1/scrapers/videosite-profile")


@contextmanager
def _keyed(
    folder: Path, *settings: str, before: str = "", **limits: Any
) -> Iterator[tuple[Service, Callable[..., Any]]]:
    """Run an endpoint with a key that has limits. Yield it, and a function that sends a call of the search."""
    own = Path(tempfile.mkdtemp(dir=folder))
    key = KeyStore(own / "keys.sqlite3").create("acme", **limits)
    with running(
        own / "log", f"KEYS_FILE={own / 'keys.sqlite3'}", "SANDBOX=1", *settings, sandbox=False, before=before
    ) as service:
        yield service, lambda query: _posted(service.url, {"query": query}, X_API_Key=key)


def _refused_beside_another(folder: Path, *settings: str, **limits: Any) -> Any:
    """Return the answer to one of two calls at once, which is refused."""
    with _keyed(folder, *settings, before=VERY_SLOW, **limits) as (_, send), ThreadPoolExecutor() as pool:
        answers = pool.map(send, ["slow", "slow"])
        return next(each for each in answers if not each["success"])


def _of_limits(folder: Path) -> Iterator[Any]:
    """Yield the errors of limits, of the service's state and of its pipelines."""
    with _keyed(folder, rate="1/hour") as (_, send):
        send("honey")
        yield send("honey")
    with _keyed(folder, quota=1) as (_, send):
        while (answer := send("honey"))["success"]:  # usage is stored within a second
            time.sleep(0.2)
        yield answer
    yield _refused_beside_another(folder, concurrency=1)
    yield _refused_beside_another(folder, "SERVICE_MAX_CALLS=1")
    with _keyed(folder, before=VERY_SLOW) as (service, send), ThreadPoolExecutor() as pool:
        pool.submit(send, "slow")
        while not value(service.url, "crawler_calls_in_flight", platform="retail"):
            time.sleep(0.1)
        os.kill(service.pid, signal.SIGTERM)
        wait_for_draining(service.url)
        yield send("honey")
    with _keyed(folder, "BREAKER_THRESHOLD=1") as (_, send):
        send("forbidden")
        yield send("honey")
    for pipeline in ("Raises", "Drops"):
        with _keyed(folder, f'ITEM_PIPELINES={{"broken_pipelines.{pipeline}": 500}}') as (_, send):
            yield send("honey")
    with running(Path(tempfile.mkdtemp(dir=folder)) / "log", before=ENDED_MEANWHILE) as service:
        upload = [{"url": "https://www.walmart.com/browse/food/976759"}]
        yield _posted(service.url, upload, "/v1/jobs", Idempotency_Key="nightly")
    with _keyed(folder, "ROBOTSTXT_OBEY=1") as (_, send):
        yield send("honey")


def _of_jobs(url: str, store: Path) -> Iterator[Any]:
    """Yield the errors of a job that is not done, and of a store that another program holds."""
    upload = [{"scraper": "retail-search-v4", "query": "hang"}]
    _posted(url, upload, "/v1/jobs?name=prices")
    yield _posted(url, upload, "/v1/jobs?name=prices")
    with closing(sqlite3.connect(store, isolation_level=None, timeout=300)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield _posted(url, upload, "/v1/jobs")


def failures(url: str, folder: Path) -> Examples:
    """Return error code -> an answer with this error. ``folder``: the folder of the endpoint's log and store."""
    made = [*_of_requests(url), *_of_targets(url), *_of_jobs(url, folder / "service.sqlite3"), *_of_limits(folder)]
    found = {each["error"]["code"]: shown(each) for each in made}
    return {kind.code: found[kind.code] for kind in documented() if kind.code in found}


def recorded() -> dict[str, Examples]:
    """Record all examples anew."""
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "log") as service:
        return {"successes": successes(service.url), "failures": failures(service.url, Path(name))}


if __name__ == "__main__":
    FILE.write_text(json.dumps(recorded(), indent=1, ensure_ascii=False) + "\n")
