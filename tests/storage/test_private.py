"""Only their owner may read the files that crawls, jobs and the endpoint leave, except outputs."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from crawler.storage.files import SqliteFile, create_file, transaction
from tests import forks
from tests.changed_shop import BEFORE, RENAMED
from tests.crawls import QUICK, ROOT
from tests.service.client import CATEGORY, call

OUTPUTS = {"scrapy.cfg", "targets.jsonl", "out.jsonl", "failures"}
"""The user's own files, and the outputs that the commands name: their modes are those of the umask."""


def modes(folder: Path) -> dict[str, str]:
    """Return the modes of the files and folders that others may read, by relative path, except of the outputs.

    Scrapy creates the folder ``.scrapy``. The files in it are the project's.
    """
    found: dict[str, str] = {}
    waiting = [each for each in folder.iterdir() if each.name not in OUTPUTS]
    for each in waiting:
        mode = stat.S_IMODE(each.lstat().st_mode)
        if mode & 0o077 and each.name != ".scrapy":
            found[str(each.relative_to(folder))] = oct(mode)
        if each.is_dir():
            waiting += each.iterdir()
    return found


def scrapy(folder: Path, *arguments: str) -> list[str]:
    (folder / "scrapy.cfg").write_text((ROOT / "scrapy.cfg").read_text())
    (folder / "tmp").mkdir(0o700, exist_ok=True)
    return [sys.executable, "-m", "scrapy", *arguments]


def start_in(folder: Path) -> str:
    """The code that a command's process runs first: a usual umask, temporary files in the folder, a changed shop."""
    place = f"import os, tempfile; os.umask(0o022); tempfile.tempdir = {str(folder / 'tmp')!r}"
    return f"{place}; os.environ['TMPDIR'] = tempfile.tempdir\n{BEFORE}"


def test_a_database_that_is_opened_again_keeps_its_locks(tmp_path: Path) -> None:
    """A process that closes any file descriptor of a file loses its locks (POSIX), and so SQLite's on a database."""
    file = SqliteFile(tmp_path / "store.sqlite", ("CREATE TABLE IF NOT EXISTS t (n INTEGER)",))
    code = f"import sqlite3; sqlite3.connect({str(file.path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
    with closing(file.connect()) as connection, transaction(connection):
        create_file(file.path)
        other = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "database is locked" in other.stderr


def test_collect_leaves_private_files(tmp_path: Path) -> None:
    rows = "".join(f'{{"scraper": "retail-search-v4", "query": "{query}"}}\n' for query in ("mustard", RENAMED))
    (tmp_path / "targets.jsonl").write_text(rows)
    command = scrapy(tmp_path, "collect", "targets.jsonl", "-O", "out.jsonl", "-s", "SANDBOX=1", *QUICK)
    run = forks.run(command, before=start_in(tmp_path), capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    left = {each.name for each in (tmp_path / ".scrapy").rglob("*") if each.is_file()}
    assert "store.sqlite3" in left
    assert any(name.endswith(".gz") for name in left)
    assert modes(tmp_path) == {}
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o644


def test_the_endpoint_leaves_private_files(tmp_path: Path) -> None:
    keys = scrapy(tmp_path, "keys", "create", "somebody")
    assert forks.run(keys, before=start_in(tmp_path), capture_output=True, cwd=tmp_path).returncode == 0
    command = scrapy(tmp_path, "serve", "--sandbox", "--port", "0", *QUICK)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with forks.Popen(command, before=start_in(tmp_path), text=True, cwd=tmp_path, **pipes) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        assert call(url, CATEGORY, {"cat_id": "3944"}).code == "OK"
        headers = {"X-API-Key": "sandbox", "Content-Type": "text/csv"}
        job = call(url, "/v1/jobs", b"scraper,query\nretail-search-v4,mustard\n", headers=headers)
        assert job.status == 202, job.body
        while_it_runs = modes(tmp_path)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    left = {each.name for each in (tmp_path / ".scrapy").rglob("*") if each.is_file()}
    assert {"keys.sqlite", "store.sqlite3"} <= left
    assert while_it_runs == modes(tmp_path) == {}
