"""The golden record: its rows and hashes, the comparison with it, and the reproduction of a part of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crawler.registry import scrapers
from crawler.targets.parser import check_params
from scripts.captures import CAPTURES, ROOT, captures
from scripts.golden.crawls import SEEDS, listed, shortened
from scripts.golden.outcome import Outcome, canonical, row_differences
from scripts.golden.record import Rows, Selection, read, write

pytestmark = pytest.mark.meta

RECORD = ROOT / "tests" / "golden.jsonl"
PLAIN, PAGES = 'sandbox/2/retail-search-v4/{"query":"a [plain]"}', 'sandbox/1/retail-search-v4/{"query":"a"} [pages] #2'
CAPTURE = "captures/photoapp/0123456789ab"
DATA = {"rows": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], "next": None}


def golden(*arguments: object) -> tuple[int, list[str], str]:
    """Run the golden record's program. Return its exit code, the printed lines and the log."""
    command = [sys.executable, "-m", "scripts.golden", *map(str, arguments)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=300)
    return run.returncode, run.stdout.splitlines(), run.stderr


def record(file: Path, rows: Rows) -> Path:
    write(file, rows)
    return file


def row(data: Any = DATA, *warnings: str) -> dict[str, Any]:
    return Outcome("OK", data=data, warnings=warnings).row()


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(DATA, set(), id="equal"),
        pytest.param({**DATA, "next": 0}, {"next"}, id="null to 0"),
        pytest.param({"rows": DATA["rows"]}, {"next"}, id="a key is missing"),
        pytest.param({**DATA, "rows": [{"id": 1, "name": "a"}, {"id": 2, "name": "c"}]}, {"rows[].name"}, id="a value"),
        pytest.param(
            {**DATA, "rows": [{"id": 1, "name": "a"}, {"id": "2", "name": "b"}]}, {"rows[].id"}, id="another type"
        ),
        pytest.param(
            {**DATA, "rows": [{"id": 1, "name": "b"}, {"id": 2, "name": "a"}]},
            {"rows[].name"},
            id="values change places",
        ),
        pytest.param(
            {**DATA, "rows": [{"id": 1, "name": "a"}]}, {"rows[]", "rows[].id", "rows[].name"}, id="a row is lost"
        ),
        pytest.param({**DATA, "rows": []}, {"rows[]", "rows[].id", "rows[].name"}, id="all rows are lost"),
        pytest.param({**DATA, "rows": None}, {"rows", "rows[]", "rows[].id", "rows[].name"}, id="a list to null"),
    ],
)
def test_a_changed_value_changes_the_hash_of_its_path_alone(after: Any, expected: set[str]) -> None:
    assert {each.place for each in row_differences(row(), row(after))} == expected


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = {
        PLAIN: row(DATA, "a warning"),
        PAGES: row({**DATA, "next": 1}),
        CAPTURE: Outcome("TARGET_NOT_FOUND", "a quoted page", {"status": 404}, [1], hides_message=True).row(),
    }
    file = record(tmp_path / "record", rows)
    assert read(file, Selection()) == rows
    assert "quoted" not in file.read_text()
    assert "a warning" not in file.read_text()
    assert file.read_text().count('"paths"') == 1  # rows with the same paths share one entry


def test_a_comparison_lists_each_difference(tmp_path: Path) -> None:
    was = record(tmp_path / "was", {PLAIN: row(), PAGES: row(), CAPTURE: row()})
    changed = {PLAIN: Outcome("UPSTREAM_ERROR", "500").row(), "captures/photoapp/new": row(), CAPTURE: row({"next": 1})}
    now = record(tmp_path / "now", changed)
    status, lines, log = golden("compare", was, "--now", now, "--captures", tmp_path)
    assert status == 1, log
    found = [tuple(line.split("\t")[:2]) for line in lines]
    assert found == [
        *((CAPTURE, place) for place in ("next", "rows[]", "rows[].id", "rows[].name")),
        ("captures/photoapp/new", "row"),
        (PAGES, "row"),
        *((PLAIN, place) for place in ("code", "data", "message")),
    ]
    assert lines[4].split("\t")[2:] == ["absent", '"OK"']
    assert "3 rows compared, 4 differ" in log
    assert re.search(r"^ +2 row$", log, re.MULTILINE)


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="the captures (../shared/captures) are missing")
def test_no_file_of_the_repository_names_the_file_of_a_capture() -> None:
    stems = "\n".join({file.name.partition(".")[0] for file in captures().values()})
    found = subprocess.run(
        ["git", "grep", "--fixed-strings", "--files-with-matches", "-f", "-"],  # noqa: S607
        check=False,
        input=stems,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (found.stdout, found.stderr) == ("", "")


def test_the_record_is_reproducible() -> None:
    status, lines, log = golden("compare", RECORD, "--platform", "professional", "--variant", "robots")
    assert (status, lines) == (0, []), log
    assert "2 rows compared" in log


def test_a_target_of_the_list_exists_in_the_sandbox_unless_the_list_says_otherwise() -> None:
    """Sixty members were once renamed in the sandbox, so their rows compared one "not found" error with another."""
    missing = {key for key, row in read(RECORD, Selection()).items() if row["code"] == "TARGET_NOT_FOUND"}
    for target in listed():
        if "scraper" in target and "captures" not in target and "fault" not in target:
            checked = check_params(scrapers()[target["scraper"]], target["params"])
            params = canonical(shortened(checked.model_dump(mode="json", exclude_none=True)))
            keys = {f"sandbox/{seed}/{target['scraper']}/{params}" for seed in target.get("seeds", SEEDS)}
            assert bool(keys & missing) == target.get("unknown", False), target


def test_a_selection_is_written_into_the_record(tmp_path: Path) -> None:
    """Rows that are not selected are kept, including those of the recorded pages if their folder is missing."""
    file = record(tmp_path / "record", {PLAIN: row(), PAGES: row(), CAPTURE: row()})
    now = record(tmp_path / "now", {PLAIN: row({"next": 1})})
    status, _, log = golden("write", file, "--now", now, "--variant", "plain", "--captures", tmp_path / "none")
    assert status == 0, log
    assert read(file, Selection()) == {PLAIN: row({"next": 1}), PAGES: row(), CAPTURE: row()}
