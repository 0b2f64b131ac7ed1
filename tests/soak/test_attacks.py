"""The service with 1,400 slow connections of all kinds: memory, and ``/healthz``."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from tests.service.client import SEARCH, call
from tests.service.conftest import running
from tests.soak import attacks
from tests.soak.attacks import Victim

HEALTH_SECONDS = float(os.environ.get("SOAK_HEALTH_SECONDS", "0.25"))
"""``/healthz`` must respond within this time. Set a higher limit if the machine is busy with other work."""

pytestmark = pytest.mark.soak


@pytest.fixture(autouse=True)
def many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(20_000, hard), hard))


def test_slow_connections_hold_no_memory_and_delay_nobody(tmp_path: Path) -> None:
    with running(tmp_path / "log") as service:
        victim = Victim(service.url, service.pid)
        for _ in range(3):
            attacks.get(victim, attacks.LARGEST_FILE)
            call(service.url, SEARCH, {"query": "mustard"})
        report = attacks.slow_connections(victim)
        assert "Traceback" not in service.logged()
    assert report.grown <= 20
    assert report.megabytes_after - report.megabytes_before <= 20
    assert report.slowest_health <= HEALTH_SECONDS
    assert report.notes["open"] == 0
