"""Runs crawls as users do, in separate processes. The sandbox runs in the crawl's process or in one of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from crawler.targets.target import Scraper
from tests import forks

ROOT = Path(__file__).parents[1]
QUICK = ("-s", "RETRY_BACKOFF_BASE=0.05", "-s", "DOWNLOAD_TIMEOUT=60", "-s", "BREAKER_THRESHOLD=0")
HANGS = ("-s", "DOWNLOAD_TIMEOUT=1", "-s", "RETRY_TIMES=0")
"""For targets that never get a response. Others need the time that a busy machine takes."""


@contextlib.contextmanager
def platforms(*options: str, before: str = "") -> Iterator[dict[str, str]]:
    """Run the simulated platforms in a process, which first runs the code ``before``. Yields their origins."""
    command = [*forks.SCRAPY, "sandbox", *options]
    with forks.Popen(command, before=before, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["origins"]
        finally:
            process.kill()


@contextlib.contextmanager
def sandbox(*options: str) -> Iterator[dict[str, Any]]:
    """Run the simulated platforms in a process. Yields the settings of a crawl that uses them without delays."""
    with platforms(*options) as origins:
        budget = {"concurrency": 16, "delay": 0, "sources": {}}
        yield {
            "PLATFORM_ORIGINS": json.dumps(origins),
            "PLATFORM_BUDGETS": json.dumps(dict.fromkeys(origins, budget)),
            "RETRY_BACKOFF_BASE": 0.05,
            "DOWNLOAD_TIMEOUT": 60,
            "BREAKER_THRESHOLD": 100_000,
        }


def on(origins: dict[str, str], concurrency: int = 8) -> tuple[str, ...]:
    """Return the settings of a crawl of the microblog at these origins."""
    budgets = json.dumps({"microblog": {"concurrency": concurrency, "delay": 0, "sources": {}}})
    return ("SANDBOX=0", f"PLATFORM_ORIGINS={json.dumps(origins)}", f"PLATFORM_BUDGETS={budgets}")


def options(*settings: str) -> list[str]:
    """Return the arguments of a command that give it these settings."""
    return [part for each in settings for part in ("-s", each)]


def command(spider: str, arguments: dict[str, Any], settings: dict[str, Any], *options: str) -> list[str]:
    """The command line of a ``scrapy crawl``."""
    given = [part for name, value in arguments.items() for part in ("-a", f"{name}={value}")]
    given += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    return [sys.executable, "-m", "scrapy", "crawl", spider, *given, *options]


def lines(*files: Path) -> list[Any]:
    """The objects in files of JSON Lines; files that do not exist are skipped."""
    # Not splitlines(): a post may contain a Unicode line separator, which does not end a line of JSON Lines.
    return [json.loads(line) for file in files if file.exists() for line in file.read_text().split("\n") if line]


def crawl(
    tmp_path: Path, *arguments: str, cwd: Path = ROOT, spider: str = "retail", before: str = ""
) -> tuple[int, list[Any], list[Any], str]:
    """Run a crawl with ``SANDBOX=1``. Return its exit code, the objects of its feed and failures feed, and its log.

    ``before``: see ``forks.Popen``.
    """
    out, failures = tmp_path / "out.jsonl", tmp_path / "failures.jsonl"
    run = forks.run(
        [
            *(sys.executable, "-m", "scrapy", "crawl", spider, "-s", "SANDBOX=1", "-s", f"FAILURES_FEED={failures}"),
            *QUICK,
            *("-O", str(out)),
            *arguments,
        ],
        cwd=cwd,
        env={**os.environ, "PYTHONWARNINGS": "default"},
        before=before,
    )
    return run.returncode, lines(out), lines(failures), run.stderr


def crawl_each(
    tmp_path: Path, spider: str, targets: dict[str, dict[str, Any]], *arguments: str
) -> tuple[dict[str, str], list[Any]]:
    """Crawl targets, given as id -> params, of which at least one fails. Return id -> code, and the lines with data.

    The target ``hang`` gets a crawl of its own, with a short timeout.
    """
    others = {name: params for name, params in targets.items() if name != "hang"}
    codes: dict[str, str] = {}
    data: list[Any] = []
    for part, timeouts in ((others, ()), ({"hang": targets["hang"]} if "hang" in targets else {}, HANGS)):
        if part:
            folder = tmp_path / ("hang" if timeouts else "others")
            folder.mkdir()
            file = folder / "targets.jsonl"
            file.write_text("".join(json.dumps({"id": name, **params}) + "\n" for name, params in part.items()))
            given = ("-a", f"targets={file}", *arguments, *timeouts)
            status, out, failures, log = crawl(folder, *given, spider=spider)
            assert status == 4, log
            assert "Traceback" not in log
            assert len(out) + len(failures) == len(part)
            codes |= {line["id"]: line.get("code", "OK") for line in (*out, *failures)}
            data += out
    return codes, data


def expected_record(scraper: Scraper) -> dict[str, Any]:
    """Return the sandbox's record of a scraper's example."""
    site = import_module(f"crawler.sandbox.{scraper.platform}.site").Site()
    record: dict[str, Any] = site.expected_record({"scraper": scraper.name, **scraper.example})
    return record


def comparable(record: Any) -> Any:
    """A record without its cursors, which the sandbox's expected records do not contain."""
    if isinstance(record, dict):
        return {key: comparable(value) for key, value in record.items() if key not in {"cursor", "nextCursor"}}
    return [comparable(each) for each in record] if isinstance(record, list) else record
