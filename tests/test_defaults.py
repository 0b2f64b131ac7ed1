"""The commands of the README, run with default settings in a new folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forks
from tests.crawls import ROOT, lines
from tests.service.client import SEARCH, call


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that Scrapy treats as the project folder, so that tests do not write to the real one."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = crawler.settings\n")
    return tmp_path


def scrapy(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "scrapy", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = scrapy(*arguments)
    return forks.run(command, cwd=project, env=environment())


def test_keys_calls_and_usage_work_with_defaults(project: Path) -> None:
    key = run(project, "keys", "create", "acme").stdout.strip()
    assert key.startswith("sk_")
    command = scrapy(
        "serve",
        "--port",
        "0",
        "-s",
        "RETRY_TIMES=0",
        "-s",
        'PLATFORM_ORIGINS={"retail": "http://127.0.0.1:1"}',
    )
    with forks.Popen(command, cwd=project, env=environment(), stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        url = service.stdout.readline().removeprefix("listening on ").strip()
        headers = {"X-API-Key": key, "Content-Type": "application/json"}
        assert call(url, SEARCH, {"query": "mustard"}, headers=headers).code == "UPSTREAM_ERROR"
        service.terminate()
        assert service.wait(timeout=300) == 0
    usage = run(project, "keys", "usage")
    assert "acme" in usage.stdout, usage.stderr
    assert sorted(path.name for path in (project / ".scrapy").iterdir() if path.is_dir()) == ["budgets"]


def test_seen_entries_are_stored_in_the_project_folder(project: Path) -> None:
    arguments = ("crawl", "microblog", "-a", "username=quiet_harbor", "-a", "since=last", "-s", "SANDBOX=1")
    for _ in range(2):
        done = run(project, *arguments, "-O", "out.jsonl")
        assert done.returncode == 0, done.stderr[-2_000:]
    (record,) = lines(project / "out.jsonl")
    assert json.dumps(record)
    assert (project / ".scrapy" / "store.sqlite3").is_file()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["crawl", "nope"], 2, "known spiders are microblog"),
        (["crawl", "retail", "-a", "query=mustard", "-a", "exhaustive=true"], 2, "only a category can be collected"),
        (
            ["crawl", "retail", "-a", "query=a", "-s", 'PLATFORM_ORIGINS={"origins": {}}'],
            2,
            "no platform is called origins",
        ),
        (
            ["crawl", "retail", "-a", "query=a", "-s", 'PLATFORM_BUDGETS={"retial": {}}'],
            2,
            "no platform is called retial",
        ),
        (["serve", "--sandbox", "--port", "99999"], 2, "expected 0 to 65535"),
        (["serve", "--sandbox", "--workers", "0"], 2, "at least 1"),
        (["keys", "create", "acme", "--rate", "600/fortnight"], 2, "invalid rate value"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_is_explained(project: Path, arguments: list[str], code: int, message: str) -> None:
    done = run(project, *arguments)
    assert message in done.stdout + done.stderr
    assert done.returncode == code


def test_a_crawl_without_targets_succeeds(project: Path) -> None:
    (project / "empty.jsonl").write_text("")
    done = run(project, "crawl", "retail", "-a", "targets=empty.jsonl", "-s", "SANDBOX=1")
    assert "total=0" in done.stderr
    assert done.returncode == 0
