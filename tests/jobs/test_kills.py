"""Jobs whose workers, database and exports are killed at random: the output is complete and contains nothing twice."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.crawls import ROOT, lines
from tests.hanging_platform import HangingPlatform
from tests.jobs import bucket
from tests.jobs.postgresql_server import PostgreSqlServer
from tests.jobs.test_collect import assert_complete, in_shop, searches, wait_until_done, write
from tests.tiers import FAST_ON_SQLITE

LENGTHS = pytest.mark.parametrize(
    ("targets", "kills"), [(60, 2), pytest.param(300, 20, marks=pytest.mark.soak)], ids=["short", "long"]
)


@pytest.fixture
def server() -> Iterator[PostgreSqlServer]:
    with tempfile.TemporaryDirectory(prefix="jk-", dir="/tmp") as folder:  # a socket's path must be short
        Path(folder).chmod(0o755)  # the server runs as an unprivileged user
        started = PostgreSqlServer(Path(folder))
        yield started
        started.close()


@LENGTHS
def test_three_workers_and_the_server_are_killed(
    tmp_path: Path, server: PostgreSqlServer, shop: HangingPlatform, targets: int, kills: int
) -> None:
    """Three ``scrapy work`` processes are killed and replaced while they run. The database server is killed twice."""
    commands = in_shop(tmp_path, server.url, shop)
    assert commands.run("jobs", "push", "killed", write(tmp_path / "targets.jsonl", searches(targets))).returncode == 0
    chance = random.Random(kills)  # noqa: S311  # no secret
    shop.permits = 0
    workers = [commands.start("work", "--drain") for _ in range(3)]
    crashes = {kills // 3, 2 * kills // 3}
    for number, done in enumerate(sorted(chance.sample(range(targets - 40), kills))):
        wait_until_done(commands, shop, "killed", done)
        index = chance.randrange(len(workers))
        assert workers[index].poll() is None
        workers[index].kill()
        workers[index].communicate()
        if number in crashes:
            server.kill()
            server.start()
        workers[index] = commands.start("work", "--drain")
    shop.permits = None
    for worker in workers:
        _, errors = worker.communicate()
        assert worker.returncode == 0, errors
    assert_complete(commands, "killed", targets)


@contextmanager
def drained(worker: forks.Popen) -> Iterator[list[str]]:
    """Read a worker's output, so that a full pipe does not block it."""
    read: list[str] = []
    thread = threading.Thread(target=lambda: read.append(worker.communicate()[1]), daemon=True)
    thread.start()
    yield read
    thread.join()


@FAST_ON_SQLITE
@LENGTHS
def test_new_records_in_a_failing_bucket_are_the_truth(
    tmp_path: Path, location: str, shop: HangingPlatform, targets: int, kills: int
) -> None:
    """``export --after`` is killed while the job runs. Uploads fail, some of them after the file was stored.

    A repeated export from the same cursor writes the same file again, with all lines of its former versions.
    """
    commands = in_shop(tmp_path, location, shop)
    assert commands.run("jobs", "push", "new", write(tmp_path / "targets.jsonl", searches(targets))).returncode == 0
    chance = random.Random(kills)  # noqa: S311  # no secret
    ends: Counter[int] = Counter()
    cursor, is_complete = "0", False
    worker = commands.start("work", "--drain")
    with drained(worker):
        while not is_complete or ends[-9] < kills:
            killed = ends[-9] < kills
            ended = worker.poll() is not None
            environment = {**os.environ, bucket.FAIL: "0.05" if killed else "0.3"}
            place = f"bucket://{tmp_path}/bucket/after-{cursor}.jsonl.gz"
            command = commands.command("jobs", "export", "new", "-O", place, "--after", cursor)
            pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "cwd": ROOT, "env": environment}
            with forks.Popen(command, **pipes, before=bucket.IMPORT) as export:
                if killed:
                    time.sleep(0.6 * chance.random())
                    export.kill()
                printed = export.communicate()[0].strip()
            ends[export.returncode] += 1
            if export.returncode == 0:
                is_complete, cursor = is_complete or (ended and cursor == printed), printed
            assert ends.keys() <= {0, 1, -9}
    assert worker.returncode == 0

    folder = tmp_path / "bucket"
    exported: list[Any] = []
    for file in sorted(folder.glob("after-*.gz")):
        last = gzip.decompress(file.read_bytes()).splitlines()
        for version in (folder / bucket.VERSIONS).glob(f"{file.name}.*[0-9]"):
            former = gzip.decompress(version.read_bytes()).splitlines()
            assert former == last[: len(former)], "a file that is written again has its former lines"
        exported += map(json.loads, last)
    assert_complete(commands, "new", targets)
    whole = lines(tmp_path / "all.jsonl")
    assert sorted(exported, key=lambda line: str(line["id"])) == sorted(whole, key=lambda line: str(line["id"]))
