"""On SIGHUP, every process of the service reads the ``PAYLOAD_NAMES`` file again."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.service.conftest import Service, running

LOADED, REFUSED = "event=payload_names_loaded", "event=payload_names_refused"


def wait_for(service: Service, event: str, number: int) -> None:
    deadline = time.monotonic() + 15
    while service.logged().count(event) < number:
        assert time.monotonic() < deadline, service.logged()
        time.sleep(0.05)


@pytest.mark.parametrize("workers", [1, 2])
def test_sighup_reloads_the_names_and_keeps_the_old_ones_if_the_file_is_wrong(tmp_path: Path, workers: int) -> None:
    path = tmp_path / "names.json"
    path.write_text("{}")
    with running(tmp_path / "log", f"PAYLOAD_NAMES={path}", workers=workers) as service:
        path.write_text('{"retail.Row": {"averageRating": "rating.value"}}')
        deadline = time.monotonic() + 15
        while service.logged().count(LOADED) < workers:  # wait until all workers have read the file
            assert time.monotonic() < deadline, service.logged()
            os.kill(service.pid, signal.SIGHUP)
            time.sleep(0.5)
        before = service.logged().count(REFUSED)
        path.write_text("{")
        os.kill(service.pid, signal.SIGHUP)
        wait_for(service, REFUSED, before + workers)
        assert "lines_in_force=1" in service.logged()
        assert "is not valid JSON" in service.logged()
        assert service.process.poll() is None
