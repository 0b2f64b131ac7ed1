"""``scrapy fsck``: agrees with what a resumed run would do, and finds lines that a resumed run would not repair."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import UsageError

from crawler.commands.fsck import Command, line_problems

IDS = ("t1", "t2", "t3")


def line(target: str, row: int = 0) -> bytes:
    """A row as ``-a explode=`` writes it. The key ``id`` belongs to the row, and is the same for all targets."""
    return json.dumps({"target_id": target, "id": f"p{row}"}).encode() + b"\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a finished run with three targets. The second one has two rows."""
    out, ends = tmp_path / "out.jsonl", []
    with out.open("wb") as feed:
        for target in IDS:
            feed.write(b"".join(line(target, row) for row in range(1 + (target == "t2"))))
            ends.append(feed.tell())
    (tmp_path / "failed.jsonl").touch()
    feeds = [[str(out), 0], [str(tmp_path / "failed.jsonl"), 0]]
    entries: list[dict[str, Any]] = [{"run": {"targets": "t.jsonl"}, "feeds": feeds}]
    entries += [{"done": row, "code": "OK", "sizes": [[0, end]]} for row, end in enumerate(ends)]
    state = tmp_path / "state"
    state.mkdir()
    (state / "ledger.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return state


def fsck(*arguments: object) -> int:
    command = Command()
    command.run([str(each) for each in arguments], Namespace())
    return command.exitcode


def test_rb_24_a_finished_run_is_valid(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fsck(folder) == 0
    printed = capsys.readouterr().out
    assert "3 targets are stored, OK 3; 0 are pending" in printed
    assert "damaged" not in printed


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a torn line": (lambda feed: feed + b'{"target_id": "t4', "17 bytes follow the last stored target"),
    "a lost line": (lambda feed: feed[: feed.rindex(b'{"target_id"')], "lines of stored targets are missing"),
    "nothing is left": (lambda _: b"", "lines of stored targets are missing"),
    "a damaged line": (lambda feed: feed.replace(b'"t1"', b'"t1\0'), "line 1: not a line of a feed"),
    "a line that is not an object": (
        lambda feed: b"3".ljust(len(line("t1")) - 1) + b"\n" + feed[len(line("t1")) :],
        "line 1: not a line of a feed",
    ),
    "a repeated target": (lambda feed: feed.replace(b'"t3"', b'"t1"'), "line 4: an earlier line has the same target"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_rb_24_a_damaged_feed_is_reported_and_not_changed(
    folder: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    change, problem = DAMAGES[damage]
    out, journal = folder.parent / "out.jsonl", folder / "ledger.jsonl"
    damaged, entries = change(out.read_bytes()), journal.read_bytes()
    out.write_bytes(damaged)
    assert fsck(folder) == 1
    assert problem in capsys.readouterr().out
    assert (out.read_bytes(), journal.read_bytes()) == (damaged, entries)


def test_rb_24_a_deleted_feed_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder.parent / "out.jsonl").unlink()
    assert fsck(folder) == 1
    assert "lines of stored targets are missing" in capsys.readouterr().out


def test_rb_24_a_damaged_journal_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (folder / "ledger.jsonl").open("a") as journal:
        journal.write("not json\n")
    assert fsck(folder) == 1
    assert "line 5, is not an entry of a journal" in capsys.readouterr().out


def test_rb_24_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name the folder of -a resume="):
        fsck(tmp_path / "nothing")
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError):
        fsck()


def test_rb_24_lines_of_each_kind_of_feed_are_valid(tmp_path: Path) -> None:
    lines = [
        {"id": "t1", "scraper": "x", "data": {}},
        {"id": "t2", "scraper": "x", "code": "TARGET_NOT_FOUND"},
        {"id": "the record's own", "name": "a record without its target"},
        {"id": "the record's own", "name": "another one"},
    ]
    feed = tmp_path / "out.jsonl"
    feed.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert list(line_problems(feed, feed.stat().st_size)) == []
    feed.write_text("".join(json.dumps(each) + "\n" for each in [*lines, lines[0]]))
    assert list(line_problems(feed, feed.stat().st_size)) == ["line 5: an earlier line has the same target"]
