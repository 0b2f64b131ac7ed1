"""Records the examples of the OpenAPI document: real answers of the sandbox, whose lists have one entry.

``python -m tests.service.examples`` writes ``crawler/service/examples.json``; ``test_examples.py`` compares it with
the answers of a running service.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from crawler.errors import documented
from crawler.registry import scrapers
from crawler.sandbox.retail.site import Site
from tests.service.client import CATEGORY, HEADERS, SEARCH, call
from tests.service.conftest import ROOT, running
from tests.service.in_process import ACME, endpoint
from tests.service.states import ROUTES, STATES

FILE = ROOT / "crawler/service/examples.json"
REQUEST_ID = "req_01ARZ3NDEKTSV4RRFFQ69G5FAV"
MAX_TEXT = 26
"""Longer texts are cut."""
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


def _of_targets(url: str) -> Iterator[Any]:
    """Yield the errors of targets and platforms."""
    for query in ("gone", "server-error", "forbidden", "rate-limited", "not-html", "hang"):
        yield call(url, SEARCH, {"query": query}, headers=HEADERS | {"Prefer": "wait=3"} if query == "hang" else None)
    yield call(url, "/v1/scrapers/videosite-profile", {"username": "@region"})


def _of_policies(url: str) -> Iterator[Any]:
    """Yield the errors of an endpoint with a policy, a pipeline and a circuit breaker."""
    (forbidden,) = (cat_id for cat_id, name in Site.fault_ids.items() if name == "forbidden")
    yield call(url, SEARCH, {"query": "honey"})
    for cat_id in ("976759", forbidden, "976759"):
        yield call(url, CATEGORY, {"cat_id": cat_id})


POLICIES = ("ROBOTSTXT_OBEY=1", "BREAKER_THRESHOLD=1", 'ITEM_PIPELINES={"broken_pipelines.Drops": 500}')


async def _of_states() -> list[Any]:
    """Return the errors of requests, limits and states of the endpoint."""
    states = {state.code: state for state in reversed(STATES) if state.error is None and state.code != "OK"}
    found = []
    for state in states.values():
        routes = sorted(
            filter(state.on, ROUTES), key=lambda each: (each.operation != "retail-search-v4", each.operation)
        )
        with tempfile.TemporaryDirectory() as folder:
            async with endpoint(Path(folder), replace(ACME, **state.limits), **state.settings) as at:
                job_id = await state.job_id(at)
                async with state.given(at):
                    found.append(await state.send(at, routes[0], job_id))
    return found


def failures(url: str, folder: Path) -> Examples:
    """Return error code -> an answer with this error. ``folder``: for the log and the store of another endpoint."""
    made = [*asyncio.run(_of_states()), *_of_targets(url)]
    with running(folder / "policies", f"STORE={folder / 'policies.sqlite3'}", *POLICIES) as service:
        made += _of_policies(service.url)
    found = {each.code: shown(each.body) for each in made}
    return {kind.code: found[kind.code] for kind in documented() if kind.code in found}


def recorded() -> dict[str, Examples]:
    """Record all examples anew."""
    with tempfile.TemporaryDirectory() as name, running(Path(name) / "log") as service:
        return {"successes": successes(service.url), "failures": failures(service.url, Path(name))}


if __name__ == "__main__":
    FILE.write_text(json.dumps(recorded(), indent=1, ensure_ascii=False) + "\n")
