"""Crawls through real proxies, in front of a sandbox that serves https and logs each request's proxy."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.crawls import ROOT, command, lines, sandbox
from tests.downloads.processes import PATIENT
from tests.proxies import SECRETS, Proxies, proxies


@dataclass
class Stage:
    """Running proxies and a running sandbox, and the settings of crawls that use them."""

    proxies: Proxies
    settings: dict[str, Any]
    requests: Path

    def seen(self) -> list[Any]:
        """The requests in the sandbox's log, which a test may empty."""
        return lines(self.requests)

    def clients(self) -> Counter[str]:
        """The number of received requests by the name of the egress."""
        names = {source: name for name, source in self.proxies.sources.items()}
        return Counter(names[each["client"]] for each in self.seen())


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    requests = tmp_path_factory.mktemp("stage") / "requests.jsonl"
    with proxies() as running, sandbox("--tls", "--log", str(requests)) as settings:
        settings |= {
            "EGRESSES": json.dumps(running.egresses),
            "DOWNLOAD_VERIFY_CERTIFICATES": False,
            "DOWNLOAD_TIMEOUT": 60,
            "PLAYWRIGHT_LAUNCH_OPTIONS": json.dumps({"args": ["--ignore-certificate-errors"]}),
        }
        yield Stage(running, settings, requests)


@pytest.fixture
def at(shared_stage: Stage) -> Iterator[Stage]:
    """The stage of all tests of a module, with an empty request log. After each test, the faults are removed."""
    shared_stage.requests.write_text("")
    for relay in shared_stage.proxies.relays.values():
        relay.accepted = 0
    yield shared_stage
    for relay in shared_stage.proxies.relays.values():
        relay.set("")


@dataclass
class Run:
    """A crawl that has ended."""

    records: list[Any]
    failures: list[Any]
    log: str
    code: int

    @property
    def codes(self) -> Counter[str]:
        return Counter({"OK": len(self.records)}) + Counter(each["code"] for each in self.failures)

    def check_each_target_once(self, number: int) -> None:
        """Assert that each target has exactly one outcome."""
        ids = [each["id"] for each in (*self.records, *self.failures)]
        assert sorted(ids, key=int) == [str(n) for n in range(number)]


@contextmanager
def crawling(
    at: Stage, folder: Path, spider: str, targets: list[dict[str, Any]], **settings: Any
) -> Iterator[subprocess.Popen[str]]:
    file, out, failures = (folder / name for name in ("targets.jsonl", "out.jsonl", "failures.jsonl"))
    file.write_text("".join(json.dumps({"id": str(n), **each}) + "\n" for n, each in enumerate(targets)))
    given = at.settings | {"FAILURES_FEED": failures} | settings
    with (folder / "log").open("w") as log:
        run = command(spider, {"targets": file}, given, "-O", str(out))
        process = forks.Popen(run, cwd=ROOT, stderr=log, text=True, before=PATIENT)
        try:
            yield process
        finally:
            process.wait(3_600)


def crawl(at: Stage, folder: Path, spider: str, targets: list[dict[str, Any]], **settings: Any) -> Run:
    with crawling(at, folder, spider, targets, **settings) as process:
        process.wait(3_600)
    return finished(folder, process.returncode)


def finished(folder: Path, code: int) -> Run:
    log = (folder / "log").read_text()
    run = Run(lines(folder / "out.jsonl"), lines(folder / "failures.jsonl"), log, code)
    assert not secrets_in(log, json.dumps([run.records, run.failures]))
    return run


def secrets_in(*texts: str) -> list[str]:
    """The proxies' credentials and headers, in any encoding, that occur in the texts."""
    return [secret for secret in SECRETS if any(secret in text for text in texts)]


def probe_egresses(at: Stage, **settings: Any) -> tuple[int, dict[str, str]]:
    """Return the exit code of ``scrapy probe``, and the report on each egress by its name."""
    given = [part for name, value in (at.settings | settings).items() for part in ("-s", f"{name}={value}")]
    run = forks.run([*forks.SCRAPY, "probe", "retail-search-v4", "-a", "query=tea", *given])
    assert not secrets_in(run.stdout, run.stderr)
    reports = run.stdout.split("\negress     ")[1:]
    return run.returncode, {report.partition(" ")[0]: report for report in reports}


def queries(number: int) -> list[dict[str, Any]]:
    return [{"query": f"tea {n}"} for n in range(number)]


def check_budget(at: Stage, delay: float, *names: str) -> None:
    """Assert that the downloads through each egress started, on average, at least half of ``delay`` seconds apart.

    The throttle varies each delay by up to half. Each egress must have been used. The first download does not count: it
    opens the connection, so it may reach the platform late.
    """
    for name in names:
        first, *times = [each["time"] for each in at.seen() if each["client"] == at.proxies.sources[name]]
        assert times, f"{name} was used only at {first}"
        assert (len(times) - 1) * delay / 2 <= times[-1] - times[0] + 0.1, name


def wait_for(condition: Any) -> None:
    for _ in range(1_200):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen")
