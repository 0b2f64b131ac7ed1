"""Runs that are killed and started again: no target is lost, and none is shown twice."""

from __future__ import annotations

import gzip
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from crawler.sandbox.retail.site import FAULTS, Site
from crawler.targets.journal import CannotResumeError, Journal
from tests.crawls import ROOT, command, lines, sandbox

WORLD = Site(light=True)


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    with sandbox("--light") as found:
        yield found


def write_targets(file: Path, count: int) -> tuple[Counter[str], Counter[str]]:
    """Targets with data, with failures, with two pages, and lines that are none: what they lead to, data and failures.

    Told apart by id; a further page by its params.
    """
    data: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    faulty = [cat for cat, fault in WORLD.faults.items() if FAULTS[fault].code == "TARGET_NOT_FOUND"]
    with file.open("w") as out:
        for number in range(count):
            if number % 10 == 3:
                out.write(json.dumps({"id": f"t{number}", "cat_id": faulty[number % len(faulty)]}) + "\n")
                failures[f"t{number}"] += 1
            elif number % 50 == 7:
                out.write("{broken\n")
                failures[f"targets.jsonl:{number + 1}"] += 1
            else:
                listing = {"cat_id": WORLD.big_category} if number % 25 == 4 else {"query": "mustard"}
                params = {**listing, "max_price": 1000.0 + number}
                out.write(json.dumps({"id": f"t{number}", **params}) + "\n")
                data[f"t{number}"] += 1
                scraper = "retail-category-v4" if "cat_id" in listing else "retail-search-v4"
                data[f"page 2 of {1000 + number}"] += WORLD.expected_record({"scraper": scraper, **params})["has_more"]
    return +data, failures


def named(line: dict[str, Any]) -> str:
    params = line["params"]
    return f"page 2 of {params['max_price']:.0f}" if params.get("page") == 2 else str(line["id"])


def run_and_kill(start: list[str], ledger: Path, notes: int, moments: random.Random) -> bool:
    """Starts a crawl and kills it when the ledger has that many notes more. False where it ended before."""
    before = ledger.read_bytes().count(b"\n") if ledger.exists() else 0
    with subprocess.Popen(start, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            if ledger.exists() and ledger.read_bytes().count(b"\n") >= before + notes:
                time.sleep(moments.uniform(0, 0.05))
                process.send_signal(signal.SIGKILL)
                return process.wait() < 0
            time.sleep(0.002)
    return False


@pytest.mark.parametrize(("count", "kills"), [(200, 3), pytest.param(3_000, 20, marks=pytest.mark.soak)])
def test_killed_runs_lose_nothing_and_show_nothing_twice(
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
    ledger = tmp_path / "state/ledger.jsonl"
    most = (data.total() + failures.total()) // (kills + 2)
    killed = [run_and_kill(start, ledger, moments.randrange(1, most), moments) for _ in range(kills)]
    assert all(killed), "the run was over before it was killed"
    last = subprocess.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert last.returncode == 4, last.stderr
    assert Counter(named(line) for line in lines(out)) == data
    assert Counter(line["id"] for line in lines(failed)) == failures
    for line in lines(out)[:: max(1, count // 100)]:
        assert line["data"] == WORLD.expected_record({"scraper": line["scraper"], **line["params"]})
    assert f"total={data.total() + failures.total()}" in last.stderr, "the closing line counts all starts"


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path, settings: dict[str, Any]) -> None:
    """Ctrl-C: what was out has no outcome yet, not even a failure; gzip counts when it is closed."""
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
    stopped = subprocess.run(
        [*start, "-s", "CLOSESPIDER_ITEMCOUNT=1"], check=False, cwd=ROOT, capture_output=True, text=True
    )
    assert stopped.returncode == 1, stopped.stderr
    last = subprocess.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    with gzip.open(tmp_path / "out.jsonl.gz", "rt") as file:
        assert Counter(named(json.loads(line)) for line in file) == data
    assert lines(tmp_path / "failed.jsonl") == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"shard": "1/2"}, "belongs to a run with other shard"),
        ({"targets": "other.jsonl"}, "belongs to a run with other targets"),
    ],
)
def test_a_folder_belongs_to_one_run(
    tmp_path: Path, settings: dict[str, Any], change: dict[str, str], sentence: str
) -> None:
    write_targets(tmp_path / "targets.jsonl", 3)
    write_targets(tmp_path / "other.jsonl", 2)
    arguments = {"targets": tmp_path / "targets.jsonl", "resume": tmp_path / "state"}
    assert subprocess.run(command("retail", arguments, settings), check=False, cwd=ROOT).returncode == 0
    other = {name: tmp_path / value if name == "targets" else value for name, value in change.items()}
    run = subprocess.run(
        command("retail", arguments | other, settings), check=False, cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert sentence in run.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-o", "-:jsonl"], "what was printed cannot be taken back"),
        (["-o", "s3://bucket/out.jsonl"], "put %(time)s into its name"),
        (["-o", "{}/a.parquet", "-o", "{}/b.jsonl"], "one feed of another kind"),
    ],
)
def test_what_cannot_be_resumed_is_said_at_once(
    tmp_path: Path, settings: dict[str, Any], options: list[str], sentence: str
) -> None:
    start = command("retail", {"query": "mustard", "resume": tmp_path / "state"}, settings)
    start += [option.replace("{}", str(tmp_path)) for option in options]
    run = subprocess.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert sentence in run.stderr


def test_a_second_start_beside_the_first_leaves_its_feed_alone(tmp_path: Path, settings: dict[str, Any]) -> None:
    journal = opened(tmp_path / "state")
    out = tmp_path / "out.jsonl"
    out.write_text("{}\n")
    start = command("retail", {"query": "mustard", "resume": tmp_path / "state"}, settings, "-O", str(out))
    run = subprocess.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert "another run is using" in run.stderr
    assert out.read_text() == "{}\n"
    journal.close()


def limited(start: list[str], size: int) -> subprocess.CompletedProcess[str]:
    """Runs a crawl on a disk that takes no more than so many bytes of a file."""
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
    last = subprocess.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    assert last.returncode == 4, last.stderr[-3_000:]
    assert Counter(named(line) for line in lines(out)) == data
    assert Counter(line["id"] for line in lines(failed)) == failures


def test_rb_2_a_journal_that_cannot_be_written_ends_the_run(tmp_path: Path, settings: dict[str, Any]) -> None:
    """A limit for the journal alone: the feed of the first start is nowhere."""
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
    last = subprocess.run(
        command("retail", arguments, own, "-O", str(out)), check=False, cwd=ROOT, capture_output=True, text=True
    )
    assert last.returncode == 4, last.stderr[-3_000:]
    assert Counter(named(line) for line in lines(out)) == data


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any]) -> tuple[Path, list[str]]:
    """A folder with a finished run, and its command."""
    folder = tmp_path_factory.mktemp("finished")
    write_targets(folder / "targets.jsonl", 3)
    start = command(
        "retail",
        {"targets": folder / "targets.jsonl", "resume": folder / "state"},
        {**settings, "FAILURES_FEED": folder / "failed.jsonl"},
        *("-o", str(folder / "out.jsonl")),
    )
    assert subprocess.run(start, check=False, cwd=ROOT).returncode == 0
    return folder, start


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "not JSON": lambda journal: journal + b"not json\n",
    "zeros": lambda journal: journal + b"\0" * 4_096,
    "no code": lambda journal: journal + b'{"done":0}\n',
    "cut": lambda journal: journal[: len(journal) // 2],
}
MORE_DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "line of zeros": lambda journal: journal + b"\0" * 4_096 + b"\n",
    "no such feed": lambda journal: journal + b'{"done":0,"code":"OK","sizes":[[99,1]]}\n',
    "a list": lambda journal: journal + b"[1]\n",
    "not UTF-8": lambda journal: b"\xff\xfe\n" + journal,
    "other key": lambda journal: journal.replace(b'"code"', b'"cod"', 1),
    "no newline": lambda journal: journal[:-1],
}


@pytest.mark.parametrize("kind", [*DAMAGES, *(pytest.param(each, marks=pytest.mark.soak) for each in MORE_DAMAGES)])
def test_rb_3_a_damaged_journal_is_said_or_does_no_harm(finished: tuple[Path, list[str]], kind: str) -> None:
    damage = (DAMAGES | MORE_DAMAGES)[kind]
    folder, start = finished
    out, journal = folder / "out.jsonl", folder / "state/ledger.jsonl"
    before, entries = out.read_bytes(), journal.read_bytes()
    journal.write_bytes(damage(entries))
    try:
        run = subprocess.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
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
def test_rb_15_a_file_that_is_not_a_feed_of_this_run_is_not_cut(finished: tuple[Path, list[str]], size: int) -> None:
    folder, start = finished
    journal, victim = folder / "state/ledger.jsonl", folder / "victim.jsonl"
    entries, out = journal.read_bytes(), (folder / "out.jsonl").read_bytes()
    victim.write_text("mine\n")
    journal.write_bytes(entries + json.dumps({"feed": str(victim), "size": size}).encode() + b"\n")
    try:
        run = subprocess.run(start, check=False, cwd=ROOT, capture_output=True, text=True)
    finally:
        journal.write_bytes(entries)
    assert victim.read_text() == "mine\n"
    assert (folder / "out.jsonl").read_bytes() == out
    assert run.returncode == 1
    assert f"{victim} holds more than the targets that are finished, and is not a feed of this run" in run.stderr


def is_lines(path: str) -> bool | None:
    """The feeds of the runs below: those in files of plain lines, and gzipped ones."""
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


def test_a_ledger_reads_its_own_notes_and_cuts_the_rest(tmp_path: Path) -> None:
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
    assert feed.read_bytes() == b"one\ntwo\n", "another run's start changes nothing"
    third.begin({"targets": "a"}, list)
    assert feed.read_bytes() == b"one\n", "no journalled target: what a run wrote whose end was in order (RB-1)"
    third.close()


@pytest.mark.parametrize("closed", [False, True])
def test_what_was_held_counts_when_its_file_was_closed(tmp_path: Path, closed: bool) -> None:  # noqa: FBT001  # a case
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


def test_lines_that_are_gone_are_scraped_again(tmp_path: Path) -> None:
    """A power cut took the feed's tail, or left zero bytes of it. What is written anew at its place is told apart."""
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
    second.store(3, "OK", [], ends=[(str(feed), 9)])  # and is killed before it notes the second one
    second.close()
    third = begun(tmp_path / "state")
    assert [row in third for row in range(4)] == [True, True, False, True]
    assert feed.read_bytes() == b"{}\n{}\n[]\n"
    third.close()


def test_a_ledger_of_an_earlier_version_is_read(tmp_path: Path) -> None:
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
