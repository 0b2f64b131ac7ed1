"""The endpoint's life cycle: start, recycling under load, shutdown, keys."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crawler.sandbox.retail.site import FAULTS, Site
from crawler.service.keys import KeyRing, KeyStore
from tests.service.client import CATEGORY, SEARCH, call, many, wait_for_draining
from tests.service.conftest import ROOT, running


def mixed(size: int) -> list[tuple[str, dict[str, Any]]]:
    """Build calls, a third of them on faults of every kind in turn."""
    faults = sorted(cat_id for cat_id, name in Site.fault_ids.items() if name != "hang")
    return [
        (CATEGORY, {"cat_id": faults[n // 3 % len(faults)]} if n % 3 == 0 else {"cat_id": "3944", "page": n % 5 + 1})
        for n in range(size)
    ]


def expected(calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Return the expected codes of the calls."""
    faults = [Site.fault_ids.get(params["cat_id"]) for _, params in calls]
    return [FAULTS[fault].code if fault else "OK" for fault in faults]


@pytest.mark.parametrize(
    ("size", "settings"),
    [
        pytest.param(150, (), id="one crawler"),
        pytest.param(150, ("SERVICE_RECYCLE_TARGETS=20",), id="recycled every 20"),
        pytest.param(2_000, (), id="2,000 calls", marks=pytest.mark.soak),
        pytest.param(
            2_000, ("SERVICE_RECYCLE_TARGETS=100",), id="2,000 calls, recycled every 100", marks=pytest.mark.soak
        ),
    ],
)
def test_every_call_has_its_outcome(tmp_path: Path, size: int, settings: tuple[str, ...]) -> None:
    calls = mixed(size)
    with running(tmp_path / "log", *settings) as service:
        replies = asyncio.run(many(service.url, calls))
        assert [reply.code for reply in replies] == expected(calls), service.logged()[-3_000:]
        assert "Traceback" not in service.logged()


def test_sigterm_completes_the_calls_in_flight(tmp_path: Path) -> None:
    async def scenario(url: str, pid: int) -> list[str]:
        slow = asyncio.ensure_future(many(url, [(SEARCH, {"query": "slow"})] * 5))
        await asyncio.sleep(0.25)
        os.kill(pid, signal.SIGTERM)
        await asyncio.to_thread(wait_for_draining, url)
        late = await many(url, [(CATEGORY, {"cat_id": "976759"})])
        return [reply.code for reply in [*await slow, *late]]

    with running(tmp_path / "log") as service:
        codes = asyncio.run(scenario(service.url, service.process.pid))
        assert codes == ["OK"] * 5 + ["SHUTTING_DOWN"]
        assert service.process.wait(timeout=15) == 0


def scrapy(*arguments: str, keys: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CRAWLER_KEYS_FILE": str(keys)}
    command = [sys.executable, "-m", "scrapy", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=60)


def test_keys_are_created_listed_and_revoked(tmp_path: Path) -> None:
    file = tmp_path / "keys.sqlite"
    key = scrapy("keys", "create", "acme", keys=file).stdout.strip()
    assert key.startswith("sk_")
    assert key.encode() not in file.read_bytes(), "only the hash is stored"
    ring = KeyRing(KeyStore(file))
    assert asyncio.run(ring.holder(key)).client == "acme"
    key_id = key.split("_")[1]
    listed = scrapy("keys", "list", keys=file).stdout
    assert key_id in listed
    assert "acme" in listed
    assert scrapy("keys", "revoke", key_id, keys=file).returncode == 0
    with pytest.raises(Exception, match="revoked"):
        asyncio.run(ring.holder(key))
    assert scrapy("keys", "revoke", key_id, keys=file).returncode == 1
    assert scrapy("keys", "unknown", keys=file).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "scrapy keys create"),
        (["--sandbox", "--host", "0.0.0.0"], "loopback"),
        (["--sandbox", "--host", "example.com"], "loopback"),
    ],
)
def test_an_invalid_command_line_is_refused(tmp_path: Path, arguments: list[str], message: str) -> None:
    run = scrapy("serve", "--port", "0", *arguments, keys=tmp_path / "none.sqlite")
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_a_port_in_use_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    with running(tmp_path / "log") as service:
        port = service.url.rpartition(":")[2]
        run = scrapy("serve", "--sandbox", "--port", port, keys=tmp_path / "none.sqlite")
        assert run.returncode == 1
        assert "Cannot listen" in run.stderr
        assert "Traceback" not in run.stderr
        assert call(service.url, "/healthz", method="GET").status == 200
