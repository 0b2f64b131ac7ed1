"""``scrapy serve``: what prevents its start."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from crawler.configuration.command import Exit
from tests import forks


def test_a_port_that_another_program_uses_is_named_and_the_run_has_failed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        store = f"STORE={tmp_path / 'store.sqlite3'}"
        start = [sys.executable, "-m", "scrapy", "serve", "--sandbox", "--port", port, "-s", store]
        run = forks.run(start)
    assert (run.returncode, run.stdout) == (Exit.RUN_FAILED, "")
    assert "already in use" in run.stderr
    assert "Traceback" not in run.stderr
