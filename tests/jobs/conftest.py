"""Opened stores of jobs on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from crawler.jobs.lifecycle import Jobs
from tests.hanging_platform import HangingPlatform, hanging_platform


@pytest.fixture
def jobs(location: str) -> Iterator[Jobs]:
    opened = Jobs(location)
    yield opened
    asyncio.run(opened.close())


@pytest.fixture
def another(location: str) -> Iterator[Callable[[], Jobs]]:
    """Opens the store again, as another process does."""
    opened: list[Jobs] = []

    def open_again() -> Jobs:
        opened.append(Jobs(location))
        return opened[-1]

    yield open_again
    for each in opened:
        asyncio.run(each.close())


@pytest.fixture
def shop() -> Iterator[HangingPlatform]:
    """A simulated shop whose ``permits`` decide how far workers can get, whatever the speed of the machine."""
    with hanging_platform() as running:
        yield running
