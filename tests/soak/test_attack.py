"""The service withstands each attack alone, and an attack that succeeds is reported."""

from __future__ import annotations

import asyncio
import resource
import time
from pathlib import Path

import pytest

from tests.soak import turns
from tests.soak.attack import REQUEST_ATTACKS, STORE_ATTACKS, Attacked, Verdict, attacked, judge
from tests.soak.attacks import Victim


@pytest.mark.soak
@pytest.mark.parametrize("name", [*REQUEST_ATTACKS, *STORE_ATTACKS])
def test_the_service_holds_against(name: str, tmp_path: Path) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(20_000, most), most))  # thousands of connections
    with attacked(tmp_path / "service", seconds=10, has_keys=name in STORE_ATTACKS) as service:
        verdict, _ = judge((REQUEST_ATTACKS | STORE_ATTACKS)[name], service)
    assert verdict.tried
    assert not verdict.failures


@pytest.mark.parametrize(
    ("line", "failures", "n"),
    [("", [], 0), ("9999999999.000 0.200", [], 0), ("", ["broke"], 1), ("9999999999.000 0.300", [], 1)],
)
def test_a_failure_and_a_long_turn_are_reported(tmp_path: Path, line: str, failures: list[str], n: int) -> None:
    (tmp_path / "turns").write_text(line)
    service = Attacked(Victim("http://127.0.0.1:1", 0), tmp_path, tmp_path, tmp_path / "turns", 1)
    verdict, _ = judge(lambda _: Verdict(3, failures), service)
    assert (verdict.tried, len(verdict.failures)) == (4, n)


def test_a_long_turn_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(turns.TURNS_FILE, str(tmp_path / "turns"))
    since = time.monotonic()

    async def turn() -> None:
        file = turns.measure_turns()
        await asyncio.sleep(2 * turns.INTERVAL_SECONDS)
        busy_until = time.thread_time() + 0.1
        while time.thread_time() < busy_until:
            pass
        await asyncio.sleep(2 * turns.INTERVAL_SECONDS)
        file.close()

    asyncio.run(turn())
    assert turns.longest_turn(tmp_path / "turns", since) >= 0.1
    assert turns.longest_turn(tmp_path / "turns", time.monotonic()) == 0
