"""The service withstands all attacks of ``scripts/attack``, and the script reports an attack that succeeds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.soak import attack, turns
from tests.soak.attack import REQUEST_ATTACKS, STORE_ATTACKS, Attacked, Verdict, main
from tests.soak.attacks import Victim


@pytest.mark.soak
@pytest.mark.parametrize("name", [*REQUEST_ATTACKS, *STORE_ATTACKS])
def test_the_service_holds_against(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--seconds", "10"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "failures", "code"),
    [("", [], 0), ("9999999999.000 0.200", [], 0), ("", ["broke"], 1), ("9999999999.000 0.300", [], 1)],
)
def test_a_failure_and_a_long_turn_give_exit_code_1(  # noqa: PLR0913, PLR0917  # fixtures and a table
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    line: str,
    failures: list[str],
    code: int,
) -> None:
    (tmp_path / "turns").write_text(line)

    @contextmanager
    def attacked(_folder: Path, seconds: float, **_options: Any) -> Iterator[Attacked]:
        yield Attacked(Victim("http://127.0.0.1:1", 0), tmp_path, tmp_path, tmp_path / "turns", seconds)

    monkeypatch.setattr(attack, "attacked", attacked)
    monkeypatch.setattr(attack, "REQUEST_ATTACKS", {"one": lambda _service: Verdict(3, failures)})
    assert main(["one"]) == code
    assert ("failed: one" in capsys.readouterr().out) == (code == 1)


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
