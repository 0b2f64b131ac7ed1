"""A running endpoint, and the server of its tools over HTTP."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests import forks
from tests.crawls import ROOT
from tests.mcp.clients import COMMAND
from tests.service.conftest import Service, running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("mcp") / "log", "RETRY_TIMES=0", "DOWNLOAD_TIMEOUT=60") as started:
        yield started


@pytest.fixture(scope="module")
def http_url(service: Service) -> Iterator[str]:
    """The URL of ``scrapy mcp --http``."""
    options = ["--url", service.url, "--http", "127.0.0.1:0"]
    with forks.Popen([*COMMAND, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().removeprefix("listening on ").strip()
        process.terminate()
        assert process.wait() == 0
