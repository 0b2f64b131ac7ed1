"""Memory use of a crawl does not grow from a hundred thousand to a million targets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LINES = int(os.environ.get("SOAK_LINES", "1000000"))


@pytest.mark.soak
def test_memory_is_flat_over_a_million_lines(tmp_path: Path) -> None:
    targets, log = tmp_path / "targets.jsonl", tmp_path / "memory.log"
    with targets.open("w") as file:
        file.writelines(f'{{"id":"{n}","cat_id":"1_{n}"}}\n' for n in range(LINES))
    settings = {
        "DOWNLOAD_HANDLERS": '{"https": "tests.soak.standin.InstantHandler"}',
        "PLATFORM_BUDGETS": '{"retail": {"concurrency": 64, "delay": 0}}',
        "EXTENSIONS": '{"tests.soak.standin.MemoryLog": 500}',
        "MEMORY_LOG": str(log),
        "LOG_LEVEL": "WARNING",
    }
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "scrapy",
            "crawl",
            "retail",
            "-a",
            f"targets={targets}",
            *options,
            "-O",
            f"{tmp_path}/out.jsonl",
        ],
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert run.returncode == 0
    with (tmp_path / "out.jsonl").open() as file:
        assert sum(1 for _ in file) == LINES
    memory = {int(n): int(kilobytes) for n, kilobytes in (line.split() for line in log.read_text().splitlines())}
    early, late = memory[LINES // 10], memory[LINES // 10 * 9]
    assert late <= early * 1.1, f"{early} kB at {LINES // 10}, {late} kB at {LINES // 10 * 9}"
