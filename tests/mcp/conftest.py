"""A running endpoint, and the server of its tools over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mcp.clients import http_server
from tests.service.conftest import Service, running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("mcp") / "log", "RETRY_TIMES=0", "DOWNLOAD_TIMEOUT=60") as started:
        yield started


@pytest.fixture(scope="module")
def http_url(service: Service) -> Iterator[str]:
    """The URL of ``scrapy mcp --http``."""
    with http_server(service) as url:
        yield url
