"""The commands of the README, run with default settings in a new folder."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from scrapy.settings import Settings

from tests import forks
from tests.crawls import ROOT, lines, options
from tests.service.client import SEARCH, call


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that Scrapy treats as the project folder, so that tests do not write to the real one."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = crawler.settings\n")
    return tmp_path


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return forks.run([*forks.SCRAPY, *arguments], cwd=project, env=environment())


def test_keys_calls_and_usage_work_with_defaults(project: Path) -> None:
    key = run(project, "keys", "create", "acme").stdout.strip()
    assert key.startswith("sk_")
    settings = options("RETRY_TIMES=0", 'PLATFORM_ORIGINS={"retail": "http://127.0.0.1:1"}')
    command = [*forks.SCRAPY, "serve", "--port", "0", *settings]
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
    ("arguments", "message"),
    [
        (["crawl", "nope"], "known spiders are microblog"),
        (["crawl", "retail", "-a", "query=mustard", "-a", "exhaustive=true"], "only a category can be collected"),
        (["crawl", "retail", *options('PLATFORM_ORIGINS={"origins": {}}')], "no platform is called origins"),
        (["crawl", "retail", *options('PLATFORM_BUDGETS={"retial": {}}')], "no platform is called retial"),
        (["serve", "--sandbox", "--port", "99999"], "expected 0 to 65535"),
        (["serve", "--sandbox", "--workers", "0"], "at least 1"),
        (["keys", "create", "acme", "--rate", "600/fortnight"], "expected a rate limit such as 60/minute, not"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_is_explained(project: Path, arguments: list[str], message: str) -> None:
    done = run(project, *arguments)
    assert message in done.stdout + done.stderr
    assert done.returncode == 2


def test_the_remote_control_that_executes_any_code_is_no_extension() -> None:
    settings = Settings()
    settings.setmodule("crawler.settings")
    extensions = [name for name in settings.getwithbase("EXTENSIONS") if isinstance(name, str)]
    assert {name.rpartition(".")[2] for name in extensions} >= {"MemoryUsage", "LogStats"}
    assert [name for name in extensions if "RemoteControl" in name] == []


def test_a_crawl_without_targets_succeeds(project: Path) -> None:
    (project / "empty.jsonl").write_text("")
    done = run(project, "crawl", "retail", "-a", "targets=empty.jsonl", "-s", "SANDBOX=1")
    assert "total=0" in done.stderr
    assert done.returncode == 0
