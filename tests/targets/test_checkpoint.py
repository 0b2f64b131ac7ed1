"""Runs that are killed and resumed: no target is lost, and none is written twice."""

from __future__ import annotations

import gzip
import json
import random
import re
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from crawler.commands import fsck
from crawler.sandbox.retail.site import FAULTS, Site
from crawler.targets.journal import CannotResumeError, Journal
from tests import forks
from tests.crawls import ROOT, command, lines, sandbox

SITE = Site(light=True)


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    with sandbox("--light") as found:
        yield found


def write_targets(file: Path, count: int) -> tuple[Counter[str], Counter[str]]:
    """Write a targets file and return its expected data and failures, by ``line_name``.

    It has targets with data, with failures and with two pages, and malformed lines.
    """
    data: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    faulty = [cat for cat, fault in SITE.faults.items() if FAULTS[fault].code == "TARGET_NOT_FOUND"]
    with file.open("w") as out:
        for number in range(count):
            if number % 10 == 3:
                out.write(json.dumps({"id": f"t{number}", "cat_id": faulty[number % len(faulty)]}) + "\n")
                failures[f"t{number}"] += 1
            elif number % 50 == 7:
                out.write("{broken\n")
                failures[f"targets.jsonl:{number + 1}"] += 1
            else:
                listing = {"cat_id": SITE.big_category} if number % 25 == 4 else {"query": "mustard"}
                params = {**listing, "max_price": 1000.0 + number}
                out.write(json.dumps({"id": f"t{number}", **params}) + "\n")
                data[f"t{number}"] += 1
                scraper = "retail-category-v4" if "cat_id" in listing else "retail-search-v4"
                data[f"page 2 of {1000 + number}"] += SITE.expected_record({"scraper": scraper, **params})["has_more"]
    return +data, failures


def line_name(line: dict[str, Any]) -> str:
    """Return the id of a line, or a name from its params for a second page, whose id is random."""
    params = line["params"]
    return f"page 2 of {params['max_price']:.0f}" if params.get("page") == 2 else str(line["id"])


def run_and_kill(start: list[str], journal_file: Path, new_entries: int, moments: random.Random) -> bool:
    """Start a crawl, and kill it after so many new journal entries. Return False if it ended before."""
    before = journal_file.read_bytes().count(b"\n") if journal_file.exists() else 0
    with forks.Popen(start, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            if journal_file.exists() and journal_file.read_bytes().count(b"\n") >= before + new_entries:
                time.sleep(moments.uniform(0, 0.05))
                process.send_signal(signal.SIGKILL)
                return process.wait() < 0
            time.sleep(0.002)
    return False


@pytest.mark.parametrize(("count", "kills"), [(200, 3), pytest.param(3_000, 20, marks=pytest.mark.soak)])
def test_killed_runs_lose_no_target_and_write_none_twice(
    tmp_path: Path, settings: dict[str, Any], count: int, kills: int
) -> None:
    data, failures = write_targets(tmp_path / "targets.jsonl", count)
    out, failed = tmp_path / "out.jsonl", tmp_path / "failed.jsonl"
    start = command(
        "retail",
        {"targets": tmp_path / "targets.jsonl", "resume": tmp_path / "state", "max_pages": 2},
        {**settings, "FAILURES_FEED": failed},
        *("-O", str(out)),
    )
    moments = random.Random(count)  # noqa: S311  # no secret
    journal_file = tmp_path / "state/ledger.jsonl"
    most = (data.total() + failures.total()) // (kills + 2)
    killed = [run_and_kill(start, journal_file, moments.randrange(1, most), moments) for _ in range(kills)]
    assert all(killed), "the run ended before it was killed"
    last = forks.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert last.returncode == 4, last.stderr
    assert Counter(line_name(line) for line in lines(out)) == data
    assert Counter(line["id"] for line in lines(failed)) == failures
    check = fsck.Command()
    check.run([str(tmp_path / "state")], Namespace())
    assert check.exitcode == 0, "the journal and the feeds agree"
    for line in lines(out)[:: max(1, count // 100)]:
        assert line["data"] == SITE.expected_record({"scraper": line["scraper"], **line["params"]})
    assert f"total={data.total() + failures.total()}" in last.stderr, "the closing line counts all starts"


def test_a_stopped_run_continues(tmp_path: Path, settings: dict[str, Any]) -> None:
    """Ctrl-C: targets in flight get no outcome, not even a failure. A gzip feed is stored when it is closed."""
    data, _ = write_targets(tmp_path / "targets.jsonl", 3)
    start = command(
        "retail",
        {"targets": tmp_path / "targets.jsonl", "resume": tmp_path / "state", "max_pages": 2},
        {**settings, "FAILURES_FEED": tmp_path / "failed.jsonl", "TARGETS_IN_FLIGHT": 1},
    )
    feed = {
        str(tmp_path / "out.jsonl.gz"): {
            "format": "jsonlines",
            "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"],
        }
    }
    start += ["-s", f"FEEDS={json.dumps(feed)}"]
    stopped = forks.run(
        [*start, "-s", "CLOSESPIDER_ITEMCOUNT=1"], check=False, cwd=ROOT, capture_output=True, text=True
    )
    assert stopped.returncode == 1, stopped.stderr
    last = forks.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    with gzip.open(tmp_path / "out.jsonl.gz", "rt") as file:
        assert Counter(line_name(json.loads(line)) for line in file) == data
    assert lines(tmp_path / "failed.jsonl") == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shard": "1/2"}, "belongs to a run with other shard"),
        ({"targets": "other.jsonl"}, "belongs to a run with other targets"),
    ],
)
def test_a_folder_belongs_to_one_run(
    tmp_path: Path, settings: dict[str, Any], change: dict[str, str], message: str
) -> None:
    write_targets(tmp_path / "targets.jsonl", 3)
    write_targets(tmp_path / "other.jsonl", 2)
    arguments = {"targets": tmp_path / "targets.jsonl", "resume": tmp_path / "state"}
    assert forks.run(command("retail", arguments, settings), check=False, cwd=ROOT).returncode == 0
    other = {name: tmp_path / value if name == "targets" else value for name, value in change.items()}
    run = forks.run(
        command("retail", arguments | other, settings), check=False, cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert message in run.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "-:jsonl"], "standard output cannot be truncated"),
        (["-o", "s3://bucket/out.jsonl"], "put %(time)s into its name"),
        (["-o", "{}/a.parquet", "-o", "{}/b.jsonl"], "one feed of another kind"),
    ],
)
def test_feeds_that_cannot_be_resumed_are_refused_at_start(
    tmp_path: Path, settings: dict[str, Any], options: list[str], message: str
) -> None:
    start = command("retail", {"query": "mustard", "resume": tmp_path / "state"}, settings)
    start += [option.replace("{}", str(tmp_path)) for option in options]
    run = forks.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert message in run.stderr


def test_a_concurrent_start_does_not_change_the_feed(tmp_path: Path, settings: dict[str, Any]) -> None:
    journal = opened(tmp_path / "state")
    out = tmp_path / "out.jsonl"
    out.write_text("{}\n")
    start = command("retail", {"query": "mustard", "resume": tmp_path / "state"}, settings, "-O", str(out))
    run = forks.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert "another run is using" in run.stderr
    assert out.read_text() == "{}\n"
    journal.close()


def limited(start: list[str], size: int) -> subprocess.CompletedProcess[str]:
    """Run a crawl with a limit on the size of its files."""
    limit = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
    wrapped = [sys.executable, "-c", f"{limit}; os.execv(sys.executable, sys.argv[1:])", *start]
    return subprocess.run(wrapped, check=False, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(("count", "disks"), [(40, 1), pytest.param(300, 10, marks=pytest.mark.soak)])
def test_rb_1_a_full_disk_loses_no_target_and_breaks_no_line(
    tmp_path: Path, settings: dict[str, Any], count: int, disks: int
) -> None:
    data, failures = write_targets(tmp_path / "targets.jsonl", count)
    out, failed = tmp_path / "out.jsonl", tmp_path / "failed.jsonl"
    start = command(
        "retail",
        {"targets": tmp_path / "targets.jsonl", "resume": tmp_path / "state", "max_pages": 2},
        {**settings, "FAILURES_FEED": failed},
        *("-O", str(out)),
    )
    whole = data.total() * 4_000
    for disk in range(disks):
        full = limited(start, whole * (disk + 1) // (disks + 1))
        assert full.returncode == 1, full.stderr[-3_000:]
        assert "a feed cannot be written" in full.stderr
        assert "event=targets_not_stored" in full.stderr
    last = forks.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert last.returncode == 4, last.stderr[-3_000:]
    assert Counter(line_name(line) for line in lines(out)) == data
    assert Counter(line["id"] for line in lines(failed)) == failures


def test_rb_2_a_journal_that_cannot_be_written_ends_the_run(tmp_path: Path, settings: dict[str, Any]) -> None:
    """The limit applies only to the journal: the feed of the first start is /dev/null."""
    data, _ = write_targets(tmp_path / "targets.jsonl", 60)
    own = {**settings, "FAILURES_FEED": ""}
    arguments = {"targets": tmp_path / "targets.jsonl", "resume": tmp_path / "state", "max_pages": 2}
    full = limited(command("retail", arguments, own, "-o", "/dev/null:jsonl"), 1_500)
    assert full.returncode == 1, full.stderr[-3_000:]
    assert full.stderr.count("event=journal_not_written") == 1
    assert "cannot be written: [Errno 27] File too large" in full.stderr
    out = tmp_path / "out.jsonl"
    arguments["resume"] = tmp_path / "other"
    full = limited(command("retail", arguments, own, "-O", str(out)), 30_000)
    assert full.returncode == 1
    last = forks.run(
        command("retail", arguments, own, "-O", str(out)), check=False, cwd=ROOT, capture_output=True, text=True
    )
    assert last.returncode == 4, last.stderr[-3_000:]
    assert Counter(line_name(line) for line in lines(out)) == data


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any]) -> tuple[Path, list[str]]:
    """Return a folder with a finished run, and its command."""
    folder = tmp_path_factory.mktemp("finished")
    write_targets(folder / "targets.jsonl", 3)
    start = command(
        "retail",
        {"targets": folder / "targets.jsonl", "resume": folder / "state"},
        {**settings, "FAILURES_FEED": folder / "failed.jsonl"},
        *("-o", str(folder / "out.jsonl")),
    )
    assert forks.run(start, check=False, cwd=ROOT).returncode == 0
    return folder, start


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "not JSON": lambda journal: journal + b"not json\n",
    "zeros": lambda journal: journal + b"\0" * 4_096,
    "no code": lambda journal: journal + b'{"done":0}\n',
    "cut": lambda journal: journal[: len(journal) // 2],
}
SOAK_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "line of zeros": lambda journal: journal + b"\0" * 4_096 + b"\n",
    "no such feed": lambda journal: journal + b'{"done":0,"code":"OK","sizes":[[99,1]]}\n',
    "a list": lambda journal: journal + b"[1]\n",
    "not UTF-8": lambda journal: b"\xff\xfe\n" + journal,
    "other key": lambda journal: journal.replace(b'"code"', b'"cod"', 1),
    "no newline": lambda journal: journal[:-1],
}


@pytest.mark.parametrize("kind", [*DAMAGES, *(pytest.param(each, marks=pytest.mark.soak) for each in SOAK_DAMAGES)])
def test_rb_3_a_damaged_journal_is_refused_or_harmless(finished: tuple[Path, list[str]], kind: str) -> None:
    damage = (DAMAGES | SOAK_DAMAGES)[kind]
    folder, start = finished
    out, journal = folder / "out.jsonl", folder / "state/ledger.jsonl"
    before, entries = out.read_bytes(), journal.read_bytes()
    journal.write_bytes(damage(entries))
    try:
        run = forks.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
        if run.returncode:
            assert run.returncode == 1
            assert re.search(r"cannot resume: .*, line \d+, is not an entry", run.stderr)
            assert out.read_bytes() == before
        else:
            params = Counter(json.dumps(line["params"]) for line in lines(out))
            assert params == Counter(json.dumps(json.loads(line)["params"]) for line in before.splitlines())
    finally:
        out.write_bytes(before)
        journal.write_bytes(entries)


@pytest.mark.parametrize("size", [0, 3])
def test_rb_15_a_file_that_is_not_a_feed_of_this_run_is_not_truncated(
    finished: tuple[Path, list[str]], size: int
) -> None:
    folder, start = finished
    journal, victim = folder / "state/ledger.jsonl", folder / "victim.jsonl"
    entries, out = journal.read_bytes(), (folder / "out.jsonl").read_bytes()
    victim.write_text("mine\n")
    journal.write_bytes(entries + json.dumps({"feed": str(victim), "size": size}).encode() + b"\n")
    try:
        run = forks.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    finally:
        journal.write_bytes(entries)
    assert victim.read_text() == "mine\n"
    assert (folder / "out.jsonl").read_bytes() == out
    assert run.returncode == 1
    assert f"{victim} contains lines after the last stored target, and is not a feed of this run" in run.stderr


def is_lines(path: str) -> bool | None:
    """The feeds of the runs below: plain JSON Lines files, and gzipped ones."""
    return {".jsonl": True, ".gz": False}.get(Path(path).suffix)


def opened(folder: Path) -> Journal:
    journal = Journal(folder)
    journal.open(is_lines)
    return journal


def begun(folder: Path, run: dict[str, Any] | None = None) -> Journal:
    journal = opened(folder)
    journal.begin(run or {"targets": "a"}, list)
    return journal


FOLLOWUP = {"id": "x", "scraper": "retail-search-v4", "params": {}, "parent": "p", "hop": 1, "batch": True}


def test_a_journal_reads_its_own_entries_and_truncates_the_rest(tmp_path: Path) -> None:
    feed = tmp_path / "out.jsonl"
    first = begun(tmp_path / "state")
    first.feed(str(feed), 0)
    first.store(3, "OK", [FOLLOWUP], ends=[(str(feed), 4)])
    first.close()
    feed.write_bytes(b"one\ntw")
    with (tmp_path / "state/ledger.jsonl").open("ab") as file:
        file.write(b'{"done": 4, "co')
    second = begun(tmp_path / "state")
    assert 3 in second
    assert 4 not in second
    assert list(second.pending) == ["x"]
    assert feed.read_bytes() == b"one\n"
    with pytest.raises(CannotResumeError, match="another run is using"):
        opened(tmp_path / "state")
    second.store("x", "TARGET_NOT_FOUND", [])
    second.close()
    with feed.open("ab") as file:
        file.write(b"two\n")
    third = opened(tmp_path / "state")
    assert third.counts == {"OK": 1, "TARGET_NOT_FOUND": 1}
    assert third.pending == {}
    assert feed.read_bytes() == b"one\ntwo\n"
    with pytest.raises(CannotResumeError, match="other targets"):
        third.begin({"targets": "b"}, list)
    assert feed.read_bytes() == b"one\ntwo\n", "the start of another run changes nothing"
    third.begin({"targets": "a"}, list)
    assert feed.read_bytes() == b"one\n", "the second line has no journal entry (RB-1)"
    third.close()


@pytest.mark.parametrize("closed", [False, True])
def test_buffered_targets_count_when_their_file_was_closed(tmp_path: Path, closed: bool) -> None:  # noqa: FBT001  # a case
    feed = tmp_path / "out.jsonl.gz"
    first = begun(tmp_path / "state")
    first.feed(str(feed), 0)
    feed.write_bytes(b"half")
    first.buffer(0, "OK", [], [str(feed)])
    if closed:
        first.complete(str(feed), 4)
    first.close()
    second = begun(tmp_path / "state")
    assert (0 in second) == closed
    assert feed.exists() == closed
    second.close()


def test_a_batch_in_a_bucket_counts_when_it_has_arrived(tmp_path: Path) -> None:
    first = begun(tmp_path / "state")
    for row, name in enumerate(("arrived", "lost")):
        first.buffer(row, "OK", [], [f"memory://batches/{name}.jsonl"])
    first.close()
    fsspec.filesystem("memory").pipe("/batches/arrived.jsonl", b"{}\n")
    second = opened(tmp_path / "state")
    assert (0 in second, 1 in second) == (True, False)
    second.begin({"targets": "a"}, list)
    second.complete("memory://batches/lost.jsonl", None)
    second.close()
    third = opened(tmp_path / "state")
    assert 1 in third, "a complete file may be moved or deleted afterwards"
    third.close()


def test_missing_lines_are_scraped_again(tmp_path: Path) -> None:
    """A power cut removes a feed's tail, or replaces it by zero bytes. Later lines at the same offsets are new ones."""
    feed = tmp_path / "out.jsonl"
    first = begun(tmp_path / "state")
    first.feed(str(feed), 0)
    for row in range(4):
        first.store(row, "OK", [], ends=[(str(feed), 3 * row + 3)])
    first.close()
    feed.write_bytes(b"{}\n{}\n\0\0\0{}\n")
    second = begun(tmp_path / "state")
    assert [row in second for row in range(4)] == [True, True, False, False]
    assert feed.read_bytes() == b"{}\n{}\n"
    second.feed(str(feed), 6)
    with feed.open("ab") as file:
        file.write(b"[]\n[]\n")
    second.store(3, "OK", [], ends=[(str(feed), 9)])  # killed before it notes the second line
    second.close()
    third = begun(tmp_path / "state")
    assert [row in third for row in range(4)] == [True, True, False, True]
    assert feed.read_bytes() == b"{}\n{}\n[]\n"
    third.close()


def test_a_journal_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    out, packed = tmp_path / "out.jsonl", tmp_path / "out.jsonl.gz"
    (tmp_path / "state").mkdir()
    entries = [
        {"run": {"targets": "a"}},
        {"feed": str(out), "size": 0},
        {"feed": str(packed), "size": 0},
        {"done": 0, "code": "OK", "sizes": [[0, 3]]},
        {"done": 1, "code": "OK", "then": [FOLLOWUP], "in": [str(packed)]},
        {"closed": str(packed)},
        {"ended": True},
        {"feed": str(out), "size": 3},
        {"done": 2, "code": "OK", "in": [str(tmp_path / "other.gz")]},
    ]
    (tmp_path / "state/ledger.jsonl").write_text("".join(json.dumps(each) + "\n" for each in entries))
    out.write_bytes(b"{}\n{}\n")
    packed.write_bytes(b"packed")
    journal = begun(tmp_path / "state")
    assert [row in journal for row in range(3)] == [True, True, False]
    assert list(journal.pending) == ["x"]
    assert (out.read_bytes(), packed.read_bytes()) == (b"{}\n", b"packed")
    journal.close()
