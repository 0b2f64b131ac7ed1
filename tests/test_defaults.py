"""The product as its user first meets it: no setting, a folder of its own, the commands of the README."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.crawls import ROOT, lines
from tests.service.client import SEARCH, call


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that Scrapy takes for the project's, so that nobody's own files are touched."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = crawler.settings\n")
    return tmp_path


def scrapy(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "scrapy", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = scrapy(*arguments)
    return subprocess.run(
        command, cwd=project, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )


def test_keys_calls_and_usage(project: Path) -> None:
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
    with subprocess.Popen(command, cwd=project, env=environment(), stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        url = service.stdout.readline().removeprefix("listening on ").strip()
        headers = {"X-API-Key": key, "Content-Type": "application/json"}
        assert call(url, SEARCH, {"query": "mustard"}, headers=headers).code == "UPSTREAM_ERROR"
        service.terminate()
        assert service.wait(timeout=30) == 0
    told = run(project, "keys", "usage")
    assert "acme" in told.stdout, told.stderr
    assert sorted(path.name for path in (project / ".scrapy").iterdir() if path.is_dir()) == [], "files, not folders"


def test_what_the_last_run_has_seen(project: Path) -> None:
    arguments = ("crawl", "microblog", "-a", "username=quiet_harbor", "-a", "since=last", "-s", "SANDBOX=1")
    for _ in range(2):
        done = run(project, *arguments, "-O", "out.jsonl")
        assert done.returncode == 0, done.stderr[-2_000:]
    (record,) = lines(project / "out.jsonl")
    assert json.dumps(record)
    assert (project / ".scrapy" / "seen.sqlite").is_file()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["crawl", "nope"], 2, "there are microblog"),
        (["crawl", "retail", "-a", "query=mustard", "-a", "exhaustive=true"], 1, "only a category can be collected"),
        (
            ["crawl", "retail", "-a", "query=a", "-s", 'PLATFORM_ORIGINS={"origins": {}}'],
            1,
            "no platform is called origins",
        ),
        (
            ["crawl", "retail", "-a", "query=a", "-s", 'PLATFORM_BUDGETS={"retial": {}}'],
            1,
            "no platform is called retial",
        ),
        (["serve", "--sandbox", "--port", "99999"], 2, "a number up to 65535"),
        (["serve", "--sandbox", "--workers", "0"], 2, "at least 1"),
        (["keys", "create", "acme", "--rate", "600/fortnight"], 2, "invalid rate value"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_use_is_told(project: Path, arguments: list[str], code: int, says: str) -> None:
    done = run(project, *arguments)
    assert says in done.stdout + done.stderr
    assert done.returncode == code


def test_nothing_to_do_is_no_failure(project: Path) -> None:
    (project / "empty.jsonl").write_text("")
    done = run(project, "crawl", "retail", "-a", "targets=empty.jsonl", "-s", "SANDBOX=1")
    assert "total=0" in done.stderr
    assert done.returncode == 0


def test_a_parquet_file_cannot_be_gone_on_with(project: Path) -> None:
    (project / "targets.jsonl").write_text('{"query": "mustard"}\n')
    arguments = ("crawl", "retail", "-a", "targets=targets.jsonl", "-a", "resume=state", "-s", "SANDBOX=1")
    refused = run(project, *arguments, "-O", "out.parquet")
    assert "nothing can be added to a Parquet file" in refused.stderr
    assert refused.returncode == 1
    for _ in range(2):
        assert run(project, *arguments, "-O", "out-%(time)s.parquet").returncode == 0
        time.sleep(1.1)  # the name's time is one of seconds
