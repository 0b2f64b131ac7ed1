"""A crawl of many targets over HTTP, and the same pages with plain Scrapy.

``python -m benchmarks.crawl [targets]``; 100,000 take half an hour.

Both run one after the other against one sandbox with small pages, in a separate process. Targets per second per core
are targets by the CPU time of the crawl's process, so that other work on the machine has little influence.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = 9
"""Pages of the category that are requested in turn: the sandbox caches their rendered form."""


@dataclass
class Run:
    """A finished crawl."""

    targets: int
    seconds: float
    processor: float
    memory: list[int]
    """Resident kilobytes, sampled at equal intervals."""

    @property
    def rate(self) -> float:
        """Targets per second of CPU time."""
        return self.targets / self.processor

    def __str__(self) -> str:
        early, late = self.memory[len(self.memory) // 5], self.memory[-2]
        return (
            f"{self.targets / self.seconds:7.1f} targets/s  {self.rate:7.1f} targets/s per core  "
            f"memory {early / 1024:.0f} MB after a fifth, {late / 1024:.0f} MB at the end"
        )


def crawl(spider: str, module: str, targets: int, folder: Path, settings: dict[str, Any]) -> Run:
    """Run a crawl of the targets file."""
    out = folder / f"{spider}.jsonl"
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    command = [sys.executable, "-m", "scrapy", "crawl", spider, "-a", f"targets={folder}/targets.jsonl", *options]
    started = time.monotonic()
    memory: list[int] = []
    with subprocess.Popen(
        [*command, "-O", str(out)], cwd=ROOT, env={**os.environ, "SCRAPY_SETTINGS_MODULE": module}
    ) as process:
        status = Path(f"/proc/{process.pid}/status")
        while True:
            pid, code, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = code
                break
            resident = [line for line in status.read_text().splitlines() if line.startswith("VmRSS")]
            memory.extend(int(line.split()[1]) for line in resident)
            time.sleep(0.5)
    with out.open() as lines:
        done = sum(1 for _ in lines)
    if code or done != targets:
        raise SystemExit(f"{spider}: exit code {code}, {done} of {targets} targets")
    return Run(targets, time.monotonic() - started, usage.ru_utime + usage.ru_stime, memory)


def main() -> None:
    """Run both crawls and print their figures."""
    targets = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "targets.jsonl").open("w") as file:
            file.writelines(
                json.dumps({"id": str(n), "cat_id": "976759", "page": n % PAGES + 1}) + "\n" for n in range(targets)
            )
        sandbox = subprocess.Popen(
            [sys.executable, "-m", "scrapy", "sandbox", "--light"], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        try:
            assert sandbox.stdout is not None
            settings = {
                "PLATFORM_ORIGINS": json.dumps(json.loads(sandbox.stdout.readline())["origins"]),
                "PLATFORM_BUDGETS": json.dumps({"retail": {"concurrency": 16, "delay": 0}}),
                "LOG_LEVEL": "WARNING",
            }
            failures = {"FAILURES_FEED": folder / "failures.jsonl"}
            retail = crawl("retail", "crawler.settings", targets, folder, settings | failures)
            print(f"retail: {retail}", flush=True)
            plain = crawl("plain", "benchmarks.plain_settings", targets, folder, settings)
            print(f"plain:  {plain}")
            print(f"{targets:,} targets; ratio of the rates per core: {retail.rate / plain.rate:.2f}")
        finally:
            sandbox.kill()
            sandbox.wait()


if __name__ == "__main__":
    main()
