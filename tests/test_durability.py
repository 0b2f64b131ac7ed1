"""Feeds and journal on failing disks: after a resume, each target is in the feeds exactly once."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from tests.disk import Disk, KilledError, faulty
from tests.small_run import EXPECTED, SmallRun, outputs, targets_file

FEEDS = ["out.jsonl", "out.jsonl.gz"]


def operations(folder: Path, targets: Path, feed: str) -> int:
    """Return the number of disk operations of a complete run."""
    folder.mkdir()
    with faulty(Disk(folder)) as disk:
        assert SmallRun(folder, targets, feed).start() == 4
    assert outputs(folder) == EXPECTED
    return disk.operations


def spread(count: int, most: int) -> list[int]:
    """Return all numbers below ``count``, or ``most`` of them, evenly spread."""
    return sorted({number * count // most for number in range(most)}) if count > most else list(range(count))


def assert_resumes(folder: Path, targets: Path, feed: str, context: str) -> None:
    """Start twice more on a working disk. The first start finishes the run; the second changes nothing."""
    for start in range(2):
        run = SmallRun(folder, targets, feed)
        assert run.start() == 4, f"{context}, start {start}: {run.reason}"
        assert outputs(folder) == EXPECTED, f"{context}, start {start}"


@pytest.mark.parametrize("most", [6, pytest.param(100_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("kind", [{}, {"torn": True}, {"full": True}, {"full": True, "torn": True}], ids=str)
def test_rb_1_rb_2_a_disk_error_loses_no_target(tmp_path: Path, kind: dict[str, bool], feed: str, most: int) -> None:
    targets = targets_file(tmp_path)
    for number in spread(operations(tmp_path / "whole", targets, feed), most):
        folder = tmp_path / str(number)
        folder.mkdir()
        with faulty(Disk(folder, fail_at=number, **kind)) as disk:
            run = SmallRun(folder, targets, feed)
            code = run.start()
        context = f"{disk.failed} as operation {number}"
        assert disk.failed
        assert code == 1, context
        assert "No space left" in run.reason or run.reason == "finished", context
        assert_resumes(folder, targets, feed, context)


@pytest.mark.parametrize("most", [6, pytest.param(100_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("feed", FEEDS)
def test_a_kill_at_any_operation_loses_no_target(tmp_path: Path, feed: str, most: int) -> None:
    targets = targets_file(tmp_path)
    for number in spread(operations(tmp_path / "whole", targets, feed), most):
        folder = tmp_path / str(number)
        folder.mkdir()
        with faulty(Disk(folder, kill_at=number)) as disk:
            with suppress(KilledError):
                SmallRun(folder, targets, feed).start()
            assert disk.killed
        with faulty(Disk(folder, kill_at=number // 2)), suppress(KilledError):
            SmallRun(folder, targets, feed).start()
        assert_resumes(folder, targets, feed, f"killed at {number}")


def power_cut(file: Path, size: int, *, zeros: bool) -> None:
    """Truncate a file to the size that had reached the disk before a power cut, or fill the rest with zeros."""
    length = file.stat().st_size
    with file.open("rb+") as opened:
        opened.truncate(size)
        if zeros:
            opened.truncate(length)


@pytest.mark.parametrize(
    ("kills", "lengths"), [(3, 4), pytest.param(10, 6, marks=pytest.mark.soak)], ids=["some", "more"]
)
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("zeros", [False, True], ids=["cut", "zeros"])
def test_a_power_cut_loses_no_target(  # cases
    tmp_path: Path,
    feed: str,
    zeros: bool,  # noqa: FBT001
    kills: int,
    lengths: int,
) -> None:
    """Files are truncated to lengths that were flushed since their last sync, and to lengths in between."""
    targets = targets_file(tmp_path)
    count = operations(tmp_path / "whole", targets, feed)
    chance = random.Random(count)  # noqa: S311  # no secret
    for number in [*spread(count, kills), count]:
        left = tmp_path / "left"
        left.mkdir()
        with faulty(Disk(left, kill_at=number)) as disk, suppress(KilledError):
            SmallRun(left, targets, feed).start()
        cases: list[dict[Path, int]] = []
        for file, flushed in disk.lengths.items():
            if not file.exists():
                continue
            first, last = disk.synced.get(file, 0), file.stat().st_size
            between = range(first, last)
            sizes = {*flushed, first, *chance.sample(between, min(lengths, len(between)))}
            cases += [{file: size} for size in sorted(sizes) if size <= last]
        for _ in range(lengths):
            each = [case for case in cases if chance.random() < len(disk.lengths) / max(1, len(cases))]
            cases.append({file: size for case in each for file, size in case.items()})
        for case in cases:
            folder = tmp_path / "copy"
            shutil.copytree(left, folder)
            for file, size in case.items():
                power_cut(folder / file.relative_to(left), size, zeros=zeros)
            replace_paths(folder, left)
            named = {file.name: size for file, size in case.items()}
            assert_resumes(folder, targets, feed, f"killed at {number}, left: {named}")
            shutil.rmtree(folder)
        shutil.rmtree(left)


def replace_paths(folder: Path, former: Path) -> None:
    """Replace the paths in the journal by those of the copy."""
    journal = folder / "state/ledger.jsonl"
    if journal.exists():
        # Both names have the same length, so that offsets and truncated lines stay valid.
        journal.write_bytes(journal.read_bytes().replace(str(former).encode(), str(folder).encode()))
