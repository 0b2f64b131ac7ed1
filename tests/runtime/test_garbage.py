"""Long-running processes free reference cycles regularly, however few objects are created."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawler.service import endpoint as endpoint_module
from crawler.service.jobs.runs import Runs
from crawler.service.open_crawlers import OpenCrawlers
from tests.service.in_process import endpoint


class Cycle:
    def __init__(self) -> None:
        self.own: Any = self


@pytest.fixture
def cycle() -> Iterator[weakref.ref[Cycle]]:
    """A cycle that only a full collection frees."""
    gc.disable()
    yield weakref.ref(Cycle())
    gc.enable()


async def test_the_endpoint_frees_reference_cycles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cycle: weakref.ref[Cycle]
) -> None:
    monkeypatch.setattr(endpoint_module, "COLLECT_SECONDS", 0.01)
    for owner in (OpenCrawlers, Runs):
        monkeypatch.setattr(owner, "open", lambda _: None)
    async with endpoint(tmp_path) as served:
        assert cycle() is not None
        served.endpoint.open()
        async with asyncio.timeout(60):
            await served.until(lambda: cycle() is None)
