"""Opened stores of jobs on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from crawler.jobs.lifecycle import Jobs
from tests.service.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]


@pytest.fixture
def jobs(location: str) -> Iterator[Jobs]:
    opened = Jobs(location)
    yield opened
    asyncio.run(opened.close())
