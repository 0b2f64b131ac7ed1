"""Crawls as users start them: a process of their own, against a sandbox that runs beside it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


@contextlib.contextmanager
def sandbox(*options: str) -> Iterator[dict[str, Any]]:
    """Runs the simulated platforms. Gives the settings with which a crawl asks them, and does not wait for turns."""
    command = [sys.executable, "-m", "scrapy", "sandbox", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            origins = json.loads(process.stdout.readline())["origins"]
            budget = {"concurrency": 16, "delay": 0}
            yield {
                "PLATFORM_ORIGINS": json.dumps(origins),
                "PLATFORM_BUDGETS": json.dumps(dict.fromkeys(origins, budget)),
                "RETRY_BACKOFF_BASE": 0.05,
                "DOWNLOAD_TIMEOUT": 2,
                "BREAKER_THRESHOLD": 100_000,
            }
        finally:
            process.kill()


def command(spider: str, arguments: dict[str, Any], settings: dict[str, Any], *options: str) -> list[str]:
    """A ``scrapy crawl``."""
    given = [part for name, value in arguments.items() for part in ("-a", f"{name}={value}")]
    given += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    return [sys.executable, "-m", "scrapy", "crawl", spider, *given, *options]


def lines(*files: Path) -> list[Any]:
    """The objects of files of JSON Lines; none of a file that is not there."""
    return [json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines()]


def comparable(record: Any) -> Any:
    """A record without its cursors: they are ours, and the truth does not know them."""
    if isinstance(record, dict):
        return {key: comparable(value) for key, value in record.items() if key not in {"cursor", "nextCursor"}}
    return [comparable(each) for each in record] if isinstance(record, list) else record
