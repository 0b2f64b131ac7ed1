"""A running endpoint, and the tools that ``scrapy mcp`` offers for its scrapers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mcp.types import Tool

from tests.mcp.clients import schemas_of, tools_of
from tests.service.conftest import Service, running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("mcp") / "log", "DOWNLOAD_TIMEOUT=60") as started:
        yield started


@pytest.fixture(scope="module")
def tools(service: Service) -> dict[str, Tool]:
    return tools_of(service.url)


@pytest.fixture(scope="module")
def schemas(service: Service) -> dict[str, Any]:
    return schemas_of(service.url)
