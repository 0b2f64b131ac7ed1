"""With a million targets, crawls and readers of all file formats need no more memory than with a hundred thousand."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.registry import spiders
from crawler.targets.files.source import FileSource
from crawler.targets.parser import TargetParser
from crawler.targets.target import Target

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


def pieces(suffix: str) -> Iterator[str]:
    """Yield the text of a file with ``LINES`` targets, in pieces."""
    match suffix:
        case ".csv":
            yield "id;cat_id\r\n"
            yield from (f'{n};"1_{n}"\r\n' for n in range(LINES))
        case ".txt":
            yield from (f"1_{n}\n" for n in range(LINES))
        case ".json":
            yield from (f'{"," if n else "["}{{"id":{n},"cat_id":"1_{n}"}}' for n in range(LINES))
            yield "]"


def resident_kilobytes() -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return int(found[1])


@pytest.mark.soak
@pytest.mark.parametrize(
    ("suffix", "encoding"),
    [(".csv", "utf-8"), (".csv", "utf-16"), (".txt", "utf-8"), (".json", "utf-8")],
)
def test_memory_is_flat_while_a_million_rows_are_read(tmp_path: Path, suffix: str, encoding: str) -> None:
    file = tmp_path / f"targets{suffix}"
    with file.open("w", encoding=encoding, newline="") as out:
        out.writelines(pieces(suffix))
    memory: dict[int, int] = {}

    async def read() -> int:
        source = FileSource(TargetParser(spiders()["retail"].scrapers), str(file))
        await source.open()
        count = 0
        async for each in source:
            assert isinstance(each, Target), each
            count += 1
            if count % (LINES // 10) == 0:
                memory[count] = resident_kilobytes()
        return count

    assert asyncio.run(read()) == LINES
    early, late = memory[LINES // 10], memory[LINES // 10 * 9]
    assert late <= early * 1.1, f"{early} kB at {LINES // 10}, {late} kB at {LINES // 10 * 9}"
