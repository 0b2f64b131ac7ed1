"""CPU time of a crawl and of an endpoint call: this checkout, another one, and this one a second time.

Each round runs every version, and the figures are medians over the rounds of the ratio to this checkout in the same
round. "again" is this checkout a second time: the distance of its ratio from 1 is the error of the comparison. All
versions run against one sandbox (a separate process of this checkout), on a light page and on one of 0.6 MB.

Usage: .venv/bin/python -m benchmarks.versions OTHER [--rounds N] [--calls N] [--targets N]

OTHER is a folder with another checkout (``git worktree add OTHER COMMIT``). It runs in this environment.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.stack import READY_TIMEOUT_SECONDS, ROOT, cpu_seconds, free_port

SEARCH = "/v1/scrapers/retail-search-v4"
QUERY = {"query": "mustard"}


@dataclass
class Version:
    """A checkout under test, with its figures by round, in milliseconds of CPU time."""

    name: str
    folder: Path
    port: int = 0
    pid: int = 0
    calls: list[float] = field(default_factory=list)
    crawls: list[float] = field(default_factory=list)

    def environment(self, settings: dict[str, Any]) -> dict[str, str]:
        """Return the environment that imports this checkout's code. Each version has a store of its own."""
        settings = {**settings, "STORE": str(Path(settings["KEYS_FILE"]).with_name(f"{self.name}.sqlite3"))}
        own = {name: value for name, value in os.environ.items() if not name.startswith("CRAWLER_")}
        return own | {"PYTHONPATH": str(self.folder)} | {f"CRAWLER_{k}": json.dumps(v) for k, v in settings.items()}

    def scrapy(self, *arguments: str) -> list[str]:
        """Return a command of the project, with this checkout's code."""
        return [sys.executable, "-m", "scrapy", *arguments]


@contextlib.contextmanager
def sandbox(folder: Path, *, light: bool) -> Iterator[dict[str, Any]]:
    """Run the sandbox, and yield the settings for crawls of it."""
    command = [sys.executable, "-m", "scrapy", "sandbox", *(["--light"] if light else [])]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        origins = json.loads(process.stdout.readline())["origins"]
        yield {
            "PLATFORM_ORIGINS": origins,
            "PLATFORM_BUDGETS": {"retail": {"concurrency": 8, "delay": 0.0}},
            "FAILURES_FEED": None,
            "BREAKER_THRESHOLD": 0,
            "KEYS_FILE": str(folder / "keys.sqlite3"),
        }
        process.terminate()


@contextlib.contextmanager
def serving(version: Version, settings: dict[str, Any], log: Path) -> Iterator[None]:
    """Run a version's endpoint.

    Raises:
        SystemExit: the endpoint is not ready in time.
    """
    version.port = free_port()
    with (
        log.open("wb") as output,
        subprocess.Popen(
            version.scrapy("serve", "--port", str(version.port)),
            cwd=version.folder,
            env=version.environment(settings),
            stdout=output,
            stderr=output,
        ) as process,
    ):
        version.pid = process.pid
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        while True:
            with contextlib.suppress(OSError):
                connection = HTTPConnection("127.0.0.1", version.port, timeout=5)
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    break
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit(f"{version.name} is not ready:\n{log.read_text()[-2_000:]}")
            time.sleep(0.1)
        yield
        process.terminate()


def call(version: Version, key: str, calls: int) -> list[str]:
    """Run a round of calls over one kept connection. Return the product ids of the last response."""
    headers = {"Content-Type": "application/json", "X-API-Key": key}
    ids: list[str] = []
    before = cpu_seconds(version.pid)
    with contextlib.closing(HTTPConnection("127.0.0.1", version.port, timeout=60)) as connection:
        for _ in range(calls):
            connection.request("POST", SEARCH, json.dumps(QUERY), headers)
            ids = [product["item_id"] for product in json.load(connection.getresponse())["data"]["products"]]
    version.calls.append((cpu_seconds(version.pid) - before) / calls * 1000)
    return ids


def crawl(version: Version, settings: dict[str, Any], targets: Path, number: int, out: Path) -> None:
    """Run a round of one crawl of the targets file, including its start.

    Raises:
        SystemExit: a target has no data.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        version.scrapy("crawl", "retail", "-a", f"targets={targets}", "-O", str(out)),
        cwd=version.folder,
        env=version.environment(settings),
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with out.open() as lines:
        if sum(1 for _ in lines) != number:
            raise SystemExit(f"{version.name}: some of the {number} targets have no data")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    version.crawls.append(used / number * 1000)


def measure(other: Path, options: argparse.Namespace, *, light: bool) -> list[Version]:
    """Run the rounds on one kind of page. The first round of calls is a warm-up and is not counted."""
    versions = [Version("this", ROOT), Version("other", other), Version("again", ROOT)]
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as running:
        folder = Path(name)
        settings = running.enter_context(sandbox(folder, light=light))
        created = versions[0].scrapy("keys", "create", "benchmark")
        environment = versions[0].environment(settings)
        key = subprocess.run(created, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout
        targets = folder / "targets.jsonl"
        # Equal targets would be fetched once.
        targets.write_text("".join(f'{{"id": "{n}", "query": "mustard {n}"}}\n' for n in range(options.targets)))
        for version in versions:
            running.enter_context(serving(version, settings, folder / f"{version.name}.log"))
        expected = [call(version, key.strip(), options.calls) for version in versions]
        if expected[1:] != expected[:-1] or not expected[0]:
            raise SystemExit("The versions return different products.")
        for version in versions:
            version.calls.clear()
        for number in range(options.rounds):
            rotated = versions[number % 3 :] + versions[: number % 3]
            for version in rotated:
                call(version, key.strip(), options.calls)
            for version in rotated:
                crawl(version, settings, targets, options.targets, folder / "out.jsonl")
    return versions


def main() -> None:
    """Measure both kinds of pages and print a table of each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--targets", type=int, default=200)
    options = parser.parse_args()
    for light in (True, False):
        this, other, again = measure(options.other.resolve(), options, light=light)
        print(f"{'light page' if light else '0.6 MB page'}, {options.rounds} rounds, ms of CPU time")
        for kind in ("calls", "crawls"):
            own = getattr(this, kind)
            print(f"  {kind:7} this {median(own):7.2f}", end="")
            for version in (other, again):
                ratios = [a / b for a, b in zip(own, getattr(version, kind), strict=True)]
                print(f"   this / {version.name} {median(ratios):.3f} ({min(ratios):.2f}..{max(ratios):.2f})", end="")
            print(flush=True)


if __name__ == "__main__":
    main()
